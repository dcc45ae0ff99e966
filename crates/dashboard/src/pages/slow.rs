//! Slow commands, and which commands take up the time.

use maud::{Markup, html};

use crate::figures::{about, count, moment, readable, relative};
use crate::frame::{Action, refusal};
use crate::json;
use crate::view::{Answer, Info, NoPage, Page, View, items, number, text, words};
use quoin_resp::wire::reply_reader::Value;

/// Entries that are shown.
const SHOWN_MAX: usize = 100;

pub(crate) fn page(view: &mut View<'_>) -> Result<Page, NoPage> {
    let log = view.run(words!["SLOWLOG", "GET", SHOWN_MAX.to_string()])?;
    let commands = view.info(&["commandstats"])?.ok();
    let may_reset = view.may(&[b"SLOWLOG", b"RESET"]) && !items(&log).is_empty();
    let body = html! {
        div.between {
            h1 { "Slow commands" }
            @if may_reset {
                (Action { id: "reset", label: "Clear", question: Some("Clear the slow log?"), path: "/slow",
                    fields: &[("action", "reset")], is_dangerous: true }.show(view.session))
            }
        }
        @match log.error_text() {
            Some(line) => (refusal("", &line)),
            None if items(&log).is_empty() => p.empty {
                "No command took longer than slowlog-log-slower-than."
            },
            None => (entries(items(&log), view.now_ms)),
        }
        @if let Some(commands) = &commands { h2 { "Time per command since the start" } (statistics(commands)) }
    };
    Ok(Page {
        title: "Slow commands".to_owned(),
        place: "slow",
        refresh_s: 10,
        body,
    })
}

/// Microseconds as people read them.
fn time(us: f64) -> String {
    match us {
        us if us < 1_000.0 => format!("{us:.0} µs"),
        us if us < 1_000_000.0 => format!("{:.1} ms", us / 1_000.0),
        us => format!("{:.2} s", us / 1_000_000.0),
    }
}

fn entries(entries: &[Value], now_ms: i64) -> Markup {
    html! {
        div.table { table data-sort="1" {
            thead { tr {
                th scope="col" { "When" } th.number scope="col" { "Took" } th scope="col" { "Command" }
                th scope="col" { "Client" }
            } }
            tbody { @for entry in entries { @if let [_, at_s, took_us, arguments, client, name, ..] = items(entry) {
                @let at_ms = number(at_s) * 1_000;
                tr {
                    td.nowrap data-value=(at_ms) title=(moment(at_ms)) { (relative(at_ms, now_ms)) }
                    td.number data-value=(number(took_us)) { (time(number(took_us) as f64)) }
                    td { div.cut-line { @for (place, word) in items(arguments).iter().enumerate() {
                        @if place > 0 { " " } (json::line(word.bytes().unwrap_or_default()))
                    } } }
                    td.name {
                        span.mono { (text(client)) }
                        @if !text(name).is_empty() { " " (readable(text(name).as_bytes())) }
                    }
                }
            } } }
        } }
    }
}

fn statistics(info: &Info) -> Markup {
    let field = |fields: &str, name: &str| -> f64 {
        let mut fields = fields.split(',').filter_map(|field| field.split_once('='));
        fields
            .find(|(known, _)| *known == name)
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(0.0)
    };
    let mut commands = info.beginning("cmdstat_");
    commands.sort_by(|(_, a), (_, b)| field(b, "usec").total_cmp(&field(a, "usec")));
    html! {
        div.table { table data-sort="1" {
            thead { tr {
                th scope="col" { "Command" } th.number scope="col" { "Calls" } th.number scope="col" { "Mean" }
                th.number scope="col" { "Total" } th.number scope="col" { "Failed" }
                th.number scope="col" { "Refused" }
            } }
            tbody { @for (name, fields) in commands.iter().take(SHOWN_MAX) {
                @let get = |name| field(fields, name);
                tr {
                    td.mono { (name) }
                    td.number data-value=(get("calls")) { (about(get("calls"))) }
                    td.number data-value=(get("usec_per_call")) { (time(get("usec_per_call"))) }
                    td.number data-value=(get("usec")) { (time(get("usec"))) }
                    td.number data-value=(get("failed_calls")) { (count(get("failed_calls") as i64)) }
                    td.number data-value=(get("rejected_calls")) { (count(get("rejected_calls") as i64)) }
                }
            } }
        } }
    }
}

/// Empties the slow log.
pub(crate) fn act(view: &mut View<'_>) -> Result<Answer, NoPage> {
    let reply = view.run(words!["SLOWLOG", "RESET"])?;
    match reply.error_text() {
        Some(line) => view.note_error(line),
        None => view.note("Cleared the slow log."),
    }
    Ok(Answer::See("/slow".to_owned()))
}
