//! DUMP, RESTORE, TASK.SCANDUMP and TASK.LOADCHUNK of task queues.
//!
//! Payloads contain places, times and tokens unchanged. So after a queue has moved to another
//! server, tasks keep their order, and consumers can end their leases there.

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::command::arguments::{argument, chunk_arguments, chunk_payload, chunk_reply};
use crate::error::CommandError;
use crate::keyspace::dumping::{Chunk, check_size};
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::Restorable;
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::limits::{IMPORT_CHUNK_BYTES, KEY_READS_AT_ONCE, TASK_AFTER_MAX};
use quoin_layout::{
    KeyRange, Section, TaskCounter, TaskEnding, TaskKept, TaskNotes, TaskNumber, TaskOptions,
    TaskPlace, TaskRow, TaskSchedule, TaskState, ValueType, successor,
};
use quoin_rdb::{
    DumpError, DumpedItem, DumpedKept, DumpedKeptKind, DumpedOptions, DumpedState, DumpedTask,
    Payload, TaskQueueReader, TaskQueueWriter,
};
use quoin_resp::reply::Reply;
use quoin_store::{Isolation, KeyValue, StoreError};

use super::resources::classify;
use super::states::place_row;
use super::{TaskQueue, TaskQueueMut, endings, options, schedules};

/// Number of tasks that a chunk reads first. Even the largest tasks hardly exceed
/// [`IMPORT_CHUNK_BYTES`] with this.
const FIRST_STEP_TASKS: usize = 16;
/// Tasks that a chunk reads at a time if they are small.
const STEP_TASKS_MAX: usize = 128;
/// Precedes the id in a cursor, because an id may be equal to the cursor of the beginning.
const AFTER: &[u8] = b"after:";
/// Precedes the place of a token or a result in a cursor.
const KEPT: &[u8] = b"kept:";
/// Precedes the name of a schedule in a cursor.
const SCHEDULES: &[u8] = b"schedules:";

