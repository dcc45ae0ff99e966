//! A task queue: its states, its tasks, and one task. Its schedules are in [`schedules`].

use maud::{Markup, html};

use super::inside::{Inside, element_id, path, rows};
use super::schedules;
use crate::figures::{count, moment, readable, relative};
use crate::frame::{Action, figure};
use crate::json;
use crate::view::{NoPage, Pairs, View, items, number, text, words};
use quoin_queues::State;
use quoin_resp::wire::reply_reader::Value;

/// The states, and their tabs.
const STATES: [(State, &str); 5] = [
    (State::Ready, "Ready"),
    (State::Leased, "Leased"),
    (State::Delayed, "Delayed"),
    (State::Dead, "Dead"),
    (State::Waiting, "Waiting"),
];

/// The text of a confirmation that asks where to move tasks.
const DESTINATION: &str = "Task queue in the same database";

pub(super) fn body(view: &mut View<'_>, key: &[u8]) -> Result<Inside, NoPage> {
    let info = view.run(words!["TASK.INFO", key])?;
    // A queue without tasks has no counters.
    let info = match info.error_text() {
        Some(line) if !line.contains("no such key") => {
            return Err(NoPage::Refused(line.into_owned()));
        }
        _ => info,
    };
    let info = Pairs::of(&info);
    let is_paused = info.number("paused") == 1;
    let tags = html! { @if is_paused { " " span.tag.warn { "paused" } } };
    let steering = steering(view, key, is_paused, info.get("paused").is_none());
    let id = view.asked.query.bytes("id").to_vec();
    if !id.is_empty() {
        let body = one_task(view, key, &id)?;
        return Ok(Inside {
            tags,
            actions: steering,
            body,
        });
    }
    let shows_schedules = view.asked.query.text("show") == schedules::SHOW;
    let state = State::of_name(view.asked.query.text("state")).unwrap_or(State::Ready);
    let length = info.number("length");
    let shown = match shows_schedules {
        true => schedules::shown(view, key)?,
        false => tasks(view, key, state, length)?,
    };
    let body = html! {
        dl.figures {
            (figure("Tasks", &count(length), &format!("{} added in total", count(info.number("added")))))
            @if let Some(resources) = info.get("resources").map(items).filter(|names| !names.is_empty()) {
                (figure("Resources", &resources.iter().map(text).collect::<Vec<_>>().join(", "), ""))
            }
            @if info.number("next-due-ms") >= 0 && length > 0 {
                (figure("Next due", &relative(view.now_ms + info.number("next-due-ms"), view.now_ms),
                    "end of a lease or delay"))
            }
        }
        nav.tabs aria-label="States and schedules" {
            @for (one, name) in STATES {
                a href=(path(view, key, &[("state", one.name().as_bytes())]))
                    aria-current=[(one == state && !shows_schedules).then_some("page")] {
                    (name) b { (count(info.number(one.name()))) }
                }
            }
            @if view.may(&[b"TASK.SCHEDULES", key]) {
                a href=(path(view, key, &[("show", schedules::SHOW.as_bytes())]))
                    aria-current=[shows_schedules.then_some("page")] { "Schedules" }
            }
        }
        (shown)
    };
    Ok(Inside {
        tags,
        actions: steering,
        body,
    })
}

/// A page of the tasks of a state.
fn tasks(view: &mut View<'_>, key: &[u8], state: State, length: i64) -> Result<Markup, NoPage> {
    let count_of_page = rows(view, key, length)?;
    let cursor = view.asked.query.text("cursor").to_owned();
    let listed = quoin_queues::tasks(view.client(), key, state, &cursor, count_of_page)?;
    let (next, tasks) = (listed.next, listed.rows);
    let state_name = state.name();
    Ok(html! {
        (of_state(view, key, state_name, tasks.is_empty()))
        @if tasks.is_empty() {
            p.empty { @if next.is_some() { "None on this page." } @else { "No tasks in this state." } }
        } @else { (table(view, key, state_name, &tasks)) }
        div.pager {
            @if !cursor.is_empty() { a.button href=(path(view, key, &[("state", state_name.as_bytes())])) { "First page" } }
            @if let Some(next) = &next {
                a.button href=(path(view, key, &[("state", state_name.as_bytes()), ("cursor", next.as_bytes())])) {
                    "Next page"
                }
            }
        }
    })
}

