//! Undoes the writes of a transaction.

use super::blob::{Blob, Key};
use quoin_store::savepoints::UndoLog;

/// The undo log of a transaction.
pub(super) type Log = UndoLog<Mark, Undo>;

/// A map entry before a change: its key and its value. `None` if there was no entry.
#[derive(Debug)]
pub(super) enum Undo {
    /// In the layer's rows.
    Row(Key, Option<Blob>),
    /// In the layer's cleared ranges.
    Cleared(Key, Option<Blob>),
    /// In the pending additions.
    Add(Key, Option<i64>),
}

/// Other state that a rollback restores.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    pub(super) record_bytes: usize,
    pub(super) size_bytes: usize,
    pub(super) mutation_count: u64,
    pub(super) grown_bytes: i64,
    pub(super) has_failed: bool,
}
