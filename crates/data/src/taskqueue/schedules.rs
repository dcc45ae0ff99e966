//! Schedules: TASK.SCHEDULE, TASK.UNSCHEDULE, TASK.SCHEDULES, and what background work does when a
//! moment has come.
//!
//! A schedule has a row by its next moment among the [ends](super::endings). The transaction that
//! adds the task of a moment also writes the next moment, so each moment has one task, whichever
//! server adds it (docs/understand/decisions/048-task-schedules.md).

use bytes::Bytes;

use super::add::{self, NewTask};
use super::moments::{self, Due};
use super::{TaskQueue, is_full_or_old};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::limits::{
    DELIVERED_BYTES_MAX, TASK_CRON_BYTES_MAX, TASK_EVERY_MS_MIN, TASK_GROUP_BYTES_MAX,
    TASK_RESOURCES_MAX, TASK_SCHEDULE_ERROR_BYTES_MAX, TASK_SCHEDULE_NAME_BYTES_MAX,
    TASK_SCHEDULE_PAYLOAD_BYTES_MAX, TASK_TIME_MS_MAX, TASK_UNIQUE_BYTES_MAX,
    is_task_resource_name,
};
use quoin_layout::{
    KeyRange, TaskEnding, TaskMissed, TaskSchedule, TaskSpec, TaskTiming, TaskUnique, successor,
};
use quoin_store::{Isolation, StoreError};

/// The latest moment in a payload: 2^53 milliseconds, far later than any that a command sets.
const AT_MS_MAX: i64 = 1 << 53;

/// What a client sets.
#[derive(Debug)]
pub(super) struct NewSchedule {
    pub(super) timing: TaskTiming,
    /// Its first moment from now.
    pub(super) first_ms: i64,
    pub(super) missed: TaskMissed,
    pub(super) task: TaskSpec,
}

/// Schedules by name, and the name after which there are more.
pub(super) type Listed = (Vec<(Bytes, TaskSchedule)>, Option<Bytes>);

impl TaskQueue<'_, '_> {
    /// Whether the queue has schedules.
    pub(super) async fn has_schedules(&self) -> Result<bool, StoreError> {
        let range = self.context.layout().task_schedules(self.key.data());
        let isolation = Isolation::Serializable;
        let row = self.context.outermost(&range, false, isolation).await?;
        Ok(row.is_some())
    }

    /// A schedule.
    pub(super) async fn schedule(
        &self,
        name: &[u8],
        isolation: Isolation,
    ) -> Result<Option<TaskSchedule>, StoreError> {
        let row = self
            .context
            .layout()
            .task_schedule_key(self.key.data(), name);
        let value = self.context.transaction.get(&row, isolation).await?;
        Ok(value.as_ref().map(TaskSchedule::decode).transpose()?)
    }

    /// The rows of schedules after a name.
    pub(super) fn schedules_after(&self, after: Option<&[u8]>) -> KeyRange {
        let (layout, data) = (self.context.layout(), self.key.data());
        let all = layout.task_schedules(data);
        match after {
            Some(name) => KeyRange {
                begin: successor(&layout.task_schedule_key(data, name)),
                ..all
            },
            None => all,
        }
    }

    /// Up to `count` schedules after a name, with up to [`DELIVERED_BYTES_MAX`] bytes.
    pub(super) async fn schedules(
        &self,
        after: Option<&[u8]>,
        count: usize,
    ) -> Result<Listed, StoreError> {
        let range = self.schedules_after(after);
        let mut pages = Pages::new(self.context, range, false, count);
        let mut found = Vec::new();
        let mut bytes = 0_usize;
        while let Some(rows) = pages.next().await? {
            for row in rows {
                if found.len() >= count || bytes >= DELIVERED_BYTES_MAX {
                    let last = found.last().map(|(name, _): &(Bytes, _)| name.clone());
                    return Ok((found, last));
                }
                let name =
                    { self.context.layout() }.read_task_schedule_key(self.key.data(), &row.key)?;
                bytes = bytes.saturating_add(row.value.len());
                found.push((name.into(), TaskSchedule::decode(&row.value)?));
            }
        }
        Ok((found, None))
    }
}

