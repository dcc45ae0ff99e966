//! XACK.

use std::collections::HashSet;

use crate::layout::StreamId;
use crate::store::StoreError;
use crate::types::{OpenKey, WriteContext};

use super::OpenGroup;
use super::pending::PendingChanges;

impl WriteContext<'_> {
    /// Entries are pending no more; answers how many were. Conflicts only with changes of the same
    /// entries.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn stream_acknowledge(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        ids: &[StreamId],
    ) -> Result<i64, StoreError> {
        let mut seen = HashSet::with_capacity(ids.len());
        let ids: Vec<StreamId> = ids.iter().copied().filter(|id| seen.insert(*id)).collect();
        let found = self
            .stream_pending_each(key, group, &ids, self.isolation)
            .await?;
        let mut changes = PendingChanges::default();
        for entry in found.iter().flatten() {
            self.remove_pending(key, group, entry, &mut changes);
        }
        let count = -changes.of_group();
        self.count_pending(key, group, changes);
        Ok(count)
    }
}
