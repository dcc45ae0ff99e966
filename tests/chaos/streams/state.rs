//! The final content of streams.

use std::collections::BTreeMap;

use super::{Entry, EntryId, Group, STREAMS, entries, entries_read, key, line};
use crate::resp::{Connection, Value};
use crate::workers::texts;

/// The final state.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct State {
    /// All entries that were ever added, by stream.
    pub streams: Vec<Vec<Entry>>,
    /// What the test itself delivered to each group at the end, so that nothing is left to deliver.
    pub drained: BTreeMap<Group, Vec<Entry>>,
    /// What each group got and has not acknowledged, with the delivery counts.
    pub pending: BTreeMap<Group, BTreeMap<EntryId, u64>>,
}

fn run(connection: &mut Connection, text: &str) -> Value {
    connection.command(&line(text)).unwrap()
}

/// Reads everything, lets each group read what is left for it, and checks that the servers' counts
/// match the content.
pub fn read_state(connections: &mut [Connection]) -> Result<State, String> {
    let mut state = State::default();
    for stream in 0..STREAMS {
        state
            .streams
            .push(entries_everywhere(connections, &key(stream))?);
    }
    for group in Group::all() {
        let (name, key) = (format!("g{}", group.number), key(group.stream));
        state
            .drained
            .insert(group, drain(connections, &name, &key)?);
        let pending = pending(&mut connections[0], &group.words())?;
        check_counts(&mut connections[0], &state, group, pending.len())?;
        state.pending.insert(group, pending);
    }
    Ok(state)
}

/// The entries of a stream, which all servers must agree on.
///
/// # Errors
/// If they disagree, or their counts do not match.
pub fn entries_everywhere(connections: &mut [Connection], key: &str) -> Result<Vec<Entry>, String> {
    let all = connections.iter_mut().map(|connection| {
        let length = run(connection, &format!("XLEN {key}")).integer();
        let found = entries(&run(connection, &format!("XRANGE {key} - +")))?;
        match length == i64::try_from(found.len()).ok() {
            true => Ok(found),
            false => Err(format!(
                "{key}: XLEN is {length:?}, there are {}",
                found.len()
            )),
        }
    });
    let mut all = all.collect::<Result<Vec<_>, String>>()?;
    all.dedup();
    match all.pop() {
        Some(found) if all.is_empty() => Ok(found),
        _ => Err(format!("servers disagree about {key}")),
    }
}

/// Lets a group read what is left for it, through all servers in turn.
///
/// # Errors
/// If a reply has no entries.
pub fn drain(connections: &mut [Connection], group: &str, key: &str) -> Result<Vec<Entry>, String> {
    let text = format!("XREADGROUP GROUP {group} drain COUNT 7 STREAMS {key} >");
    let mut drained = Vec::new();
    let servers = connections.len();
    for turn in 0.. {
        let found = entries_read(&run(&mut connections[turn % servers], &text))?;
        if found.is_empty() {
            break;
        }
        drained.extend(found);
    }
    Ok(drained)
}

/// The pending entries of a group, with their delivery counts.
///
/// # Errors
/// If the reply is not one of XPENDING.
pub fn pending(connection: &mut Connection, group: &str) -> Result<BTreeMap<EntryId, u64>, String> {
    pending_rows(&run(connection, &format!("XPENDING {group} - + 10000000")))
}

/// The rows in a reply of XPENDING.
///
/// # Errors
/// If it is not such a reply.
pub fn pending_rows(reply: &Value) -> Result<BTreeMap<EntryId, u64>, String> {
    let rows = reply.items().unwrap_or_default().iter();
    let rows = rows.map(|row| match row.items() {
        Some([id, _, _, deliveries]) => {
            let id = texts(id).concat().parse()?;
            let deliveries = deliveries.integer().and_then(|count| count.try_into().ok());
            Ok((id, deliveries.ok_or("no number of deliveries")?))
        }
        _ => Err(format!("XPENDING: {row:?}")),
    });
    rows.collect()
}

/// A server's count for a group: a field of XINFO GROUPS.
///
/// # Errors
/// If there is no such group or field.
pub fn count_of_group(
    connection: &mut Connection,
    key: &str,
    group: &str,
    field: &str,
) -> Result<i64, String> {
    let reply = run(connection, &format!("XINFO GROUPS {key}"));
    let groups = reply.items().unwrap_or_default().iter();
    let fields = groups
        .filter_map(Value::items)
        .find(|fields| fields.get(1).map(texts) == Some(vec![group.to_owned()]))
        .ok_or(format!("{key} has no group {group}"))?;
    let at = fields.iter().position(|name| texts(name) == [field]);
    let value = at.and_then(|at| fields.get(at + 1)?.integer());
    value.ok_or(format!("{key} {group}: no {field}"))
}

/// Checks a server's counts for a group that has read everything.
fn check_counts(
    connection: &mut Connection,
    state: &State,
    group: Group,
    pending: usize,
) -> Result<(), String> {
    let (key, name) = (key(group.stream), format!("g{}", group.number));
    let mut counted = [0; 3];
    for (count, field) in counted.iter_mut().zip(["pending", "entries-read", "lag"]) {
        *count = count_of_group(connection, &key, &name, field)?;
    }
    let length = state.streams[usize::from(group.stream)].len();
    let expected = [pending as i64, length as i64, 0];
    match counted == expected {
        true => Ok(()),
        false => Err(format!(
            "{}: pending, entries-read and lag are {counted:?} instead of {expected:?}",
            group.words()
        )),
    }
}
