//! A stream: its entries, its groups, and what a group has pending.

use maud::{Markup, html};

use super::inside::{Inside, path, rows};
use crate::figures::{count, duration, readable, relative};
use crate::frame::{Action, figure};
use crate::json;
use crate::view::{NoPage, Pairs, View, items, number, text, words};
use quoin_resp::wire::reply_reader::Value;

pub(super) fn body(view: &mut View<'_>, key: &[u8]) -> Result<Inside, NoPage> {
    let length = number(&view.expect(words!["XLEN", key])?);
    let groups = view.run(words!["XINFO", "GROUPS", key])?;
    let groups: Vec<Pairs<'_>> = items(&groups).iter().map(Pairs::of).collect();
    let group = view.asked.query.bytes("group").to_vec();
    let shown = match (view.asked.query.text("show"), group.as_slice()) {
        (_, group) if !group.is_empty() => of_group(view, key, group)?,
        ("groups", _) => table_of_groups(view, key, &groups),
        _ => entries(view, key, length)?,
    };
    let is_of_groups = !group.is_empty() || view.asked.query.text("show") == "groups";
    let pending: i64 = groups.iter().map(|group| group.number("pending")).sum();
    let body = html! {
        dl.figures {
            (figure("Entries", &count(length), ""))
            (figure("Groups", &count(groups.len() as i64), ""))
            (figure("Pending", &count(pending), "delivered but not acknowledged"))
        }
        nav.tabs aria-label="Entries and groups" {
            a href=(path(view, key, &[])) aria-current=[(!is_of_groups).then_some("page")] {
                "Entries" b { (count(length)) }
            }
            a href=(path(view, key, &[("show", b"groups")])) aria-current=[is_of_groups.then_some("page")] {
                "Groups" b { (count(groups.len() as i64)) }
            }
        }
        (shown)
    };
    let question = format!("Remove all {} entries? The groups are kept.", count(length));
    let may_trim = length > 0 && view.may(&[b"XTRIM", key, b"MAXLEN", b"0"]);
    let here = path(view, key, &[]);
    Ok(Inside {
        tags: html! {},
        actions: html! {
            @if may_trim {
                (Action { id: "trim", label: "Purge", question: Some(&question), path: &here,
                    fields: &[("action", "trim")], is_dangerous: true }.show(view.session))
            }
        },
        body,
    })
}

/// The newest entries, or those before a given one.
fn entries(view: &mut View<'_>, key: &[u8], length: i64) -> Result<Markup, NoPage> {
    let on_page = rows(view, key, length)?;
    let before = view.asked.query.text("before").to_owned();
    let from = if before.is_empty() {
        "+".to_owned()
    } else {
        format!("({before}")
    };
    let reply = view.expect(words![
        "XREVRANGE",
        key,
        from,
        "-",
        "COUNT",
        on_page.to_string()
    ])?;
    let entries: Vec<(String, &[Value])> = items(&reply)
        .iter()
        .filter_map(|entry| match items(entry) {
            [id, fields] => Some((text(id), items(fields))),
            _ => None,
        })
        .collect();
    let last = entries.last().map(|(id, _)| id.clone());
    Ok(html! {
        @if entries.is_empty() { p.empty { "No entries." } } @else {
            div.table { @for (id, fields) in &entries { (entry(view, key, id, fields)) } }
        }
        div.pager {
            @if !before.is_empty() { a.button href=(path(view, key, &[])) { "Newest" } }
            @if let (Some(last), true) = (&last, entries.len() as i64 >= on_page) {
                a.button href=(path(view, key, &[("before", last.as_bytes())])) { "Older" }
            }
            span { "Newest first" }
        }
    })
}

fn entry(view: &View<'_>, key: &[u8], id: &str, fields: &[Value]) -> Markup {
    let at_ms: i64 = id
        .split('-')
        .next()
        .and_then(|ms| ms.parse().ok())
        .unwrap_or(0);
    let first = fields.chunks_exact(2).map(|pair| match pair {
        [name, value] => format!(
            "{}: {}",
            text(name),
            json::line(value.bytes().unwrap_or_default())
        ),
        _ => String::new(),
    });
    let line = first.collect::<Vec<_>>().join("  ");
    let here = path(view, key, &[]);
    let (element, popover) = (format!("x{id}"), format!("del-{id}"));
    let question = format!("Remove entry {id}?");
    html! {
        details.element #(element) {
            summary {
                span.mono.nowrap { (id) } span.cut-line { (line) }
                span.soft.nowrap { (relative(at_ms, view.now_ms)) }
            }
            div.inside {
                @for pair in fields.chunks_exact(2) {
                    @if let [name, value] = pair {
                        p.soft { (text(name)) } (json::block(value.bytes().unwrap_or_default()))
                    }
                }
                div.row {
                    @if view.may(&[b"XDEL", key, id.as_bytes()]) {
                        (Action { id: &popover, label: "Remove", question: Some(&question), path: &here,
                            fields: &[("action", "xdel"), ("entry", id)], is_dangerous: true }.show(view.session))
                    }
                }
            }
        }
    }
}

