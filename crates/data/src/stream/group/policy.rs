//! Policies of groups (XGROUP SETPOLICY). An entry that is not acknowledged in time is handed out
//! again. An entry that was delivered too often becomes a dead letter: it moves to another stream.
//! XREADGROUP with CLAIM chooses its own idle time.
//!
//! If a group has a policy, or CLAIM was ever used on it, each of its pending entries has a row
//! ordered by the time of its last delivery. SETPOLICY, or the first CLAIM, writes these rows. It
//! also writes the pending entries again, so that it conflicts with transactions that change one
//! without having seen the policy. Such a transaction may still leave a row by time that does not
//! match its entry. The row has no effect, and a reader removes it.
//!
//! With a policy, every delivery sets a timer (`taskqueue`), which wakes the clients that wait for
//! entries. A client that waits with CLAIM sets it itself.

use std::collections::HashSet;

use bytes::Bytes;

use quoin_base::events::EventClasses;
use quoin_base::limits::{
    DELIVERED_BYTES_MAX, KEY_READS_AT_ONCE, LARGE_READS_AT_ONCE, STREAM_DEAD_LETTERS_MAX,
    STREAM_IDLE_DELIVERED_MAX,
};
use quoin_layout::{StreamId, StreamPolicy, ValueType, successor};
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError};

use super::consumers::OpenConsumer;
use super::pending::{PendingChanges, PendingEntry};
use super::{Group, GroupMut};
use crate::error::CommandError;
use crate::stream::append::NewId;
use crate::stream::read::EntriesAhead;
use crate::stream::{IdRange, Stream, StreamEntry, StreamMut};
use crate::taskqueue::timers::TIMER_STEP_MS;

/// An entry to hand out again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdleEntry {
    /// The entry.
    pub entry: StreamEntry,
    /// How it was pending before.
    pub before: PendingEntry,
}

/// When entries of a stream should be handed out again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IdleWork {
    /// Some can be now.
    pub is_due: bool,
    /// When the next of the others can be.
    pub next_ms: Option<i64>,
}

impl Stream<'_, '_> {
    /// When entries of any group of the stream should be handed out again.
    pub async fn idle_work(&self) -> Result<IdleWork, StoreError> {
        let mut work = IdleWork::default();
        let view = self.context.relaxed_view();
        for group in Stream::open(&view, self.key).groups().await? {
            let group = Group::open(self.context, self.key, group);
            let Some(policy) = &group.row.policy else {
                // Clients that wait with CLAIM have set the timer. They know whether an entry has
                // been idle for long enough, and set the next timer.
                work.is_due |= group.row.is_by_delivery;
                continue;
            };
            let until_ms = group.idle_until_ms(policy.min_idle_ms);
            let due = group.idle_rows(i64::MIN, until_ms, 1, None).await?;
            work.is_due |= !due.is_empty();
            if let Some(at_ms) = group.next_due_ms(policy.min_idle_ms, until_ms).await? {
                work.next_ms = Some(work.next_ms.map_or(at_ms, |next| next.min(at_ms)));
            }
        }
        Ok(work)
    }
}

impl Group<'_, '_> {
    /// Entries that were delivered before this time are idle for long enough.
    fn idle_until_ms(&self, min_idle_ms: i64) -> i64 {
        let until_ms = self.context.now_ms.saturating_sub(min_idle_ms);
        until_ms.saturating_add(1)
    }

    /// When the first entry that was delivered at `from_ms` or later should be handed out again.
    async fn next_due_ms(&self, min_idle_ms: i64, from_ms: i64) -> Result<Option<i64>, StoreError> {
        let rows = self.idle_rows(from_ms, i64::MAX, 1, None).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let (layout, data) = (self.context.layout(), self.key.data());
        let (_, at_ms, _) = layout.read_stream_idle_key(data, &row.key)?;
        Ok(Some(at_ms.saturating_add(min_idle_ms)))
    }

    /// Rows of pending entries by time, after the key `after` if given. Causes no conflicts.
    async fn idle_rows(
        &self,
        from_ms: i64,
        before_ms: i64,
        limit: usize,
        after: Option<&[u8]>,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let mut range = layout.stream_idle(data, self.row.id, from_ms, before_ms);
        if let Some(after) = after {
            range.begin = after.to_vec();
        }
        let rows = self.context.transaction.get_range(RangeQuery {
            begin: &range.begin,
            end: &range.end,
            limit,
            reverse: false,
            isolation: self.context.relaxed(),
        });
        rows.await
    }
}

