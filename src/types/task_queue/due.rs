//! Leases and delays that end: their tasks are put back by whoever takes next, and by background
//! work that alarms lead to the queue.
//!
//! An alarm is a row by time and key. It says only that somebody should look, so there may be too
//! many of them, and one that is out of date does no harm.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::tend::Tending;
use crate::layout::{Id, KeyName, Meta, TaskRow, TaskState, ValueType, successor};
use crate::limits::{
    DATABASES, REAPER_READS_AT_ONCE, TASK_ALARM_STEP_MS, TASK_ALARMS_PER_PAGE,
    TASK_ALARMS_PER_PASS, TASK_DUE_PER_PASS, TASK_DUE_READS_FIRST, TASK_QUEUES_PER_PASS,
    TASK_TENDED_PER_PASS, TASK_TENDED_SIZES,
};
use crate::store::{Isolation, KeyValue, StoreError};
use crate::types::context::{ReadContext, WriteContext};
use crate::types::keyspace::OpenKey;

/// A queue with alarms that have gone off.
struct Alarmed {
    namespace: Id,
    name: KeyName,
    /// Their rows.
    alarms: Vec<Bytes>,
}

impl ReadContext<'_> {
    /// The queues that [`WriteContext::alarm_pass`] would look at, as far as their names are
    /// known: their databases and keys.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn alarmed_queues(&self) -> Result<Vec<(u32, Bytes)>, StoreError> {
        let alarmed = self.alarmed().await?;
        let shown = self.all_shown().await?;
        let mut queues: Vec<(u32, Bytes)> = Vec::new();
        for queue in alarmed {
            let database = shown.iter().find(|(known, _)| *known == queue.namespace);
            if let (Some((_, database)), Some(name)) = (database, queue.name.inline()) {
                queues.push((*database, name.clone()));
            }
        }
        Ok(queues)
    }

    /// The queues that a pass is to look at, the one whose alarm went off first before others.
    async fn alarmed(&self) -> Result<Vec<Alarmed>, StoreError> {
        let mut range = self.layout().alarms_by(self.now_ms);
        let mut queues: Vec<Alarmed> = Vec::new();
        let mut fetched = 0;
        // Past the many alarms that one queue may have, so that the others have their turn.
        while queues.len() < TASK_QUEUES_PER_PASS && fetched < TASK_ALARMS_PER_PASS {
            let page = self
                .task_rows(&range, TASK_ALARMS_PER_PAGE, Isolation::Snapshot)
                .await?;
            fetched += page.len();
            let is_last = page.len() < TASK_ALARMS_PER_PAGE;
            for alarm in page {
                range.begin = successor(&alarm.key);
                let (namespace, name) = self.layout().read_alarm_key(&alarm.key)?;
                let is_full = queues.len() >= TASK_QUEUES_PER_PASS;
                let known = queues
                    .iter_mut()
                    .find(|queue| queue.namespace == namespace && queue.name == name);
                match known {
                    Some(queue) => queue.alarms.push(alarm.key),
                    None if !is_full => queues.push(Alarmed {
                        namespace,
                        name,
                        alarms: vec![alarm.key],
                    }),
                    None => {}
                }
            }
            if is_last {
                break;
            }
        }
        Ok(queues)
    }

    /// The namespace that each database shows.
    async fn all_shown(&self) -> Result<Vec<(Id, u32)>, StoreError> {
        // Side by side, because on a cluster each read is a round trip.
        let namespaces = (0..DATABASES).map(async |database| {
            let namespace = self.namespace_of(database).await?;
            Ok::<_, StoreError>((namespace, database))
        });
        try_join_all(namespaces).await
    }
}

