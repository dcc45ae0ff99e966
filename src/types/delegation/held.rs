//! The grants that one unit of work has fetched, and all that commands, keyspace and types ask of
//! delegation.

use std::cell::RefCell;

use super::PoppedElement;
use super::returning::has_grants;
use crate::error::CommandError;
use crate::layout::Id;
use crate::store::{Isolation, StoreError};
use crate::types::context::{ReadContext, WriteContext};
use crate::types::key::OpenKey;

/// The grants of one unit of work. Its commands that pop see these queues as they were when the
/// elements were popped.
#[derive(Debug, Default)]
pub struct HeldGrants {
    grants: RefCell<Vec<HeldGrant>>,
    /// The queue that the latest command with [`CommandError::GrantsOutstanding`] has met.
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
    fn rest(&self) -> &[PoppedElement] {
        self.elements.get(self.taken..).unwrap_or_default()
    }

    fn take(&mut self, count: usize) -> Vec<PoppedElement> {
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
    fn ask<T>(
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

    fn has_rest(&self, data: Id) -> bool {
        self.ask(
            |held| held.key.data() == data,
            |held| !held.rest().is_empty(),
        )
        .unwrap_or(false)
    }

    /// The queue whose grants have to return before the command runs again that has met it.
    pub fn take_met(&self) -> Option<OpenKey> {
        self.met.borrow_mut().take()
    }
}

impl<'t> ReadContext<'t> {
    /// The grants that the command pops from, if it is one that does.
    fn popped_grants(&self) -> Option<&'t HeldGrants> {
        self.grants.filter(|_| self.pops_grants)
    }

    /// A queue of which there is a grant, as it was when the elements were popped.
    pub(in crate::types) fn find_granted(&self, meta_key: &[u8]) -> Option<OpenKey> {
        let is_it = |held: &HeldGrant| held.key.meta_key == meta_key;
        let mut key = self.popped_grants()?.ask(is_it, |held| held.key.clone())?;
        key.database = Some(self.database);
        Some(key)
    }

    /// Whether a grant has elements left; `None` where there is no grant.
    pub(in crate::types) fn has_granted(&self, key: &OpenKey) -> Option<bool> {
        let is_it = |held: &HeldGrant| held.key.data() == key.data();
        self.popped_grants()?
            .ask(is_it, |held| !held.rest().is_empty())
    }

    /// Whether a grant does not hold what a command wants though the queue may: the command must
    /// wait for a grant of its own.
    pub fn is_granted_too_little(&self, key: &OpenKey, count: usize) -> bool {
        let is_it = |held: &HeldGrant| held.key.data() == key.data();
        let grants = self.popped_grants();
        let is_short = |held: &mut HeldGrant| held.rest().len() < count && !held.is_exhausted;
        grants
            .and_then(|grants| grants.ask(is_it, is_short))
            .unwrap_or(false)
    }
}

impl WriteContext<'_> {
    /// Pops up to `count` elements from an end of a queue of any type: from the unit's grant, if
    /// there is one, else from the queue itself.
    pub(in crate::types) async fn pop_elements(
        &self,
        key: &OpenKey,
        from_end: bool,
        count: usize,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        let is_it = |held: &HeldGrant| held.key.data() == key.data() && held.from_end == from_end;
        let granted = self.popped_grants();
        let granted = granted.and_then(|grants| grants.ask(is_it, |held| held.take(count)));
        match granted {
            Some(elements) => Ok(elements),
            None => self.take_elements(key, from_end, count).await,
        }
    }

    /// To be called before another key replaces one that has no elements. Elements of a queue that
    /// is empty may be on their way to a server that has requested them. If it does not fetch them
    /// they belong to the queue, and the key does exist.
    ///
    /// # Errors
    /// `GrantsOutstanding` where there are any: they return, and the command runs again.
    pub(in crate::types) async fn before_replacing(
        &self,
        database: u32,
        old: &OpenKey,
    ) -> Result<(), CommandError> {
        let isolation = Isolation::Serializable;
        if !self.is_ghost(&old.meta_key, &old.meta, isolation).await?
            || !self.has_grants(old).await?
        {
            return Ok(());
        }
        if let Some(grants) = self.grants {
            *grants.met.borrow_mut() = Some(OpenKey {
                database: Some(database),
                ..old.clone()
            });
        }
        Err(CommandError::GrantsOutstanding)
    }

    /// Whether elements of a queue are granted and no command has popped them yet. Conflicts with
    /// servers that grant some.
    pub(in crate::types) async fn has_grants(&self, key: &OpenKey) -> Result<bool, StoreError> {
        let held = self
            .grants
            .is_some_and(|grants| grants.has_rest(key.data()));
        Ok(held || has_grants(self.layout(), self.transaction, key.data()).await?)
    }
}