/// Writes a schedule in place of any schedule with this name, and the row by its next moment. From
/// then on the key exists without tasks.
pub(super) fn write(
    context: &WriteContext<'_>,
    key: &mut OpenKey,
    name: &[u8],
    former: Option<&TaskSchedule>,
    schedule: &TaskSchedule,
) {
    clear_moment(context, key, name, former);
    let (layout, data) = (context.layout(), key.data());
    let row = layout.task_schedule_key(data, name);
    context.transaction.set(&row, &schedule.encode());
    if schedule.next_ms != 0 {
        let moment = layout.task_end_key(data, schedule.next_ms, TaskEnding::Schedule, name);
        context.transaction.set(&moment, b"");
        context.set_timer(key, schedule.next_ms);
    }
    if !key.meta.is_kept {
        context.set_kept(key, true);
    }
}

fn clear_moment(
    context: &WriteContext<'_>,
    key: &OpenKey,
    name: &[u8],
    former: Option<&TaskSchedule>,
) {
    if let Some(former) = former.filter(|former| former.next_ms != 0) {
        let kind = TaskEnding::Schedule;
        let moment = { context.layout() }.task_end_key(key.data(), former.next_ms, kind, name);
        context.transaction.clear(&moment);
    }
}

/// Sets a schedule. Replaces a schedule with the same name: it stays paused if it was, and keeps
/// its next moment if the timing does not change. Returns the next moment, or 0 if it is paused.
pub(super) async fn set(
    context: &WriteContext<'_>,
    key: &mut OpenKey,
    name: &[u8],
    new: NewSchedule,
) -> Result<i64, StoreError> {
    let queue = TaskQueue::open(context, key);
    let former = queue.schedule(name, Isolation::Serializable).await?;
    let NewSchedule {
        mut timing,
        first_ms: mut next_ms,
        missed,
        task,
    } = new;
    let same = former
        .as_ref()
        .filter(|former| is_same(&former.timing, &timing));
    if let Some(same) = same {
        timing.clone_from(&same.timing);
        next_ms = same.next_ms;
    }
    if former.as_ref().is_some_and(|former| former.next_ms == 0) {
        next_ms = 0;
    }
    let schedule = TaskSchedule {
        next_ms,
        last_ms: former.as_ref().map_or(0, |former| former.last_ms),
        error: Bytes::new(),
        timing,
        missed,
        task,
    };
    write(context, key, name, former.as_ref(), &schedule);
    context.mark_changed(key);
    Ok(next_ms)
}

/// Whether two timings are the same, from whatever moment on.
fn is_same(one: &TaskTiming, other: &TaskTiming) -> bool {
    match (one, other) {
        (
            TaskTiming::Every { every_ms, .. },
            TaskTiming::Every {
                every_ms: other_ms, ..
            },
        ) => every_ms == other_ms,
        (one, other) => one == other,
    }
}

/// Pauses a schedule, or resumes it with the first moment from now. Returns false if nothing
/// changes. `None` if there is no such schedule.
///
/// # Errors
/// `Text` if it has no moment any more.
pub(super) async fn set_paused(
    context: &WriteContext<'_>,
    key: &mut OpenKey,
    name: &[u8],
    is_paused: bool,
) -> Result<Option<bool>, CommandError> {
    let queue = TaskQueue::open(context, key);
    let Some(former) = queue.schedule(name, Isolation::Serializable).await? else {
        return Ok(None);
    };
    if is_paused == (former.next_ms == 0) {
        return Ok(Some(false));
    }
    let next_ms = match is_paused {
        true => 0,
        false => moments::first_after(&former.timing, context.now_ms)?,
    };
    let schedule = TaskSchedule {
        next_ms,
        ..former.clone()
    };
    write(context, key, name, Some(&former), &schedule);
    context.mark_changed(key);
    Ok(Some(true))
}

/// Removes a schedule. Returns false if no schedule has this name. The caller calls
/// [`remove_if_forgotten`](super::endings::remove_if_forgotten) afterwards.
pub(super) async fn remove(
    context: &WriteContext<'_>,
    key: &OpenKey,
    name: &[u8],
) -> Result<bool, StoreError> {
    let queue = TaskQueue::open(context, key);
    let Some(former) = queue.schedule(name, Isolation::Serializable).await? else {
        return Ok(false);
    };
    clear_moment(context, key, name, Some(&former));
    let row = context.layout().task_schedule_key(key.data(), name);
    context.transaction.clear(&row);
    context.mark_changed(key);
    Ok(true)
}

