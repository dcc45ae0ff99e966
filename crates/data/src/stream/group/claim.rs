//! Moving pending entries: to another consumer (XCLAIM and XAUTOCLAIM), or back to their group (XNACK).

use std::collections::{HashMap, HashSet};

use quoin_base::limits::{DELIVERED_BYTES_MAX, KEY_READS_AT_ONCE, LARGE_READS_AT_ONCE};
use quoin_layout::{StreamId, StreamPending, successor};
use quoin_store::StoreError;

use super::GroupMut;
use super::consumers::OpenConsumer;
use super::pending::{PendingChanges, PendingEntry};
use crate::stream::read::EntriesAhead;
use crate::stream::{IdRange, StreamEntry};

/// XAUTOCLAIM examines this many entries for each one that it may claim, as in Redis.
const TRIED_PER_CLAIM: usize = 10;

/// How XCLAIM claims entries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    /// Entries that are idle for less than this keep their consumer; 0: none.
    pub min_idle_ms: i64,
    /// The delivery time to write.
    pub delivered_at_ms: i64,
    /// The number of deliveries to write. `None` means one more than before.
    pub deliveries: Option<u64>,
    /// Entries that are not pending become pending.
    pub is_forced: bool,
    /// Whether only the ids are returned. Then the claim does not count as a delivery.
    pub only_ids: bool,
}

/// An entry that was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// Only the id is wanted.
    Id(StreamId),
    /// The entry.
    Entry(StreamEntry),
}

/// The outcome of XAUTOCLAIM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AutoClaim {
    /// The id to continue from. The least id if nothing is left.
    pub next: StreamId,
    /// The claimed entries.
    pub claimed: Vec<Claimed>,
    /// Entries that were pending and that the stream does not have any more.
    pub deleted: Vec<StreamId>,
}

impl Claim {
    /// Claims entries that have been idle for this long, like XAUTOCLAIM.
    pub(crate) fn idle(min_idle_ms: i64, now_ms: i64, only_ids: bool) -> Self {
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

    /// The entry after the consumer has got it.
    fn claimed(
        &self,
        id: StreamId,
        before: Option<&PendingEntry>,
        consumer: &OpenConsumer,
    ) -> PendingEntry {
        // Redis counts a forced entry as delivered once before.
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

impl GroupMut<'_, '_> {
    /// Assigns pending entries to a consumer, and returns those that it got. Removes entries that
    /// no longer exist in the stream.
    pub(crate) async fn claim(
        &self,
        consumer: &mut OpenConsumer,
        ids: &[StreamId],
        claim: &Claim,
    ) -> Result<Vec<Claimed>, StoreError> {
        let (stream, now_ms) = (self.stream(), self.context.now_ms);
        let found = self.pending_each(ids, self.context.isolation).await?;
        let found = ids.iter().copied().zip(found);
        // An id may be repeated.
        let mut pending: HashMap<StreamId, PendingEntry> =
            found.filter_map(|(id, entry)| Some((id, entry?))).collect();
        let mut claimed = Vec::new();
        let mut changes = PendingChanges::default();
        for some in ids.chunks(KEY_READS_AT_ONCE) {
            let entries = stream.entries_with_ids(some).await?;
            for (id, entry) in some.iter().zip(entries) {
                let before = pending.get(id).copied();
                match (entry, before) {
                    (None, Some(before)) => {
                        self.remove_pending(&before, &mut changes);
                        pending.remove(id);
                    }
                    (Some(entry), before) if before.is_some() || claim.is_forced => {
                        if before.is_some_and(|before| !claim.is_idle(&before, now_ms)) {
                            continue;
                        }
                        let after = claim.claimed(*id, before.as_ref(), consumer);
                        self.put_pending(after, before.as_ref(), &mut changes);
                        pending.insert(*id, after);
                        claimed.push(claim.shown(entry));
                    }
                    _ => {}
                }
            }
        }
        self.count_pending(changes);
        self.note_seen(consumer, !claimed.is_empty());
        Ok(claimed)
    }

    /// Claims up to `count` pending entries from an id on, of up to [`DELIVERED_BYTES_MAX`]. Entries that
    /// the stream does not have any more count too.
    pub(crate) async fn auto_claim(
        &self,
        consumer: &mut OpenConsumer,
        start: StreamId,
        mut count: usize,
        claim: &Claim,
    ) -> Result<AutoClaim, StoreError> {
        let (context, stream) = (self.context, self.stream());
        let mut tries = count.saturating_mul(TRIED_PER_CLAIM);
        let mut done = AutoClaim::default();
        let mut changes = PendingChanges::default();
        let mut bytes = 0_usize;
        let mut from = Some(start);
        'pages: while let Some(first) = from {
            let some = tries
                .min(count.max(TRIED_PER_CLAIM))
                .min(LARGE_READS_AT_ONCE);
            let range = IdRange::from(first);
            let some = self.pending_range_at(range, false, some.max(1), context.relaxed());
            let some = some.await?;
            let ids: Vec<StreamId> = some.iter().map(|entry| entry.id).collect();
            let mut entries = match tries.min(count) {
                0 => EntriesAhead::default(),
                _ => stream.entries_ahead(&ids).await?,
            };
            from = None;
            for before in some {
                if count == 0 || tries == 0 || bytes >= DELIVERED_BYTES_MAX {
                    done.next = before.id;
                    break 'pages;
                }
                tries -= 1;
                from = before.id.next();
                match stream.next_entry(before.id, &mut entries).await? {
                    None => {
                        self.conflict_on_pending(before.id);
                        self.remove_pending(&before, &mut changes);
                        done.deleted.push(before.id);
                        count -= 1;
                    }
                    Some(entry) if claim.is_idle(&before, context.now_ms) => {
                        self.conflict_on_pending(before.id);
                        let after = claim.claimed(before.id, Some(&before), consumer);
                        self.put_pending(after, Some(&before), &mut changes);
                        bytes = bytes.saturating_add(entry.size_bytes());
                        done.claimed.push(claim.shown(entry));
                        count -= 1;
                    }
                    Some(_) => {}
                }
            }
        }
        self.count_pending(changes);
        self.note_seen(consumer, !done.claimed.is_empty());
        Ok(done)
    }

    /// Conflicts with other changes of a pending entry that was read at a snapshot.
    fn conflict_on_pending(&self, id: StreamId) {
        let (layout, data) = (self.context.layout(), self.key.data());
        let row = layout.stream_pending_key(data, self.row.id, id);
        self.context
            .transaction
            .add_read_conflict_range(&row, &successor(&row));
    }

    /// Moves the group's last delivered id forward to this one, never back.
    pub(crate) fn advance_to(&mut self, last: StreamId) {
        if last > self.row.last {
            self.change().last = last;
            self.save();
        }
    }
}

/// How XNACK counts the delivery that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReleaseMode {
    /// It does not count.
    Silent,
    /// It counts.
    Fail,
    /// No consumer can process the entry: the number of deliveries becomes the greatest.
    Fatal,
}

/// How entries are released.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Release {
    /// How the number of deliveries changes.
    pub mode: ReleaseMode,
    /// The number of deliveries; `None`: the mode decides.
    pub deliveries: Option<u64>,
    /// Entries that are not pending become pending.
    pub is_forced: bool,
}

