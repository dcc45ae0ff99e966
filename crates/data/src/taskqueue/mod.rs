//! Task queues: tasks with priorities and needs of resources, leases, retries, delays, and dead
//! letters.
//!
//! A task keeps its [place](quoin_layout::TaskPlace) (priority, then arrival) for its life.
//! While it is ready it has a row in the [order](index) of its [class](classes), above which an
//! index of minima leads [the search](search) to the first task that fits. While it is leased or
//! delayed it has a row by when that ends ([due]); whoever takes, or else the background work,
//! which [alarms] lead to it, puts it back. docs/understand/decisions/010-task-index.md says why.

pub mod commands;

use bytes::Bytes;
use futures_util::future::try_join_all;

use quoin_base::limits::{DELIVERED_BYTES_MAX, KEY_READS_AT_ONCE, TASK_CLOCK_TOLERANCE_MS};
use quoin_layout::{
    KeyRange, OrderRow, TaskCounter, TaskRegistry, TaskRow, TaskState, decode_counter,
};
use quoin_store::{Isolation, RangeQuery, StoreError};

use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};
use places::place_row;

pub mod add;
pub mod alarms;
pub mod amounts;
pub mod classes;
pub mod due;
mod dumping;
pub mod index;
mod kind;
pub mod lease;
mod places;
pub mod search;
pub mod take;
pub mod tend;
#[cfg(test)]
mod tests;

pub use add::NewTask;
pub use amounts::Amounts;
pub(crate) use classes::too_many_resources;
pub use kind::KIND;
pub use lease::LeaseAnswer;
pub use take::Taking;

/// A task as clients are told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its id.
    pub id: Bytes,
    /// Its priority.
    pub priority: f64,
    /// What it is waiting for.
    pub state: TaskState,
    /// How often it has been taken, this time included.
    pub tries: i64,
    /// How often it may be taken with a lease; 0 is without limit.
    pub tries_max: i64,
    /// When its lease or delay ends, or when it died; 0 of a ready one.
    pub at_ms: i64,
    /// What it needs.
    pub needs: Amounts,
    /// Its payload.
    pub payload: Bytes,
}

/// How many tasks a queue has, by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskCounts {
    /// To be taken.
    pub ready: i64,
    /// On lease.
    pub leased: i64,
    /// Delayed.
    pub delayed: i64,
    /// Dead.
    pub dead: i64,
    /// Ever added.
    pub added: i64,
}

/// The counter of a state that has one.
fn counter_of(state: TaskState) -> Option<TaskCounter> {
    match state {
        TaskState::Ready => None,
        TaskState::Leased => Some(TaskCounter::Leased),
        TaskState::Delayed => Some(TaskCounter::Delayed),
        TaskState::Dead => Some(TaskCounter::Dead),
    }
}

