//! Keys that frameworks keep next to their queues: hashes, strings and sets.

use maud::html;

use quoin_base::limits::{DASHBOARD_ROWS_MAX, DASHBOARD_SHOWN_BYTES_MAX};
use quoin_queues::cursor_and_names;

use super::inside::{Inside, path};
use crate::figures::{count, readable};
use crate::json;
use crate::view::{NoPage, View, number, words};

pub(super) fn body(view: &mut View<'_>, key: &[u8], kind: &str) -> Result<Inside, NoPage> {
    let body = match kind {
        "string" => {
            let length = number(&view.expect(words!["STRLEN", key])?);
            // One byte more, so that a value that was cut off is recognized as such.
            let last = DASHBOARD_SHOWN_BYTES_MAX.to_string();
            let value = view.expect(words!["GETRANGE", key, "0", last])?;
            html! {
                (json::block(value.bytes().unwrap_or_default()))
                div.pager { span { (count(length)) " bytes" } }
            }
        }
        "hash" | "set" => {
            let is_hash = kind == "hash";
            let cursor = view.asked.query.text("cursor").to_owned();
            let cursor = if cursor.is_empty() { "0" } else { &cursor };
            let (scan, length) = if is_hash {
                ("HSCAN", "HLEN")
            } else {
                ("SSCAN", "SCARD")
            };
            let length = number(&view.expect(words![length, key])?);
            let rows = DASHBOARD_ROWS_MAX.to_string();
            let (next, parts) =
                cursor_and_names(view.expect(words![scan, key, cursor, "COUNT", rows])?);
            html! {
                dl.pair {
                    @for part in parts.chunks(if is_hash { 2 } else { 1 }) {
                        @match part {
                            [name, value] => { dt { (readable(name)) } dd { (json::block(value)) } }
                            [member] => { dd { (json::block(member)) } }
                            _ => {}
                        }
                    }
                }
                div.pager {
                    @if cursor != "0" { a.button href=(path(view, key, &[])) { "First page" } }
                    @if let Some(next) = next {
                        a.button href=(path(view, key, &[("cursor", next.as_bytes())])) { "Next page" }
                    }
                    span { (count(length)) @if is_hash { " fields" } @else { " members" } }
                }
            }
        }
        _ => html! { p.empty { "Values of this type cannot be shown." } },
    };
    Ok(Inside {
        tags: html! {},
        actions: html! {},
        body,
    })
}
