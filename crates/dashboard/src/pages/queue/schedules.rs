//! The schedules of a task queue: when each adds a task, which one, and whether the last one was
//! added.

use maud::{Markup, html};

use quoin_base::limits::DASHBOARD_ROWS_MAX;
use quoin_resp::wire::reply_reader::Value;

use super::inside::{element_id, path};
use crate::figures::{count, counted, moment, readable, relative};
use crate::frame::Action;
use crate::json;
use crate::view::{NoPage, Pairs, View, items, text, words};

/// The value of `show` for this page.
pub(super) const SHOW: &str = "schedules";

/// A page of schedules, in the order of their names.
pub(super) fn shown(view: &mut View<'_>, key: &[u8]) -> Result<Markup, NoPage> {
    let cursor = view.asked.query.text("cursor").to_owned();
    let mut list = words![
        "TASK.SCHEDULES",
        key,
        "COUNT",
        DASHBOARD_ROWS_MAX.to_string()
    ];
    if !cursor.is_empty() {
        list.extend(words!["CURSOR", cursor]);
    }
    let reply = view.expect(list)?;
    let (next, schedules) = match items(&reply) {
        [next, schedules] => (
            Some(text(next)).filter(|next| next != "0"),
            items(schedules),
        ),
        _ => (None, &[][..]),
    };
    let link =
        |more: &[(&str, &[u8])]| path(view, key, &[&[("show", SHOW.as_bytes())], more].concat());
    Ok(html! {
        @if schedules.is_empty() { p.empty { "No schedules." } } @else {
            div.table { table data-sort="1" {
                thead { tr {
                    th scope="col" { "Schedule" } th scope="col" { "When" } th scope="col" { "Next" }
                    th scope="col" { "Last" } th scope="col" { "Missed" } th scope="col" { "Task" }
                    th scope="col" { "" }
                } }
                tbody { @for schedule in schedules { (row(view, key, &Pairs::of(schedule))) } }
            } }
        }
        div.pager {
            @if !cursor.is_empty() { a.button href=(link(&[])) { "First page" } }
            @if let Some(next) = next { a.button href=(link(&[("cursor", next.as_bytes())])) { "Next page" } }
        }
    })
}

fn row(view: &View<'_>, key: &[u8], schedule: &Pairs<'_>) -> Markup {
    let name = bytes(schedule, "name");
    let is_paused = schedule.number("paused") == 1;
    let (next_ms, last_ms) = (schedule.number("next-ms"), schedule.number("last-ms"));
    html! {
        tr {
            td.name { (readable(name)) @if is_paused { " " span.tag.warn { "paused" } } }
            td { (timing(schedule)) }
            td.nowrap data-value=(next_ms) title=[(next_ms >= 0).then(|| moment(next_ms))] {
                @if next_ms >= 0 { (relative(next_ms, view.now_ms)) }
            }
            td.nowrap data-value=(last_ms) title=[(last_ms >= 0).then(|| moment(last_ms))] {
                @if last_ms >= 0 { (relative(last_ms, view.now_ms)) } @else { "never" }
            }
            td { (schedule.text("missed")) }
            td { (task(schedule)) }
            td { (buttons(view, key, name, is_paused)) }
        }
    }
}

/// A field as bytes; empty if it is null.
fn bytes<'r>(fields: &Pairs<'r>, name: &str) -> &'r [u8] {
    { fields.get(name) }
        .and_then(Value::bytes)
        .unwrap_or_default()
}

/// An optional field.
fn said(fields: &Pairs<'_>, name: &str) -> Option<i64> {
    fields.get(name).and_then(Value::integer)
}

fn timing(schedule: &Pairs<'_>) -> Markup {
    html! {
        @if let Some(every_ms) = said(schedule, "every-ms") {
            span.nowrap { "every " (exact(every_ms)) }
        } @else {
            span.mono { (schedule.text("cron")) } br; span.soft { (schedule.text("tz")) }
        }
    }
}