impl ReadContext<'_> {
    async fn task_registry(
        &self,
        key: &OpenKey,
        isolation: Isolation,
    ) -> Result<TaskRegistry, StoreError> {
        let row = self.layout().task_registry_key(key.data());
        let value = self.transaction.get(&row, isolation).await?;
        Ok(TaskRegistry::decode(value.as_ref())?)
    }

    /// The prefixes of the orders of ready tasks, one for each class.
    pub(crate) async fn task_order_prefixes(
        &self,
        key: &OpenKey,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let registry = self.task_registry(key, Isolation::Snapshot).await?;
        let classes = (0_u32..).take(registry.classes.len());
        let prefix = |class| self.layout().task_order_prefix(key.data(), class);
        Ok(classes.map(prefix).collect())
    }

    async fn task_row(
        &self,
        key: &OpenKey,
        id: &[u8],
        isolation: Isolation,
    ) -> Result<Option<TaskRow>, StoreError> {
        let row = self.layout().task_key(key.data(), id);
        let value = self.transaction.get(&row, isolation).await?;
        Ok(value.as_ref().map(TaskRow::decode).transpose()?)
    }

    /// Has the rows of tasks, at most [`KEY_READS_AT_ONCE`] of them, read side by side, because on
    /// a cluster each read is a round trip: what a transaction has read it answers from memory.
    pub async fn task_read_ahead(&self, key: &OpenKey, ids: &[Bytes]) -> Result<(), StoreError> {
        if self.environment.capabilities.single_writer {
            return Ok(());
        }
        let ids = ids.iter().take(KEY_READS_AT_ONCE);
        let reads = ids.map(|id| self.task_row(key, id, self.isolation));
        try_join_all(reads).await?;
        Ok(())
    }

    /// How long after its end by the clock of who granted it a lease is over for all: on a store
    /// with many servers, their clocks may differ by this.
    fn clock_tolerance_ms(&self) -> i64 {
        if self.environment.capabilities.single_writer {
            0
        } else {
            TASK_CLOCK_TOLERANCE_MS
        }
    }

    /// A task's row as clients are told of it.
    async fn task_shown(
        &self,
        key: &OpenKey,
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
            needs: classes::named(registry, row.mask, &row.amounts),
            payload: self.load_value(key.data(), &row.payload).await?,
        })
    }

    /// A task, whatever its state; one whose lease or delay is over is told of as ready, or dead,
    /// even before it is put back.
    pub async fn task_get(&self, key: &OpenKey, id: &Bytes) -> Result<Option<Task>, StoreError> {
        let Some(mut row) = self.task_row(key, id, self.isolation).await? else {
            return Ok(None);
        };
        let is_waiting = matches!(row.state, TaskState::Leased | TaskState::Delayed);
        if is_waiting && row.at_ms <= self.now_ms {
            row.state = state_after(&row);
            row.at_ms = 0;
        }
        let registry = self.task_registry(key, self.relaxed()).await?;
        Ok(Some(
            self.task_shown(key, &registry, id.clone(), &row).await?,
        ))
    }

    /// How many tasks there are. What falls due counts as leased or delayed until it is put back.
    pub async fn task_counts(&self, key: &OpenKey) -> Result<TaskCounts, StoreError> {
        let total = self.length(key, self.isolation).await?;
        let leased = self.task_counter(key, TaskCounter::Leased).await?;
        let delayed = self.task_counter(key, TaskCounter::Delayed).await?;
        let dead = self.task_counter(key, TaskCounter::Dead).await?;
        Ok(TaskCounts {
            ready: total - leased - delayed - dead,
            leased,
            delayed,
            dead,
            added: self.task_counter(key, TaskCounter::Added).await?,
        })
    }

    async fn task_counter(&self, key: &OpenKey, counter: TaskCounter) -> Result<i64, StoreError> {
        let row = self.layout().task_counter_key(key.data(), counter);
        let value = self.transaction.get(&row, self.isolation).await?;
        Ok(decode_counter(value.as_ref())?)
    }

    /// The names of the resources that a queue knows, and how many classes of tasks.
    pub async fn task_resources(&self, key: &OpenKey) -> Result<(Vec<Bytes>, usize), StoreError> {
        let registry = self.task_registry(key, self.isolation).await?;
        Ok((registry.resources, registry.classes.len()))
    }

    /// When the next lease or delay ends.
    pub async fn task_next_due(&self, key: &OpenKey) -> Result<Option<i64>, StoreError> {
        let range = self.layout().task_due(key.data());
        let rows = self.task_rows(&range, 1, self.relaxed()).await?;
        match rows.first() {
            Some(row) => Ok(Some(self.layout().read_task_due_key(key.data(), &row.key)?)),
            None => Ok(None),
        }
    }

    /// When the longest dead task died.
    pub async fn task_dead_since(&self, key: &OpenKey) -> Result<Option<i64>, StoreError> {
        let range = self.layout().task_dead(key.data());
        let rows = self.task_rows(&range, 1, Isolation::Snapshot).await?;
        let row = rows.first().map(|row| &row.key);
        let died = row.map(|row| self.layout().read_task_dead_key(key.data(), row));
        Ok(died.transpose()?)
    }

    /// Dead tasks, the longest dead first, of up to [`DELIVERED_BYTES_MAX`].
    pub async fn task_dead(&self, key: &OpenKey, count: usize) -> Result<Vec<Task>, StoreError> {
        let range = self.layout().task_dead(key.data());
        let registry = self.task_registry(key, self.relaxed()).await?;
        let mut dead: Vec<Task> = Vec::new();
        let mut bytes = 0_usize;
        let mut pages = crate::rows::pages::Pages::new(self, range, false, count);
        'pages: while dead.len() < count
            && let Some(rows) = pages.next().await?
        {
            for some in rows.chunks(self.large_reads_at_once()) {
                if bytes >= DELIVERED_BYTES_MAX {
                    break 'pages;
                }
                // Side by side, because on a cluster each read is a round trip.
                let shown = some.iter().take(count - dead.len()).map(async |row| {
                    let Some(found) = self.task_row(key, &row.value, self.isolation).await? else {
                        return Ok::<_, StoreError>(None);
                    };
                    let id = row.value.clone();
                    Ok(Some(self.task_shown(key, &registry, id, &found).await?))
                });
                let shown = try_join_all(shown).await?.into_iter().flatten();
                dead.extend(shown.inspect(|task| bytes = bytes.saturating_add(task.payload.len())));
            }
        }
        Ok(dead)
    }

    async fn task_rows(
        &self,
        range: &KeyRange,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<quoin_store::KeyValue>, StoreError> {
        self.transaction
            .get_range(RangeQuery {
                begin: &range.begin,
                end: &range.end,
                limit,
                reverse: false,
                isolation,
            })
            .await
    }
}