impl GroupMut<'_, '_> {
    /// Replaces the group's policy, or removes it. The group must have been read serializably.
    ///
    /// # Errors
    /// `Text` if more entries are pending than a transaction can change.
    pub(crate) async fn set_policy(
        &mut self,
        policy: Option<StreamPolicy>,
    ) -> Result<(), CommandError> {
        let context = self.context;
        if policy.is_some() {
            let count = self.pending_count(None, context.relaxed()).await?;
            self.check_pending_changed(count)?;
        }
        let by_time =
            context
                .layout()
                .stream_idle(self.key.data(), self.row.id, i64::MIN, i64::MAX);
        context
            .transaction
            .clear_range(&by_time.begin, &by_time.end);
        let is_by_delivery = policy.is_some();
        self.change().policy = policy;
        self.change().is_by_delivery = is_by_delivery;
        self.save();
        if is_by_delivery {
            self.put_idle_rows().await?;
            context.set_timer(self.key, context.now_ms);
        }
        Ok(())
    }

    /// Has the group keep rows by delivery from now on, for CLAIM. The group must have been read serializably.
    ///
    /// # Errors
    /// `Text` if more entries are pending than a transaction can change.
    pub(crate) async fn keep_idle_rows(&mut self) -> Result<(), CommandError> {
        if self.row.is_by_delivery {
            return Ok(());
        }
        let count = self.pending_count(None, self.context.relaxed()).await?;
        self.check_pending_changed(count)?;
        self.change().is_by_delivery = true;
        self.save();
        self.put_idle_rows().await?;
        Ok(())
    }

    /// Writes the row by delivery time of each pending entry, and writes the entry again.
    async fn put_idle_rows(&self) -> Result<(), StoreError> {
        let mut from = Some(StreamId::MIN);
        while let Some(first) = from {
            let some = self.pending_range(IdRange::from(first), false, KEY_READS_AT_ONCE);
            let some = some.await?;
            from = match some.last() {
                Some(last) if some.len() >= KEY_READS_AT_ONCE => last.id.next(),
                _ => None,
            };
            for entry in some {
                self.put_pending(entry, Some(&entry), &mut PendingChanges::default());
            }
        }
        Ok(())
    }

    /// Sets the timer that wakes waiting clients when the next idle entry can be handed out. Must
    /// be called when a client begins to wait: a reader may have stopped at a limit, and a server
    /// whose clock is ahead may already have removed the timer.
    ///
    /// With CLAIM, the client is also woken when the first entry has been idle for that time. If
    /// nothing is pending, it checks again after that time, as in Redis.
    pub(crate) async fn await_idle(&self, claim: Option<i64>) -> Result<(), StoreError> {
        let now_ms = self.context.now_ms;
        let policy = self.row.policy.as_ref();
        if let Some(policy) = policy
            && let Some(due_ms) = self.next_due_ms(policy.min_idle_ms, i64::MIN).await?
        {
            self.context.set_timer(self.key, due_ms.max(now_ms));
        }
        if let Some(min_idle_ms) = claim {
            let due_ms = self.next_due_ms(min_idle_ms, i64::MIN).await?;
            let due_ms = due_ms.unwrap_or(now_ms.saturating_add(min_idle_ms));
            let soon_ms = now_ms.saturating_add(TIMER_STEP_MS);
            self.context.set_timer(self.key, due_ms.max(soon_ms));
        }
        Ok(())
    }