/// Where a chunk continues.
#[derive(Debug, Clone, Copy)]
pub(super) enum ChunkPlace<'c> {
    /// After the task with this id.
    Task(&'c [u8]),
    /// After the token or result at this place. Before all of them if empty.
    Kept(&'c [u8]),
    /// After the schedule of this name; before all if it is empty.
    Schedule(&'c [u8]),
}

/// The state of a task, for a payload. `awaited`: the tasks that it waits for.
fn dumped_state(row: &TaskRow, awaited: Vec<Bytes>, now_ms: i64) -> DumpedState {
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
        // Nothing is left to wait for, and background work is about to release the task.
        TaskState::Waiting if awaited.is_empty() && row.at_ms > now_ms => DumpedState::Delayed {
            until_ms: row.at_ms,
        },
        TaskState::Waiting if awaited.is_empty() => DumpedState::Ready,
        TaskState::Waiting => DumpedState::Waiting {
            at_ms: row.at_ms,
            awaited,
        },
    }
}

/// State, time and token, from the state in a payload. A ready task counts as ready since now.
fn stored_state(state: &DumpedState, now_ms: i64) -> (TaskState, i64, u64) {
    match *state {
        DumpedState::Ready => (TaskState::Ready, now_ms, 0),
        DumpedState::Leased { until_ms, token } => (TaskState::Leased, until_ms, token),
        DumpedState::Delayed { until_ms } => (TaskState::Delayed, until_ms, 0),
        DumpedState::Dead { since_ms } => (TaskState::Dead, since_ms, 0),
        DumpedState::Waiting { at_ms, .. } => (TaskState::Waiting, at_ms, 0),
    }
}

impl TaskQueue<'_, '_> {
    /// A queue as a payload.
    ///
    /// # Errors
    /// `Text` if the payload is too large.
    pub(super) async fn dump(&self) -> Result<Bytes, CommandError> {
        let mut writer = self.writer().await?;
        let parts = [
            self.rows_after(None),
            self.kept_after(None),
            self.schedules_after(None),
        ];
        for range in parts {
            let mut pages = Pages::new(self.context, range, false, 0);
            while let Some(rows) = pages.next().await? {
                for row in rows {
                    self.push(&mut writer, &row).await?;
                    check_size(writer.size_bytes())?;
                }
            }
        }
        Ok(writer.finish())
    }

    /// Up to `count` tasks, tokens and results, or schedules after a place, in the order of ids or
    /// names, of about [`IMPORT_CHUNK_BYTES`]. Also returns a cursor to continue from.
    pub(super) async fn chunk(
        &self,
        after: Option<ChunkPlace<'_>>,
        count: usize,
    ) -> Result<Chunk, StoreError> {
        let mut writer = self.writer().await?;
        let range = match after {
            None => self.rows_after(None),
            Some(ChunkPlace::Task(id)) => self.rows_after(Some(id)),
            Some(ChunkPlace::Kept(place)) => self.kept_after(Some(place)),
            Some(ChunkPlace::Schedule(b"")) => self.schedules_after(None),
            Some(ChunkPlace::Schedule(name)) => self.schedules_after(Some(name)),
        };
        let mut pages = Pages::new(self.context, range, false, 0);
        // In steps, because a chunk may have only a few tasks if they are large.
        let mut step = FIRST_STEP_TASKS;
        let mut taken = 0;
        let mut last = None;
        // The first chunk of an empty queue has its options.
        let has_options = after.is_none() && !self.options().await?.is_empty();
        // One task more than needed shows whether there are more.
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
                last = Some(self.push(&mut writer, &row).await?);
                taken += 1;
            }
        }
        Ok(Chunk {
            payload: (taken > 0 || has_options).then(|| writer.finish()),
            next: self.next_part(after).await?.map(Bytes::from_static),
        })
    }

    /// The cursor of the part after the one that contains a place. Tokens and results have separate
    /// chunks after those of tasks, and so do schedules.
    async fn next_part(
        &self,
        after: Option<ChunkPlace<'_>>,
    ) -> Result<Option<&'static [u8]>, StoreError> {
        if !self.key.meta.is_kept {
            return Ok(None);
        }
        Ok(match after {
            Some(ChunkPlace::Schedule(_)) => None,
            None | Some(ChunkPlace::Task(_)) if self.has_kept().await? => Some(KEPT),
            _ => self.has_schedules().await?.then_some(SCHEDULES),
        })
    }

    /// Adds a task, a token, a result or a schedule. Returns the cursor after it.
    async fn push(
        &self,
        writer: &mut TaskQueueWriter,
        row: &KeyValue,
    ) -> Result<Bytes, StoreError> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let prefix = layout.section_prefix(data, Section::TaskSchedules);
        if row.key.starts_with(&prefix) {
            let name = layout.read_task_schedule_key(data, &row.key)?;
            let cursor = [SCHEDULES, name.as_slice()].concat();
            writer.push_kept(&DumpedKept {
                kind: DumpedKeptKind::Schedule,
                name: name.into(),
                until_ms: TaskSchedule::decode(&row.value)?.next_ms,
                value: row.value.clone(),
            });
            return Ok(cursor.into());
        }
        let prefix = layout.section_prefix(data, Section::TaskKept);
        let Some(place) = row.key.strip_prefix(prefix.as_slice()) else {
            let task = self.dumped_task(row).await?;
            writer.push(&task);
            return Ok([AFTER, &task.id].concat().into());
        };
        let (kind, name) = layout.read_task_kept_key(data, &row.key)?;
        let kept = TaskKept::decode(&row.value)?;
        let kind = match kind {
            TaskEnding::Unique => DumpedKeptKind::Unique,
            TaskEnding::Result => DumpedKeptKind::Result,
            TaskEnding::Task | TaskEnding::Schedule | TaskEnding::Rate | TaskEnding::Released => {
                return Err(StoreError::Corrupt("kind of what is remembered"));
            }
        };
        writer.push_kept(&DumpedKept {
            kind,
            name,
            until_ms: kept.until_ms,
            value: kept.value,
        });
        Ok([KEPT, place].concat().into())
    }

    /// The rows of tokens and results after a place.
    fn kept_after(&self, after: Option<&[u8]>) -> KeyRange {
        let layout = self.context.layout();
        let all = layout.task_remembered(self.key.data());
        let prefix = layout.section_prefix(self.key.data(), Section::TaskKept);
        match after {
            Some(place) if !place.is_empty() => KeyRange {
                begin: successor(&[prefix.as_slice(), place].concat()),
                ..all
            },
            _ => all,
        }
    }

    async fn writer(&self) -> Result<TaskQueueWriter, StoreError> {
        let registry = self.registry(self.context.isolation).await?;
        let added = self.counter(TaskCounter::Added).await?;
        let numbers = registry.options.numbers().iter();
        let options = DumpedOptions {
            is_paused: registry.options.is_paused,
            numbers: numbers
                .map(|(number, value)| (*number as u64, *value))
                .collect(),
            dead_letter: registry.options.dead_letter.clone(),
        };
        Ok(TaskQueueWriter::new(added, &registry.resources, &options))
    }

    /// The rows of tasks after an id.
    fn rows_after(&self, after: Option<&[u8]>) -> KeyRange {
        let all = self
            .context
            .layout()
            .section_prefix(self.key.data(), Section::Tasks);
        let all = KeyRange::children(&all);
        match after {
            Some(id) => KeyRange {
                begin: successor(&self.context.layout().task_key(self.key.data(), id)),
                ..all
            },
            None => all,
        }
    }

    /// The tasks that a task waits for, without those that were acknowledged.
    async fn unreleased(&self, task: &TaskRow) -> Result<Vec<Bytes>, StoreError> {
        let awaited = self.awaited_by(task, TASK_AFTER_MAX).await?;
        let released = awaited.iter().map(|id| self.is_released(id));
        let released = try_join_all(released).await?;
        let left = awaited.into_iter().zip(released);
        Ok(left.filter(|(_, gone)| !gone).map(|(id, _)| id).collect())
    }

    async fn dumped_task(&self, row: &KeyValue) -> Result<DumpedTask, StoreError> {
        let id = self
            .context
            .layout()
            .read_task_key(self.key.data(), &row.key)?;
        let task = TaskRow::decode(&row.value)?;
        let awaited = self.unreleased(&task).await?;
        Ok(DumpedTask {
            id: id.into(),
            priority: task.place.priority,
            index: task.place.index,
            random: task.place.random,
            mask: task.mask,
            state: dumped_state(&task, awaited, self.context.now_ms),
            worker: task.notes.worker.clone(),
            reason: task.notes.reason.clone(),
            expires_ms: task.notes.expires_ms,
            progress: task.notes.progress.clone(),
            group: task.notes.group.clone(),
            is_awaited: task.notes.is_awaited,
            traceparent: task.notes.traceparent.clone(),
            tries: task.tries,
            tries_max: task.tries_max,
            payload: self
                .context
                .load_value(self.key.data(), &task.payload)
                .await?,
            amounts: task.amounts,
        })
    }
}

