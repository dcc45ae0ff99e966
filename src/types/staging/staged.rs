//! What other servers have popped for the commands of one transaction.

use std::cell::RefCell;

use crate::layout::{Id, StagedElement};
use crate::types::key::OpenKey;

/// A queue of which some elements were popped for this transaction's commands before.
#[derive(Debug)]
pub(super) struct StagedKey {
    pub(super) key: OpenKey,
    pub(super) from_end: bool,
    /// All of them, the first to be popped in front.
    pub(super) elements: Vec<StagedElement>,
    /// How many of them commands have taken.
    pub(super) taken: usize,
    /// There were no more.
    pub(super) is_exhausted: bool,
}

impl StagedKey {
    pub(super) fn left(&self) -> &[StagedElement] {
        self.elements.get(self.taken..).unwrap_or_default()
    }
}

/// How much commands had taken of each queue of [`Staged`].
#[derive(Debug)]
pub struct StagedSavepoint(Vec<usize>);

/// The queues of which one transaction has claims. Their commands see them as they were when the
/// elements were popped.
#[derive(Debug, Default)]
pub struct Staged {
    pub(super) keys: RefCell<Vec<StagedKey>>,
}

impl Staged {
    /// Whether there is no such queue.
    pub fn is_empty(&self) -> bool {
        self.keys.borrow().is_empty()
    }

    /// Notes what was taken, to go back to it by [`Self::rollback`].
    pub fn savepoint(&self) -> StagedSavepoint {
        let keys = self.keys.borrow();
        StagedSavepoint(keys.iter().map(|staged| staged.taken).collect())
    }

    /// Puts back what was taken since the savepoint.
    pub fn rollback(&self, savepoint: &StagedSavepoint) {
        let mut keys = self.keys.borrow_mut();
        for (staged, taken) in keys.iter_mut().zip(&savepoint.0) {
            staged.taken = *taken;
        }
    }

    pub(super) fn add(&self, staged: StagedKey) {
        self.keys.borrow_mut().push(staged);
    }

    /// The queue whose metadata lies there.
    pub(super) fn find(&self, meta_key: &[u8]) -> Option<OpenKey> {
        let keys = self.keys.borrow();
        let found = keys.iter().find(|staged| staged.key.meta_key == meta_key)?;
        Some(found.key.clone())
    }

    /// How many elements are left of a queue, and whether that is all that it had.
    pub(super) fn left(&self, data: Id) -> Option<(usize, bool)> {
        let keys = self.keys.borrow();
        let found = keys.iter().find(|staged| staged.key.data() == data)?;
        Some((found.left().len(), found.is_exhausted))
    }

    pub(super) fn take(
        &self,
        data: Id,
        from_end: bool,
        count: usize,
    ) -> Option<Vec<StagedElement>> {
        let mut keys = self.keys.borrow_mut();
        let mut of_key = keys.iter_mut();
        let found =
            of_key.find(|staged| staged.key.data() == data && staged.from_end == from_end)?;
        let elements: Vec<StagedElement> = found.left().iter().take(count).cloned().collect();
        found.taken += elements.len();
        Some(elements)
    }
}