    /// Delivers entries that have been idle for long enough to a consumer, up to `count`,
    /// [`STREAM_IDLE_DELIVERED_MAX`] and [`DELIVERED_BYTES_MAX`]. CLAIM sets how long that is,
    /// otherwise the policy does. With CLAIM, the group must keep rows by delivery time. Entries
    /// that reached the policy's maximum of deliveries go to the dead letter stream. Without such a
    /// stream, or if a transaction cannot hold them, they stay pending and are not delivered again.
    ///
    /// # Errors
    /// `Text` if the dead letter key holds another type, or the stream itself.
    pub(super) async fn deliver_idle(
        &self,
        key_name: &Bytes,
        consumer: &OpenConsumer,
        count: usize,
        claim: Option<i64>,
    ) -> Result<Vec<IdleEntry>, CommandError> {
        let policy = self.row.policy.as_ref();
        let Some(min_idle_ms) = claim.or(policy.map(|policy| policy.min_idle_ms)) else {
            return Ok(Vec::new());
        };
        let stream = self.stream();
        let mut delivered = Vec::new();
        let (mut dead, mut moved) = (0, 0);
        let mut left = STREAM_IDLE_DELIVERED_MAX;
        // With CLAIM 0, an entry that was just handed out is immediately idle for long enough.
        let mut handed_out = HashSet::new();
        let mut after = None;
        let mut changes = PendingChanges::default();
        let mut bytes = 0_usize;
        'rows: while delivered.len() < count
            && dead < STREAM_DEAD_LETTERS_MAX
            && left > 0
            && bytes < DELIVERED_BYTES_MAX
        {
            let some = (count - delivered.len()).min(STREAM_DEAD_LETTERS_MAX - dead);
            let some = some.min(LARGE_READS_AT_ONCE).min(left);
            let until_ms = self.idle_until_ms(min_idle_ms);
            let idle = self
                .idle_rows(i64::MIN, until_ms, some, after.as_deref())
                .await?;
            after = idle.last().map(|row| successor(&row.key));
            if idle.is_empty() {
                break;
            }
            left -= idle.len();
            let (pending, mut entries) = self.idle_entries(&idle).await?;
            for before in pending {
                if bytes >= DELIVERED_BYTES_MAX {
                    break 'rows;
                }
                // Each branch removes the row by time, or replaces it with a later one.
                match stream.next_entry(before.id, &mut entries).await? {
                    None if policy.is_some() => self.remove_pending(&before, &mut changes),
                    // As in Redis, it stays pending.
                    None => self.clear_idle_row(&before),
                    Some(_) if !handed_out.insert(before.id) => {}
                    Some(entry) if !policy.is_some_and(|policy| is_spent(policy, &before)) => {
                        let again = before.again(Some(consumer.row.id), self.context.now_ms);
                        self.put_pending(again, Some(&before), &mut changes);
                        bytes = bytes.saturating_add(entry.size_bytes());
                        delivered.push(IdleEntry { entry, before });
                    }
                    Some(entry) => {
                        dead += 1;
                        let letter = self.dead_letter(entry, key_name, &before);
                        let name = policy.and_then(|policy| policy.dead_letter.as_ref());
                        let Some(name) = name.filter(|_| self.can_hold_letter(&letter)) else {
                            self.clear_idle_row(&before);
                            continue;
                        };
                        if !self.has_room_for_letter(&letter, delivered.len() + moved) {
                            break 'rows;
                        }
                        self.put_dead_letter(name, &letter).await?;
                        self.remove_pending(&before, &mut changes);
                        moved += 1;
                    }
                }
            }
        }
        self.count_pending(changes);
        Ok(delivered)
    }

    /// Clears an entry's row by time, so that the entry is not handed out again.
    pub(super) fn clear_idle_row(&self, entry: &PendingEntry) {
        let (layout, data) = (self.context.layout(), self.key.data());
        let at_ms = entry.row.delivered_at_ms;
        let row = layout.stream_idle_key(data, self.row.id, at_ms, entry.id);
        self.context.transaction.clear(&row);
    }

    /// The pending entries of some rows by time, and the stream's entries that were read ahead.
    /// Removes rows that do not match their entry.
    async fn idle_entries(
        &self,
        rows: &[KeyValue],
    ) -> Result<(Vec<PendingEntry>, EntriesAhead), StoreError> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let mut at = Vec::with_capacity(rows.len());
        for row in rows {
            let (_, at_ms, id) = layout.read_stream_idle_key(data, &row.key)?;
            at.push((at_ms, id));
        }
        let ids: Vec<StreamId> = at.iter().map(|(_, id)| *id).collect();
        let pending = self.pending_each(&ids, Isolation::Serializable).await?;
        let found = pending.into_iter().zip(at).zip(rows);
        let mut pending = Vec::with_capacity(rows.len());
        for ((entry, (at_ms, _)), row) in found {
            match entry.filter(|entry| entry.row.delivered_at_ms == at_ms) {
                Some(entry) => pending.push(entry),
                None => self.context.transaction.clear(&row.key),
            }
        }
        let ids: Vec<StreamId> = pending.iter().map(|entry| entry.id).collect();
        let entries = self.stream().entries_ahead(&ids).await?;
        Ok((pending, entries))
    }
}