/// The tasks of a payload. All of them are valid.
fn sound_tasks(
    context: &ReadContext<'_>,
    payload: Payload,
) -> Result<TaskQueueReader, CommandError> {
    let tasks = TaskQueueReader::new(payload)?;
    let mut budget = context.size_budget();
    let mut is_empty = options_in(&tasks)?.is_empty();
    // Tasks are not kept. They are read again when they are written.
    for item in tasks.clone() {
        match item? {
            DumpedItem::Task(task) => budget.take_task(task.id.len(), task.payload.len())?,
            DumpedItem::Kept(kept) => {
                budget.take_task(kept.name.len(), kept.value.len())?;
                if kept.kind == DumpedKeptKind::Schedule {
                    schedule_in(&kept)?;
                }
            }
        }
        is_empty = false;
    }
    match is_empty {
        true => Err(DumpError::Format.into()),
        false => Ok(tasks),
    }
}

/// The schedule of a payload.
///
/// # Errors
/// If a client could not set it.
fn schedule_in(kept: &DumpedKept) -> Result<TaskSchedule, DumpError> {
    let schedule = TaskSchedule::decode(&kept.value).map_err(|_| DumpError::Format)?;
    let is_sound = schedules::is_sound(&kept.name, &schedule) && schedule.next_ms == kept.until_ms;
    is_sound.then_some(schedule).ok_or(DumpError::Format)
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
            let mut key = context.create(name, value_type, expire_at_ms).await?;
            set_dumped_options(context, &mut key, &tasks).await?;
            put_dumped(context, &mut key, tasks).await?;
            Ok(())
        })
    }))
}

