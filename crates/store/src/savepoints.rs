//! Savepoints and their undo log.

/// Marks a transaction's writes, see [`Transaction::savepoint`](super::Transaction::savepoint).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint {
    /// Savepoints that were open before this one.
    depth: usize,
}

/// The open savepoints of a transaction, each with a `Mark`, and an `Undo` for each change since
/// the outermost one. The memory is kept for reuse when that one ends.
#[derive(Debug)]
pub struct UndoLog<Mark, Undo> {
    /// Each with the length that `undos` had at the time.
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
    /// Whether a savepoint is open, so that changes must be logged.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Opens a savepoint.
    pub fn savepoint(&mut self, mark: Mark) -> Savepoint {
        let depth = self.open.len();
        self.open.push((mark, self.undos.len()));
        Savepoint { depth }
    }

    /// Logs how to undo a change, if a savepoint is open.
    pub fn log(&mut self, undo: Undo) {
        if self.is_open() {
            self.undos.push(undo);
        }
    }

    /// Ends a savepoint, and calls `undo` for each change since then, the last first. Returns the
    /// savepoint's mark, or `None` if it has already ended.
    pub fn rollback(&mut self, savepoint: Savepoint, mut undo: impl FnMut(Undo)) -> Option<Mark> {
        let (mark, kept) = *self.open.get(savepoint.depth)?;
        while self.undos.len() > kept
            && let Some(last) = self.undos.pop()
        {
            undo(last);
        }
        self.open.truncate(savepoint.depth);
        Some(mark)
    }

    /// How to undo each change since the outermost savepoint.
    pub fn undos(&self) -> &[Undo] {
        &self.undos
    }

    /// Ends a savepoint and keeps the changes since then.
    pub fn release(&mut self, savepoint: Savepoint) {
        self.open.truncate(savepoint.depth);
        if self.open.is_empty() {
            self.undos.clear();
        }
    }
}
