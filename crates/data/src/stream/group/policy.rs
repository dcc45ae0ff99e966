//! Policies of groups: entries that nobody acknowledges in time are handed out again, and in the end
//! go to a dead letter stream.
//!
//! While a group has a policy each of its pending entries has a row by the time of its last delivery.
//! SETPOLICY writes these rows, and the pending entries themselves once more, so that a change of one
//! by a transaction that has not seen the policy conflicts. Such a transaction may still leave a row
//! that does not agree with its entry. It means nothing, and a reader removes it.
//!
//! Clients that wait for entries are woken by a timer (`taskqueue/timers.rs`),
//! which every delivery sets.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::stream::{IdRange, StreamEntry};
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::{
    DELIVERED_BYTES_MAX, KEY_READS_AT_ONCE, LARGE_READS_AT_ONCE, STREAM_DEAD_LETTERS_MAX,
    STREAM_IDLE_DELIVERED_MAX,
};
use quoin_layout::{StreamId, StreamPending, StreamPolicy};
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError};

use super::claim::EntriesAhead;
use super::dead_letter::letter;
use super::pending::{PendingChanges, PendingEntry};
use super::{OpenConsumer, OpenGroup};

/// When entries of a stream are idle enough to be handed out again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IdleOutlook {
    /// Some are now.
    pub is_due: bool,
    /// When the next of the others is.
    pub next_ms: Option<i64>,
}

impl ReadContext<'_> {
    /// When entries of any group of a stream are handed out again.
    pub async fn stream_idle_outlook(&self, key: &OpenKey) -> Result<IdleOutlook, StoreError> {
        let mut outlook = IdleOutlook::default();
        for group in self.relaxed_view().stream_groups(key).await? {
            let Some(policy) = &group.row.policy else {
                continue;
            };
            let until_ms = self.idle_until_ms(policy);
            let due = self.stream_idle_rows(key, &group, i64::MIN, until_ms, 1);
            outlook.is_due |= !due.await?.is_empty();
            let later = self.stream_idle_rows(key, &group, until_ms, i64::MAX, 1);
            if let Some(row) = later.await?.first() {
                let (_, at_ms, _) = self.layout().read_stream_idle_key(key.data(), &row.key)?;
                let at_ms = at_ms.saturating_add(policy.min_idle_ms);
                outlook.next_ms = Some(outlook.next_ms.map_or(at_ms, |next| next.min(at_ms)));
            }
        }
        Ok(outlook)
    }

    /// Entries that were delivered before this time are idle for long enough.
    fn idle_until_ms(&self, policy: &StreamPolicy) -> i64 {
        let until_ms = self.now_ms.saturating_sub(policy.min_idle_ms);
        until_ms.saturating_add(1)
    }

    /// Rows of pending entries by time, without a conflict.
    async fn stream_idle_rows(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        from_ms: i64,
        before_ms: i64,
        limit: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let range = self
            .layout()
            .stream_idle(key.data(), group.row.id, from_ms, before_ms);
        let rows = self.transaction.get_range(RangeQuery {
            begin: &range.begin,
            end: &range.end,
            limit,
            reverse: false,
            isolation: self.relaxed(),
        });
        rows.await
    }
}