/// Sets the options of a payload, if it has some.
async fn set_dumped_options(
    context: &WriteContext<'_>,
    key: &mut OpenKey,
    tasks: &TaskQueueReader,
) -> Result<(), CommandError> {
    let dumped = options_in(tasks)?;
    if !dumped.is_empty() {
        options::change(context, key, |options| *options = dumped).await?;
    }
    Ok(())
}

/// The options of a payload.
///
/// # Errors
/// If a client could not set them.
fn options_in(tasks: &TaskQueueReader) -> Result<TaskOptions, DumpError> {
    let dumped = tasks.options();
    let mut options = TaskOptions::default();
    options.is_paused = dumped.is_paused;
    options.dead_letter.clone_from(&dumped.dead_letter);
    for (kind, value) in &dumped.numbers {
        let number = TaskNumber::from_number(*kind).ok_or(DumpError::Format)?;
        options.set_number(number, *value);
    }
    match options::are_sound(&options) {
        true => Ok(options),
        false => Err(DumpError::Format),
    }
}

/// Adds the tasks of a payload with their places and states, and what the queue remembers. Returns
/// the number of tasks.
///
/// # Errors
/// `Text` if the queue has a task with the same id or place as one of them, or would get too many
/// resources.
async fn put_dumped(
    context: &WriteContext<'_>,
    key: &mut OpenKey,
    mut items: TaskQueueReader,
) -> Result<i64, CommandError> {
    let queue = TaskQueueMut::open(context, key);
    queue.raise_added(items.added()).await?;
    let resources = items.resources().to_vec();
    let mut kept = Vec::new();
    let mut count = 0;
    loop {
        let some = items.by_ref().take(KEY_READS_AT_ONCE);
        let some = some.collect::<Result<Vec<DumpedItem>, DumpError>>()?;
        // A transaction that is too large is refused when it commits.
        let bytes_max = context.environment.capabilities.transaction_bytes_max;
        if some.is_empty() || context.transaction.size_bytes() > bytes_max {
            break;
        }
        let mut rows = Vec::with_capacity(some.len());
        let mut waits = Vec::with_capacity(some.len());
        for item in some {
            match item {
                DumpedItem::Task(task) => {
                    waits.push(match &task.state {
                        DumpedState::Waiting { awaited, .. } => awaited.clone(),
                        _ => Vec::new(),
                    });
                    rows.push(queue.stored_task(task, &resources).await?);
                }
                DumpedItem::Kept(one) => kept.push(one),
            }
        }
        let free = rows.iter().map(|(id, row)| queue.is_free(id, row));
        if try_join_all(free).await?.contains(&false) {
            return Err(CommandError::text("EXISTS Task id or place already exists"));
        }
        queue.enter_all(&rows).await?;
        for ((id, row), awaited) in rows.iter().zip(&waits) {
            queue.set_end(id, row);
            queue.set_awaited(id, row, awaited);
        }
        count += i64::try_from(rows.len()).unwrap_or(i64::MAX);
    }
    context.count_change(key, count);
    for kept in kept {
        let kind = match kept.kind {
            DumpedKeptKind::Unique => TaskEnding::Unique,
            DumpedKeptKind::Result => TaskEnding::Result,
            DumpedKeptKind::Schedule => {
                let queue = TaskQueue::open(context, key);
                let former = queue.schedule(&kept.name, Isolation::Serializable).await?;
                let schedule = schedule_in(&kept)?;
                schedules::write(context, key, &kept.name, former.as_ref(), &schedule);
                continue;
            }
        };
        let value = TaskKept {
            until_ms: kept.until_ms,
            value: kept.value,
        };
        endings::remember(context, key, kind, &kept.name, &value).await?;
    }
    Ok(count)
}

