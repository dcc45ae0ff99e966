//! Deleting single entries, and setting what a stream knows of itself.

use std::collections::HashSet;

use futures_util::future::try_join_all;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::StreamId;
use quoin_layout::stream::encode_stream_deleted;
use quoin_store::StoreError;

use super::IdRange;

/// What XSETID sets besides the last id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamSettings {
    /// How many entries were ever added.
    pub added: Option<u64>,
    /// The greatest id that was deleted; the least id sets nothing.
    pub deleted: StreamId,
}

impl WriteContext<'_> {
    /// Deletes entries, and answers those that were there.
    pub async fn stream_delete(
        &self,
        key: &OpenKey,
        ids: &[StreamId],
    ) -> Result<HashSet<StreamId>, StoreError> {
        let mut seen = HashSet::with_capacity(ids.len());
        let ids: Vec<StreamId> = ids.iter().copied().filter(|id| seen.insert(*id)).collect();
        let mut deleted = HashSet::new();
        for some in ids.chunks(KEY_READS_AT_ONCE) {
            let rows = some.iter().map(async |id| {
                let row = self.layout().stream_entry_key(key.data(), *id);
                let value = self.transaction.get(&row, self.isolation).await?;
                Ok::<_, StoreError>((row, value))
            });
            for (id, (row, value)) in some.iter().zip(try_join_all(rows).await?) {
                let Some(value) = value else {
                    continue;
                };
                self.discard_value(key.data(), &value)?;
                self.transaction.clear(&row);
                deleted.insert(*id);
            }
        }
        if let Some(greatest) = deleted.iter().max().copied() {
            let count = i64::try_from(deleted.len()).unwrap_or(i64::MAX);
            self.add_length(key, -count);
            if greatest > self.stream_deleted(key).await? {
                self.set_stream_deleted(key, greatest);
            }
        }
        Ok(deleted)
    }

    /// Sets the last id of a stream, and more.
    ///
    /// # Errors
    /// `Text` where what is set contradicts the stream's entries.
    pub async fn stream_set_id(
        &self,
        key: &OpenKey,
        last: StreamId,
        settings: StreamSettings,
    ) -> Result<(), CommandError> {
        if last < self.stream_deleted(key).await? {
            return Err(CommandError::text(
                "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id",
            ));
        }
        let entries = self.stream_pages(key, IdRange::ALL, true, 1);
        if let Some(top) = entries.take(1).await?.pop() {
            if last < top.id {
                return Err(CommandError::text(
                    "ERR The ID specified in XSETID is smaller than the target stream top item",
                ));
            }
            let length = self.length(key, self.isolation).await?;
            let is_less = |added| length > i64::try_from(added).unwrap_or(i64::MAX);
            if settings.added.is_some_and(is_less) {
                return Err(CommandError::text(
                    "ERR The entries_added specified in XSETID is smaller than the target stream \
                     length",
                ));
            }
        }
        let mut head = self.stream_head(key).await?;
        head.last = last;
        head.added = settings.added.unwrap_or(head.added);
        self.set_stream_head(key, head);
        if settings.deleted != StreamId::MIN {
            self.set_stream_deleted(key, settings.deleted);
        }
        Ok(())
    }

    /// Writes the greatest id that was deleted.
    pub(super) fn set_stream_deleted(&self, key: &OpenKey, id: StreamId) {
        let row = self.layout().stream_deleted_key(key.data());
        self.transaction.set(&row, &encode_stream_deleted(id));
    }
}
