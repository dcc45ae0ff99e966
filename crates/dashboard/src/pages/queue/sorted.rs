//! A priority queue or a sorted set: values in order.

use maud::{Markup, html};

use quoin_queues::{by_cursor, by_rank, time_of_score};

use super::actions;
use super::inside::{Element, Inside, element_id, path, rows};
use crate::figures::{count, relative};
use crate::view::{NoPage, View, number, words};

pub(super) fn body(view: &mut View<'_>, key: &[u8], kind: &str) -> Result<Inside, NoPage> {
    let is_priority_queue = kind == "pqueue";
    let length_command = if is_priority_queue { "PQ.LEN" } else { "ZCARD" };
    let length = number(&view.expect(words![length_command, key])?);
    let on_page = rows(view, key, length)?;
    let from = view.asked.query.text("from").to_owned();
    let listed = match is_priority_queue {
        true => by_cursor(view.client(), key, &from, on_page)?,
        false => by_rank(view.client(), key, &from, on_page, length)?,
    };
    let elements = listed.rows.iter().enumerate();
    let body = html! {
        @if listed.rows.is_empty() { p.empty { "Empty." } } @else {
            div.table {
                @for (place, (value, score)) in elements {
                    @let removal: &[&[u8]] = if is_priority_queue {
                        &[b"PQ.REM", key, score.as_bytes(), value, b"COUNT", b"1"]
                    } else { &[b"ZREM", key, value] };
                    (Element {
                        id: element_id(place as i64, value),
                        index: html! { (score) },
                        value,
                        details: time(score, view.now_ms),
                        actions: actions::remove(view, key, place as i64, value, removal),
                    }.show())
                }
            }
        }
        div.pager {
            @if !from.is_empty() { a.button href=(path(view, key, &[])) { "First page" } }
            @if let Some(next) = &listed.next {
                a.button href=(path(view, key, &[("from", next.as_bytes())])) { "Next page" }
            }
            span {
                (count(length))
                @if is_priority_queue { " values, lowest priority first" } @else { " members, lowest score first" }
            }
        }
    };
    Ok(Inside {
        tags: html! {},
        actions: html! {},
        body,
    })
}

/// The time until or since a score that looks like a time.
fn time(score: &str, now_ms: i64) -> Markup {
    html! { @if let Some(at_ms) = time_of_score(score) { span.soft.nowrap { (relative(at_ms, now_ms)) } } }
}