/// Pause and resume.
fn steering(view: &View<'_>, key: &[u8], is_paused: bool, is_unknown: bool) -> Markup {
    let here = path(view, key, &[]);
    let show = |word: &'static str, label: &'static str, question: Option<&'static str>| {
        let action = Action {
            id: word,
            label,
            question,
            path: &here,
            fields: &[("action", word)],
            is_dangerous: false,
        };
        action.show(view.session)
    };
    let may = view.may(&[b"TASK.PAUSE", key]);
    html! {
        @if may && (!is_paused || is_unknown) {
            (show("pause", "Pause",
                Some("Consumers will get no tasks until you resume the queue. Leased tasks continue.")))
        }
        @if may && (is_paused || is_unknown) { (show("resume", "Resume", None)) }
    }
}

/// Buttons for all tasks of a state.
fn of_state(view: &View<'_>, key: &[u8], state: &str, is_empty: bool) -> Markup {
    let here = path(view, key, &[("state", state.as_bytes())]);
    let may_revive = state == "dead" && view.may(&[b"TASK.REVIVE", key, b"ALL"]);
    let may_move = may_move(view, key, state, b"");
    let may_purge = view.may(&[b"TASK.PURGE", key, state.as_bytes()]);
    let moving =
        format!("Move all {state} tasks to another task queue? They keep their tries and times.");
    let purge = format!("Remove all {state} tasks? This cannot be undone.");
    html! {
        @if !is_empty && (may_revive || may_move || may_purge) {
            div.filters {
                @if may_revive {
                    (Action { id: "revive-all", label: "Revive all",
                        question: Some("Make all dead tasks ready again and reset their tries?"), path: &here, fields: &[("action", "revive-all")], is_dangerous: false }.show(view.session))
                }
                @if may_move {
                    (Action { id: "move-all", label: "Move all", question: Some(&moving), path: &here,
                        fields: &[("action", "move-all"), ("state", state)], is_dangerous: false }
                        .show_asking(view.session, "destination", DESTINATION))
                }
                @if may_purge {
                    (Action { id: "purge", label: "Purge", question: Some(&purge), path: &here,
                        fields: &[("action", "purge"), ("state", state)], is_dangerous: true }.show(view.session))
                }
            }
        }
    }
}

/// Whether tasks of a state can be moved, and the user may. Only the server knows whether also to the queue that the user
/// will name.
fn may_move(view: &View<'_>, key: &[u8], state: &str, id: &[u8]) -> bool {
    matches!(state, "ready" | "delayed" | "dead") && view.may(&[b"TASK.MOVE", key, key, id])
}

fn table(view: &View<'_>, key: &[u8], state: &str, tasks: &[Value]) -> Markup {
    let when = match state {
        "ready" => "Ready since",
        "leased" => "Lease ends",
        "delayed" => "Ready",
        "waiting" => "Waiting since",
        _ => "Died",
    };
    html! {
        div.table { table data-sort="1" {
            thead { tr {
                th scope="col" { "Task" } th.number scope="col" { "Priority" } th.number scope="col" { "Tries" }
                th scope="col" { (when) } th scope="col" { "Worker" } th scope="col" { "Reason" } th scope="col" { "" }
            } }
            tbody { @for task in tasks { (row(view, key, state, &Pairs::of(task))) } }
        } }
    }
}

