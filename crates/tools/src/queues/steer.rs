//! The actions of `quoin queues`. Each reports what it has done, or that nothing was done.

use std::io::{BufRead, IsTerminal, Write};

use quoin_base::size::counted;
use quoin_client::Client;
use quoin_queues::{
    Kind, Outcome, Pairs, State, Steps, Words, delete, expect, give_back, number, pause,
    purge_tasks, read_queues, resume, revive, revive_all, text, trim, words,
};

use super::error::QueuesError;
use super::rows::shown;

/// Maximum number of steps of a thousand tasks, for an action that keeps finding more tasks.
const STEPS_MAX: usize = 100_000;

/// An action on a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Pause,
    Resume,
    /// Try tasks again now: revive dead ones, and give back leased ones.
    Retry(Vec<Vec<u8>>),
    /// Revive dead tasks with these ids. All of them if there are none.
    Revive(Vec<Vec<u8>>),
    /// Of a task queue all tasks of a state, of others everything.
    Purge {
        state: Option<State>,
        is_sure: bool,
    },
}

/// Acts. Returns what was done, in words.
pub(super) fn act(client: &mut Client, key: &[u8], action: &Action) -> Result<String, QueuesError> {
    let name = shown(key);
    match action {
        Action::Pause => Ok(match count(client, &pause(key))? {
            0 => format!("{name} was already paused"),
            _ => format!("{name} is paused"),
        }),
        Action::Resume => Ok(match count(client, &resume(key))? {
            0 => format!("{name} was not paused"),
            _ => format!("{name} is resumed"),
        }),
        Action::Retry(ids) => each(ids, |id| retry(client, key, id)),
        Action::Revive(ids) if ids.is_empty() => {
            let steps = revive_all(client, key, STEPS_MAX)?;
            told(client, &steps, "revived")
        }
        Action::Revive(ids) => each(ids, |id| {
            Ok(match count(client, &revive(key, id))? {
                0 => Err("is not dead".to_owned()),
                _ => Ok("is ready again".to_owned()),
            })
        }),
        Action::Purge { state, is_sure } => purge(client, key, *state, *is_sure),
    }
}

fn count(client: &mut Client, command: &Words) -> Result<i64, QueuesError> {
    Ok(number(&expect(client, command)?))
}

/// The outcome for one task: what was done, or why not.
type OfTask = Result<String, String>;

/// Acts on tasks one by one. Tries all of them.
fn each(
    ids: &[Vec<u8>],
    mut act: impl FnMut(&[u8]) -> Result<OfTask, QueuesError>,
) -> Result<String, QueuesError> {
    let mut lines = Vec::new();
    let mut is_done = true;
    for id in ids {
        let outcome = act(id)?;
        is_done &= outcome.is_ok();
        let (Ok(text) | Err(text)) = outcome;
        lines.push(format!("{} {text}", shown(id)));
    }
    let text = lines.join("\n");
    match is_done {
        true => Ok(text),
        false => Err(QueuesError::NotDone(text)),
    }
}

fn retry(client: &mut Client, key: &[u8], id: &[u8]) -> Result<OfTask, QueuesError> {
    let task = expect(client, &words!["TASK.GET", key, id])?;
    if task.is_null() {
        return Ok(Err("is not in the queue".to_owned()));
    }
    let state = Pairs::of(&task).text("state");
    Ok(match State::of_name(&state) {
        Some(State::Ready) => Ok("was already ready".to_owned()),
        Some(State::Dead) => match count(client, &revive(key, id))? {
            0 => Err("is not dead any more".to_owned()),
            _ => Ok("is ready again".to_owned()),
        },
        Some(State::Leased) => match count(client, &give_back(key, id))? {
            1 => Ok("is given back".to_owned()),
            2 => Err("had its last try, and is dead; retry it again to revive it".to_owned()),
            _ => Err("is not leased any more".to_owned()),
        },
        Some(State::Waiting) => Err("waits for other tasks".to_owned()),
        Some(State::Delayed) | None => Err("is delayed; it comes by itself".to_owned()),
    })
}

