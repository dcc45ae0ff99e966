//! How the writes of a transaction are undone.

use bytes::Bytes;

use super::State;
use super::coverage::{Coverage, Replaced};
use super::writes::{Change, Entry};
use crate::store::Savepoint;
use crate::store::savepoints::UndoLog;

/// The undo log of a transaction.
pub(super) type Log = UndoLog<Mark, Undo>;

/// What a change replaced.
pub(super) enum Undo {
    /// What the transaction had made of a key, if anything.
    Entry(Bytes, Option<Entry>),
    /// The last of a key's atomic operations. `None`: nothing, another was added.
    Change(Bytes, Option<Change>),
    /// A cleared range.
    Cleared(Replaced),
    /// Nothing: rows were added to a log.
    Append,
    /// A range of `own`.
    Own(Replaced),
    /// What was `taken` in the section that begins here.
    Taken(Vec<u8>, Coverage),
}

/// What else a transaction was at a savepoint.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) mutation_count: u64,
}

impl State {
    /// Opens a savepoint.
    pub(super) fn savepoint(&mut self) -> Savepoint {
        let mutation_count = self.mutation_count;
        self.log.savepoint(Mark { mutation_count })
    }

    /// Undoes what was written since a savepoint. What it conflicts on stays.
    pub(super) fn rollback(&mut self, savepoint: Savepoint) {
        let Self {
            log,
            writes,
            own,
            taken,
            ..
        } = self;
        let mark = log.rollback(savepoint, |undo| match undo {
            Undo::Entry(key, before) => writes.undo_entry(key, before),
            Undo::Change(key, last) => writes.undo_change(&key, last),
            Undo::Cleared(replaced) => writes.undo_cleared(replaced),
            Undo::Append => writes.undo_append(),
            Undo::Own(replaced) => own.restore(replaced),
            // What was taken since stays too: whether it conflicts is decided at the commit.
            Undo::Taken(section, before) => {
                let taken = taken.entry(section).or_default();
                before.iter().for_each(|(begin, end)| taken.add(begin, end));
            }
        });
        let Some(mark) = mark else { return };
        if self.mutation_count != mark.mutation_count {
            self.mutation_count = mark.mutation_count;
            self.known.forget_ranges();
        }
    }
}
