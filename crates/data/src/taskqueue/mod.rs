//! Task queues: tasks with priorities, resource needs, leases, retries, delays and dead letters.
//!
//! A task keeps its [place](quoin_layout::TaskPlace) (priority, then arrival) as long as it exists.
//! A ready task has a row in the order of its [class](resources). The [search](search) finds the
//! first ready task that fits, using an [index](index) of minima above that order. A leased or
//! delayed task has a row ordered by the time when that ends. After that time, the next take puts
//! the task back, or background work does, which a [timer](timers) starts ([`lease_ends`]).
//! docs/understand/decisions/010-task-index.md says why.
//!
//! The tasks of a queue may belong to groups, which take [turns](turns). Each group has a part of
//! the order (docs/understand/decisions/049-task-groups.md). A task may [wait](waits) until others
//! are acknowledged.
//!
//! The [options](options) of a queue are in its registry. Tasks with a time to live, and what a
//! queue remembers for a time, have a row by their [end](endings)
//! (docs/understand/decisions/046-task-queue-options.md), and so do [schedules](schedules)
//! (docs/understand/decisions/048-task-schedules.md).

mod add;
pub mod commands;
mod discard;
mod dumping;
mod ended;
mod endings;
mod index;
mod kind;
mod lease;
mod lease_ends;
mod limits;
mod list;
mod maintenance;
mod moments;
mod options;
mod resources;
mod results;
mod schedules;
mod search;
mod states;
mod steering;
mod take;
#[cfg(test)]
mod tests;
pub mod timers;
mod traces;
mod turns;
mod waits;

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::error::CommandError;
use crate::keyspace::handle::{Value, ValueMut};
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::{DELIVERED_BYTES_MAX, KEY_READS_AT_ONCE, TASK_AFTER_MAX};
use quoin_layout::{
    KeyRange, TaskCounter, TaskNotes, TaskRegistry, TaskRow, TaskState, decode_counter,
};
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError};
use resources::{Amounts, named};

pub use kind::KIND;

/// The error for a task whose id the queue already has.
const ID_EXISTS: CommandError = CommandError::text("EXISTS Task id already exists");

/// Marks handles of task queues.
pub enum TaskQueueType {}

/// A task queue, for reading.
pub type TaskQueue<'c, 't> = Value<'c, 't, TaskQueueType>;

/// A task queue, for writing.
pub type TaskQueueMut<'c, 't> = ValueMut<'c, 't, TaskQueueType>;

/// A task as clients see it.
#[derive(Debug, Clone, PartialEq)]
struct Task {
    id: Bytes,
    priority: f64,
    state: TaskState,
    /// How often it has been taken, including this time.
    tries: i64,
    /// How often it may be taken with a lease; 0 means no limit.
    tries_max: i64,
    /// When its lease or delay ends, or when it became ready or died. 0 if unknown.
    at_ms: i64,
    needs: Amounts,
    /// What it waits for, if requested.
    awaited: Vec<Bytes>,
    notes: TaskNotes,
    payload: Bytes,
}

/// The numbers of a queue's tasks by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct TaskCounts {
    total: i64,
    ready: i64,
    leased: i64,
    delayed: i64,
    dead: i64,
    waiting: i64,
    /// Tasks ever added.
    added: i64,
}

impl TaskQueue<'_, '_> {
    async fn registry(&self, isolation: Isolation) -> Result<TaskRegistry, StoreError> {
        let row = self.context.layout().task_registry_key(self.key.data());
        let value = self.context.transaction.get(&row, isolation).await?;
        Ok(TaskRegistry::decode(value.as_ref())?)
    }

    async fn row(&self, id: &[u8], isolation: Isolation) -> Result<Option<TaskRow>, StoreError> {
        let row = self.context.layout().task_key(self.key.data(), id);
        let value = self.context.transaction.get(&row, isolation).await?;
        Ok(value.as_ref().map(TaskRow::decode).transpose()?)
    }

    /// Reads the rows of up to [`KEY_READS_AT_ONCE`] tasks concurrently, because on a cluster each
    /// read is a round trip. The transaction answers later reads of them from memory.
    async fn read_ahead(&self, ids: &[Bytes]) -> Result<(), StoreError> {
        if !self.context.environment.capabilities.reads_wait {
            return Ok(());
        }
        let ids = ids.iter().take(KEY_READS_AT_ONCE);
        let reads = ids.map(|id| self.row(id, self.context.isolation));
        try_join_all(reads).await?;
        Ok(())
    }

    /// A task for clients, from its row.
    async fn load_task(
        &self,
        registry: &TaskRegistry,
        id: Bytes,
        row: &TaskRow,
    ) -> Result<Task, StoreError> {
        Ok(Task {
            id,
            priority: row.place.priority,
            state: row.state,
            tries: row.tries,
            tries_max: row.tries_max,
            at_ms: row.at_ms,
            needs: named(registry, row.mask, &row.amounts),
            awaited: Vec::new(),
            notes: row.notes.clone(),
            payload: self
                .context
                .load_value(self.key.data(), &row.payload)
                .await?,
        })
    }