fn row(view: &View<'_>, key: &[u8], state: &str, task: &Pairs<'_>) -> Markup {
    let id = task.get("id").and_then(Value::bytes).unwrap_or_default();
    let at_ms = task.number("at-ms");
    html! {
        tr {
            td.name { a href=(path(view, key, &[("state", state.as_bytes()), ("id", id)])) { (readable(id)) } }
            td.number data-value=(task.text("priority")) { (task.text("priority")) }
            td.number data-value=(task.number("tries")) { (tries(task)) }
            td.nowrap data-value=(at_ms) title=(moment(at_ms)) { @if at_ms >= 0 { (relative(at_ms, view.now_ms)) } }
            td { (task.text("worker")) }
            td.name { (task.text("reason")) }
            td { (buttons(view, key, state, id, true)) }
        }
    }
}

/// The number of tries so far, and how many are allowed.
fn tries(task: &Pairs<'_>) -> String {
    match task.get("maxtries").map(number) {
        Some(max) if max > 0 => format!("{} of {max}", task.number("tries")),
        _ => task.number("tries").to_string(),
    }
}

/// Buttons for a task.
fn buttons(view: &View<'_>, key: &[u8], state: &str, id: &[u8], is_row: bool) -> Markup {
    let here = path(view, key, &[("state", state.as_bytes()), ("task", id)]);
    let name = readable(id);
    let popover = format!("cancel-{}", element_id(0, id));
    let question = format!("Remove task {name}?");
    let moving = format!("Move task {name} to another task queue? It keeps its tries and times.");
    html! {
        div.actions {
            @if state == "dead" && view.may(&[b"TASK.REVIVE", key, id]) {
                (Action { id: "", label: "Revive", question: None, path: &here, fields: &[("action", "revive")],
                    is_dangerous: false }.show(view.session))
            }
            @if state == "leased" && !is_row && view.may(&[b"TASK.NACK", key, id]) {
                (Action { id: "give-back", label: "Give back",
                    question: Some("End the lease now? The worker may still be running it."), path: &here, fields: &[("action", "nack")], is_dangerous: false }.show(view.session))
            }
            @if !is_row && may_move(view, key, state, id) {
                (Action { id: "move", label: "Move", question: Some(&moving), path: &here,
                    fields: &[("action", "move")], is_dangerous: false }
                    .show_asking(view.session, "destination", DESTINATION))
            }
            @if view.may(&[b"TASK.CANCEL", key, id]) {
                (Action { id: &popover, label: "Remove", question: Some(&question), path: &here,
                    fields: &[("action", "cancel")], is_dangerous: true }.show(view.session))
            }
        }
    }
}

fn one_task(view: &mut View<'_>, key: &[u8], id: &[u8]) -> Result<Markup, NoPage> {
    let reply = view.expect(words!["TASK.GET", key, id])?;
    if reply.is_null() {
        return Ok(html! { p.empty { "Task " (readable(id)) " is no longer in the queue." } });
    }
    let task = Pairs::of(&reply);
    let state = task.text("state").to_lowercase();
    let at_ms = task.number("at-ms");
    let payload = task
        .get("payload")
        .and_then(Value::bytes)
        .unwrap_or_default();
    let needs = task.get("needs").map(items).unwrap_or_default();
    Ok(html! {
        div.between {
            h2 { "Task " (readable(id)) " " span.tag.bad[state == "dead"] { (state) } }
            (buttons(view, key, &state, id, false))
        }
        dl.pair {
            dt { "Priority" } dd { (task.text("priority")) }
            dt { "Tries" } dd { (tries(&task)) }
            @if at_ms >= 0 { dt { "Time" } dd { (moment(at_ms)) ", " (relative(at_ms, view.now_ms)) } }
            @if !needs.is_empty() {
                dt { "Needs" } dd { @for need in needs.chunks(2) { @for part in need { (text(part)) " " } } }
            }
            @if !task.text("worker").is_empty() { dt { "Worker" } dd { (task.text("worker")) } }
            @if !task.text("reason").is_empty() { dt { "Reason" } dd { (task.text("reason")) } }
        }
        (json::block(payload))
        div.pager { a href=(path(view, key, &[("state", state.as_bytes())])) { "All " (state) " tasks" } }
    })
}