/// The number of deliveries after a fatal one, as in Redis.
const FATAL_DELIVERIES: u64 = i64::MAX as u64;

impl Release {
    fn deliveries(&self, before: Option<&PendingEntry>) -> u64 {
        let before = before.map_or(0, |before| before.row.deliveries);
        match (self.deliveries, self.mode) {
            (Some(deliveries), _) => deliveries,
            (None, ReleaseMode::Silent) => before.saturating_sub(1),
            (None, ReleaseMode::Fail) => before,
            (None, ReleaseMode::Fatal) => FATAL_DELIVERIES,
        }
    }
}

impl GroupMut<'_, '_> {
    /// Returns pending entries to the group: they have no consumer any more, and count as idle.
    /// Returns how many there were. If the group hands out idle entries, wakes waiting clients.
    pub(crate) async fn release(
        &self,
        ids: &[StreamId],
        release: &Release,
    ) -> Result<i64, StoreError> {
        let stream = self.stream();
        let mut seen = HashSet::with_capacity(ids.len());
        let ids: Vec<StreamId> = ids.iter().copied().filter(|id| seen.insert(*id)).collect();
        let found = self.pending_each(&ids, self.context.isolation).await?;
        let mut changes = PendingChanges::default();
        let mut count = 0;
        for (id, before) in ids.into_iter().zip(&found) {
            let exists = match before {
                Some(_) => true,
                None => release.is_forced && stream.entry(id).await?.is_some(),
            };
            if !exists {
                continue;
            }
            let after = PendingEntry {
                id,
                row: StreamPending {
                    consumer: None,
                    delivered_at_ms: 0,
                    deliveries: release.deliveries(before.as_ref()),
                },
            };
            self.put_pending(after, before.as_ref(), &mut changes);
            count += 1;
        }
        self.count_pending(changes);
        if count > 0 && self.row.is_by_delivery {
            self.context.wake_waiting(self.key);
        }
        Ok(count)
    }
}