/// Adds the tasks for the moments of a schedule that have come, as many as the batch has room for.
/// Returns whether some are left.
pub(super) async fn run(
    context: &WriteContext<'_>,
    key: &mut OpenKey,
    name: &Bytes,
    former: &TaskSchedule,
) -> Result<bool, StoreError> {
    let due = moments::due(
        &former.timing,
        former.missed,
        former.next_ms,
        context.now_ms,
    );
    let mut schedule = former.clone();
    let Due { moments, next_ms } = match due {
        Ok(due) => due,
        Err(error) => {
            // Another version of Quoin, with other time zones, has set it.
            schedule.next_ms = 0;
            schedule.error = error_of(&error.to_string());
            write(context, key, name, Some(former), &schedule);
            return Ok(false);
        }
    };
    schedule.next_ms = next_ms;
    let mut is_left = false;
    for (number, at_ms) in moments.into_iter().enumerate() {
        if number > 0 && is_full_or_old(context) {
            schedule.next_ms = at_ms;
            is_left = true;
            break;
        }
        let task = new_task(name, at_ms, &schedule.task);
        schedule.error = match add::add_to(context, key, &task).await {
            Ok(added) => {
                if added.is_new {
                    schedule.last_ms = at_ms;
                    context.notify_of(EventClasses::MODULE, "task.add", key);
                }
                Bytes::new()
            }
            Err(CommandError::Store(error)) => return Err(error),
            // The queue is full, knows too many resources, or has a task of this id.
            Err(refusal) => error_of(&refusal.to_line()),
        };
    }
    write(context, key, name, Some(former), &schedule);
    Ok(is_left)
}

fn error_of(text: &str) -> Bytes {
    let (text, _) = text
        .as_bytes()
        .split_at(text.len().min(TASK_SCHEDULE_ERROR_BYTES_MAX));
    Bytes::copy_from_slice(text)
}

/// The task of a moment. Its id names the schedule and the moment.
fn new_task(name: &[u8], at_ms: i64, task: &TaskSpec) -> NewTask {
    let id = [name, format!("@{at_ms}").as_bytes()].concat();
    NewTask {
        id: Some(id.into()),
        after: Vec::new(),
        traceparent: None,
        spec: task.clone(),
    }
}

/// Whether a client can have set this schedule. A paused one may have a time zone that this version
/// does not know.
pub(super) fn is_sound(name: &[u8], schedule: &TaskSchedule) -> bool {
    let TaskSpec {
        priority,
        needs,
        delay_ms,
        tries_max,
        ttl_ms,
        unique,
        group,
        payload,
    } = &schedule.task;
    let is_timing = match &schedule.timing {
        TaskTiming::Every { every_ms, from_ms } => {
            (TASK_EVERY_MS_MIN..=TASK_TIME_MS_MAX).contains(every_ms)
                && (0..=AT_MS_MAX).contains(from_ms)
        }
        TaskTiming::Cron { expression, .. } => {
            expression.len() <= TASK_CRON_BYTES_MAX
                && (schedule.next_ms == 0
                    || moments::first_after(&schedule.timing, schedule.next_ms).is_ok())
        }
    };
    let is_need = |(number, (name, amount)): (usize, &(Bytes, f64))| {
        is_task_resource_name(name)
            && (0.0..f64::INFINITY).contains(amount)
            && !needs.iter().take(number).any(|(known, _)| known == name)
    };
    let is_time = |time_ms: &i64| (0..=TASK_TIME_MS_MAX).contains(time_ms);
    is_timing
        && (1..=TASK_SCHEDULE_NAME_BYTES_MAX).contains(&name.len())
        && (0..=AT_MS_MAX).contains(&schedule.next_ms)
        && (0..=AT_MS_MAX).contains(&schedule.last_ms)
        && schedule.error.len() <= TASK_SCHEDULE_ERROR_BYTES_MAX
        && !priority.is_nan()
        && needs.len() <= TASK_RESOURCES_MAX
        && needs.iter().enumerate().all(is_need)
        && is_time(delay_ms)
        && tries_max.is_none_or(|tries| tries >= 0)
        && ttl_ms.as_ref().is_none_or(is_time)
        && unique
            .as_ref()
            .is_none_or(|TaskUnique { token, window_ms }| {
                (1..=TASK_UNIQUE_BYTES_MAX).contains(&token.len())
                    && *window_ms > 0
                    && is_time(window_ms)
            })
        && { group.as_ref() }.is_none_or(|name| (1..=TASK_GROUP_BYTES_MAX).contains(&name.len()))
        && payload.len() <= TASK_SCHEDULE_PAYLOAD_BYTES_MAX
}
