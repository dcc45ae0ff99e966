//! A list: its elements by index.

use maud::html;

use super::actions;
use super::inside::{Element, Inside, element_id, path, rows};
use crate::figures::{count, counted};
use crate::view::{NoPage, View, items, number, words};

pub(super) fn body(view: &mut View<'_>, key: &[u8]) -> Result<Inside, NoPage> {
    let length = number(&view.expect(words!["LLEN", key])?);
    let on_page = rows(view, key, length)?;
    let asked: i64 = view.asked.query.number("from").unwrap_or(0);
    let from = asked.clamp(0, (length - 1).max(0));
    let last = from + on_page - 1;
    let reply = view.expect(words!["LRANGE", key, from.to_string(), last.to_string()])?;
    let elements = items(&reply);
    let link = |from: i64| path(view, key, &[("from", from.to_string().as_bytes())]);
    let body = html! {
        div.table {
            @for (place, value) in elements.iter().enumerate() {
                @let value = value.bytes().unwrap_or_default();
                @let index = from + place as i64;
                (Element {
                    id: element_id(index, value),
                    index: html! { (count(index)) },
                    value,
                    details: html! {},
                    actions: actions::remove(view, key, index, value, &[b"LREM", key, b"1", value]),
                }.show())
            }
        }
        div.pager {
            @if from > 0 {
                a.button href=(link(0)) { "First page" }
                a.button href=(link((from - on_page).max(0))) { "Previous page" }
            }
            @if last + 1 < length {
                a.button href=(link(last + 1)) { "Next page" }
                a.button href=(link(length - on_page)) { "Last page" }
            }
            span { (counted(length, "element")) ", 0 is the left end" }
        }
    };
    Ok(Inside {
        tags: html! {},
        actions: html! {},
        body,
    })
}
