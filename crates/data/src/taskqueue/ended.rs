//! What is over: background work, which a [timer](super::timers) starts, removes it, and adds the tasks of schedules.

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::endings::remove_if_forgotten;
use super::{TaskQueue, TaskQueueMut, is_full_or_old, is_too_old, range_rows, schedules};
use quoin_base::limits::{REAPER_READS_AT_ONCE, TASK_DUE_PER_PASS};
use quoin_layout::TaskEnding;
use quoin_store::{Isolation, StoreError};

/// Something that is over.
pub(super) struct Ended {
    /// Its row by time.
    row: Bytes,
    at_ms: i64,
    kind: TaskEnding,
    name: Bytes,
}

impl TaskQueue<'_, '_> {
    /// Up to `limit` of what is over, and whether there may be more. Their rows are read too.
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
                // Its rows are read when there is room for them.
                TaskEnding::Released => Ok(()),
                // One that cannot be read is told before anything is written.
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
    /// Removes what is over, and adds the tasks of schedules, as much as the batch has room for. Returns whether something
    /// is left. A key that exists only because of what it remembered goes with the last of it, and one whose last task was
    /// removed, also before (`has_expired`).
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
                // The time of the end may be ahead of this task's, or the task may be leased: then its consumer
                // decides.
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
            // A token may have been given out again since.
            let kept = self.kept(*kind, name, Isolation::Serializable).await?;
            if kept.is_some_and(|kept| kept.until_ms == *at_ms) {
                context
                    .transaction
                    .clear(&context.layout().task_kept_key(data, *kind, name));
                forgotten = true;
                // Consumers may have tasks again.
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
