//! Streams as job queues: groups with policies that hand entries out again and move failing ones to
//! a dead letter stream, consumers that give entries back, and entries that are deleted once they
//! are done.
//!
//! Entries of the first stream are deleted only if all groups have acknowledged them. Those of the
//! second may also be deleted while groups still need them. Group `g0` has dead letters, and `g1`
//! retries forever. Readers learn the delivery count of each entry together with it, so for most
//! entries the checks know whether they were given as new or again.

mod check;
#[cfg(test)]
mod check_tests;
mod deliveries;
mod ends;
mod state;
mod work;

use crate::history::{Moment, Payload};
use crate::resp::Connection;
use crate::streams::{Entry, EntryId, line};

pub use check::check;
pub use state::read_state;
pub use work::{add, work};

/// The number of streams.
const STREAMS: u8 = 2;
/// The stream whose entries are deleted only if all groups have acknowledged them.
const ACKNOWLEDGED_ONLY: u8 = 0;
/// The group that has dead letters.
const WITH_DEAD_LETTERS: u8 = 0;

/// Minimum time in milliseconds before an entry is handed out again.
const MIN_IDLE_MS: u64 = 150;
/// The least and the greatest number of deliveries before an entry becomes a dead letter.
const TRIES: [u64; 2] = [2, 4];

/// A group of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    stream: u8,
    number: u8,
}

impl Group {
    fn all() -> impl Iterator<Item = Self> {
        (0..STREAMS).flat_map(|stream| (0..2).map(move |number| Self { stream, number }))
    }

    /// The group as commands name it: `jobs:0 g1`.
    fn words(self) -> String {
        format!("{} g{}", key(self.stream), self.number)
    }

    fn has_dead_letters(self) -> bool {
        self.number == WITH_DEAD_LETTERS
    }

    /// The command that gives the group a policy.
    fn policy(self, tries: u64, min_idle_ms: u64) -> String {
        let words = self.words();
        match self.has_dead_letters() {
            true => format!(
                "XGROUP SETPOLICY {words} MAXTRIES {tries} MINIDLE {min_idle_ms} DEADLETTER {}",
                dead_letters(self.stream)
            ),
            false => format!("XGROUP SETPOLICY {words} MINIDLE {min_idle_ms}"),
        }
    }
}

fn key(stream: u8) -> String {
    format!("jobs:{stream}")
}

fn dead_letters(stream: u8) -> String {
    format!("dead:{stream}")
}

/// An XADD that was not refused.
#[derive(Debug, Clone, Copy)]
pub struct Added {
    stream: u8,
    payload: Payload,
    /// `None` if it is unknown whether it was added.
    id: Option<EntryId>,
}

/// Entries that a consumer was given together.
#[derive(Debug, Clone)]
pub struct Delivered {
    group: Group,
    /// Each with the number of its deliveries so far, if that was read too.
    entries: Vec<(Entry, Option<u64>)>,
    invoked: Moment,
    ended: Moment,
}

/// What happens to groups that still need a deleted entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum References {
    Keep,
    Delete,
    Acknowledged,
}

/// An operation on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    /// XACK.
    Acknowledge,
    /// XACKDEL.
    AcknowledgeAndDelete(References),
    /// XDELEX.
    Delete(References),
    /// XNACK, and whether it changes the number of deliveries.
    Release(bool),
}

/// A command on one entry that was not refused.
#[derive(Debug, Clone, Copy)]
pub struct Act {
    verb: Verb,
    group: Group,
    id: EntryId,
    invoked: Moment,
    /// `None` if there was no reply.
    answer: Option<(i64, Moment)>,
}

impl Act {
    /// Whether it took effect, as far as the client knows.
    fn may_have_worked(&self) -> bool {
        self.answer.is_none_or(|(answer, _)| answer > 0)
    }

    fn acknowledges(&self) -> bool {
        matches!(self.verb, Verb::Acknowledge | Verb::AcknowledgeAndDelete(_))
    }

    /// How it treats groups that still need the entry, if it deletes.
    fn deletes(&self) -> Option<References> {
        match self.verb {
            Verb::AcknowledgeAndDelete(references) | Verb::Delete(references) => Some(references),
            Verb::Acknowledge | Verb::Release(_) => None,
        }
    }
}

/// What a client knows about its own operations.
#[derive(Debug, Default, Clone)]
pub struct Ledger {
    added: Vec<Added>,
    delivered: Vec<Delivered>,
    acts: Vec<Act>,
}

/// Creates the streams with their groups.
pub fn prepare(connection: &mut Connection) {
    for group in Group::all() {
        let create = format!("XGROUP CREATE {} 0 MKSTREAM", group.words());
        for text in [create, group.policy(TRIES[1], MIN_IDLE_MS)] {
            let reply = connection.command(&line(&text)).unwrap();
            assert!(reply.error().is_none(), "{text}: {reply:?}");
        }
    }
}