impl TaskQueueMut<'_, '_> {
    /// Raises the number of tasks ever added to at least `added`, so that later tasks come after
    /// those of a payload.
    async fn raise_added(&self, added: i64) -> Result<(), StoreError> {
        let row = self
            .context
            .layout()
            .task_counter_key(self.key.data(), TaskCounter::Added);
        let counted = self.counter(TaskCounter::Added).await?;
        if added > counted {
            self.context.transaction.atomic_add(&row, added - counted);
        }
        Ok(())
    }

    /// The id and the row of a task of a payload in this queue.
    async fn stored_task(
        &self,
        task: DumpedTask,
        resources: &[Bytes],
    ) -> Result<(Bytes, TaskRow), CommandError> {
        let names = resources.iter().enumerate();
        let needed = names.filter(|(number, _)| task.mask & (1 << number) != 0);
        let names = needed.map(|(_, name)| name.clone());
        let needs: Vec<_> = names.zip(task.amounts).collect();
        let registry = self.registry(self.context.relaxed()).await?;
        let waits = task.is_awaited || matches!(task.state, DumpedState::Waiting { .. });
        let classifying = classify(registry, &needs)?.noting(task.group.is_some(), waits);
        let classified = self.register(classifying).await?;
        let (state, at_ms, token) = stored_state(&task.state, self.context.now_ms);
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
            notes: TaskNotes {
                worker: task.worker,
                reason: task.reason,
                expires_ms: task.expires_ms,
                progress: task.progress,
                group: task.group,
                is_awaited: task.is_awaited,
                traceparent: task.traceparent,
                // A dump does not contain when a lease began.
                taken_ms: None,
            },
            payload: self
                .context
                .store_value(self.key.data(), &task.payload)
                .into(),
        };
        Ok((task.id, row))
    }

    /// Whether the queue has no task with this id and none at this place.
    async fn is_free(&self, id: &Bytes, row: &TaskRow) -> Result<bool, StoreError> {
        let place = place_row(self.context.layout(), self.key.data(), row);
        let place = self
            .context
            .transaction
            .get(&place, Isolation::Serializable);
        Ok(place.await?.is_none() && self.row(id, Isolation::Serializable).await?.is_none())
    }
}

/// `TASK.SCANDUMP key cursor [COUNT count]` → the next cursor, and a chunk. A cursor contains the last id.
pub(super) async fn scan_dump(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (cursor, count) = chunk_arguments(arguments)?;
    let after = match cursor {
        None => None,
        Some(cursor) => Some(if let Some(id) = cursor.strip_prefix(AFTER) {
            ChunkPlace::Task(id)
        } else if let Some(place) = cursor.strip_prefix(KEPT) {
            ChunkPlace::Kept(place)
        } else if let Some(name) = cursor.strip_prefix(SCHEDULES) {
            ChunkPlace::Schedule(name)
        } else {
            return Err(CommandError::text("ERR invalid cursor"));
        }),
    };
    let name = argument(arguments, 1)?;
    let chunk = match context.find(name, ValueType::TaskQueue).await? {
        Some(key) => TaskQueue::open(context, &key).chunk(after, count).await?,
        None => Chunk::default(),
    };
    Ok(chunk_reply(chunk))
}

/// `TASK.LOADCHUNK key chunk` → the number of tasks added.
pub(super) async fn load_chunk(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let tasks = sound_tasks(context, chunk_payload(arguments)?)?;
    let mut key = context.find_or_create(name, ValueType::TaskQueue).await?;
    set_dumped_options(context, &mut key, &tasks).await?;
    let count = put_dumped(context, &mut key, tasks).await?;
    context.notify(EventClasses::MODULE, "task.add", name);
    Ok(Reply::Integer(count))
}
