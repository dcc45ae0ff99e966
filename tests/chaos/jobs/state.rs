//! The final state of job streams, and what their policies do with it.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use super::{Group, STREAMS, dead_letters, key};
use crate::history::Payload;
use crate::resp::{Connection, Value};
use crate::streams::{Entry, EntryId, count_of_group, drain, entries_everywhere, line, pending};
use crate::workers::texts;

/// How long a policy may take to move what is left.
const MOVING_MAX: Duration = Duration::from_secs(60);
/// When a forgotten entry is handed out again.
const FORGOTTEN_MS: u64 = 2_000;
/// Far more than it takes until a client that waits has it.
const LATE: Duration = Duration::from_secs(7);

/// An entry of a dead letter stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub stream: String,
    pub group: String,
    pub id: EntryId,
    pub payload: Payload,
    pub deliveries: u64,
}

/// The final state.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct State {
    /// By stream.
    pub streams: Vec<Vec<Entry>>,
    /// What the test itself delivered to each group at the end, so that nothing is left to deliver.
    pub drained: BTreeMap<Group, Vec<Entry>>,
    /// The pending entries of each group, with their delivery counts.
    pub pending: BTreeMap<Group, BTreeMap<EntryId, u64>>,
    /// By stream.
    pub dead: Vec<Vec<DeadLetter>>,
    /// By stream, after the policy of each group has moved all pending entries.
    pub dead_at_last: Vec<Vec<DeadLetter>>,
}

fn run(connection: &mut Connection, text: &str) -> Value {
    connection.command(&line(text)).unwrap()
}

/// Reads everything without policies, then lets policies do their work.
///
/// # Errors
/// If servers disagree, counters are wrong, or a policy does not work.
pub fn read_state(connections: &mut [Connection]) -> Result<State, String> {
    let mut state = State::default();
    for group in Group::all() {
        let text = format!("XGROUP SETPOLICY {}", group.words());
        let reply = run(&mut connections[0], &text);
        if reply.error().is_some() {
            return Err(format!("{text}: {reply:?}"));
        }
    }
    for stream in 0..STREAMS {
        state
            .streams
            .push(entries_everywhere(connections, &key(stream))?);
        state.dead.push(read_dead(connections, stream)?);
    }
    for group in Group::all() {
        let (name, stream) = (format!("g{}", group.number), key(group.stream));
        state
            .drained
            .insert(group, drain(connections, &name, &stream)?);
        let pending = pending(&mut connections[0], &group.words())?;
        check_count(&mut connections[0], group, pending.len())?;
        state.pending.insert(group, pending);
    }
    for group in Group::all() {
        match group.has_dead_letters() {
            true => move_all(connections, group)?,
            false => wait_for_one(connections, group)?,
        }
    }
    for stream in 0..STREAMS {
        state.dead_at_last.push(read_dead(connections, stream)?);
    }
    Ok(state)
}

fn check_count(connection: &mut Connection, group: Group, pending: usize) -> Result<(), String> {
    let (name, stream) = (format!("g{}", group.number), key(group.stream));
    match count_of_group(connection, &stream, &name, "pending")? {
        count if usize::try_from(count) == Ok(pending) => Ok(()),
        count => Err(format!(
            "{}: {count} are counted as pending, there are {pending}",
            group.words()
        )),
    }
}

/// Lets all pending entries become dead letters.
fn move_all(connections: &mut [Connection], group: Group) -> Result<(), String> {
    run(&mut connections[0], &group.policy(1, 1));
    let started = Instant::now();
    let (number, stream) = (group.number, key(group.stream));
    let read = format!("XREADGROUP GROUP g{number} mover STREAMS {stream} >");
    for connection in (0..connections.len()).cycle() {
        thread::sleep(Duration::from_millis(2));
        // It gets those with a delivery count of 0, which XNACK SILENT has left.
        run(&mut connections[connection], &read);
        if pending(&mut connections[connection], &group.words())?.is_empty() {
            return check_count(&mut connections[connection], group, 0);
        }
        if started.elapsed() > MOVING_MAX {
            break;
        }
    }
    Err(format!(
        "{}: entries do not become dead letters",
        group.words()
    ))
}

/// Lets a client of the last server wait for an entry that a client of the first one forgets.
fn wait_for_one(connections: &mut [Connection], group: Group) -> Result<(), String> {
    let (number, stream) = (group.number, key(group.stream));
    let added = run(&mut connections[0], &format!("XADD {stream} * p p0-0"));
    run(&mut connections[0], &group.policy(0, FORGOTTEN_MS));
    let read = |block: &str| {
        format!("XREADGROUP GROUP g{number} forgets COUNT 1000 {block}STREAMS {stream} >")
    };
    while run(&mut connections[0], &read("")).items().is_some() {}
    let last = connections.len() - 1;
    let started = Instant::now();
    let reply = run(&mut connections[last], &read("BLOCK 15000 "));
    match reply.items().is_some() && started.elapsed() < LATE {
        true => Ok(()),
        false => Err(format!(
            "{}: {added:?} was not handed out again: {reply:?} after {:?}",
            group.words(),
            started.elapsed()
        )),
    }
}

fn read_dead(connections: &mut [Connection], stream: u8) -> Result<Vec<DeadLetter>, String> {
    let reply = run(
        &mut connections[0],
        &format!("XRANGE {} - +", dead_letters(stream)),
    );
    let letters = reply.items().unwrap_or_default().iter().map(|letter| {
        let wrong = || format!("no dead letter: {letter:?}");
        let texts = texts(letter);
        let [_, p, payload, names_and_values @ ..] = texts.as_slice() else {
            return Err(wrong());
        };
        let [stream, group, id, deliveries] = names_and_values
            .chunks(2)
            .map(|pair| &pair[1])
            .collect::<Vec<_>>()[..]
        else {
            return Err(wrong());
        };
        let names: Vec<&String> = names_and_values.iter().step_by(2).collect();
        if p != "p" || names != ["_stream", "_group", "_id", "_deliveries"] {
            return Err(wrong());
        }
        Ok(DeadLetter {
            stream: stream.clone(),
            group: group.clone(),
            id: id.parse()?,
            payload: payload.parse().map_err(|()| wrong())?,
            deliveries: deliveries.parse().map_err(|_| wrong())?,
        })
    });
    let letters = letters.collect::<Result<Vec<_>, String>>()?;
    let ids: BTreeSet<_> = letters
        .iter()
        .map(|letter| (&letter.group, letter.id))
        .collect();
    match ids.len() == letters.len() {
        true => Ok(letters),
        false => Err(format!(
            "{}: a dead letter is there twice",
            dead_letters(stream)
        )),
    }
}