fn table_of_groups(view: &View<'_>, key: &[u8], groups: &[Pairs<'_>]) -> Markup {
    html! {
        @if groups.is_empty() { p.empty { "No consumer groups." } } @else {
            div.table { table data-sort="1" {
                thead { tr {
                    th scope="col" { "Group" } th.number scope="col" { "Consumers" } th.number scope="col" { "Pending" }
                    th.number scope="col" { "Lag" } th scope="col" { "Last delivered" }
                } }
                tbody { @for group in groups {
                    @let name = group.get("name").and_then(Value::bytes).unwrap_or_default();
                    @let lag = group.get("lag").filter(|lag| !lag.is_null()).map(number);
                    tr {
                        td.name { a href=(path(view, key, &[("group", name)])) { (readable(name)) } }
                        td.number data-value=(group.number("consumers")) { (count(group.number("consumers"))) }
                        td.number data-value=(group.number("pending")) { (count(group.number("pending"))) }
                        td.number data-value=(lag.unwrap_or(-1)) { (lag.map_or("unknown".to_owned(), count)) }
                        td.mono.nowrap { (group.text("last-delivered-id")) }
                    }
                } }
            } }
        }
    }
}

/// Consumers of a group, and what they have not acknowledged.
fn of_group(view: &mut View<'_>, key: &[u8], group: &[u8]) -> Result<Markup, NoPage> {
    let consumers = view.expect(words!["XINFO", "CONSUMERS", key, group])?;
    let consumers: Vec<Pairs<'_>> = items(&consumers).iter().map(Pairs::of).collect();
    let on_page = quoin_base::limits::DASHBOARD_ROWS_MAX;
    let after = view.asked.query.text("after").to_owned();
    let from = if after.is_empty() {
        "-".to_owned()
    } else {
        format!("({after}")
    };
    let pending = view.expect(words![
        "XPENDING",
        key,
        group,
        from,
        "+",
        on_page.to_string()
    ])?;
    let pending = items(&pending);
    let here = path(view, key, &[("group", group)]);
    let may_ack = view.may(&[b"XACK", key, group, b"0-1"]);
    let last = pending.last().and_then(|one| items(one).first()).map(text);
    Ok(html! {
        h2 { "Group " (readable(group)) }
        @if consumers.is_empty() { p.empty { "No consumers." } } @else {
            div.table { table data-sort="1" {
                thead { tr {
                    th scope="col" { "Consumer" } th.number scope="col" { "Pending" } th.number scope="col" { "Idle" }
                } }
                tbody { @for consumer in &consumers { tr {
                    td.name { (consumer.text("name")) }
                    td.number data-value=(consumer.number("pending")) { (count(consumer.number("pending"))) }
                    td.number data-value=(consumer.number("idle")) { (duration(consumer.number("idle"))) }
                } } }
            } }
        }
        h2 { "Pending" }
        @if pending.is_empty() { p.empty { "All delivered entries are acknowledged." } } @else {
            div.table { table data-sort="1" {
                thead { tr {
                    th scope="col" { "Entry" } th scope="col" { "Consumer" } th.number scope="col" { "Idle" }
                    th.number scope="col" { "Deliveries" } th scope="col" { "" }
                } }
                tbody { @for one in pending { @if let [id, consumer, idle_ms, deliveries] = items(one) {
                    @let (id, consumer) = (text(id), text(consumer));
                    @let popover = format!("ack-{id}");
                    @let question = format!("Acknowledge {id} for {consumer}? The group will not deliver it again.");
                    tr {
                        td.mono.nowrap { (id) } td.name { (consumer) }
                        td.number data-value=(number(idle_ms)) { (duration(number(idle_ms))) }
                        td.number data-value=(number(deliveries)) { (count(number(deliveries))) }
                        td { @if may_ack {
                            (Action { id: &popover, label: "Acknowledge", question: Some(&question), path: &here,
                                fields: &[("action", "xack"), ("entry", &id)], is_dangerous: true }.show(view.session))
                        } }
                    }
                } } }
            } }
            div.pager { @if let (Some(last), true) = (last, pending.len() >= on_page) {
                a.button href=(path(view, key, &[("group", group), ("after", last.as_bytes())])) { "Next page" }
            } }
        }
    })
}
