//! How the writes of a transaction are undone.

use super::blob::{Blob, Key};
use quoin_store::savepoints::UndoLog;

/// The undo log of a transaction.
pub(super) type Log = UndoLog<Mark, Undo>;

/// The entry of a map that a change replaced: its key, and its value. `None` if there was none.
#[derive(Debug)]
pub(super) enum Undo {
    /// In the layer's rows.
    Row(Key, Option<Blob>),
    /// In the layer's cleared ranges.
    Cleared(Key, Option<Blob>),
    /// In the pending additions.
    Add(Key, Option<i64>),
}

/// What else a rollback restores.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    pub(super) record_bytes: usize,
    pub(super) size_bytes: usize,
    pub(super) mutation_count: u64,
    pub(super) grown_bytes: i64,
    pub(super) has_failed: bool,
}
