//! The grants that one unit of work has fetched.

use std::cell::RefCell;

use super::PoppedElement;
use crate::keyspace::key::OpenKey;
use quoin_layout::Id;

/// The grants of one unit of work. Its commands that pop see these queues as they were when the
/// elements were popped.
#[derive(Debug, Default)]
pub struct HeldGrants {
    grants: RefCell<Vec<HeldGrant>>,
    /// The queue that the latest command with `CommandError::GrantsOutstanding` has met.
    met: RefCell<Option<OpenKey>>,
}

/// A queue with the elements that were popped for this unit's commands before.
#[derive(Debug)]
pub(super) struct HeldGrant {
    pub(super) key: OpenKey,
    pub(super) from_end: bool,
    /// All of them, the first to be popped in front.
    pub(super) elements: Vec<PoppedElement>,
    /// How many of them are used up: commands have popped them, or they have returned to the queue.
    pub(super) taken: usize,
    /// There were no more.
    pub(super) is_exhausted: bool,
    /// The rest has returned. Commands pop from the queue itself.
    pub(super) has_returned: bool,
}

impl HeldGrant {
    pub(super) fn rest(&self) -> &[PoppedElement] {
        self.elements.get(self.taken..).unwrap_or_default()
    }

    pub(super) fn take(&mut self, count: usize) -> Vec<PoppedElement> {
        let elements: Vec<PoppedElement> = self.rest().iter().take(count).cloned().collect();
        self.taken += elements.len();
        elements
    }
}

/// How much of each grant was used up.
#[derive(Debug)]
pub struct GrantsSavepoint(Vec<(usize, bool)>);

impl HeldGrants {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.grants.borrow().is_empty()
    }

    /// Notes what was used up, to go back to it by [`Self::rollback`].
    pub fn savepoint(&self) -> GrantsSavepoint {
        let grants = self.grants.borrow();
        let used = grants.iter().map(|held| (held.taken, held.has_returned));
        GrantsSavepoint(used.collect())
    }

    /// Forgets what was used up since the savepoint.
    pub fn rollback(&self, savepoint: &GrantsSavepoint) {
        let mut grants = self.grants.borrow_mut();
        for (held, (taken, has_returned)) in grants.iter_mut().zip(&savepoint.0) {
            held.taken = *taken;
            held.has_returned = *has_returned;
        }
    }

    pub(super) fn add(&self, held: HeldGrant) {
        self.grants.borrow_mut().push(held);
    }

    /// What `ask` says of a grant from which commands can pop.
    pub(super) fn ask<T>(
        &self,
        is_it: impl Fn(&HeldGrant) -> bool,
        ask: impl FnOnce(&mut HeldGrant) -> T,
    ) -> Option<T> {
        let mut grants = self.grants.borrow_mut();
        let mut usable = grants.iter_mut().filter(|held| !held.has_returned);
        usable.find(|held| is_it(held)).map(ask)
    }

    /// The elements of a queue that no command has popped. They are to return to the queue.
    pub(super) fn take_rest(&self, data: Id) -> Option<(Vec<PoppedElement>, bool)> {
        self.ask(
            |held| held.key.data() == data,
            |held| {
                held.has_returned = true;
                (held.take(usize::MAX), held.from_end)
            },
        )
    }

    /// The queues of which no command has popped all elements.
    pub(super) fn with_rest(&self) -> Vec<OpenKey> {
        let grants = self.grants.borrow();
        let with_rest = grants.iter().filter(|held| !held.rest().is_empty());
        with_rest.map(|held| held.key.clone()).collect()
    }

    pub(super) fn has_rest(&self, data: Id) -> bool {
        self.ask(
            |held| held.key.data() == data,
            |held| !held.rest().is_empty(),
        )
        .unwrap_or(false)
    }

    pub(super) fn note_met(&self, key: OpenKey) {
        *self.met.borrow_mut() = Some(key);
    }

    /// The queue whose grants have to return before the command runs again that has met it.
    pub fn take_met(&self) -> Option<OpenKey> {
        self.met.borrow_mut().take()
    }
}
