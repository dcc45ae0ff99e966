//! How the writes of a transaction are undone.

use bytes::Bytes;

use super::coverage::{Coverage, Replaced};
use super::entry::{AtomicOp, Entry};
use crate::savepoints::UndoLog;

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
