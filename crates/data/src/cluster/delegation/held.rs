//! The grants that one unit of work has fetched.

use std::cell::RefCell;

use super::PoppedElement;
use crate::keyspace::key::OpenKey;
use quoin_layout::Id;

/// The grants of one unit of work. Its popping commands see these queues in the state in which the elements were
/// popped.
#[derive(Debug, Default)]
pub struct HeldGrants {
    grants: RefCell<Vec<HeldGrant>>,
    /// The queue that made the latest command fail with `CommandError::GrantsOutstanding`.
    met: RefCell<Option<OpenKey>>,
}

/// A queue, and the elements that were popped from it earlier for this unit's commands.
#[derive(Debug)]
pub(super) struct HeldGrant {
    pub(super) key: OpenKey,
    pub(super) from_end: bool,
    /// All elements of the grant, in the order in which they are popped.
    pub(super) elements: Vec<PoppedElement>,
    /// How many of them are used up, because commands popped them or they returned to the queue.
    pub(super) taken: usize,
    /// Whether the queue had no more elements.
    pub(super) is_exhausted: bool,
    /// Whether the rest has returned. Commands then pop from the queue itself.
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
    /// Whether there are no grants.
    pub fn is_empty(&self) -> bool {
        self.grants.borrow().is_empty()
    }

    /// Records what was used up, for [`Self::rollback`].
    pub fn savepoint(&self) -> GrantsSavepoint {
        let grants = self.grants.borrow();
        let used = grants.iter().map(|held| (held.taken, held.has_returned));
        GrantsSavepoint(used.collect())
    }

    /// Discards what was used up since the savepoint.
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

    /// The result of `ask` for a grant from which commands can pop.
    pub(super) fn ask<T>(
        &self,
        is_it: impl Fn(&HeldGrant) -> bool,
        ask: impl FnOnce(&mut HeldGrant) -> T,
    ) -> Option<T> {
        let mut grants = self.grants.borrow_mut();
        let mut usable = grants.iter_mut().filter(|held| !held.has_returned);
        usable.find(|held| is_it(held)).map(ask)
    }

    /// Takes the elements of a queue that no command has popped. They must return to the queue.
    pub(super) fn take_rest(&self, data: Id) -> Option<(Vec<PoppedElement>, bool)> {
        self.ask(
            |held| held.key.data() == data,
            |held| {
                held.has_returned = true;
                (held.take(usize::MAX), held.from_end)
            },
        )
    }

    /// The queues with granted elements that no command has popped.
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

    /// The queue that the latest command ran into. Its grants must return before the command runs again.
    pub fn take_met(&self) -> Option<OpenKey> {
        self.met.borrow_mut().take()
    }
}