impl WriteContext<'_> {
    /// Has background work look at a queue at a time, or a moment later.
    pub(in crate::types) fn set_alarm(&self, key: &OpenKey, at_ms: i64) {
        // Few times, so that many leases need few rows.
        let step = TASK_ALARM_STEP_MS;
        let at_ms = at_ms.saturating_add(step - 1) / step * step;
        let row = self.layout().alarm_key(at_ms, key.namespace, &key.name);
        self.transaction.set(&row, b"");
    }

    /// Puts back up to so many tasks whose lease or delay is over, about so many bytes of payloads
    /// and no more than the batch should hold, but one at least. Answers whether there may be more.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn task_put_back(
        &self,
        key: &OpenKey,
        limit: usize,
        bytes_max: usize,
    ) -> Result<bool, StoreError> {
        let range = self.layout().task_due_by(key.data(), self.now_ms);
        let due = self.task_rows(&range, limit, self.relaxed()).await?;
        let soft_max = self.environment.capabilities.batch_bytes_soft_max;
        let room = soft_max.saturating_sub(self.transaction.size_bytes());
        let mut bytes_left = bytes_max.min(room);
        let mut rest = due.as_slice();
        let mut reads_max = TASK_DUE_READS_FIRST;
        let (mut is_first, mut has_changed) = (true, false);
        while !rest.is_empty() && (is_first || (bytes_left > 0 && !self.is_full_or_old())) {
            let (some, _) = rest.split_at(rest.len().min(reads_max));
            // Side by side, because on a cluster each read is a round trip.
            let reads = some
                .iter()
                .map(|row| self.task_row(key, &row.value, Isolation::Serializable));
            let mut back = Vec::with_capacity(some.len());
            let mut bytes_largest = 1;
            for (due_row, row) in some.iter().zip(try_join_all(reads).await?) {
                let bytes = row.as_ref().map_or(0, |row| row.payload.len());
                bytes_largest = bytes_largest.max(bytes);
                if bytes > bytes_left && !is_first {
                    bytes_left = 0;
                    break;
                }
                bytes_left = bytes_left.saturating_sub(bytes);
                is_first = false;
                back.push((due_row, row));
            }
            rest = rest.get(back.len()..).unwrap_or_default();
            has_changed |= self.put_back_all(key, back).await?;
            reads_max = (bytes_left / bytes_largest).clamp(1, REAPER_READS_AT_ONCE);
        }
        if has_changed {
            self.mark_changed(key);
        }
        Ok(!rest.is_empty() || due.len() >= limit)
    }

    /// Puts tasks back whose rows in the order of what falls due are given with their own; answers
    /// whether there were any.
    async fn put_back_all(
        &self,
        key: &OpenKey,
        due: Vec<(&KeyValue, Option<TaskRow>)>,
    ) -> Result<bool, StoreError> {
        let mut back = Vec::with_capacity(due.len());
        for (due_row, row) in due {
            let Some(mut row) = row else {
                self.transaction.clear(&due_row.key);
                continue;
            };
            self.task_leave(key, &row);
            row.state = row.state_after();
            row.token = 0;
            row.at_ms = match row.state {
                TaskState::Dead => self.now_ms,
                _ => 0,
            };
            back.push((&due_row.value, row));
        }
        if self.environment.capabilities.single_writer {
            // Each finds the index as the one before has left it.
            for (id, row) in &back {
                self.task_enter(key, id, row).await?;
            }
        } else {
            let enter = back.iter().map(|(id, row)| self.task_enter(key, id, row));
            try_join_all(enter).await?;
        }
        Ok(!back.is_empty())
    }

    /// Whether the batch holds as much, or is as old, as one should.
    fn is_full_or_old(&self) -> bool {
        self.is_full() || self.is_old()
    }

    /// Looks at queues whose alarms have gone off: puts back what is due, and tends the index
    /// where somebody has left a note. Answers how many alarms it has looked at.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn alarm_pass(&self) -> Result<i64, StoreError> {
        let alarmed = self.alarmed().await?;
        if alarmed.is_empty() {
            return Ok(0);
        }
        let shown = self.all_shown().await?;
        let mut count = 0;
        for queue in alarmed {
            if count > 0 && self.is_full_or_old() {
                break;
            }
            let Alarmed {
                namespace,
                name,
                alarms,
            } = queue;
            // Before others are set, which may be for the same moment.
            for alarm in &alarms {
                // An alarm that is set anew meanwhile must stay.
                self.transaction
                    .add_read_conflict_range(alarm, &successor(alarm));
                self.transaction.clear(alarm);
            }
            count += i64::try_from(alarms.len()).unwrap_or(i64::MAX);
            let database = shown
                .iter()
                .find(|(known, _)| *known == namespace)
                .map(|(_, database)| *database);
            let meta_key = self.layout().meta_key(namespace, &name);
            let next = self.layout().alarm_key(self.now_ms, namespace, &name);
            if !self
                .alarm_upkeep((database, namespace, name), &meta_key)
                .await?
            {
                // There is more to do, behind those who have waited for longer.
                self.transaction.set(&next, b"");
            }
        }
        Ok(count)
    }

    /// Looks after a queue, if there is one; answers whether that was all there is to do now.
    async fn alarm_upkeep(
        &self,
        (database, namespace, name): (Option<u32>, Id, KeyName),
        meta_key: &[u8],
    ) -> Result<bool, StoreError> {
        let meta = self
            .transaction
            .get(meta_key, Isolation::Serializable)
            .await?;
        let meta = meta.map(|value| Meta::decode(&value)).transpose()?;
        let queue =
            meta.filter(|meta| meta.value_type == ValueType::TaskQueue && !self.is_expired(meta));
        let Some(meta) = queue else {
            return Ok(true);
        };
        let key = OpenKey {
            database,
            namespace,
            name,
            meta_key: meta_key.to_vec(),
            meta,
        };
        self.task_upkeep(&key).await
    }

    /// Answers whether that was all there is to do now; sets the next alarm then.
    async fn task_upkeep(&self, key: &OpenKey) -> Result<bool, StoreError> {
        let has_more_due = self
            .task_put_back(key, TASK_DUE_PER_PASS, usize::MAX)
            .await?;
        if has_more_due && self.is_full_or_old() {
            return Ok(false);
        }
        let notes = self.layout().task_untended(key.data());
        // However much other servers add, sooner or later a pass is small enough to get through.
        let random = &self.environment.random;
        let notes_max = match random.below(2) {
            0 => TASK_TENDED_PER_PASS,
            _ => TASK_TENDED_PER_PASS >> random.below(TASK_TENDED_SIZES),
        };
        let notes = self
            .task_rows(&notes, notes_max, Isolation::Snapshot)
            .await?;
        let registry = self.task_registry(key, Isolation::Snapshot).await?;
        let notes_read = notes
            .iter()
            .map(|note| {
                let (class, place) = self.layout().read_task_untended(key.data(), &note.key)?;
                Ok((class, place, Tending::from_note(&note.value)))
            })
            .collect::<Result<Vec<_>, StoreError>>()?;
        let slots = |class: u32| {
            let mask = usize::try_from(class).ok();
            let mask = mask.and_then(|class| registry.classes.get(class));
            mask.map_or(0, |class| class.mask.count_ones() as usize)
        };
        let classes: BTreeSet<u32> = notes_read.iter().map(|(class, ..)| *class).collect();
        for class in classes {
            let class = self.class_place(key, class, slots(class));
            if let Some((first, _)) = self.first_order_rows(&class, 1).await?.first() {
                self.drop_head(&class, first).await?;
            }
        }
        // Before others are left, which may be for the same places.
        for note in &notes {
            self.transaction
                .add_read_conflict_range(&note.key, &successor(&note.key));
            self.transaction.clear(&note.key);
        }
        // Side by side: what one of them puts down holds whatever the others do meanwhile, since
        // all of it is less than the needs of tasks that were read.
        let tended = notes_read.iter().map(async |(class, place, tending)| {
            let class = self.class_place(key, *class, slots(*class));
            if class.slots == 0 {
                return Ok(false);
            }
            // Those that lie in one stretch make the same cuts, however many they are: what is too
            // long still must not be forgotten with them.
            let too_long = self.tend(&class, place, *tending).await?;
            for place in &too_long {
                self.leave_untended(key, &class, place, Tending::All);
            }
            Ok::<_, StoreError>(!too_long.is_empty())
        });
        let has_more_to_cut = try_join_all(tended).await?.contains(&true);
        if has_more_due || has_more_to_cut || notes.len() >= notes_max {
            return Ok(false);
        }
        if let Some(at_ms) = self.task_next_due(key).await? {
            self.set_alarm(key, at_ms);
        }
        Ok(true)
    }
}