/// A duration in the largest unit that divides it evenly, because somebody has configured it.
fn exact(ms: i64) -> String {
    if ms % 86_400_000 == 0 {
        return counted(ms / 86_400_000, "day");
    }
    let units = [(3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    let whole = units.into_iter().find(|(unit_ms, _)| ms % unit_ms == 0);
    let (unit_ms, unit) = whole.unwrap_or((1, "ms"));
    format!("{} {unit}", count(ms / unit_ms))
}

/// The task that a schedule adds, and why the last one was not added.
fn task(schedule: &Pairs<'_>) -> Markup {
    let mut words = vec![format!("priority {}", schedule.text("priority"))];
    let needs = schedule.get("needs").map(items).unwrap_or_default();
    if !needs.is_empty() {
        let needs: Vec<String> = needs.iter().map(text).collect();
        words.push(format!("needs {}", needs.join(" ")));
    }
    if let Some(delay_ms) = said(schedule, "delay-ms").filter(|delay_ms| *delay_ms > 0) {
        words.push(format!("delay {}", exact(delay_ms)));
    }
    if let Some(tries_max) = said(schedule, "maxtries") {
        words.push(format!("maxtries {tries_max}"));
    }
    if let Some(ttl_ms) = said(schedule, "ttl-ms") {
        words.push(format!("ttl {}", exact(ttl_ms)));
    }
    if let Some(window_ms) = said(schedule, "unique-ms") {
        let token = readable(bytes(schedule, "unique")).into_owned();
        words.push(format!("unique {token} for {}", exact(window_ms)));
    }
    if !bytes(schedule, "group").is_empty() {
        words.push(format!("group {}", readable(bytes(schedule, "group"))));
    }
    html! {
        div.cut-line.narrow { (json::line(bytes(schedule, "payload"))) }
        span.soft { (words.join(", ")) }
        @if !schedule.text("error").is_empty() {
            br; span.bad-text { "The last task was not added: " (schedule.text("error")) }
        }
    }
}

fn buttons(view: &View<'_>, key: &[u8], name: &[u8], is_paused: bool) -> Markup {
    let here = path(view, key, &[("show", SHOW.as_bytes()), ("schedule", name)]);
    let id = |word: &str| format!("{word}-{}", element_id(0, name));
    let (pause, remove) = (id("pause"), id("unschedule"));
    let shown = readable(name);
    let pausing = format!("Pause schedule {shown}? It adds no tasks until you resume it.");
    let removing = format!("Remove schedule {shown}? The tasks that it added stay.");
    let schedule: &[u8] = b"SCHEDULE";
    html! {
        div.actions {
            @if is_paused && view.may(&[b"TASK.RESUME", key, schedule, name]) {
                (Action { id: "", label: "Resume", question: None, path: &here,
                    fields: &[("action", "resume-schedule")], is_dangerous: false }.show(view.session))
            }
            @if !is_paused && view.may(&[b"TASK.PAUSE", key, schedule, name]) {
                (Action { id: &pause, label: "Pause", question: Some(&pausing), path: &here,
                    fields: &[("action", "pause-schedule")], is_dangerous: false }.show(view.session))
            }
            @if view.may(&[b"TASK.UNSCHEDULE", key, name]) {
                (Action { id: &remove, label: "Remove", question: Some(&removing), path: &here,
                    fields: &[("action", "unschedule")], is_dangerous: true }.show(view.session))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_was_set_is_not_rounded() {
        for (ms, expected) in [
            (1_500, "1,500 ms"),
            (1_000, "1 s"),
            (90_000, "90 s"),
            (3_600_000, "1 h"),
            (90_000_000, "25 h"),
            (86_400_000, "1 day"),
            (172_800_000, "2 days"),
        ] {
            assert_eq!(exact(ms), expected);
        }
    }
}