impl WriteContext<'_> {
    fn count_state(&self, key: &OpenKey, state: TaskState, delta: i64) {
        if let Some(counter) = counter_of(state) {
            let row = self.layout().task_counter_key(key.data(), counter);
            self.transaction.atomic_add(&row, delta);
        }
    }

    /// Takes a task out of where its state has put it; its own row stays as it is.
    fn task_leave(&self, key: &OpenKey, row: &TaskRow) {
        let place_row = place_row(self.layout(), key.data(), row);
        if row.state == TaskState::Ready {
            self.signals.item_left(&place_row);
        }
        self.transaction.clear(&place_row);
        self.count_state(key, row.state, -1);
    }

    /// Puts a task where its new state wants it, and writes its row.
    async fn task_enter(&self, key: &OpenKey, id: &Bytes, row: &TaskRow) -> Result<(), StoreError> {
        let data = key.data();
        let place_row = place_row(self.layout(), data, row);
        match row.state {
            TaskState::Ready => {
                self.transaction
                    .set(&place_row, &OrderRow::encode(&row.amounts, id));
                self.index_ready(key, row).await?;
                self.offer(key, row, place_row.into()).await?;
            }
            TaskState::Leased | TaskState::Delayed => {
                self.transaction.set(&place_row, id);
                self.set_alarm(key, row.at_ms);
            }
            TaskState::Dead => self.transaction.set(&place_row, id),
        }
        self.count_state(key, row.state, 1);
        self.transaction
            .set(&self.layout().task_key(data, id), &row.encode());
        Ok(())
    }

    /// Does so with several tasks.
    async fn task_enter_all(
        &self,
        key: &OpenKey,
        tasks: &[(Bytes, TaskRow)],
    ) -> Result<(), StoreError> {
        if self.environment.capabilities.single_writer {
            // Each finds the index as the one before has left it.
            for (id, row) in tasks {
                self.task_enter(key, id, row).await?;
            }
            return Ok(());
        }
        // Side by side, because on a cluster each read is a round trip.
        let enter = tasks.iter().map(|(id, row)| self.task_enter(key, id, row));
        try_join_all(enter).await?;
        Ok(())
    }

    /// Ends a task: its row, its place, its payload.
    fn task_remove(&self, key: &OpenKey, id: &[u8], row: &TaskRow) -> Result<(), StoreError> {
        self.task_leave(key, row);
        self.discard_value(key.data(), &row.payload)?;
        self.transaction
            .clear(&self.layout().task_key(key.data(), id));
        Ok(())
    }
}

/// What becomes of a task whose lease or delay ends: it is ready again, unless it has been tried as often
/// as it may be.
fn state_after(row: &TaskRow) -> TaskState {
    let is_spent = row.tries_max > 0 && row.tries >= row.tries_max;
    if is_spent {
        TaskState::Dead
    } else {
        TaskState::Ready
    }
}

/// Whether a lease of the task is live, of this token where one is named.
fn lease_answer(row: &TaskRow, token: Option<u64>, now_ms: i64) -> LeaseAnswer {
    match row.state {
        TaskState::Leased if row.at_ms > now_ms => match token {
            Some(token) if token != row.token => LeaseAnswer::Foreign,
            _ => LeaseAnswer::Done,
        },
        _ => LeaseAnswer::Lapsed,
    }
}
