//! Tasks that wait until others are acknowledged: TASK.ADD … AFTER
//! (docs/understand/decisions/050-task-dependencies.md).
//!
//! Each pair of a waiting task and an awaited one has a row in both directions. A task that others
//! wait for has a note, so that its acknowledgement looks for them. The acknowledgement removes the
//! rows, and makes tasks ready that have nothing left to wait for. If there are many, it leaves a
//! row among the [ends](super::endings), and background work continues from there.

use bytes::Bytes;
use futures_util::future::{try_join, try_join_all};

use super::{TaskQueue, TaskQueueMut, is_full_or_old, is_too_old, range_rows};
use quoin_base::limits::{KEY_READS_AT_ONCE, TASK_AFTER_MAX};
use quoin_layout::{TaskEnding, TaskPlace, TaskRow, TaskState};
use quoin_store::{Isolation, StoreError};

/// Tasks that an acknowledgement releases. Background work does the rest.
const RELEASED_PER_ACK: usize = 64;
/// Number of tasks released at a time. Each may be as large as a row.
const RELEASED_AT_ONCE: usize = 8;

/// What waits for a task that is about to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// Nothing.
    No,
    /// Others, since a former task of this id was removed.
    Yes,
    /// Others, which are being released because an earlier task with this id was acknowledged.
    Released,
}

/// A task's place among waiting tasks.
fn numbers(place: &TaskPlace) -> (i64, i64) {
    (place.index, place.random)
}

impl TaskQueue<'_, '_> {
    /// What waits for a task with this id.
    pub(super) async fn awaited(&self, id: &[u8]) -> Result<Awaited, StoreError> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let mut range = layout.task_dependants(data, id);
        let released = layout.task_released_key(data, id);
        range.begin.clone_from(&released);
        let rows = range_rows(self.context, &range, 1, Isolation::Serializable).await?;
        Ok(match rows.first() {
            None => Awaited::No,
            Some(row) if row.key == released => Awaited::Released,
            Some(_) => Awaited::Yes,
        })
    }

    /// Whether the tasks that wait for this id are being released.
    pub(super) async fn is_released(&self, id: &[u8]) -> Result<bool, StoreError> {
        let row = self.context.layout().task_released_key(self.key.data(), id);
        let row = self.context.transaction.get(&row, self.context.isolation);
        Ok(row.await?.is_some())
    }

    /// The ids of up to `count` tasks that a task waits for. Reads nothing if the task does not
    /// wait.
    pub(super) async fn awaited_by(
        &self,
        task: &TaskRow,
        count: usize,
    ) -> Result<Vec<Bytes>, StoreError> {
        if task.state != TaskState::Waiting {
            return Ok(Vec::new());
        }
        let (layout, data) = (self.context.layout(), self.key.data());
        let range = layout.task_awaited(data, numbers(&task.place));
        let rows = range_rows(self.context, &range, count, self.context.isolation).await?;
        let ids = rows.iter().map(|row| {
            let (_, id) = layout.read_task_awaited_key(data, &row.key)?;
            Ok(id)
        });
        ids.collect()
    }

    /// The ids that the queue has. An addition that waits for them conflicts with their
    /// acknowledgements.
    pub(super) async fn known(&self, ids: &[Bytes]) -> Result<Vec<Bytes>, StoreError> {
        let mut known = Vec::new();
        for some in ids.chunks(KEY_READS_AT_ONCE) {
            // Concurrently, because on a cluster each read is a round trip.
            let rows = some.iter().map(|id| self.row(id, Isolation::Serializable));
            let rows = try_join_all(rows).await?;
            let found = some.iter().zip(rows).filter(|(_, row)| row.is_some());
            known.extend(found.map(|(id, _)| id.clone()));
        }
        Ok(known)
    }
}

impl TaskQueueMut<'_, '_> {
    /// Writes what a waiting task waits for, and adds a note to those tasks.
    pub(super) async fn wait_for(
        &self,
        id: &Bytes,
        task: &TaskRow,
        awaited: &[Bytes],
    ) -> Result<(), StoreError> {
        self.set_awaited(id, task, awaited);
        for some in awaited.chunks(KEY_READS_AT_ONCE) {
            self.read_ahead(some).await?;
            for id in some {
                let Some(mut other) = self.row(id, Isolation::Serializable).await? else {
                    continue;
                };
                if !other.notes.is_awaited {
                    other.notes.is_awaited = true;
                    let row = self.context.layout().task_key(self.key.data(), id);
                    self.context.transaction.set(&row, &other.encode());
                }
            }
        }
        Ok(())
    }

