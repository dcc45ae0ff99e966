//! Trimming with DELREF and ACKED (Redis 8.2): either groups forget the removed entries, or entries
//! stay until all groups have acknowledged them.
//!
//! Such a trim is exact, even with `~`, because Redis then examines each entry of a node. `~` only
//! bounds the number of removed entries, in whole nodes.

use std::collections::HashSet;

use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::{KeyRange, StreamId, successor};
use quoin_store::{Isolation, StoreError};

use super::delete::References;
use super::group::pending::PendingChanges;
use super::group::{GroupMut, OpenGroup};
use super::trim::{Trim, TrimTo, WALKED_ENTRIES_MAX};
use super::{IdRange, StreamMut};
use crate::rows::pages::Pages;

impl StreamMut<'_, '_> {
    /// Trims a stream with DELREF or ACKED. Returns the number of removed entries. Conflicts with
    /// all commands that deliver new entries.
    pub(super) async fn trim_with_references(&self, trim: &Trim) -> Result<i64, StoreError> {
        let length = self.length_at(Isolation::Serializable).await?;
        let limit = match trim.is_approximate {
            true => self.approximate_limit(trim.limit),
            false => u64::MAX,
        };
        let (excess, last) = match trim.to {
            TrimTo::Length(kept) => (length.saturating_sub(kept), StreamId::MAX),
            TrimTo::First(id) => match id.previous() {
                Some(last) => (self.count_before(id, limit, usize::MAX).await?, last),
                None => return Ok(0),
            },
        };
        if excess == 0 {
            return Ok(0);
        }
        let node = self.context.environment.stream_node_entries_max();
        let most = match excess.saturating_add(node) > limit {
            // Only whole nodes within the limit are removed, as far as their entries may be removed
            // at all.
            true => excess.min(self.count_in_nodes(length, limit, Some(limit)).await?),
            false => excess,
        };
        let groups = self.groups().await?;
        match trim.references {
            _ if most == 0 => Ok(0),
            References::Acknowledged if !groups.is_empty() => {
                self.remove_acknowledged(groups, last, most).await
            }
            References::Acknowledged | References::Delete | References::Keep => {
                let last = self.last_of_first(most, length).await?;
                for group in groups {
                    self.forget_up_to(group, last.unwrap_or(StreamId::MAX))
                        .await?;
                }
                self.remove_first(most).await
            }
        }
    }

    /// Removes the pending entries of a group up to an id, if the stream has their entries.
    async fn forget_up_to(&self, group: OpenGroup, last: StreamId) -> Result<(), StoreError> {
        let group = GroupMut::open(self.context, self.key, group);
        let mut changes = PendingChanges::default();
        let mut from = Some(StreamId::MIN);
        while let Some(first) = from {
            let range = IdRange { first, last };
            let pending = group.pending_range(range, false, KEY_READS_AT_ONCE).await?;
            from = match pending.last() {
                Some(last) if pending.len() >= KEY_READS_AT_ONCE => last.id.next(),
                _ => None,
            };
            let ids: Vec<StreamId> = pending.iter().map(|entry| entry.id).collect();
            let exist = self.entries_with_ids(&ids).await?;
            for (entry, _) in pending.iter().zip(exist).filter(|(_, one)| one.is_some()) {
                group.remove_pending(entry, &mut changes);
            }
        }
        group.count_pending(changes);
        Ok(())
    }

    /// Removes the first entries up to `last` that all groups have read and acknowledged, at most
    /// `most`. Examines up to [`WALKED_ENTRIES_MAX`] entries.
    async fn remove_acknowledged(
        &self,
        groups: Vec<OpenGroup>,
        last: StreamId,
        most: u64,
    ) -> Result<i64, StoreError> {
        let (context, data) = (self.context, self.key.data());
        let read_by_all = groups.iter().map(|group| group.row.last).min();
        let range = IdRange {
            last: last.min(read_by_all.unwrap_or(StreamId::MAX)),
            ..IdRange::ALL
        };
        let groups = groups.into_iter();
        let groups = groups.map(|group| GroupMut::open(context, self.key, group));
        let groups: Vec<GroupMut<'_, '_>> = groups.collect();
        let expected = usize::try_from(most).unwrap_or(usize::MAX);
        let mut pages = Pages::new(context, self.rows(range), false, expected);
        let (mut removed, mut walked) = (0, 0);
        while removed < most
            && walked < WALKED_ENTRIES_MAX
            && let Some(rows) = pages.next().await?
        {
            walked += rows.len() as u64;
            let ids = rows.iter().map(|row| {
                let id = context.layout().read_stream_entry_key(data, &row.key)?;
                Ok::<_, StoreError>(id)
            });
            let ids = ids.collect::<Result<Vec<StreamId>, StoreError>>()?;
            let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
                break;
            };
            let page = IdRange {
                first: *first,
                last: *last,
            };
            let mut kept = HashSet::new();
            for group in &groups {
                let pending =
                    group.pending_range_at(page, false, usize::MAX, Isolation::Serializable);
                kept.extend(pending.await?.into_iter().map(|entry| entry.id));
            }
            // Entries that follow each other are cleared at once.
            let mut run: Option<KeyRange> = None;
            for (row, id) in rows.iter().zip(ids) {
                if kept.contains(&id) || removed == most {
                    if let Some(run) = run.take() {
                        self.clear_entries(&run).await?;
                    }
                    continue;
                }
                removed += 1;
                let end = successor(&row.key);
                match &mut run {
                    Some(run) => run.end = end,
                    None => {
                        run = Some(KeyRange {
                            begin: row.key.to_vec(),
                            end,
                        });
                    }
                }
            }
            if let Some(run) = run {
                self.clear_entries(&run).await?;
            }
        }
        let removed = i64::try_from(removed).unwrap_or(i64::MAX);
        if removed > 0 {
            context.add_length(self.key, -removed);
        }
        Ok(removed)
    }
}
