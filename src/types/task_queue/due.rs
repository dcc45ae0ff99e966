//! Leases and delays that end: their tasks are put back by whoever takes next, and by background
//! work that alarms lead to the queue.
//!
//! An alarm is a row by time and key. It says only that somebody should look, so there may be too
//! many of them, and one that is out of date does no harm.

use futures_util::future::try_join_all;

use super::tend::Tending;
use crate::layout::{Id, Meta, TaskState, ValueType, successor};
use crate::limits::{
    DATABASES, REAPER_READS_AT_ONCE, TASK_ALARM_STEP_MS, TASK_ALARMS_PER_PASS, TASK_DUE_PER_PASS,
    TASK_TENDED_PER_PASS,
};
use crate::store::{Isolation, StoreError};
use crate::types::context::WriteContext;
use crate::types::keyspace::OpenKey;

impl WriteContext<'_> {
    /// Has background work look at a queue at a time, or a moment later.
    pub(in crate::types) fn set_alarm(&self, key: &OpenKey, at_ms: i64) {
        // Few times, so that many leases need few rows.
        let step = TASK_ALARM_STEP_MS;
        let at_ms = at_ms.saturating_add(step - 1) / step * step;
        let row = self.layout().alarm_key(at_ms, key.namespace, &key.name);
        self.transaction.set(&row, b"");
    }

    /// Puts back up to so many tasks whose lease or delay is over, and answers how many.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn task_put_back(&self, key: &OpenKey, limit: usize) -> Result<usize, StoreError> {
        let range = self.layout().task_due_by(key.data(), self.now_ms);
        let due = self.task_rows(&range, limit, self.relaxed()).await?;
        let mut count = 0;
        for some in due.chunks(REAPER_READS_AT_ONCE) {
            // Side by side, because on a cluster each read is a round trip.
            let reads = some
                .iter()
                .map(|row| self.task_row(key, &row.value, Isolation::Serializable));
            for (due_row, row) in some.iter().zip(try_join_all(reads).await?) {
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
                self.task_enter(key, &due_row.value, &row).await?;
                count += 1;
            }
        }
        if count > 0 {
            self.mark_changed(key);
        }
        Ok(count)
    }

    /// Looks at queues whose alarms have gone off: puts back what is due, and tends the index
    /// where somebody has left a note. Answers how many alarms were done with.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn alarm_pass(&self) -> Result<i64, StoreError> {
        let range = self.layout().alarms_by(self.now_ms);
        let alarms = self
            .task_rows(&range, TASK_ALARMS_PER_PASS, Isolation::Snapshot)
            .await?;
        let mut shown: Vec<(Id, u32)> = Vec::new();
        if !alarms.is_empty() {
            for database in 0..DATABASES {
                shown.push((self.namespace_of(database).await?, database));
            }
        }
        let mut done = 0;
        for alarm in alarms {
            // An alarm that is set anew meanwhile must stay.
            self.transaction
                .add_read_conflict_range(&alarm.key, &successor(&alarm.key));
            let (namespace, name) = self.layout().read_alarm_key(&alarm.key)?;
            let meta_key = self.layout().meta_key(namespace, &name);
            let meta = self
                .transaction
                .get(&meta_key, Isolation::Serializable)
                .await?;
            let meta = meta.map(|value| Meta::decode(&value)).transpose()?;
            let queue = meta
                .filter(|meta| meta.value_type == ValueType::TaskQueue && !self.is_expired(meta));
            let database = shown
                .iter()
                .find(|(known, _)| *known == namespace)
                .map(|(_, database)| *database);
            if let Some(meta) = queue {
                let key = OpenKey {
                    database,
                    namespace,
                    name,
                    meta_key,
                    meta,
                };
                if !self.task_upkeep(&key).await? {
                    continue;
                }
            }
            self.transaction.clear(&alarm.key);
            done += 1;
        }
        Ok(done)
    }

    /// Answers whether that was all there is to do now; sets the next alarm then.
    async fn task_upkeep(&self, key: &OpenKey) -> Result<bool, StoreError> {
        let put_back = self.task_put_back(key, TASK_DUE_PER_PASS).await?;
        let notes = self.layout().task_untended(key.data());
        let notes = self
            .task_rows(&notes, TASK_TENDED_PER_PASS, Isolation::Snapshot)
            .await?;
        let registry = self.task_registry(key, Isolation::Snapshot).await?;
        for note in &notes {
            let (class, place) = self.layout().read_task_untended(key.data(), &note.key)?;
            let known = usize::try_from(class).ok();
            let mask = known.and_then(|class| registry.classes.get(class));
            let slots = mask.map_or(0, |class| class.mask.count_ones() as usize);
            if slots > 0 {
                let class = self.class_place(key, class, slots);
                if let Some((first, _)) = self.first_order_rows(&class, 1).await?.first() {
                    self.drop_head(&class, first).await?;
                }
                self.tend(&class, &place, Tending::All).await?;
            }
            self.transaction
                .add_read_conflict_range(&note.key, &successor(&note.key));
            self.transaction.clear(&note.key);
        }
        if put_back >= TASK_DUE_PER_PASS || notes.len() >= TASK_TENDED_PER_PASS {
            return Ok(false);
        }
        if let Some(at_ms) = self.task_next_due(key).await? {
            self.set_alarm(key, at_ms);
        }
        Ok(true)
    }
}
