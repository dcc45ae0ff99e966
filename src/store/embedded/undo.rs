//! How the writes of a transaction are undone.

use super::blob::Blob;
use crate::store::savepoints::UndoLog;

/// The undo log of a transaction.
pub(super) type Log = UndoLog<Mark, Undo>;

/// The entry that a change replaced in one of a transaction's maps: its key, and its value, if there
/// was one.
#[derive(Debug)]
pub(super) enum Undo {
    /// Of the layer's rows.
    Row(Blob, Option<Blob>),
    /// Of the layer's cleared ranges.
    Cleared(Blob, Option<Blob>),
    /// Of the pending additions.
    Add(Blob, Option<i64>),
}

/// What else a transaction was at a savepoint.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    pub(super) record_bytes: usize,
    pub(super) size_bytes: usize,
    pub(super) mutation_count: u64,
    pub(super) has_failed: bool,
}