    /// A task in any state. If its lease or delay has ended, it counts as ready or dead even before
    /// it is put back.
    async fn get(&self, id: &Bytes) -> Result<Option<Task>, StoreError> {
        let Some(mut row) = self.row(id, self.context.isolation).await? else {
            return Ok(None);
        };
        let is_waiting = matches!(row.state, TaskState::Leased | TaskState::Delayed);
        if is_waiting && row.at_ms <= self.context.now_ms {
            row.state = state_after(&row);
        }
        if is_too_old(&row, self.context.now_ms) {
            return Ok(None);
        }
        let registry = self.registry(self.context.relaxed()).await?;
        let awaited = self.awaited_by(&row, TASK_AFTER_MAX).await?;
        let task = self.load_task(&registry, id.clone(), &row).await?;
        Ok(Some(Task { awaited, ..task }))
    }

    /// The numbers of tasks by state. A task whose lease or delay has ended counts as leased or
    /// delayed until it is put back.
    async fn counts(&self) -> Result<TaskCounts, StoreError> {
        let total = self
            .context
            .length(self.key, self.context.isolation)
            .await?;
        let leased = self.counter(TaskCounter::Leased).await?;
        let delayed = self.counter(TaskCounter::Delayed).await?;
        let dead = self.counter(TaskCounter::Dead).await?;
        let waiting = self.counter(TaskCounter::Waiting).await?;
        Ok(TaskCounts {
            total,
            ready: total - leased - delayed - dead - waiting,
            leased,
            delayed,
            dead,
            waiting,
            added: self.counter(TaskCounter::Added).await?,
        })
    }

    async fn counter(&self, counter: TaskCounter) -> Result<i64, StoreError> {
        self.counter_in(counter, self.context.isolation).await
    }

    async fn counter_in(
        &self,
        counter: TaskCounter,
        isolation: Isolation,
    ) -> Result<i64, StoreError> {
        let row = self
            .context
            .layout()
            .task_counter_key(self.key.data(), counter);
        let value = self.context.transaction.get(&row, isolation).await?;
        Ok(decode_counter(value.as_ref())?)
    }

    /// When the next lease or delay ends.
    async fn next_due_ms(&self) -> Result<Option<i64>, StoreError> {
        let layout = self.context.layout();
        let range = layout.task_due(self.key.data());
        let isolation = self.context.relaxed();
        let row = self.context.outermost(&range, false, isolation).await?;
        let at_ms = row.map(|row| layout.read_task_due_key(self.key.data(), &row.key));
        Ok(at_ms.transpose()?)
    }

    /// When the oldest dead task died.
    async fn dead_since_ms(&self) -> Result<Option<i64>, StoreError> {
        let layout = self.context.layout();
        let range = layout.task_dead(self.key.data());
        let isolation = Isolation::Snapshot;
        let row = self.context.outermost(&range, false, isolation).await?;
        let at_ms = row.map(|row| layout.read_task_dead_key(self.key.data(), &row.key));
        Ok(at_ms.transpose()?)
    }

    /// Dead tasks, the oldest death first, with up to [`DELIVERED_BYTES_MAX`] bytes of payloads.
    async fn dead(&self, count: usize) -> Result<Vec<Task>, StoreError> {
        let range = self.context.layout().task_dead(self.key.data());
        let registry = self.registry(self.context.relaxed()).await?;
        let mut dead: Vec<Task> = Vec::new();
        let mut bytes = 0_usize;
        let mut pages = Pages::new(self.context, range, false, count);
        'pages: while dead.len() < count
            && let Some(rows) = pages.next().await?
        {
            for some in rows.chunks(self.context.large_reads_at_once()) {
                if bytes >= DELIVERED_BYTES_MAX {
                    break 'pages;
                }
                // Concurrently, because on a cluster each read is a round trip.
                let shown = some.iter().take(count - dead.len()).map(async |row| {
                    let Some(found) = self.row(&row.value, self.context.isolation).await? else {
                        return Ok::<_, StoreError>(None);
                    };
                    let id = row.value.clone();
                    Ok(Some(self.load_task(&registry, id, &found).await?))
                });
                let shown = try_join_all(shown).await?.into_iter().flatten();
                dead.extend(shown.inspect(|task| bytes = bytes.saturating_add(task.payload.len())));
            }
        }
        Ok(dead)
    }
}

/// The first rows of a range.
async fn range_rows(
    context: &ReadContext<'_>,
    range: &KeyRange,
    limit: usize,
    isolation: Isolation,
) -> Result<Vec<KeyValue>, StoreError> {
    let query = RangeQuery {
        begin: &range.begin,
        end: &range.end,
        limit,
        reverse: false,
        isolation,
    };
    context.transaction.get_range(query).await
}

/// Whether a task is too old to be taken. Leased and dead tasks are not.
fn is_too_old(row: &TaskRow, now_ms: i64) -> bool {
    let waits = !matches!(row.state, TaskState::Leased | TaskState::Dead);
    waits && row.notes.expires_ms.is_some_and(|at_ms| at_ms <= now_ms)
}

/// Whether the batch is as large or as old as batches should become.
fn is_full_or_old(context: &WriteContext<'_>) -> bool {
    context.is_full() || context.is_old()
}

/// The state of a task after its lease or delay: ready, or dead if it has used up its tries.
fn state_after(row: &TaskRow) -> TaskState {
    let is_spent = row.tries_max > 0 && row.tries >= row.tries_max;
    if is_spent {
        TaskState::Dead
    } else {
        TaskState::Ready
    }
}
