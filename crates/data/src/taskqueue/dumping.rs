//! Task queues as payloads.
//!
//! Places, times and tokens go along as they are: a consumer whose queue is moved to another server ends
//! its lease there, and tasks keep their order.

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::error::CommandError;
use crate::keyspace::dumping::{Chunk, check_size};
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::Restorable;
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::{IMPORT_CHUNK_BYTES, KEY_READS_AT_ONCE};
use quoin_layout::{
    KeyRange, Section, TaskCounter, TaskPlace, TaskRow, TaskState, ValueType, successor,
};
use quoin_rdb::{DumpError, DumpedState, DumpedTask, Payload, TaskQueueReader, TaskQueueWriter};
use quoin_store::{Isolation, KeyValue, StoreError};

use super::Amounts;
use super::classes;
use super::places::place_row;

/// Tasks that a chunk reads at first. As large as rows may be, they hardly exceed [`IMPORT_CHUNK_BYTES`].
const FIRST_STEP_TASKS: usize = 16;
/// Tasks that a chunk reads at a time, once it has seen that they are small.
const STEP_TASKS_MAX: usize = 128;

/// What a row's state is in a payload.
fn dumped_state(row: &TaskRow) -> DumpedState {
    match row.state {
        TaskState::Ready => DumpedState::Ready,
        TaskState::Leased => DumpedState::Leased {
            until_ms: row.at_ms,
            token: row.token,
        },
        TaskState::Delayed => DumpedState::Delayed {
            until_ms: row.at_ms,
        },
        TaskState::Dead => DumpedState::Dead {
            since_ms: row.at_ms,
        },
    }
}

/// State, time and token of a task in a payload.
fn stored_state(state: DumpedState) -> (TaskState, i64, u64) {
    match state {
        DumpedState::Ready => (TaskState::Ready, 0, 0),
        DumpedState::Leased { until_ms, token } => (TaskState::Leased, until_ms, token),
        DumpedState::Delayed { until_ms } => (TaskState::Delayed, until_ms, 0),
        DumpedState::Dead { since_ms } => (TaskState::Dead, since_ms, 0),
    }
}

impl ReadContext<'_> {
    /// A queue as a payload.
    ///
    /// # Errors
    /// `Text` where that is too large.
    pub(super) async fn task_dump(&self, key: &OpenKey) -> Result<Bytes, CommandError> {
        let mut writer = self.task_writer(key).await?;
        let mut pages = Pages::new(self, self.tasks_from(key, None), false, 0);
        while let Some(rows) = pages.next().await? {
            for row in rows {
                writer.push(&self.dumped_task(key, &row).await?);
                check_size(writer.size_bytes())?;
            }
        }
        Ok(writer.finish())
    }

    /// Up to `count` tasks, of about [`IMPORT_CHUNK_BYTES`], in the order of their ids, after an id.
    pub async fn task_chunk(
        &self,
        key: &OpenKey,
        after: Option<&[u8]>,
        count: usize,
    ) -> Result<Chunk, StoreError> {
        let mut writer = self.task_writer(key).await?;
        let mut pages = Pages::new(self, self.tasks_from(key, after), false, 0);
        // In steps: tasks may be so large that a chunk has only a few of them.
        let mut step = FIRST_STEP_TASKS;
        let mut taken = 0;
        let mut last = None;
        // One more than are taken tells whether there are more.
        while let Some(rows) = pages
            .next_of(step.min(count.saturating_add(1) - taken))
            .await?
        {
            step = step.saturating_mul(2).min(STEP_TASKS_MAX);
            for row in rows {
                if taken >= count || writer.size_bytes() >= IMPORT_CHUNK_BYTES {
                    return Ok(Chunk {
                        payload: (taken > 0).then(|| writer.finish()),
                        next: last,
                    });
                }
                let task = self.dumped_task(key, &row).await?;
                writer.push(&task);
                taken += 1;
                last = Some(task.id);
            }
        }
        Ok(Chunk {
            payload: (taken > 0).then(|| writer.finish()),
            next: None,
        })
    }

    async fn task_writer(&self, key: &OpenKey) -> Result<TaskQueueWriter, StoreError> {
        let registry = self.task_registry(key, self.isolation).await?;
        let added = self.task_counter(key, TaskCounter::Added).await?;
        Ok(TaskQueueWriter::new(added, &registry.resources))
    }

    /// The rows of tasks after an id.
    fn tasks_from(&self, key: &OpenKey, after: Option<&[u8]>) -> KeyRange {
        let all = self.layout().section_prefix(key.data(), Section::Tasks);
        let all = KeyRange::children(&all);
        match after {
            Some(id) => KeyRange {
                begin: successor(&self.layout().task_key(key.data(), id)),
                ..all
            },
            None => all,
        }
    }

    async fn dumped_task(&self, key: &OpenKey, row: &KeyValue) -> Result<DumpedTask, StoreError> {
        let id = self.layout().read_task_key(key.data(), &row.key)?;
        let task = TaskRow::decode(&row.value)?;
        Ok(DumpedTask {
            id: id.into(),
            priority: task.place.priority,
            index: task.place.index,
            random: task.place.random,
            mask: task.mask,
            state: dumped_state(&task),
            tries: task.tries,
            tries_max: task.tries_max,
            payload: self.load_value(key.data(), &task.payload).await?,
            amounts: task.amounts,
        })
    }
}

