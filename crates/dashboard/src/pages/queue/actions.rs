//! What the buttons of a queue do: each a command, which the server checks.

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode, percent_encode};

use quoin_base::limits::{DASHBOARD_SHOWN_BYTES_MAX, DASHBOARD_STEPS_MAX};

use quoin_queues::{
    Outcome, State, Steps, delete, give_back, pause, purge_tasks, resume, revive, revive_all, trim,
};

use super::inside::{element_id, path};
use crate::figures::{counted, readable};
use crate::frame::Action;
use crate::request::url;
use crate::view::{Answer, NoPage, View, Words, number, words};

/// A button that removes an element by the command that it would be, if the user may run that.
pub(super) fn remove(
    view: &View<'_>,
    key: &[u8],
    place: i64,
    value: &[u8],
    command: &[&[u8]],
) -> Markup {
    // The form must fit into a request.
    if value.len() > DASHBOARD_SHOWN_BYTES_MAX || !view.may(command) {
        return html! {};
    }
    let score = match command {
        [name, _, score, ..] if name.eq_ignore_ascii_case(b"PQ.REM") => {
            String::from_utf8_lossy(score)
        }
        _ => "".into(),
    };
    let word = match command.first() {
        Some(name) if name.eq_ignore_ascii_case(b"LREM") => "lrem",
        Some(name) if name.eq_ignore_ascii_case(b"ZREM") => "zrem",
        _ => "pq.rem",
    };
    let element = percent_encode(value, NON_ALPHANUMERIC).to_string();
    let here = path(view, key, &[]);
    let id = format!("remove-{}", element_id(place, value));
    let action = Action {
        id: &id,
        label: "Remove",
        question: Some("Remove this element? It cannot be brought back."),
        path: &here,
        fields: &[("action", word), ("score", &score), ("element", &element)],
        is_dangerous: true,
    };
    action.show(view.session)
}

/// Runs what a button asks for, and leads back to the page.
pub(crate) fn act(view: &mut View<'_>) -> Result<Answer, NoPage> {
    let key = view.key();
    let form = view.asked.form.clone();
    let query = view.asked.query.clone();
    let element: Vec<u8> = percent_decode(form.bytes("element")).collect();
    let (task, group) = (query.bytes("task"), query.bytes("group"));
    let schedule = query.bytes("schedule");
    let entry = form.bytes("entry");
    let mut back = path(view, &key, &[]);
    for name in ["state", "group", "show"] {
        if !query.bytes(name).is_empty() {
            back = path(view, &key, &[(name, query.bytes(name))]);
        }
    }
    let shown = readable(task).into_owned();
    match form.text("action") {
        "delete" => drop(simple(
            view,
            delete(&key),
            &format!("Deleted {}.", readable(&key)),
        )?),
        "pause" => drop(simple(view, pause(&key), "Paused.")?),
        "resume" => drop(simple(view, resume(&key), "Resumed.")?),
        "revive" => drop(simple(
            view,
            revive(&key, task),
            &format!("Revived {shown}."),
        )?),
        "nack" => drop(simple(
            view,
            give_back(&key, task),
            &format!("Gave {shown} back."),
        )?),
        "cancel" => drop(simple(
            view,
            words!["TASK.CANCEL", key, task],
            &format!("Removed {shown}."),
        )?),
        "unschedule" => drop(simple(
            view,
            words!["TASK.UNSCHEDULE", key, schedule],
            &format!("Removed the schedule {}.", readable(schedule)),
        )?),
        "pause-schedule" => drop(simple(
            view,
            words!["TASK.PAUSE", key, "SCHEDULE", schedule],
            &format!("Paused the schedule {}.", readable(schedule)),
        )?),
        "resume-schedule" => drop(simple(
            view,
            words!["TASK.RESUME", key, "SCHEDULE", schedule],
            &format!("Resumed the schedule {}.", readable(schedule)),
        )?),
        "revive-all" => {
            let steps = revive_all(view.client(), &key, DASHBOARD_STEPS_MAX)?;
            note_steps(view, &steps, "Revived", "revive");
        }
        "purge" => {
            let Some(state) = State::of_name(form.text("state")) else {
                return Err(NoPage::Missing("There is no such state.".to_owned()));
            };
            let steps = purge_tasks(view.client(), &key, state, DASHBOARD_STEPS_MAX)?;
            note_steps(view, &steps, "Removed", "purge");
        }
        "lrem" => drop(simple(
            view,
            words!["LREM", key, "1", element],
            "Removed the element.",
        )?),
        "zrem" => drop(simple(
            view,
            words!["ZREM", key, element],
            "Removed the element.",
        )?),
        "pq.rem" => {
            let score = form.bytes("score");
            let command = words!["PQ.REM", key, score, element, "COUNT", "1"];
            simple(view, command, "Removed the element.")?;
        }
        "trim" => drop(simple(view, trim(&key), "Removed all entries.")?),
        "xdel" => drop(simple(
            view,
            words!["XDEL", key, entry],
            "Removed the entry.",
        )?),
        "xack" => drop(simple(
            view,
            words!["XACK", key, group, entry],
            "Acknowledged the entry.",
        )?),
        _ => return Err(NoPage::Missing("There is no such action.".to_owned())),
    }
    // A queue whose last element is gone has no page. Who may not know that is led to the page that says so.
    if view.run(words!["EXISTS", key])?.integer() == Some(0) {
        let database = view.database().to_string();
        back = url("/queues", &[("db", database.as_bytes())]);
    }
    Ok(Answer::See(back))
}

/// Runs a command whose reply is a number of what it has changed. Whether it has changed something.
fn simple(view: &mut View<'_>, command: Words, done: &str) -> Result<bool, NoPage> {
    let reply = view.run(command)?;
    if let Some(line) = reply.error_text() {
        view.note_error(line);
        return Ok(false);
    }
    let has_changed = number(&reply) > 0;
    if has_changed {
        view.note(done);
    } else {
        view.note("Nothing was changed: somebody else was faster.");
    }
    Ok(has_changed)
}

/// Tells what bounded steps have come to.
fn note_steps(view: &mut View<'_>, steps: &Steps, done: &str, again: &str) {
    let changed = counted(steps.changed, "task");
    match &steps.outcome {
        Outcome::Done => view.note(format!("{done} {changed}.")),
        Outcome::Unfinished => {
            view.note(format!("{done} {changed}. There are more: {again} again."))
        }
        Outcome::Refused(line) => view.note_error(format!("{line} (after {changed})")),
    }
}
