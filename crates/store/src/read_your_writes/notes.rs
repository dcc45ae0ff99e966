//! Noting what a transaction reads.

use std::cell::RefCell;

use crate::{NotedRead, RangeQuery};

/// Reads that a transaction notes.
#[derive(Debug, Default)]
pub(super) struct Notes(RefCell<Option<(usize, Vec<NotedRead>)>>);

impl Notes {
    /// Begins to note reads, at most so many.
    pub(super) fn begin(&self, max: usize) {
        *self.0.borrow_mut() = Some((max, Vec::new()));
    }

    /// Ends it, and returns the reads.
    pub(super) fn take(&self) -> Vec<NotedRead> {
        self.0.take().map_or_else(Vec::new, |(_, reads)| reads)
    }

    pub(super) fn note_key(&self, key: &[u8]) {
        self.note(|| NotedRead::Key(key.to_vec()));
    }

    pub(super) fn note_range(&self, query: &RangeQuery<'_>) {
        self.note(|| NotedRead::Range {
            begin: query.begin.to_vec(),
            end: query.end.to_vec(),
            limit: query.limit,
            reverse: query.reverse,
        });
    }

    fn note(&self, read: impl FnOnce() -> NotedRead) {
        if let Some((max, reads)) = &mut *self.0.borrow_mut()
            && reads.len() < *max
        {
            reads.push(read());
        }
    }
}
