//! A priority queue or a sorted set: values in order.

use maud::{Markup, html};

use super::actions;
use super::inside::{Element, Inside, element_id, path, rows};
use crate::figures::{count, relative};
use crate::view::{NoPage, View, items, number, text, words};
use quoin_resp::wire::reply_reader::Value;

/// Scores from here on are read as times in seconds, which frameworks use for delays (2001 to 2286).
const SECONDS: std::ops::Range<f64> = 1e9..1e10;
/// And from here on as times in milliseconds.
const MILLISECONDS: std::ops::Range<f64> = 1e12..1e13;

/// A page of values with priorities, and what leads to the next.
struct Listed {
    elements: Vec<(Vec<u8>, String)>,
    next: Option<String>,
}

pub(super) fn body(view: &mut View<'_>, key: &[u8], kind: &str) -> Result<Inside, NoPage> {
    let is_priority_queue = kind == "pqueue";
    let length_command = if is_priority_queue { "PQ.LEN" } else { "ZCARD" };
    let length = number(&view.expect(words![length_command, key])?);
    let on_page = rows(view, key, length)?;
    let from = view.asked.query.text("from").to_owned();
    let listed = match is_priority_queue {
        true => by_cursor(view, key, &from, on_page)?,
        false => by_rank(view, key, &from, on_page, length)?,
    };
    let elements = listed.elements.iter().enumerate();
    let body = html! {
        @if listed.elements.is_empty() { p.empty { "Nothing is here." } } @else {
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

/// A score that is probably a time, from now.
fn time(score: &str, now_ms: i64) -> Markup {
    let score: f64 = score.parse().unwrap_or(0.0);
    let at_ms = match score {
        score if SECONDS.contains(&score) => Some(score * 1_000.0),
        score if MILLISECONDS.contains(&score) => Some(score),
        _ => None,
    };
    html! { @if let Some(at_ms) = at_ms { span.soft.nowrap { (relative(at_ms as i64, now_ms)) } } }
}

fn by_cursor(
    view: &mut View<'_>,
    key: &[u8],
    cursor: &str,
    on_page: i64,
) -> Result<Listed, NoPage> {
    let mut list = words!["PQ.LIST", key, "COUNT", on_page.to_string()];
    if !cursor.is_empty() {
        list.extend(words!["CURSOR", cursor]);
    }
    let reply = view.expect(list)?;
    let (next, values) = match items(&reply) {
        [next, values] => (Some(text(next)).filter(|next| next != "0"), items(values)),
        _ => (None, &[][..]),
    };
    Ok(Listed {
        elements: pairs(values),
        next,
    })
}

fn by_rank(
    view: &mut View<'_>,
    key: &[u8],
    from: &str,
    on_page: i64,
    length: i64,
) -> Result<Listed, NoPage> {
    let from: i64 = from.parse().unwrap_or(0).max(0);
    let last = from + on_page - 1;
    let range = words![
        "ZRANGE",
        key,
        from.to_string(),
        last.to_string(),
        "WITHSCORES"
    ];
    let reply = view.expect(range)?;
    Ok(Listed {
        elements: pairs(items(&reply)),
        next: (last + 1 < length).then(|| (last + 1).to_string()),
    })
}

/// Values and scores that alternate, or that are pairs.
fn pairs(replies: &[Value]) -> Vec<(Vec<u8>, String)> {
    let pair =
        |value: &Value, score: &Value| (value.bytes().unwrap_or_default().to_vec(), text(score));
    let nested = replies.iter().filter_map(|reply| match items(reply) {
        [value, score] => Some(pair(value, score)),
        _ => None,
    });
    let nested: Vec<_> = nested.collect();
    if !nested.is_empty() {
        return nested;
    }
    replies
        .chunks_exact(2)
        .filter_map(|two| match two {
            [value, score] => Some(pair(value, score)),
            _ => None,
        })
        .collect()
}
