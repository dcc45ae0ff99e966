//! Handing pending entries to another consumer: XCLAIM and XAUTOCLAIM.

use std::collections::HashMap;

use futures_util::future::try_join_all;

use crate::keyspace::key::OpenKey;
use crate::stream::{IdRange, StreamEntry};
use crate::unit::context::WriteContext;
use quoin_base::limits::{DELIVERED_BYTES_MAX, KEY_READS_AT_ONCE, LARGE_READS_AT_ONCE};
use quoin_layout::{StreamId, StreamPending, successor};
use quoin_store::StoreError;

use super::pending::{PendingChanges, PendingEntry};
use super::{OpenConsumer, OpenGroup};

/// Entries that XAUTOCLAIM looks at for each that it may claim (as Redis).
const TRIED_PER_CLAIM: usize = 10;

/// What XCLAIM does to the entries that it claims.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// Entries that were delivered later than so long ago stay where they are; 0: none.
    pub min_idle_ms: i64,
    /// When they count as delivered.
    pub delivered_at_ms: i64,
    /// How often they count as delivered; else once more than before.
    pub deliveries: Option<u64>,
    /// Entries that are not pending are made so.
    pub is_forced: bool,
    /// Only the ids are wanted. Then this is no delivery that counts.
    pub only_ids: bool,
}

/// An entry that was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// Only the id is wanted.
    Id(StreamId),
    /// The entry.
    Entry(StreamEntry),
}

/// What XAUTOCLAIM has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AutoClaim {
    /// Where to go on; the least id where nothing is left.
    pub next: StreamId,
    /// What was claimed.
    pub claimed: Vec<Claimed>,
    /// Entries that were pending and are gone from the stream.
    pub deleted: Vec<StreamId>,
}

impl Claim {
    /// Claims what is idle for so long at this time, as XAUTOCLAIM does.
    pub fn idle(min_idle_ms: i64, now_ms: i64, only_ids: bool) -> Self {
        Self {
            min_idle_ms,
            delivered_at_ms: now_ms,
            deliveries: None,
            is_forced: false,
            only_ids,
        }
    }

    fn is_idle(&self, entry: &PendingEntry, now_ms: i64) -> bool {
        let idle_ms = now_ms.saturating_sub(entry.row.delivered_at_ms);
        entry.row.consumer.is_none() || idle_ms >= self.min_idle_ms || self.min_idle_ms == 0
    }

    /// The entry once the consumer has it.
    fn claimed(
        &self,
        id: StreamId,
        before: Option<&PendingEntry>,
        consumer: &OpenConsumer,
    ) -> PendingEntry {
        // To Redis an entry that is made pending was delivered before.
        let before = before.map_or(1, |before| before.row.deliveries);
        let deliveries = match self.deliveries {
            Some(deliveries) => deliveries,
            None if self.only_ids => before,
            None => before.saturating_add(1),
        };
        PendingEntry {
            id,
            row: StreamPending {
                consumer: Some(consumer.row.id),
                delivered_at_ms: self.delivered_at_ms,
                deliveries,
            },
        }
    }

    fn shown(&self, entry: StreamEntry) -> Claimed {
        match self.only_ids {
            true => Claimed::Id(entry.id),
            false => Claimed::Entry(entry),
        }
    }
}

/// Entries that were read ahead, in the order of the ids that they were read by.
pub(super) type EntriesAhead = std::vec::IntoIter<Option<StreamEntry>>;

