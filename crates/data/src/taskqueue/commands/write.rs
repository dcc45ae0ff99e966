//! TASK.ADD, TASK.TAKE, TASK.ACK, TASK.NACK, TASK.EXTEND, TASK.MEXTEND, TASK.PROGRESS.

use std::sync::Arc;

use bytes::Bytes;

use super::arguments::{
    Acknowledging, Take, delay, ids_and_token, last_token, lease, new_task, progress_of, reason,
    token,
};
use crate::command::arguments::{argument, is_word, rest};
use crate::command::waits::{WaitSpec, Wake};
use crate::error::CommandError;
use crate::taskqueue::add;
use crate::taskqueue::lease::LeaseAnswer;
use crate::taskqueue::take::Taking;
use crate::taskqueue::{TaskQueueMut, results};
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `TASK.ADD key priority payload [ID id] [NEEDS resource amount …] [DELAY ms] [MAXTRIES n] [TTL ms]
/// [UNIQUE token ms] [GROUP name] [AFTER n id [id …]] [TRACEPARENT value]` → id.
pub(super) async fn add(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let (priority, payload) = (argument(arguments, 2)?, argument(arguments, 3)?);
    let task = new_task(priority, payload, rest(arguments, 4))?;
    let added = add::add(context, name, &task).await?;
    if added.is_new {
        context.notify(EventClasses::MODULE, "task.add", name);
    }
    Ok(Reply::Bulk(added.id))
}

/// `TASK.TAKE key [COUNT n] [HAVING resource amount …] [LEASE ms [WORKER name]] [BLOCK ms]` →
/// tasks, or nothing.
///
/// Like other blocking commands, returns null if no task fits. With BLOCK, the client then waits,
/// except in MULTI.
pub(in crate::taskqueue) async fn take(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let options = Take::parse(arguments)?;
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::TaskQueue).await? else {
        return Ok(Reply::NullArray);
    };
    let count = options.count.unwrap_or(1);
    if count == 0 {
        return Ok(Reply::Array(Vec::new()));
    }
    let taking = Taking {
        count,
        having: options.having,
        lease_ms: options.lease_ms,
        worker: options.worker,
    };
    let taken = TaskQueueMut::open(context, &key).take(&taking).await?;
    if !taken.tasks.is_empty() {
        context.notify(EventClasses::MODULE, "task.take", name);
    }
    if taken.has_removed {
        context.remove_if_empty(&key).await?;
    }
    if taken.tasks.is_empty() {
        return Ok(Reply::NullArray);
    }
    let tasks = taken.tasks.into_iter();
    let tasks = tasks.map(|task| super::task(task, taken.token));
    Ok(Reply::Array(tasks.collect()))
}

/// TASK.TAKE waits until its queue has a task that fits.
pub(super) fn wait_for_task(
    arguments: &[Bytes],
    _now_ms: i64,
) -> Result<Option<WaitSpec>, CommandError> {
    let options = Take::parse(arguments)?;
    let Some(timeout) = options.block else {
        return Ok(None);
    };
    Ok(Some(WaitSpec {
        keys: vec![argument(arguments, 1)?.clone()],
        value_type: ValueType::TaskQueue,
        timeout,
        wants: Some(Arc::new(options.having)),
        wake: Wake::One,
        takes_first: false,
        needs_key: false,
    }))
}

/// `TASK.ACK key id [id …] [TOKEN token]` or `TASK.ACK key id RESULT value KEEP ms [TOKEN token]` → a code for each id.
pub(in crate::taskqueue) async fn ack(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Acknowledging { ids, result, token } = Acknowledging::parse(rest(arguments, 2))?;
    let Some(mut key) = context.find(name, ValueType::TaskQueue).await? else {
        let missing = Reply::Integer(LeaseAnswer::Missing.code());
        return Ok(Reply::Array(vec![missing; ids.len()]));
    };
    let queue = TaskQueueMut::open(context, &key);
    let mut answers = Vec::with_capacity(ids.len());
    for some in ids.chunks(KEY_READS_AT_ONCE) {
        queue.read_ahead(some).await?;
        for id in some {
            answers.push(queue.ack(id, token).await?);
        }
    }
    if answers.contains(&LeaseAnswer::Done) {
        context.notify(EventClasses::MODULE, "task.ack", name);
        if let ([id], Some(result)) = (ids, result) {
            results::keep(context, &mut key, id, result).await?;
        }
        context.remove_if_empty(&key).await?;
    }
    let codes = answers
        .iter()
        .map(|answer| Reply::Integer(answer.code()))
        .collect();
    Ok(Reply::Array(codes))
}

