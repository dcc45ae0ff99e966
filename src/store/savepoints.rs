//! The undo log that savepoints need.

/// Marks a transaction's writes, see [`Transaction::savepoint`](super::Transaction::savepoint).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint {
    /// Savepoints that were open before this one.
    depth: usize,
}

/// The open savepoints of a transaction, each with a `Mark`, and an `Undo` for each change since the
/// outermost. Its memory is kept when the outermost savepoint ends.
#[derive(Debug)]
pub(super) struct UndoLog<Mark, Undo> {
    /// Each with the length that `undos` had.
    open: Vec<(Mark, usize)>,
    undos: Vec<Undo>,
}

impl<Mark, Undo> Default for UndoLog<Mark, Undo> {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            undos: Vec::new(),
        }
    }
}

impl<Mark: Copy, Undo> UndoLog<Mark, Undo> {
    /// Whether changes are to be logged.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Opens a savepoint.
    pub(super) fn savepoint(&mut self, mark: Mark) -> Savepoint {
        let depth = self.open.len();
        self.open.push((mark, self.undos.len()));
        Savepoint { depth }
    }

    /// Logs how a change is undone, where a savepoint is open.
    pub(super) fn log(&mut self, undo: Undo) {
        if self.is_open() {
            self.undos.push(undo);
        }
    }

    /// Ends a savepoint, and calls `undo` for the changes since, the last first. Answers the
    /// savepoint's mark, or `None` where it has ended before.
    pub(super) fn rollback(
        &mut self,
        savepoint: Savepoint,
        mut undo: impl FnMut(Undo),
    ) -> Option<Mark> {
        let (mark, kept) = *self.open.get(savepoint.depth)?;
        while self.undos.len() > kept
            && let Some(last) = self.undos.pop()
        {
            undo(last);
        }
        self.open.truncate(savepoint.depth);
        Some(mark)
    }

    /// Ends a savepoint and keeps the changes since.
    pub(super) fn release(&mut self, savepoint: Savepoint) {
        self.open.truncate(savepoint.depth);
        if self.open.is_empty() {
            self.undos.clear();
        }
    }
}