impl WriteContext<'_> {
    /// Gives pending entries to a consumer, and answers those that it got. Entries that are gone from
    /// the stream are pending no more.
    pub async fn stream_claim(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        consumer: &mut OpenConsumer,
        ids: &[StreamId],
        claim: &Claim,
    ) -> Result<Vec<Claimed>, StoreError> {
        let found = self
            .stream_pending_each(key, group, ids, self.isolation)
            .await?;
        let found = ids.iter().copied().zip(found);
        // An id may be named twice.
        let mut pending: HashMap<StreamId, PendingEntry> =
            found.filter_map(|(id, entry)| Some((id, entry?))).collect();
        let mut claimed = Vec::new();
        let mut changes = PendingChanges::default();
        for some in ids.chunks(KEY_READS_AT_ONCE) {
            let entries = self.entries_with_ids(key, some).await?;
            for (id, entry) in some.iter().zip(entries) {
                let before = pending.get(id).copied();
                match (entry, before) {
                    (None, Some(before)) => {
                        self.remove_pending(key, group, &before, &mut changes);
                        pending.remove(id);
                    }
                    (Some(entry), before) if before.is_some() || claim.is_forced => {
                        if before.is_some_and(|before| !claim.is_idle(&before, self.now_ms)) {
                            continue;
                        }
                        let after = claim.claimed(*id, before.as_ref(), consumer);
                        let before = before.as_ref();
                        self.put_pending(key, group, after, before, &mut changes);
                        pending.insert(*id, after);
                        claimed.push(claim.shown(entry));
                    }
                    _ => {}
                }
            }
        }
        self.count_pending(key, group, changes);
        self.stream_consumer_seen(key, group, consumer, !claimed.is_empty());
        Ok(claimed)
    }

    /// Claims up to `count` pending entries, of up to [`DELIVERED_BYTES_MAX`], from an id on. Those that
    /// it finds deleted count too.
    pub async fn stream_auto_claim(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        consumer: &mut OpenConsumer,
        start: StreamId,
        mut count: usize,
        claim: &Claim,
    ) -> Result<AutoClaim, StoreError> {
        let mut tries = count.saturating_mul(TRIED_PER_CLAIM);
        let mut done = AutoClaim::default();
        let mut changes = PendingChanges::default();
        let mut bytes = 0_usize;
        let mut from = Some(start);
        'pages: while let Some(first) = from {
            let range = IdRange {
                first,
                last: StreamId::MAX,
            };
            let some = tries
                .min(count.max(TRIED_PER_CLAIM))
                .min(LARGE_READS_AT_ONCE);
            let some = self
                .pending_range_at(key, group, range, false, some.max(1), self.relaxed())
                .await?;
            let ids: Vec<StreamId> = some.iter().map(|entry| entry.id).collect();
            let mut entries = match tries.min(count) {
                0 => EntriesAhead::default(),
                _ => self.entries_ahead(key, &ids).await?,
            };
            from = None;
            for before in some {
                if count == 0 || tries == 0 || bytes >= DELIVERED_BYTES_MAX {
                    done.next = before.id;
                    break 'pages;
                }
                tries -= 1;
                from = before.id.next();
                match self.next_entry(key, before.id, &mut entries).await? {
                    None => {
                        self.conflict_on_pending(key, group, before.id);
                        self.remove_pending(key, group, &before, &mut changes);
                        done.deleted.push(before.id);
                        count -= 1;
                    }
                    Some(entry) if claim.is_idle(&before, self.now_ms) => {
                        self.conflict_on_pending(key, group, before.id);
                        let after = claim.claimed(before.id, Some(&before), consumer);
                        self.put_pending(key, group, after, Some(&before), &mut changes);
                        bytes = bytes.saturating_add(entry.size_bytes());
                        done.claimed.push(claim.shown(entry));
                        count -= 1;
                    }
                    Some(_) => {}
                }
            }
        }
        self.count_pending(key, group, changes);
        self.stream_consumer_seen(key, group, consumer, !done.claimed.is_empty());
        Ok(done)
    }

    /// The entries with these ids, at most [`LARGE_READS_AT_ONCE`], where a read is a round trip. Else none:
    /// they may be large, so each is read when it is asked for.
    pub(super) async fn entries_ahead(
        &self,
        key: &OpenKey,
        ids: &[StreamId],
    ) -> Result<EntriesAhead, StoreError> {
        match self.environment.capabilities.single_writer {
            true => Ok(EntriesAhead::default()),
            false => Ok(self.entries_with_ids(key, ids).await?.into_iter()),
        }
    }

    /// The entry with the next of those ids.
    pub(super) async fn next_entry(
        &self,
        key: &OpenKey,
        id: StreamId,
        ahead: &mut EntriesAhead,
    ) -> Result<Option<StreamEntry>, StoreError> {
        match ahead.next() {
            Some(entry) => Ok(entry),
            None => self.relaxed_view().stream_entry(key, id).await,
        }
    }

    async fn entries_with_ids(
        &self,
        key: &OpenKey,
        ids: &[StreamId],
    ) -> Result<Vec<Option<StreamEntry>>, StoreError> {
        let view = self.relaxed_view();
        try_join_all(ids.iter().map(|id| view.stream_entry(key, *id))).await
    }

    /// Conflicts with other changes of a pending entry that was read at a snapshot.
    fn conflict_on_pending(&self, key: &OpenKey, group: &OpenGroup, id: StreamId) {
        let row = self
            .layout()
            .stream_pending_key(key.data(), group.row.id, id);
        self.transaction
            .add_read_conflict_range(&row, &successor(&row));
    }

    /// Has a group begin after an id at the earliest.
    pub fn stream_advance_group(&self, key: &OpenKey, group: &mut OpenGroup, last: StreamId) {
        if last > group.row.last {
            group.row.last = last;
            self.set_stream_group(key, group);
        }
    }
}