fn told(client: &Client, steps: &Steps, done: &str) -> Result<String, QueuesError> {
    let changed = u64::try_from(steps.changed).unwrap_or(0);
    let changed = counted(changed, "task", "tasks");
    match &steps.outcome {
        Outcome::Done => Ok(format!("{changed} {done}")),
        Outcome::Unfinished => Err(QueuesError::NotDone(format!(
            "{changed} {done}, and there are more; run it again"
        ))),
        Outcome::Refused(line) if steps.changed == 0 => Err(client.refused(line.clone()).into()),
        Outcome::Refused(line) => {
            let reply = format!("{line} (after {changed} {done})");
            Err(client.refused(reply).into())
        }
    }
}

fn purge(
    client: &mut Client,
    key: &[u8],
    state: Option<State>,
    is_sure: bool,
) -> Result<String, QueuesError> {
    let name = shown(key);
    let kind = kind_of(client, key)?;
    let (what, command) = match (kind, state) {
        (Kind::TaskQueue, Some(state)) => (format!("all {} tasks", state.name()), None),
        (Kind::TaskQueue, None) => {
            return Err(QueuesError::NotDone(format!(
                "{name} is a task queue: choose the tasks to remove with --state"
            )));
        }
        (_, Some(_)) => {
            return Err(QueuesError::NotDone(format!(
                "{name} is a {}, which has no states: omit --state",
                kind.name()
            )));
        }
        (Kind::Stream, None) => (
            "all entries, but not the groups,".to_owned(),
            Some(trim(key)),
        ),
        (_, None) => ("everything".to_owned(), Some(delete(key))),
    };
    let held = read_queues(client, vec![(key.to_vec(), kind)])?;
    let figures = held.into_iter().next().map(|queue| queue.figures);
    let figures = figures.unwrap_or_default();
    let count = match state {
        None | Some(State::Ready) => figures.ready,
        Some(State::Leased) => figures.in_work,
        Some(State::Delayed) => figures.delayed,
        Some(State::Dead) => figures.dead,
        Some(State::Waiting) => figures.held,
    };
    let held = count.map(|count| format!(" ({count} now)"));
    let question = format!("Remove {what} of {name}{}?", held.unwrap_or_default());
    if !is_sure && !confirm(&question)? {
        return Err(QueuesError::NotDone("nothing was removed".to_owned()));
    }
    match (state, command) {
        (Some(state), _) => {
            let steps = purge_tasks(client, key, state, STEPS_MAX)?;
            told(client, &steps, "removed")
        }
        (None, Some(command)) => match (kind, self::count(client, &command)?) {
            (Kind::Stream, entries) => Ok(format!("{entries} removed")),
            (_, 0) => Err(QueuesError::NotDone(format!("there is no key {name}"))),
            _ => Ok(format!("{name} is removed")),
        },
        (None, None) => Ok(String::new()),
    }
}

/// The type of a key that is a queue.
pub(super) fn kind_of(client: &mut Client, key: &[u8]) -> Result<Kind, QueuesError> {
    let name = text(&expect(client, &words!["TYPE", key])?);
    Kind::of_type(&name).ok_or_else(|| {
        QueuesError::NotDone(match name.as_str() {
            "none" => format!("there is no key {}", shown(key)),
            other => format!("{} is a {other}, not a queue", shown(key)),
        })
    })
}

/// Asks the person at the terminal.
fn confirm(question: &str) -> Result<bool, QueuesError> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(QueuesError::NotDone(
            "nothing was removed: --yes is needed without a terminal to ask on".to_owned(),
        ));
    }
    let mut out = std::io::stderr();
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    let answer = answer.trim();
    Ok(["y", "yes"]
        .iter()
        .any(|yes| answer.eq_ignore_ascii_case(yes)))
}
