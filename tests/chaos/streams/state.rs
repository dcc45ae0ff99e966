//! What streams hold when all is over.

use std::collections::BTreeMap;

use super::{Entry, EntryId, Group, STREAMS, entries, entries_read, key, line};
use crate::resp::{Connection, Value};
use crate::workers::texts;

/// What there is when all is over.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct State {
    /// All entries that were ever added, by stream.
    pub streams: Vec<Vec<Entry>>,
    /// What each group was given last, by the test itself, so that nothing is left to be given.
    pub drained: BTreeMap<Group, Vec<Entry>>,
    /// What each group was given and has not acknowledged, and how often it was delivered.
    pub pending: BTreeMap<Group, BTreeMap<EntryId, u64>>,
}

fn run(connection: &mut Connection, text: &str) -> Value {
    connection.command(&line(text)).unwrap()
}

/// Reads everything, has each group read what is left for it, and sees whether what the servers count
/// is what is there.
pub fn read_state(connections: &mut [Connection]) -> Result<State, String> {
    let mut state = State::default();
    for stream in 0..STREAMS {
        let key = key(stream);
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
        let [found] = all.as_slice() else {
            return Err(format!("servers disagree about {key}"));
        };
        state.streams.push(found.clone());
    }
    for group in Group::all() {
        let drained = drain(connections, group)?;
        state.drained.insert(group, drained);
        let pending = pending(&mut connections[0], group)?;
        check_counts(&mut connections[0], &state, group, pending.len())?;
        state.pending.insert(group, pending);
    }
    Ok(state)
}

fn drain(connections: &mut [Connection], group: Group) -> Result<Vec<Entry>, String> {
    let (number, key) = (group.number, key(group.stream));
    let text = format!("XREADGROUP GROUP g{number} drain COUNT 7 STREAMS {key} >");
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

fn pending(connection: &mut Connection, group: Group) -> Result<BTreeMap<EntryId, u64>, String> {
    let text = format!("XPENDING {} - + 10000000", group.words());
    let reply = run(connection, &text);
    let rows = reply.items().unwrap_or_default().iter();
    let rows = rows.map(|row| match row.items() {
        Some([id, _, _, deliveries]) => {
            let id = texts(id).concat().parse()?;
            let deliveries = deliveries.integer().and_then(|count| count.try_into().ok());
            Ok((id, deliveries.ok_or("no number of deliveries")?))
        }
        _ => Err(format!("{text}: {row:?}")),
    });
    rows.collect()
}

/// What a server counts of a group that has read everything.
fn check_counts(
    connection: &mut Connection,
    state: &State,
    group: Group,
    pending: usize,
) -> Result<(), String> {
    let key = key(group.stream);
    let reply = run(connection, &format!("XINFO GROUPS {key}"));
    let name = format!("g{}", group.number);
    let groups = reply.items().unwrap_or_default().iter();
    let fields = groups
        .filter_map(Value::items)
        .find(|fields| fields.get(1).map(texts) == Some(vec![name.clone()]))
        .ok_or(format!("{key} has no group {name}"))?;
    let field = |name: &str| {
        let at = fields.iter().position(|field| texts(field) == [name])?;
        fields.get(at + 1)?.integer()
    };
    let counted = [field("pending"), field("entries-read"), field("lag")];
    let length = state.streams[usize::from(group.stream)].len();
    let expected = [pending as i64, length as i64, 0].map(Some);
    match counted == expected {
        true => Ok(()),
        false => Err(format!(
            "{}: pending, entries-read and lag are {counted:?} instead of {expected:?}",
            group.words()
        )),
    }
}