    /// Writes what a waiting task waits for.
    pub(super) fn set_awaited(&self, id: &Bytes, task: &TaskRow, awaited: &[Bytes]) {
        let (layout, data) = (self.context.layout(), self.key.data());
        let place = numbers(&task.place);
        for other in awaited {
            let row = layout.task_awaited_key(data, place, other);
            self.context.transaction.set(&row, b"");
            let row = layout.task_dependant_key(data, other, place);
            self.context.transaction.set(&row, id);
        }
    }

    /// Removes what a task waits for, if it waits. The caller changes its state or removes it.
    pub(super) async fn stop_waiting(&self, task: &TaskRow) -> Result<(), StoreError> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let place = numbers(&task.place);
        for other in self.awaited_by(task, TASK_AFTER_MAX).await? {
            let row = layout.task_awaited_key(data, place, &other);
            self.context.transaction.clear(&row);
            let row = layout.task_dependant_key(data, &other, place);
            self.context.transaction.clear(&row);
        }
        Ok(())
    }

    /// Releases the tasks that wait for an acknowledged one, or leaves that to background work.
    pub(super) async fn acknowledged(&self, id: &Bytes, task: &TaskRow) -> Result<(), StoreError> {
        if !task.notes.is_awaited || !self.release(id, RELEASED_PER_ACK).await? {
            return Ok(());
        }
        let (layout, data) = (self.context.layout(), self.key.data());
        let now_ms = self.context.now_ms;
        let released = layout.task_released_key(data, id);
        self.context.transaction.set(&released, b"");
        let end = layout.task_end_key(data, now_ms, TaskEnding::Released, id);
        self.context.transaction.set(&end, b"");
        self.context.set_timer(self.key, now_ms);
        Ok(())
    }

    /// Releases up to `limit` tasks that wait for one task, as many as the batch has room for.
    /// Returns whether some are left. If tasks were too old, the caller calls
    /// [`remove_if_empty`](crate::unit::context::WriteContext::remove_if_empty).
    pub(super) async fn release(&self, id: &[u8], limit: usize) -> Result<bool, StoreError> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let range = layout.task_dependants(data, id);
        let rows = range_rows(self.context, &range, limit + 1, Isolation::Serializable).await?;
        let (now, later) = rows.split_at(rows.len().min(limit));
        let mut is_left = !later.is_empty();
        for (number, some) in now.chunks(RELEASED_AT_ONCE).enumerate() {
            if number > 0 && is_full_or_old(self.context) {
                is_left = true;
                break;
            }
            let mut waited = Vec::with_capacity(some.len());
            for row in some {
                self.context.transaction.clear(&row.key);
                if let Some((_, place)) = layout.read_task_dependant_key(data, &row.key)? {
                    let awaited = layout.task_awaited_key(data, place, id);
                    self.context.transaction.clear(&awaited);
                    waited.push((&row.value, place));
                }
            }
            // Concurrently, because on a cluster each read is a round trip. If a task waits for two
            // more tasks, their acknowledgements conflict, because each reads what the other
            // removes.
            let reads = waited.iter().map(async |(id, place)| {
                let rest = layout.task_awaited(data, *place);
                let rest = range_rows(self.context, &rest, 1, Isolation::Serializable);
                try_join(rest, self.row(id, Isolation::Serializable)).await
            });
            let read = try_join_all(reads).await?;
            for ((id, place), (rest, task)) in waited.into_iter().zip(read) {
                let task = task.filter(|task| {
                    task.state == TaskState::Waiting && numbers(&task.place) == place
                });
                if let (true, Some(task)) = (rest.is_empty(), task) {
                    self.end_wait(id, task).await?;
                }
            }
        }
        Ok(is_left)
    }

    /// Makes a task ready that has nothing left to wait for, at once or when its delay ends.
    async fn end_wait(&self, id: &Bytes, mut task: TaskRow) -> Result<(), StoreError> {
        self.leave(&task);
        task.state = match task.at_ms > self.context.now_ms {
            true => TaskState::Delayed,
            false => TaskState::Ready,
        };
        task.at_ms = task.at_ms.max(self.context.now_ms);
        self.enter(id, &task).await?;
        if is_too_old(&task, self.context.now_ms) {
            let options = self.options().await?;
            self.expire(id, task, &options).await?;
        }
        Ok(())
    }
}
