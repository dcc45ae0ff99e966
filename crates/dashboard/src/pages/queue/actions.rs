//! What the buttons of a queue do. Each is a command, which the server checks.

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode, percent_encode};

use quoin_base::limits::{DASHBOARD_SHOWN_BYTES_MAX, DASHBOARD_STEPS_MAX};

use quoin_queues::{
    Outcome, State, Steps, delete, give_back, move_all, move_tasks, pause, purge_tasks, resume,
    revive, revive_all, trim,
};

use super::inside::{at_once, element_id, path};
use crate::figures::{counted, readable};
use crate::frame::Action;
use crate::request::{Fields, url};
use crate::view::{Answer, NoPage, View, Words, number, words};

/// Maximum number of tasks moved in one step, as in TASK.PURGE and TASK.REVIVE.
const MOVED_AT_ONCE: i64 = 1_000;

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
        question: Some("Remove this element? This cannot be undone."),
        path: &here,
        fields: &[("action", word), ("score", &score), ("element", &element)],
        is_dangerous: true,
    };
    action.show(view.session)
}

/// Runs a button's action, and redirects back to the page.
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
        "delete" => simple(view, delete(&key), &format!("Deleted {}.", readable(&key)))?,
        "pause" => simple(view, pause(&key), "Paused.")?,
        "resume" => simple(view, resume(&key), "Resumed.")?,
        "revive" => simple(view, revive(&key, task), &format!("Revived {shown}."))?,
        "nack" => simple(view, give_back(&key, task), &format!("Gave {shown} back."))?,
        "cancel" => simple(
            view,
            words!["TASK.CANCEL", key, task],
            &format!("Removed {shown}."),
        )?,
        "unschedule" => simple(
            view,
            words!["TASK.UNSCHEDULE", key, schedule],
            &format!("Removed schedule {}.", readable(schedule)),
        )?,
        "pause-schedule" => simple(
            view,
            words!["TASK.PAUSE", key, "SCHEDULE", schedule],
            &format!("Paused schedule {}.", readable(schedule)),
        )?,
        "resume-schedule" => simple(
            view,
            words!["TASK.RESUME", key, "SCHEDULE", schedule],
            &format!("Resumed schedule {}.", readable(schedule)),
        )?,
        "revive-all" => {
            let steps = revive_all(view.client(), &key, DASHBOARD_STEPS_MAX)?;
            note_steps(view, &steps, "Revived", "revive");
        }
        "move" | "move-all" if form.bytes("destination").is_empty() => {
            view.note_error("Nothing was moved: enter a task queue.");
        }
        "move" => {
            let destination = form.bytes("destination");
            let command = move_tasks(&key, destination, &[task]);
            let done = format!("Moved {shown} to {}.", readable(destination));
            let undone = format!("{shown} was not moved: it is leased, waiting or gone.");
            changed(view, command, &done, &undone)?;
        }
        "move-all" => {
            let state = state_of(&form)?;
            let destination = form.bytes("destination");
            let length = number(&view.run(words!["TASK.LEN", key])?);
            let at_once = at_once(view, &key, length, MOVED_AT_ONCE)?;
            let steps = move_all(
                view.client(),
                &key,
                destination,
                state,
                at_once,
                DASHBOARD_STEPS_MAX,
            )?;
            if (steps.changed, &steps.outcome) == (0, &Outcome::Done) {
                view.note(format!(
                    "Nothing was moved: no task is {} any more.",
                    state.name()
                ));
            } else {
                note_steps(view, &steps, "Moved", "move");
            }
        }
        "purge" => {
            let state = state_of(&form)?;
            let steps = purge_tasks(view.client(), &key, state, DASHBOARD_STEPS_MAX)?;
            note_steps(view, &steps, "Removed", "purge");
        }
        "lrem" => simple(
            view,
            words!["LREM", key, "1", element],
            "Removed the element.",
        )?,
        "zrem" => simple(view, words!["ZREM", key, element], "Removed the element.")?,
        "pq.rem" => {
            let score = form.bytes("score");
            let command = words!["PQ.REM", key, score, element, "COUNT", "1"];
            simple(view, command, "Removed the element.")?;
        }
        "trim" => simple(view, trim(&key), "Removed all entries.")?,
        "xdel" => simple(view, words!["XDEL", key, entry], "Removed the entry.")?,
        "xack" => simple(
            view,
            words!["XACK", key, group, entry],
            "Acknowledged the entry.",
        )?,
        _ => return Err(NoPage::Missing("There is no such action.".to_owned())),
    }
    // A queue whose last element is gone has no page. A user who may not check that is redirected
    // to the page, which says so.
    if view.run(words!["EXISTS", key])?.integer() == Some(0) {
        let database = view.database().to_string();
        back = url("/queues", &[("db", database.as_bytes())]);
    }
    Ok(Answer::See(back))
}

/// The state whose tasks a form is about.
fn state_of(form: &Fields) -> Result<State, NoPage> {
    let state = State::of_name(form.text("state"));
    state.ok_or_else(|| NoPage::Missing("There is no such state.".to_owned()))
}

/// Runs a command that replies with the number of changes.
fn simple(view: &mut View<'_>, command: Words, done: &str) -> Result<(), NoPage> {
    changed(
        view,
        command,
        done,
        "Nothing was changed: someone else was faster.",
    )
}

/// The same, with the text to show if nothing changed.
fn changed(view: &mut View<'_>, command: Words, done: &str, undone: &str) -> Result<(), NoPage> {
    let reply = view.run(command)?;
    match reply.error_text() {
        Some(line) => view.note_error(line),
        None if number(&reply) > 0 => view.note(done),
        None => view.note(undone),
    }
    Ok(())
}

/// Reports the outcome of a series of bounded steps.
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
