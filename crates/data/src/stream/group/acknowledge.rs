//! XACK.

use std::collections::HashSet;

use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::StreamId;
use quoin_store::StoreError;

use super::OpenGroup;
use super::pending::PendingChanges;

impl WriteContext<'_> {
    /// Entries are pending no more; answers how many were. Conflicts only with changes of the same
    /// entries.
    pub async fn stream_acknowledge(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        ids: &[StreamId],
    ) -> Result<i64, StoreError> {
        let counts = self.stream_acknowledge_each(key, group, &[ids]).await?;
        Ok(counts.into_iter().sum())
    }

    /// [`Self::stream_acknowledge`] for several clients, one after the other, which counts once.
    /// Answers how many entries of each were pending.
    pub async fn stream_acknowledge_each(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        ids_of_each: &[&[StreamId]],
    ) -> Result<Vec<i64>, StoreError> {
        let mut seen = HashSet::new();
        let mut changes = PendingChanges::default();
        let mut counts = Vec::with_capacity(ids_of_each.len());
        for ids in ids_of_each {
            let ids: Vec<StreamId> = ids.iter().copied().filter(|id| seen.insert(*id)).collect();
            let found = self.stream_pending_each(key, group, &ids, self.isolation);
            let mut count = 0;
            for entry in found.await?.iter().flatten() {
                self.remove_pending(key, group, entry, &mut changes);
                count += 1;
            }
            counts.push(count);
        }
        self.count_pending(key, group, changes);
        Ok(counts)
    }
}
