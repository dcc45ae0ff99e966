//! Streams: entries are added, read by groups, acknowledged and claimed, and followed with XREAD.
//!
//! Nothing is deleted or trimmed, so the final content of a stream is its whole history, in the
//! order in which ids were assigned.

mod check;
#[cfg(test)]
mod check_tests;
mod state;
mod work;

use std::fmt;
use std::str::FromStr;

use crate::history::{Moment, Payload};
use crate::resp::{Connection, Value};

pub use check::{check, out_of_time};
pub use state::{count_of_group, drain, entries_everywhere, pending, pending_rows, read_state};
pub use work::{add, consume, follow, pause};

/// The number of streams.
const STREAMS: u8 = 2;
/// How many groups each stream has.
const GROUPS: u8 = 2;

/// The id of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryId(pub u64, pub u64);

impl fmt::Display for EntryId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.0, self.1)
    }
}

impl FromStr for EntryId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = text
            .split_once('-')
            .and_then(|(ms, seq)| Some(Self(ms.parse().ok()?, seq.parse().ok()?)));
        id.ok_or_else(|| format!("{text:?} is no id"))
    }
}

/// An entry as readers get it.
pub type Entry = (EntryId, Payload);

/// A group of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    stream: u8,
    number: u8,
}

impl Group {
    fn all() -> impl Iterator<Item = Self> {
        (0..STREAMS).flat_map(|stream| (0..GROUPS).map(move |number| Self { stream, number }))
    }

    /// The group as commands name it: `stream:0 g1`.
    fn words(self) -> String {
        format!("{} g{}", key(self.stream), self.number)
    }
}

fn key(stream: u8) -> String {
    format!("stream:{stream}")
}

/// An XADD that was not refused.
#[derive(Debug, Clone)]
pub struct Added {
    stream: u8,
    payload: Payload,
    invoked: Moment,
    /// Its id and when the reply came. `None` if it is unknown whether it was added.
    answer: Option<(EntryId, Moment)>,
}

/// New entries that a consumer was given together.
#[derive(Debug, Clone)]
pub struct Delivered {
    group: Group,
    entries: Vec<Entry>,
    invoked: Moment,
    ended: Moment,
}

/// An XACK of one entry that was not refused.
#[derive(Debug, Clone, Copy)]
pub struct Acknowledged {
    group: Group,
    id: EntryId,
    /// Whether the entry was pending. `None` if there was no reply.
    answer: Option<bool>,
}

/// What a client knows about its own operations.
#[derive(Debug, Default, Clone)]
pub struct Ledger {
    added: Vec<Added>,
    delivered: Vec<Delivered>,
    claimed: Vec<(Group, Entry)>,
    acknowledged: Vec<Acknowledged>,
    /// What XREAD returned, by stream.
    followed: Vec<Vec<Entry>>,
}

/// Creates the streams with their groups.
pub fn prepare(connection: &mut Connection) {
    for group in Group::all() {
        let words = line(&format!("XGROUP CREATE {} 0 MKSTREAM", group.words()));
        let reply = connection.command(&words).unwrap();
        assert!(reply.error().is_none(), "{words:?}: {reply:?}");
    }
}

/// The words of a command.
pub fn line(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// The entries in a reply of XRANGE, or of one stream.
fn entries(reply: &Value) -> Result<Vec<Entry>, String> {
    let entries = reply.items().unwrap_or_default().iter();
    let entries = entries.map(|entry| {
        let texts = crate::workers::texts(entry);
        match texts.as_slice() {
            [id, _, payload] => match payload.parse() {
                Ok(payload) => Ok((id.parse()?, payload)),
                Err(()) => Err(format!("the payload of {entry:?}")),
            },
            _ => Err(format!("no entry: {entry:?}")),
        }
    });
    entries.collect()
}

/// The entries in a reply of XREAD or XREADGROUP for one stream.
///
/// # Errors
/// If it is not such a reply.
pub fn entries_read(reply: &Value) -> Result<Vec<Entry>, String> {
    match reply.items() {
        None => Ok(Vec::new()),
        Some([stream]) => match stream.items() {
            Some([_, found]) => entries(found),
            _ => Err(format!("no stream: {stream:?}")),
        },
        Some(streams) => Err(format!("{} streams instead of one", streams.len())),
    }
}
