//! TASK.CANCEL, TASK.REVIVE, TASK.PURGE, TASK.MOVE, TASK.PAUSE, TASK.RESUME: how operators change
//! tasks and queues.

use bytes::Bytes;

use super::arguments::{ids, state};
use crate::command::arguments::{ListOptions, argument, is_word, list_reply, rest};
use crate::error::CommandError;
use crate::taskqueue::{TaskQueueMut, options, schedules};
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::{TaskOptions, ValueType};
use quoin_resp::reply::Reply;

/// `TASK.CANCEL key id [id …]` → the number of tasks removed.
pub(in crate::taskqueue) async fn cancel(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    change_each(context, arguments, Change::Cancel).await
}

/// `TASK.REVIVE key ALL|id [id …]` → the number of tasks that were dead.
///
/// ALL revives as many as fit well into one transaction. The client repeats it until the reply is 0.
pub(in crate::taskqueue) async fn revive(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    if let [word] = rest(arguments, 2)
        && is_word(word, "all")
    {
        let name = argument(arguments, 1)?;
        let revived = match context.find(name, ValueType::TaskQueue).await? {
            Some(key) => TaskQueueMut::open(context, &key).revive_some().await?,
            None => 0,
        };
        if revived > 0 {
            context.notify(EventClasses::MODULE, "task.revive", name);
        }
        return Ok(Reply::Integer(revived));
    }
    change_each(context, arguments, Change::Revive).await
}

/// What a command does to each of its tasks.
#[derive(Clone, Copy)]
enum Change {
    Cancel,
    Revive,
}

/// Changes each task of `key id [id …]`. Returns how many could be changed.
async fn change_each(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    change: Change,
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let ids = ids(rest(arguments, 2))?;
    let Some(key) = context.find(name, ValueType::TaskQueue).await? else {
        return Ok(Reply::Integer(0));
    };
    let queue = TaskQueueMut::open(context, &key);
    let mut count = 0;
    for some in ids.chunks(KEY_READS_AT_ONCE) {
        queue.read_ahead(some).await?;
        for id in some {
            count += i64::from(match change {
                Change::Cancel => queue.cancel(id).await?,
                Change::Revive => queue.revive(id).await?,
            });
        }
    }
    if count > 0 {
        let event = match change {
            Change::Cancel => "task.cancel",
            Change::Revive => "task.revive",
        };
        context.notify(EventClasses::MODULE, event, name);
        if matches!(change, Change::Cancel) {
            context.remove_if_empty(&key).await?;
        }
    }
    Ok(Reply::Integer(count))
}

/// `TASK.PURGE key READY|LEASED|DELAYED|DEAD|WAITING [CURSOR cursor]` → the next cursor, and the
/// number of tasks removed.
///
/// Removes as many tasks as fit well into one transaction. The client continues until the cursor is 0.
pub(super) async fn purge(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let state = state(argument(arguments, 2)?)?;
    let after = match rest(arguments, 3) {
        options @ ([] | [_, _]) => ListOptions::parse_cursor(options)?,
        _ => return Err(CommandError::Syntax),
    };
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::TaskQueue).await? else {
        return Ok(list_reply(None, Reply::Integer(0)));
    };
    let queue = TaskQueueMut::open(context, &key);
    let (removed, next) = queue.purge(state, after).await?;
    if removed > 0 {
        context.notify(EventClasses::MODULE, "task.purge", name);
        context.remove_if_empty(&key).await?;
    }
    Ok(list_reply(next.as_deref(), Reply::Integer(removed)))
}

/// `TASK.MOVE source destination id [id …]` → the number of tasks moved.
pub(super) async fn move_tasks(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (source, destination) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let ids = ids(rest(arguments, 3))?;
    if source == destination {
        return Err(CommandError::text(
            "ERR source and destination objects are the same",
        ));
    }
    let value_type = ValueType::TaskQueue;
    let Some(from) = context.find(source, value_type).await? else {
        return Ok(Reply::Integer(0));
    };
    let queue = TaskQueueMut::open(context, &from);
    let mut to = None;
    let mut count = 0;
    for some in ids.chunks(KEY_READS_AT_ONCE) {
        queue.read_ahead(some).await?;
        for id in some {
            let Some(task) = queue.take_out(id).await? else {
                continue;
            };
            let to = match &mut to {
                Some(to) => to,
                // Only if there is a task, so that no empty queue is created.
                None => to.insert(context.find_or_create(destination, value_type).await?),
            };
            TaskQueueMut::open(context, to).put_in(id, task).await?;
            count += 1;
        }
    }
    if count > 0 {
        context.notify(EventClasses::MODULE, "task.move", source);
        context.notify(EventClasses::MODULE, "task.add", destination);
        context.remove_if_empty(&from).await?;
    }
    Ok(Reply::Integer(count))
}

/// `TASK.PAUSE key [SCHEDULE name]` → 1, or 0 if the queue, or the schedule, was paused already.
pub(super) async fn pause(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    if let Some(schedule) = named_schedule(arguments)? {
        return set_schedule_paused(context, name, schedule, true).await;
    }
    let mut key = context.find_or_create(name, ValueType::TaskQueue).await?;
    let change = |options: &mut TaskOptions| options.is_paused = true;
    let former = options::change(context, &mut key, change).await?;
    if !former.is_paused {
        context.notify(EventClasses::MODULE, "task.pause", name);
    }
    Ok(Reply::Integer(i64::from(!former.is_paused)))
}

/// `TASK.RESUME key [SCHEDULE name]` → 1, or 0 if the queue, or the schedule, was not paused.
pub(super) async fn resume(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    if let Some(schedule) = named_schedule(arguments)? {
        return set_schedule_paused(context, name, schedule, false).await;
    }
    let Some(mut key) = context.find(name, ValueType::TaskQueue).await? else {
        return Ok(Reply::Integer(0));
    };
    let change = |options: &mut TaskOptions| options.is_paused = false;
    let former = options::change(context, &mut key, change).await?;
    if former.is_paused {
        context.notify(EventClasses::MODULE, "task.resume", name);
        context.remove_if_empty(&key).await?;
    }
    Ok(Reply::Integer(i64::from(former.is_paused)))
}

/// The schedule of `key [SCHEDULE name]`.
fn named_schedule(arguments: &[Bytes]) -> Result<Option<&Bytes>, CommandError> {
    match rest(arguments, 2) {
        [] => Ok(None),
        [word, name] if is_word(word, "schedule") => Ok(Some(name)),
        _ => Err(CommandError::Syntax),
    }
}

async fn set_schedule_paused(
    context: &WriteContext<'_>,
    name: &Bytes,
    schedule: &Bytes,
    is_paused: bool,
) -> Result<Reply, CommandError> {
    const NO_SCHEDULE: CommandError = CommandError::text("ERR no such schedule");
    let found = context.find(name, ValueType::TaskQueue).await?;
    let mut key = found.ok_or(NO_SCHEDULE)?;
    let changed = schedules::set_paused(context, &mut key, schedule, is_paused).await?;
    let is_new = changed.ok_or(NO_SCHEDULE)?;
    if is_new {
        let event = if is_paused {
            "task.pause"
        } else {
            "task.resume"
        };
        context.notify(EventClasses::MODULE, event, name);
    }
    Ok(Reply::Integer(i64::from(is_new)))
}
