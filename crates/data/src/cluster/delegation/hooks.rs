//! What commands, keyspace and types ask of delegation.

use super::PoppedElement;
use super::held::{HeldGrant, HeldGrants};
use super::returning::has_grants;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_layout::Meta;
use quoin_store::{Isolation, StoreError};

impl<'t> ReadContext<'t> {
    /// The grants that the command pops from, if it is one that does.
    fn popped_grants(&self) -> Option<&'t HeldGrants> {
        self.grants.filter(|_| self.pops_grants)
    }

    /// A queue of which there is a grant, as it was when the elements were popped.
    pub(crate) fn find_granted(&self, meta_key: &[u8]) -> Option<OpenKey> {
        let is_it = |held: &HeldGrant| held.key.meta_key == meta_key;
        let mut key = self.popped_grants()?.ask(is_it, |held| held.key.clone())?;
        key.database = Some(self.database);
        Some(key)
    }

    /// Whether a grant has elements left; `None` where there is no grant.
    pub(crate) fn has_granted(&self, key: &OpenKey) -> Option<bool> {
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
    pub async fn pop_elements(
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
            None if self.has_granted(key).is_some() => {
                let key = self.as_it_is_now(key).await?;
                self.take_elements(&key, from_end, count).await
            }
            None => self.take_elements(key, from_end, count).await,
        }
    }

    /// A queue of which there is a grant, with its metadata of now rather than of when the elements were
    /// popped.
    async fn as_it_is_now(&self, key: &OpenKey) -> Result<OpenKey, StoreError> {
        let row = self.transaction.get(&key.meta_key, self.isolation).await?;
        let meta = row.map(|row| Meta::decode(&row)).transpose()?;
        Ok(OpenKey {
            meta: meta
                .filter(|meta| meta.data == key.data())
                .unwrap_or_else(|| key.meta.clone()),
            ..key.clone()
        })
    }

    /// To be called before another key replaces one that has no elements. Elements of a queue that
    /// is empty may be on their way to a server that has requested them. If it does not fetch them
    /// they belong to the queue, and the key does exist.
    ///
    /// # Errors
    /// `GrantsOutstanding` where there are any: they return, and the command runs again.
    pub(crate) async fn before_replacing(
        &self,
        database: u32,
        old: &OpenKey,
    ) -> Result<(), CommandError> {
        let isolation = Isolation::Serializable;
        if !self
            .is_retained(&old.meta_key, &old.meta, isolation)
            .await?
            || !self.has_grants(old).await?
        {
            return Ok(());
        }
        if let Some(grants) = self.grants {
            grants.note_met(OpenKey {
                database: Some(database),
                ..old.clone()
            });
        }
        Err(CommandError::GrantsOutstanding)
    }

    /// Whether elements of a queue are granted and no command has popped them yet. Conflicts with
    /// servers that grant some.
    pub(crate) async fn has_grants(&self, key: &OpenKey) -> Result<bool, StoreError> {
        let held = self
            .grants
            .is_some_and(|grants| grants.has_rest(key.data()));
        Ok(held || has_grants(self.layout(), self.transaction, key.data()).await?)
    }
}
