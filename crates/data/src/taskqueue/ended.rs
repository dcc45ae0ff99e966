//! Removes what has ended, and adds the tasks of schedules. This is background work, which a
//! [timer](super::timers) starts.

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::endings::remove_if_forgotten;
use super::{TaskQueue, TaskQueueMut, is_full_or_old, is_too_old, range_rows, schedules};
use quoin_base::limits::{REAPER_READS_AT_ONCE, TASK_DUE_PER_PASS};
use quoin_layout::TaskEnding;
use quoin_store::{Isolation, StoreError};

/// Something that has ended.
pub(super) struct Ended {
    /// Its row by time.
    row: Bytes,
    at_ms: i64,
    kind: TaskEnding,
    name: Bytes,
}

impl TaskQueue<'_, '_> {
    /// Up to `limit` things that have ended, and whether there may be more. Also reads their rows.
    pub(super) async fn ended(&self, limit: usize) -> Result<(Vec<Ended>, bool), StoreError> {
        let layout = self.context.layout();
        let data = self.key.data();
        let range = layout.task_ends_by(data, self.context.now_ms);
        let rows = range_rows(self.context, &range, limit, Isolation::Snapshot).await?;
        let has_more = rows.len() >= limit;
        let mut ended = Vec::with_capacity(rows.len());
        for row in rows {
            let (at_ms, kind, name) = layout.read_task_end_key(data, &row.key)?;
            let row = row.key;
            ended.push(Ended {
                row,
                at_ms,
                kind,
                name,
            });
        }
        for some in ended.chunks(REAPER_READS_AT_ONCE) {
            // Concurrently, because on a cluster each read is a round trip. Later reads are answered from memory.
            let reads = some.iter().map(async |ended| match ended.kind {
                TaskEnding::Task => self
                    .row(&ended.name, Isolation::Serializable)
                    .await
                    .map(drop),
                // Its rows are read later, once there is room for them.
                TaskEnding::Released => Ok(()),
                // If the schedule cannot be read, this fails before anything is written.
                TaskEnding::Schedule => self
                    .schedule(&ended.name, Isolation::Serializable)
                    .await
                    .map(drop),
                kind => self
                    .kept(kind, &ended.name, Isolation::Serializable)
                    .await
                    .map(drop),
            });
            try_join_all(reads).await?;
        }
        Ok((ended, has_more))
    }
}

impl TaskQueueMut<'_, '_> {
    /// Removes what has ended, and adds the tasks of schedules, as far as the batch has room.
    /// Returns whether something is left. Removes a key that existed only for what it remembered
    /// once that is gone, and a key whose last task was removed here or before (`has_expired`).
    pub(super) async fn remove_ended(
        &self,
        ended: &[Ended],
        has_expired: bool,
    ) -> Result<bool, StoreError> {
        if ended.is_empty() && !has_expired {
            return Ok(false);
        }
        let (context, data) = (self.context, self.key.data());
        let options = self.options().await?;
        let mut is_left = false;
        let (mut expired, mut forgotten, mut wakes) = (false, false, false);
        let mut key = self.key.clone();
        for (number, ended) in ended.iter().enumerate() {
            if number > 0 && is_full_or_old(context) {
                is_left = true;
                break;
            }
            let Ended {
                row,
                at_ms,
                kind,
                name,
            } = ended;
            context.transaction.clear(row);
            if *kind == TaskEnding::Task {
                // The clock of the server that set the end may be ahead, or the task may be leased.
                // A leased task is left to its consumer.
                let found = self.row(name, Isolation::Serializable).await?;
                if let Some(task) = found.filter(|task| is_too_old(task, context.now_ms)) {
                    self.expire(name, task, &options).await?;
                    expired = true;
                }
                continue;
            }
            if *kind == TaskEnding::Schedule {
                // A client may have set another schedule of this name since.
                let found = self.schedule(name, Isolation::Serializable).await?;
                if let Some(due) = found.filter(|found| found.next_ms == *at_ms) {
                    is_left |= schedules::run(context, &mut key, name, &due).await?;
                }
                continue;
            }
            if *kind == TaskEnding::Released {
                if self.release(name, TASK_DUE_PER_PASS).await? {
                    context.transaction.set(row, b"");
                    is_left = true;
                } else {
                    let released = context.layout().task_released_key(data, name);
                    context.transaction.clear(&released);
                }
                context.mark_changed(self.key);
                continue;
            }
            // The token may have been used again since.
            let kept = self.kept(*kind, name, Isolation::Serializable).await?;
            if kept.is_some_and(|kept| kept.until_ms == *at_ms) {
                context
                    .transaction
                    .clear(&context.layout().task_kept_key(data, *kind, name));
                forgotten = true;
                // Consumers may get tasks again.
                wakes |= *kind == TaskEnding::Rate;
            }
        }
        if expired || wakes {
            // Takes that found many tasks too old may have given up before others.
            context.wake_waiting(self.key);
        }
        match forgotten {
            true => remove_if_forgotten(context, &mut key).await?,
            false => context.remove_if_empty(&key).await?,
        }
        Ok(is_left)
    }
}
