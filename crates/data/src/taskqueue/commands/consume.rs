//! TASK.TAKE, TASK.ACK, TASK.NACK, TASK.EXTEND.

use std::sync::Arc;

use bytes::Bytes;

use super::arguments::{Take, delay, ids_and_token, lease, token};
use crate::command::arguments::{argument, is_word, rest};
use crate::command::waits::{WaitSpec, Wake};
use crate::error::CommandError;
use crate::taskqueue::{LeaseAnswer, Taking};
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `TASK.TAKE key [COUNT n] [HAVING resource amount …] [LEASE ms] [BLOCK ms]` → tasks, or nothing.
///
/// Like the other commands that block it answers null where there is nothing. Outside of MULTI its
/// client then waits, if BLOCK is given.
pub async fn take(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
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
    };
    let (tasks, lease_token) = context.task_take(&key, &taking).await?;
    if tasks.is_empty() {
        return Ok(Reply::NullArray);
    }
    context.notify(EventClasses::MODULE, "task.take", name);
    if taking.lease_ms.is_none() {
        context.remove_if_empty(&key).await?;
    }
    let token = taking.lease_ms.map(|_| lease_token);
    let tasks = tasks.into_iter().map(|task| super::task(task, token));
    Ok(Reply::Array(tasks.collect()))
}

/// What TASK.TAKE waits for: a task in its queue that fits what the consumer has.
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

/// `TASK.ACK key id [id …] [TOKEN token]` → for each id what became of it.
pub async fn ack(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let (ids, token) = ids_and_token(rest(arguments, 2))?;
    let Some(key) = context.find(name, ValueType::TaskQueue).await? else {
        let missing = Reply::Integer(LeaseAnswer::Missing.code());
        return Ok(Reply::Array(vec![missing; ids.len()]));
    };
    let mut answers = Vec::with_capacity(ids.len());
    for some in ids.chunks(KEY_READS_AT_ONCE) {
        context.task_read_ahead(&key, some).await?;
        for id in some {
            answers.push(context.task_ack(&key, id, token).await?);
        }
    }
    if answers.contains(&LeaseAnswer::Done) {
        context.notify(EventClasses::MODULE, "task.ack", name);
        context.remove_if_empty(&key).await?;
    }
    let codes = answers
        .iter()
        .map(|answer| Reply::Integer(answer.code()))
        .collect();
    Ok(Reply::Array(codes))
}

/// `TASK.NACK key id [DELAY ms] [TOKEN token]` → what became of it.
pub(super) async fn nack(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let mut delay_ms = 0;
    let mut named = None;
    let mut words = rest(arguments, 3);
    while let Some((word, after)) = words.split_first() {
        let Some((value, after)) = after.split_first() else {
            return Err(CommandError::Syntax);
        };
        if is_word(word, "delay") {
            delay_ms = delay(value)?;
        } else if is_word(word, "token") {
            named = Some(token(value)?);
        } else {
            return Err(CommandError::Syntax);
        }
        words = after;
    }
    let id = argument(arguments, 2)?;
    let answer = match context.find(name, ValueType::TaskQueue).await? {
        Some(key) => context.task_nack(&key, id, delay_ms, named).await?,
        None => LeaseAnswer::Missing,
    };
    if answer.code() > 0 {
        context.notify(EventClasses::MODULE, "task.nack", name);
    }
    Ok(Reply::Integer(answer.code()))
}

/// `TASK.EXTEND key id ms [TOKEN token]` → what became of it.
pub(super) async fn extend(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let lease_ms = lease(argument(arguments, 3)?)?;
    let named = match rest(arguments, 4) {
        [] => None,
        [word, value] if is_word(word, "token") => Some(token(value)?),
        _ => return Err(CommandError::Syntax),
    };
    let id = argument(arguments, 2)?;
    let answer = match context.find(name, ValueType::TaskQueue).await? {
        Some(key) => context.task_extend(&key, id, lease_ms, named).await?,
        None => LeaseAnswer::Missing,
    };
    if answer.code() > 0 {
        context.notify(EventClasses::MODULE, "task.extend", name);
    }
    Ok(Reply::Integer(answer.code()))
}
