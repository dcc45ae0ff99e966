//! Deletes single entries: XDEL, and Redis 8.2's XDELEX and XACKDEL, which say what happens to the
//! references that groups have to them.

use std::collections::HashSet;

use futures_util::future::try_join_all;

use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::StreamId;
use quoin_store::{Isolation, StoreError};

use super::StreamMut;
use super::group::GroupMut;
use super::group::pending::PendingChanges;

/// What happens to the pending entries of groups when their entry is deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum References {
    /// They stay, as with XDEL.
    #[default]
    Keep,
    /// They go.
    Delete,
    /// The entry stays until all groups have read and acknowledged it.
    Acknowledged,
}

/// The outcome of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The stream does not have it, and no group needs it. Of XACKDEL: it was not pending.
    Missing,
    /// It is gone.
    Deleted,
    /// A group still needs it.
    StillReferenced,
}

impl StreamMut<'_, '_> {
    /// Deletes entries, and returns the ids of those that existed.
    pub async fn delete(&self, ids: &[StreamId]) -> Result<HashSet<StreamId>, StoreError> {
        let (context, data) = (self.context, self.key.data());
        let mut seen = HashSet::with_capacity(ids.len());
        let ids: Vec<StreamId> = ids.iter().copied().filter(|id| seen.insert(*id)).collect();
        let mut deleted = HashSet::new();
        for some in ids.chunks(KEY_READS_AT_ONCE) {
            let rows = some.iter().map(async |id| {
                let row = context.layout().stream_entry_key(data, *id);
                let value = context.transaction.get(&row, context.isolation).await?;
                Ok::<_, StoreError>((row, value))
            });
            for (id, (row, value)) in some.iter().zip(try_join_all(rows).await?) {
                let Some(value) = value else {
                    continue;
                };
                context.discard_value(data, &value)?;
                context.transaction.clear(&row);
                deleted.insert(*id);
            }
        }
        if let Some(greatest) = deleted.iter().max().copied() {
            let count = i64::try_from(deleted.len()).unwrap_or(i64::MAX);
            context.add_length(self.key, -count);
            if greatest > self.max_deleted_id().await? {
                self.set_max_deleted_id(greatest);
            }
        }
        Ok(deleted)
    }

    /// Deletes entries, and returns the outcome for each. With [`References::Acknowledged`] it
    /// conflicts with all commands that deliver new entries.
    pub async fn delete_with_references(
        &self,
        ids: &[StreamId],
        references: References,
    ) -> Result<Vec<Deletion>, StoreError> {
        let kept = self.apply_references(ids, references).await?;
        let wanted = ids.iter().copied().filter(|id| !kept.contains(id));
        let wanted: Vec<StreamId> = wanted.collect();
        let mut deleted = self.delete(&wanted).await?;
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            found.push(match deleted.remove(id) {
                true => Deletion::Deleted,
                // Even if the stream does not have the entry, as in Redis (`xdelexCommand`).
                false if kept.contains(id) => Deletion::StillReferenced,
                false => Deletion::Missing,
            });
        }
        Ok(found)
    }

    /// Removes pending entries from their groups, or returns the ids that groups still need.
    async fn apply_references(
        &self,
        ids: &[StreamId],
        references: References,
    ) -> Result<HashSet<StreamId>, StoreError> {
        let mut kept = HashSet::new();
        if references == References::Keep {
            return Ok(kept);
        }
        for group in self.groups().await? {
            let group = GroupMut::open(self.context, self.key, group);
            match references {
                References::Acknowledged => {
                    let unread = ids.iter().filter(|id| **id > group.row.last);
                    kept.extend(unread.copied());
                    let pending = group.pending_each(ids, Isolation::Serializable).await?;
                    kept.extend(pending.into_iter().flatten().map(|entry| entry.id));
                }
                References::Delete | References::Keep => {
                    let unique: HashSet<StreamId> = ids.iter().copied().collect();
                    let unique: Vec<StreamId> = unique.into_iter().collect();
                    let pending = group.pending_each(&unique, self.context.isolation).await?;
                    let mut changes = PendingChanges::default();
                    for entry in pending.iter().flatten() {
                        group.remove_pending(entry, &mut changes);
                    }
                    group.count_pending(changes);
                }
            }
        }
        Ok(kept)
    }
}

impl GroupMut<'_, '_> {
    /// Acknowledges entries and deletes them. Returns the outcome for each entry that was pending.
    pub(super) async fn acknowledge_and_delete(
        &self,
        ids: &[StreamId],
        references: References,
    ) -> Result<Vec<Deletion>, StoreError> {
        let pending = self.pending_each(ids, self.context.isolation).await?;
        let pending = pending.into_iter().flatten();
        let mut pending: HashSet<StreamId> = pending.map(|entry| entry.id).collect();
        let were_pending: Vec<StreamId> = pending.iter().copied().collect();
        self.acknowledge(&were_pending).await?;
        let stream = self.stream();
        let kept = stream.apply_references(&were_pending, references).await?;
        let wanted = were_pending.iter().copied().filter(|id| !kept.contains(id));
        let wanted: Vec<StreamId> = wanted.collect();
        stream.delete(&wanted).await?;
        let found = ids.iter().map(|id| match pending.remove(id) {
            false => Deletion::Missing,
            true if kept.contains(id) => Deletion::StillReferenced,
            // As in Redis, this includes entries that no longer existed in the stream.
            true => Deletion::Deleted,
        });
        Ok(found.collect())
    }
}
