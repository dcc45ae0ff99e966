//! Deleting entries with what groups know of them: XDELEX and XACKDEL of Redis 8.2.

use std::collections::HashSet;

use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::StreamId;
use quoin_store::{Isolation, StoreError};

use super::OpenGroup;
use super::pending::PendingChanges;

/// What becomes of what groups know of an entry that is deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum References {
    /// It stays, as with XDEL.
    #[default]
    Keep,
    /// It goes.
    Delete,
    /// The entry stays until all groups have read and acknowledged it.
    Acknowledged,
}

/// What has become of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// There was none that a group still needs, or it was not pending.
    Missing,
    /// It is gone.
    Deleted,
    /// A group still needs it.
    StillReferenced,
}

impl WriteContext<'_> {
    /// Deletes entries, and answers what has become of each. With [`References::Acknowledged`] it
    /// conflicts with all that deliver new entries.
    pub async fn stream_delete_with_references(
        &self,
        key: &OpenKey,
        ids: &[StreamId],
        references: References,
    ) -> Result<Vec<Deletion>, StoreError> {
        let kept = self.apply_references(key, ids, references).await?;
        let wanted = ids.iter().copied().filter(|id| !kept.contains(id));
        let wanted: Vec<StreamId> = wanted.collect();
        let mut deleted = self.stream_delete(key, &wanted).await?;
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            found.push(match deleted.remove(id) {
                true => Deletion::Deleted,
                // Even one that the stream does not have, as in Redis (`xdelexCommand`).
                false if kept.contains(id) => Deletion::StillReferenced,
                false => Deletion::Missing,
            });
        }
        Ok(found)
    }

    /// Acknowledges entries in a group and deletes them, and answers what has become of each that was
    /// pending.
    pub async fn stream_acknowledge_and_delete(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        ids: &[StreamId],
        references: References,
    ) -> Result<Vec<Deletion>, StoreError> {
        let pending = self.stream_pending_each(key, group, ids, self.isolation);
        let pending = pending.await?.into_iter().flatten();
        let mut pending: HashSet<StreamId> = pending.map(|entry| entry.id).collect();
        let were_pending: Vec<StreamId> = pending.iter().copied().collect();
        self.stream_acknowledge(key, group, &were_pending).await?;
        let kept = self
            .apply_references(key, &were_pending, references)
            .await?;
        let wanted = were_pending.iter().copied().filter(|id| !kept.contains(id));
        let wanted: Vec<StreamId> = wanted.collect();
        self.stream_delete(key, &wanted).await?;
        let found = ids.iter().map(|id| match pending.remove(id) {
            false => Deletion::Missing,
            true if kept.contains(id) => Deletion::StillReferenced,
            // One that was gone from the stream is as good as deleted, as in Redis.
            true => Deletion::Deleted,
        });
        Ok(found.collect())
    }

    /// Has groups forget entries, or answers those that groups still need.
    async fn apply_references(
        &self,
        key: &OpenKey,
        ids: &[StreamId],
        references: References,
    ) -> Result<HashSet<StreamId>, StoreError> {
        let mut kept = HashSet::new();
        if references == References::Keep {
            return Ok(kept);
        }
        for group in self.stream_groups(key).await? {
            match references {
                References::Acknowledged => {
                    let unread = ids.iter().filter(|id| **id > group.row.last);
                    kept.extend(unread.copied());
                    let isolation = Isolation::Serializable;
                    let pending = self.stream_pending_each(key, &group, ids, isolation);
                    kept.extend(pending.await?.into_iter().flatten().map(|entry| entry.id));
                }
                References::Delete | References::Keep => {
                    let unique: HashSet<StreamId> = ids.iter().copied().collect();
                    let unique: Vec<StreamId> = unique.into_iter().collect();
                    let pending = self.stream_pending_each(key, &group, &unique, self.isolation);
                    let mut changes = PendingChanges::default();
                    for entry in pending.await?.iter().flatten() {
                        self.remove_pending(key, &group, entry, &mut changes);
                    }
                    self.count_pending(key, &group, changes);
                }
            }
        }
        Ok(kept)
    }
}
