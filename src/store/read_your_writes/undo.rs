//! How the writes of a transaction are undone.

use bytes::Bytes;

use super::State;
use super::coverage::{Coverage, Replaced};
use super::writes::{AtomicOp, Entry};
use crate::store::Savepoint;
use crate::store::savepoints::UndoLog;

/// The undo log of a transaction.
pub(super) type Log = UndoLog<Mark, Undo>;

/// What a change replaced.
pub(super) enum Undo {
    /// The entry of a key. `None` if there was none.
    Entry(Bytes, Option<Entry>),
    /// The last atomic operation on a key. `None` if it was not replaced, but another was added.
    Operation(Bytes, Option<AtomicOp>),
    /// A cleared range.
    Cleared(Replaced),
    /// Nothing, as rows were appended to a log.
    Append,
    /// A range of `own_rows`.
    OwnRows(Replaced),
    /// The conditional conflicts of the section that begins here.
    Conditional(Vec<u8>, Coverage),
}

/// What else a rollback restores.
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

    /// Undoes what was written since a savepoint. Conflicts stay.
    pub(super) fn rollback(&mut self, savepoint: Savepoint) {
        let Self {
            log,
            writes,
            own_rows,
            conditional,
            ..
        } = self;
        let mark = log.rollback(savepoint, |undo| match undo {
            Undo::Entry(key, before) => writes.undo_entry(key, before),
            Undo::Operation(key, last) => writes.undo_operation(&key, last),
            Undo::Cleared(replaced) => writes.undo_cleared(replaced),
            Undo::Append => writes.undo_append(),
            Undo::OwnRows(replaced) => own_rows.restore(replaced),
            // Conditional conflicts that were added since stay too.
            Undo::Conditional(section, before) => {
                let ranges = conditional.entry(section).or_default();
                before
                    .iter()
                    .for_each(|(begin, end)| ranges.add(begin, end));
            }
        });
        let Some(mark) = mark else { return };
        if self.mutation_count != mark.mutation_count {
            self.mutation_count = mark.mutation_count;
            self.cache.forget_ranges();
        }
    }
}