/// The tasks of a payload, which were read to their end.
fn sound_tasks(
    context: &ReadContext<'_>,
    payload: Payload,
) -> Result<TaskQueueReader, CommandError> {
    let tasks = TaskQueueReader::new(payload)?;
    let mut budget = context.size_budget();
    let mut is_empty = true;
    // Only read: tasks are read again when they are written, rather than kept.
    for task in tasks.clone() {
        let task = task?;
        budget.take_task(task.id.len(), task.payload.len())?;
        is_empty = false;
    }
    match is_empty {
        true => Err(DumpError::Format.into()),
        false => Ok(tasks),
    }
}

/// Reads a queue from a payload.
pub(super) fn restorable(
    context: &ReadContext<'_>,
    payload: Payload,
) -> Result<Restorable, CommandError> {
    let tasks = sound_tasks(context, payload)?;
    Ok(Box::new(|context, name, expire_at_ms| {
        Box::pin(async move {
            let value_type = ValueType::TaskQueue;
            let key = context.create(name, value_type, expire_at_ms).await?;
            context.task_put_dumped(&key, tasks).await?;
            Ok(())
        })
    }))
}

impl WriteContext<'_> {
    /// Adds the tasks of a payload, with their places and states, to a queue, which is made where there
    /// is none. Answers how many.
    ///
    /// # Errors
    /// `Payload` if the payload is not that of a task queue; `Text` where the queue has a task with an id or at a place
    /// of theirs, or would know too many resources; `TooLarge`; `WrongType`.
    pub async fn task_add_chunk(
        &self,
        name: &Bytes,
        payload: Payload,
    ) -> Result<i64, CommandError> {
        let tasks = sound_tasks(self, payload)?;
        let key = self.find_or_create(name, ValueType::TaskQueue).await?;
        self.task_put_dumped(&key, tasks).await
    }

    async fn task_put_dumped(
        &self,
        key: &OpenKey,
        mut tasks: TaskQueueReader,
    ) -> Result<i64, CommandError> {
        self.task_raise_added(key, tasks.added()).await?;
        let resources = tasks.resources().to_vec();
        let mut count = 0;
        loop {
            let some = tasks.by_ref().take(KEY_READS_AT_ONCE);
            let some = some.collect::<Result<Vec<DumpedTask>, DumpError>>()?;
            // What is larger than a transaction may be is refused for that afterwards.
            let bytes_max = self.environment.capabilities.transaction_bytes_max;
            if some.is_empty() || self.transaction.size_bytes() > bytes_max {
                break;
            }
            let mut rows = Vec::with_capacity(some.len());
            for task in some {
                rows.push(self.stored_task(key, task, &resources).await?);
            }
            let free = rows.iter().map(|(id, row)| self.is_free(key, id, row));
            if try_join_all(free).await?.contains(&false) {
                return Err(CommandError::text("EXISTS Task id or place already exists"));
            }
            self.task_enter_all(key, &rows).await?;
            count += i64::try_from(rows.len()).unwrap_or(i64::MAX);
        }
        self.count_change(key, count);
        Ok(count)
    }

    /// Has the queue count at least so many tasks as ever added, so that tasks which are added later
    /// come after those of a payload.
    async fn task_raise_added(&self, key: &OpenKey, added: i64) -> Result<(), StoreError> {
        let row = self
            .layout()
            .task_counter_key(key.data(), TaskCounter::Added);
        let counted = self.task_counter(key, TaskCounter::Added).await?;
        if added > counted {
            self.transaction.atomic_add(&row, added - counted);
        }
        Ok(())
    }

    /// A task of a payload as this queue keeps it.
    async fn stored_task(
        &self,
        key: &OpenKey,
        task: DumpedTask,
        resources: &[Bytes],
    ) -> Result<(Bytes, TaskRow), CommandError> {
        let names = resources.iter().enumerate();
        let needed = names.filter(|(number, _)| task.mask & (1 << number) != 0);
        let names = needed.map(|(_, name)| name.clone());
        let needs = Amounts(names.zip(task.amounts).collect());
        let registry = self.task_registry(key, self.relaxed()).await?;
        let classifying = classes::classify(registry, &needs)?;
        let classified = self.task_register(key, classifying).await?;
        let (state, at_ms, token) = stored_state(task.state);
        let row = TaskRow {
            state,
            place: TaskPlace {
                priority: task.priority,
                index: task.index,
                random: task.random,
            },
            class: classified.class,
            mask: classified.mask,
            amounts: classified.amounts,
            tries: task.tries,
            tries_max: task.tries_max,
            at_ms,
            token,
            payload: self.store_value(key.data(), &task.payload).into(),
        };
        Ok((task.id, row))
    }

    /// Whether the queue has no task of this id, and none where it is to stand.
    async fn is_free(&self, key: &OpenKey, id: &Bytes, row: &TaskRow) -> Result<bool, StoreError> {
        let place = place_row(self.layout(), key.data(), row);
        let place = self.transaction.get(&place, Isolation::Serializable);
        Ok(place.await?.is_none()
            && self
                .task_row(key, id, Isolation::Serializable)
                .await?
                .is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::pages::testing::Counting;
    use crate::testing::environment;
    use crate::unit::context::NamespaceCache;
    use quoin_engine::testing::Bench;

    #[test]
    fn a_chunk_reads_little_more_than_it_answers() {
        for bench in [Bench::embedded(), Bench::cluster_like()] {
            let payload = "p".repeat(80_000);
            for _ in 0..100 {
                bench.run(&format!("TASK.ADD q 1 {payload}"));
            }
            let environment = &environment(&bench);
            let transaction = bench.store.begin_read().unwrap();
            let counting = Counting::of(&*transaction);
            let namespaces = NamespaceCache::default();
            let context = ReadContext::new(&counting, environment, &namespaces, 0, 0);
            let chunk = bench.block_on(async {
                let name = Bytes::from_static(b"q");
                let key = context.find(&name, ValueType::TaskQueue).await.unwrap();
                let chunk = context.task_chunk(&key.unwrap(), None, 10_000).await;
                chunk.unwrap()
            });
            assert!(chunk.payload.is_some() && chunk.next.is_some());
            let bytes = counting.bytes();
            assert!(bytes <= 3 * IMPORT_CHUNK_BYTES, "{bytes}");
        }
    }
}
