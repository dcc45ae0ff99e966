//! TASK.ADD, TASK.TAKE, TASK.ACK, TASK.NACK, TASK.EXTEND.

use std::sync::Arc;

use bytes::Bytes;

use super::arguments::{Clause, Take, amounts, delay, ids_and_token, lease, new_id, reason, token};
use crate::command::arguments::{argument, double_or, integer_at_least, is_word, rest};
use crate::command::waits::{WaitSpec, Wake};
use crate::error::CommandError;
use crate::taskqueue::TaskQueueMut;
use crate::taskqueue::add::{self, NewTask};
use crate::taskqueue::lease::LeaseAnswer;
use crate::taskqueue::resources::Amounts;
use crate::taskqueue::take::Taking;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

const ADD_KEYWORDS: &[&str] = &["id", "needs", "delay", "maxtries"];

/// `TASK.ADD key priority payload [ID id] [NEEDS resource amount …] [DELAY ms] [MAXTRIES n]` → id.
pub(super) async fn add(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let mut task = NewTask {
        id: None,
        priority: double_or(argument(arguments, 2)?, "ERR priority is not a valid float")?,
        needs: Amounts::default(),
        delay_ms: 0,
        tries_max: 0,
        payload: argument(arguments, 3)?.clone(),
    };
    let mut words = rest(arguments, 4);
    while let Some((word, after)) = words.split_first() {
        if is_word(word, "needs") && task.needs.0.is_empty() {
            (task.needs, words) = amounts(after, ADD_KEYWORDS, Clause::Needs)?;
            continue;
        }
        let Some((value, after)) = after.split_first() else {
            return Err(CommandError::Syntax);
        };
        if is_word(word, "id") {
            task.id = Some(new_id(value)?);
        } else if is_word(word, "delay") {
            task.delay_ms = delay(value)?;
        } else if is_word(word, "maxtries") {
            let message = "ERR MAXTRIES must be positive";
            task.tries_max = integer_at_least(value, 1, message)?;
        } else {
            return Err(CommandError::Syntax);
        }
        words = after;
    }
    let id = add::add(context, name, &task).await?;
    context.notify(EventClasses::MODULE, "task.add", name);
    Ok(Reply::Bulk(id))
}

/// `TASK.TAKE key [COUNT n] [HAVING resource amount …] [LEASE ms [WORKER name]] [BLOCK ms]` → tasks, or nothing.
///
/// Returns null if no task fits, like other blocking commands. If there is BLOCK, the client then waits, except in
/// MULTI.
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
    let (tasks, lease_token) = TaskQueueMut::open(context, &key).take(&taking).await?;
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

/// What TASK.TAKE waits for: a task in its queue that fits.
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

/// `TASK.ACK key id [id …] [TOKEN token]` → a code for each id.
pub(in crate::taskqueue) async fn ack(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let (ids, token) = ids_and_token(rest(arguments, 2))?;
    let Some(key) = context.find(name, ValueType::TaskQueue).await? else {
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
    let mut delay_ms = 0;
    let mut why = None;
    let mut named = None;
    let mut words = rest(arguments, 3);
    while let Some((word, after)) = words.split_first() {
        let Some((value, after)) = after.split_first() else {
            return Err(CommandError::Syntax);
        };
        if is_word(word, "delay") {
            delay_ms = delay(value)?;
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

/// `TASK.EXTEND key id ms [TOKEN token]` → a code.
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