/// Whether an entry was delivered as often as the policy allows.
fn is_spent(policy: &StreamPolicy, entry: &PendingEntry) -> bool {
    policy
        .max_tries
        .is_some_and(|max_tries| entry.row.deliveries >= max_tries)
}

/// The fields that a dead letter has in addition to its entry's: the stream, the group, the entry's
/// id, and the number of its deliveries.
const DEAD_LETTER_FIELDS: [&str; 4] = ["_stream", "_group", "_id", "_deliveries"];

/// Maximum overhead of a dead letter's field in the store, in bytes.
const LETTER_FIELD_BYTES: usize = 8;
/// Bytes of a transaction that are reserved for other writes next to a large dead letter. A letter
/// is moved only if it leaves three times as much free in an empty transaction. So it fits into a
/// transaction that has written little else.
const LETTER_ROOM_BYTES: usize = 300_000;

impl GroupMut<'_, '_> {
    /// The names and values of an entry in the dead letter stream.
    fn dead_letter(
        &self,
        entry: StreamEntry,
        key_name: &Bytes,
        pending: &PendingEntry,
    ) -> Vec<Bytes> {
        let values = [
            key_name.clone(),
            self.name.clone(),
            Bytes::from(entry.id.to_string()),
            Bytes::from(pending.row.deliveries.to_string()),
        ];
        let names = DEAD_LETTER_FIELDS.map(|name| Bytes::from_static(name.as_bytes()));
        let mut fields = entry.fields;
        for (name, value) in names.into_iter().zip(values) {
            fields.push(name);
            fields.push(value);
        }
        fields
    }

    /// Whether a transaction can hold a dead letter.
    fn can_hold_letter(&self, letter: &[Bytes]) -> bool {
        let bytes_max = self.context.environment.capabilities.transaction_bytes_max;
        letter_bytes(letter) <= bytes_max.saturating_sub(3 * LETTER_ROOM_BYTES)
    }

    /// Whether this transaction should take a dead letter after `after` other entries. If it is the
    /// first, it may be larger than a batch should become.
    fn has_room_for_letter(&self, letter: &[Bytes], after: usize) -> bool {
        let bytes = self.context.transaction.size_bytes() + letter_bytes(letter);
        let capabilities = &self.context.environment.capabilities;
        let bytes_max = capabilities.transaction_bytes_max;
        bytes <= capabilities.batch_bytes_soft_max
            || (after == 0 && bytes <= bytes_max.saturating_sub(LETTER_ROOM_BYTES))
    }

    /// Adds a dead letter to the stream of that name. Creates the stream if it is missing.
    ///
    /// # Errors
    /// `Text` if the name holds another type, or the group's own stream.
    async fn put_dead_letter(&self, name: &Bytes, fields: &[Bytes]) -> Result<(), CommandError> {
        let context = self.context;
        let key = match context.find(name, ValueType::Stream).await {
            // RENAME and COPY may have put it there.
            Ok(Some(key)) if key.meta_key == self.key.meta_key => {
                return Err(self.no_dead_letter_stream("holds the stream itself"));
            }
            Ok(Some(key)) => key,
            Ok(None) => context.create(name, ValueType::Stream, None).await?,
            Err(CommandError::WrongType) => {
                return Err(self.no_dead_letter_stream("holds no stream"));
            }
            Err(error) => return Err(error),
        };
        let stream = StreamMut::open(context, &key);
        stream.append(NewId::Now, fields).await?;
        context.notify(EventClasses::STREAM, "xadd", name);
        Ok(())
    }

    fn no_dead_letter_stream(&self, why: &str) -> CommandError {
        let group = String::from_utf8_lossy(&self.name);
        CommandError::Text(
            format!(
                "ERR the dead letter key of group '{group}' {why}; nothing was read. XGROUP SETPOLICY \
                 can name another"
            )
            .into(),
        )
    }
}

/// About how many bytes a dead letter takes in the store.
fn letter_bytes(letter: &[Bytes]) -> usize {
    let fields = letter.iter();
    fields.map(|field| field.len() + LETTER_FIELD_BYTES).sum()
}