/// `TASK.NACK key id [DELAY ms] [REASON text] [TOKEN token]` → a code.
pub(super) async fn nack(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let mut delay_ms = None;
    let mut why = None;
    let mut named = None;
    let mut words = rest(arguments, 3);
    while let Some((word, after)) = words.split_first() {
        let Some((value, after)) = after.split_first() else {
            return Err(CommandError::Syntax);
        };
        if is_word(word, "delay") {
            delay_ms = Some(delay(value)?);
        } else if is_word(word, "reason") {
            why = Some(reason(value));
        } else if is_word(word, "token") {
            named = Some(token(value)?);
        } else {
            return Err(CommandError::Syntax);
        }
        words = after;
    }
    let id = argument(arguments, 2)?;
    let answer = match context.find(name, ValueType::TaskQueue).await? {
        Some(key) => {
            TaskQueueMut::open(context, &key)
                .nack(id, delay_ms, why, named)
                .await?
        }
        None => LeaseAnswer::Missing,
    };
    if answer.code() > 0 {
        context.notify(EventClasses::MODULE, "task.nack", name);
    }
    Ok(Reply::Integer(answer.code()))
}

/// `TASK.PROGRESS key id value [TOKEN token]` → a code.
pub(super) async fn progress(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let progress = progress_of(argument(arguments, 3)?)?;
    let named = last_token(rest(arguments, 4))?;
    let id = argument(arguments, 2)?;
    let answer = match context.find(name, ValueType::TaskQueue).await? {
        Some(key) => {
            let queue = TaskQueueMut::open(context, &key);
            queue.note_progress(id, progress, named).await?
        }
        None => LeaseAnswer::Missing,
    };
    if answer.code() > 0 {
        context.notify(EventClasses::MODULE, "task.progress", name);
    }
    Ok(Reply::Integer(answer.code()))
}

/// `TASK.MEXTEND key ms id [id …] [TOKEN token]` → a code for each id.
pub(in crate::taskqueue) async fn extend_many(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let lease_ms = lease(argument(arguments, 2)?)?;
    let (ids, token) = ids_and_token(rest(arguments, 3))?;
    let mut answers = vec![LeaseAnswer::Missing; ids.len()];
    if let Some(key) = context.find(name, ValueType::TaskQueue).await? {
        let queue = TaskQueueMut::open(context, &key);
        answers.clear();
        for some in ids.chunks(KEY_READS_AT_ONCE) {
            queue.read_ahead(some).await?;
            for id in some {
                answers.push(queue.extend(id, lease_ms, token).await?);
            }
        }
    }
    if answers.contains(&LeaseAnswer::Done) {
        context.notify(EventClasses::MODULE, "task.extend", name);
    }
    let codes = answers.iter().map(|answer| Reply::Integer(answer.code()));
    Ok(Reply::Array(codes.collect()))
}

/// `TASK.EXTEND key id ms [TOKEN token]` → a code.
pub(super) async fn extend(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let lease_ms = lease(argument(arguments, 3)?)?;
    let named = last_token(rest(arguments, 4))?;
    let id = argument(arguments, 2)?;
    let answer = match context.find(name, ValueType::TaskQueue).await? {
        Some(key) => {
            TaskQueueMut::open(context, &key)
                .extend(id, lease_ms, named)
                .await?
        }
        None => LeaseAnswer::Missing,
    };
    if answer.code() > 0 {
        context.notify(EventClasses::MODULE, "task.extend", name);
    }
    Ok(Reply::Integer(answer.code()))
}