impl WriteContext<'_> {
    /// Gives a group a policy in place of what it has, or none. The group must have been read
    /// serializably.
    ///
    /// # Errors
    /// `Text` where more entries are pending than a transaction can change.
    pub async fn stream_set_policy(
        &self,
        key: &OpenKey,
        group: &mut OpenGroup,
        policy: Option<StreamPolicy>,
    ) -> Result<(), CommandError> {
        let (layout, data, id) = (self.layout(), key.data(), group.row.id);
        if policy.is_some() {
            let view = self.relaxed_view();
            let count = view.stream_pending_count(key, group, None).await?;
            self.check_pending_changed(count)?;
        }
        let by_time = layout.stream_idle(data, id, i64::MIN, i64::MAX);
        self.transaction.clear_range(&by_time.begin, &by_time.end);
        group.row.policy = policy;
        self.set_stream_group(key, group);
        if group.row.policy.is_none() {
            return Ok(());
        }
        let mut from = Some(StreamId::MIN);
        while let Some(first) = from {
            let range = IdRange {
                first,
                ..IdRange::ALL
            };
            let some = self.stream_pending_range(key, group, range, false, KEY_READS_AT_ONCE);
            let some = some.await?;
            from = match some.last() {
                Some(last) if some.len() >= KEY_READS_AT_ONCE => last.id.next(),
                _ => None,
            };
            for entry in some {
                let mut changes = PendingChanges::default();
                self.put_pending(key, group, entry, Some(&entry), &mut changes);
            }
        }
        self.set_timer(key, self.now_ms);
        Ok(())
    }

    /// Has clients that wait for entries of a group woken when the next idle one can be handed out:
    /// soon if it can already. To be called where a client begins to wait. A reader may have stopped
    /// at a limit, and a server whose clock is ahead may have removed the timer before.
    pub async fn stream_await_idle(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
    ) -> Result<(), StoreError> {
        let Some(policy) = &group.row.policy else {
            return Ok(());
        };
        let first = self.stream_idle_rows(key, group, i64::MIN, i64::MAX, 1);
        if let Some(row) = first.await?.first() {
            let (_, at_ms, _) = self.layout().read_stream_idle_key(key.data(), &row.key)?;
            let due_ms = at_ms.saturating_add(policy.min_idle_ms);
            self.set_timer(key, due_ms.max(self.now_ms));
        }
        Ok(())
    }

    /// Hands entries of a group that are idle for long enough to a consumer, up to `count`,
    /// [`STREAM_IDLE_DELIVERED_MAX`] and [`DELIVERED_BYTES_MAX`]. Those that were delivered too often go to the dead letter stream.
    /// They stay where they are if there is none, or if a transaction cannot hold them.
    ///
    /// # Errors
    /// `Text` where the dead letter stream is none.
    pub(super) async fn stream_deliver_idle(
        &self,
        key: &OpenKey,
        key_name: &Bytes,
        group: &OpenGroup,
        consumer: &OpenConsumer,
        count: usize,
    ) -> Result<Vec<StreamEntry>, CommandError> {
        let Some(policy) = &group.row.policy else {
            return Ok(Vec::new());
        };
        let mut delivered = Vec::new();
        let (mut dead, mut moved) = (0, 0);
        let mut left = STREAM_IDLE_DELIVERED_MAX;
        let mut changes = PendingChanges::default();
        let mut bytes = 0_usize;
        'rows: while delivered.len() < count
            && dead < STREAM_DEAD_LETTERS_MAX
            && left > 0
            && bytes < DELIVERED_BYTES_MAX
        {
            let some = (count - delivered.len()).min(STREAM_DEAD_LETTERS_MAX - dead);
            let some = some.min(LARGE_READS_AT_ONCE).min(left);
            let until_ms = self.idle_until_ms(policy);
            let idle = self.stream_idle_rows(key, group, i64::MIN, until_ms, some);
            let idle = idle.await?;
            if idle.is_empty() {
                break;
            }
            left -= idle.len();
            let (pending, mut entries) = self.idle_entries(key, group, &idle).await?;
            for before in pending {
                if bytes >= DELIVERED_BYTES_MAX {
                    break 'rows;
                }
                let entry = self.next_entry(key, before.id, &mut entries).await?;
                // Once only: it is put by another time, or is not wanted any more.
                match entry {
                    None => self.remove_pending(key, group, &before, &mut changes),
                    Some(entry) if !is_spent(policy, &before) => {
                        let again = again(&before, consumer, self.now_ms);
                        self.put_pending(key, group, again, Some(&before), &mut changes);
                        bytes = bytes.saturating_add(entry.size_bytes());
                        delivered.push(entry);
                    }
                    Some(entry) => {
                        dead += 1;
                        let letter = letter(entry, key_name, group, &before);
                        let name = policy.dead_letter.as_ref();
                        let Some(name) = name.filter(|_| self.can_hold_letter(&letter)) else {
                            self.clear_idle_row(key, group, &before);
                            continue;
                        };
                        if !self.has_room_for_letter(&letter, delivered.len() + moved) {
                            break 'rows;
                        }
                        self.put_dead_letter(name, key, group, &letter).await?;
                        self.remove_pending(key, group, &before, &mut changes);
                        moved += 1;
                    }
                }
            }
        }
        self.count_pending(key, group, changes);
        Ok(delivered)
    }

    /// An entry is not handed out again.
    fn clear_idle_row(&self, key: &OpenKey, group: &OpenGroup, entry: &PendingEntry) {
        let at_ms = entry.row.delivered_at_ms;
        let layout = self.layout();
        let row = layout.stream_idle_key(key.data(), group.row.id, at_ms, entry.id);
        self.transaction.clear(&row);
    }

    /// The pending entries of rows by time, and what was read of the stream's entries. Removes rows that do not
    /// agree with their entry.
    async fn idle_entries(
        &self,
        key: &OpenKey,
        group: &OpenGroup,
        rows: &[KeyValue],
    ) -> Result<(Vec<PendingEntry>, EntriesAhead), StoreError> {
        let mut at = Vec::with_capacity(rows.len());
        for row in rows {
            let (_, at_ms, id) = self.layout().read_stream_idle_key(key.data(), &row.key)?;
            at.push((at_ms, id));
        }
        let ids: Vec<StreamId> = at.iter().map(|(_, id)| *id).collect();
        let pending = self.stream_pending_each(key, group, &ids, Isolation::Serializable);
        let found = pending.await?.into_iter().zip(at).zip(rows);
        let mut pending = Vec::with_capacity(rows.len());
        for ((entry, (at_ms, _)), row) in found {
            match entry.filter(|entry| entry.row.delivered_at_ms == at_ms) {
                Some(entry) => pending.push(entry),
                None => self.transaction.clear(&row.key),
            }
        }
        let ids: Vec<StreamId> = pending.iter().map(|entry| entry.id).collect();
        let entries = self.entries_ahead(key, &ids).await?;
        Ok((pending, entries))
    }
}

/// Whether an entry was delivered as often as the policy allows.
fn is_spent(policy: &StreamPolicy, entry: &PendingEntry) -> bool {
    policy
        .max_tries
        .is_some_and(|max_tries| entry.row.deliveries >= max_tries)
}

/// An entry once a consumer has it again.
fn again(before: &PendingEntry, consumer: &OpenConsumer, now_ms: i64) -> PendingEntry {
    PendingEntry {
        id: before.id,
        row: StreamPending {
            consumer: Some(consumer.row.id),
            delivered_at_ms: now_ms,
            deliveries: before.row.deliveries.saturating_add(1),
        },
    }
}
