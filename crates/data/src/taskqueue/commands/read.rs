//! TASK.GET, TASK.RESULT, TASK.LIST, TASK.PEEK, TASK.LEN, TASK.DEAD, TASK.INFO.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;

use super::arguments::{Clause, amounts, how_many, state, timeout};
use super::existing;
use crate::command::arguments::{ListOptions, argument, is_word, list_reply, rest};
use crate::command::waits::{WaitSpec, Wake};
use crate::error::CommandError;
use crate::taskqueue::TaskQueue;
use crate::taskqueue::resources::{Amounts, named};
use crate::taskqueue::results::ResultOf;
use crate::unit::context::ReadContext;
use quoin_base::limits::{DELIVERED_BYTES_MAX, KEY_READS_AT_ONCE, TASK_AFTER_SHOWN};
use quoin_layout::{TaskState, ValueType};
use quoin_resp::reply::Reply;

/// Tasks in the reply of TASK.DEAD without COUNT.
const DEAD_COUNT_DEFAULT: usize = 10;

pub(super) fn text(text: &'static str) -> Reply {
    Reply::bulk(Bytes::from_static(text.as_bytes()))
}

/// `TASK.GET key id` → everything about a task, or nothing.
pub(super) async fn get(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::TaskQueue).await? else {
        return Ok(Reply::Null);
    };
    let Some(task) = TaskQueue::open(context, &key)
        .get(argument(arguments, 2)?)
        .await?
    else {
        return Ok(Reply::Null);
    };
    let left_ms = match task.state {
        TaskState::Leased | TaskState::Delayed => task.at_ms - context.now_ms,
        TaskState::Ready | TaskState::Dead | TaskState::Waiting => -1,
    };
    let mut fields = vec![
        (text("id"), Reply::Bulk(task.id)),
        (text("state"), text(task.state.name())),
        (text("priority"), Reply::Double(task.priority)),
        (text("tries"), Reply::Integer(task.tries)),
        (text("maxtries"), Reply::Integer(task.tries_max)),
        (text("left-ms"), Reply::Integer(left_ms)),
        (text("needs"), super::amounts(&task.needs)),
        (text("payload"), Reply::Bulk(task.payload)),
        (text("at-ms"), at_ms(task.at_ms)),
        (text("worker"), note(task.notes.worker)),
        (text("reason"), note(task.notes.reason)),
        (text("progress"), note(task.notes.progress)),
        (
            text("expires-ms"),
            at_ms(task.notes.expires_ms.unwrap_or(0)),
        ),
        (text("group"), note(task.notes.group)),
        (text("after"), ids(task.awaited)),
    ];
    fields.extend(traceparent(task.notes.traceparent));
    Ok(Reply::Map(fields))
}

/// A field that only tasks with a traceparent have.
fn traceparent(traceparent: Option<Bytes>) -> Option<(Reply, Reply)> {
    traceparent.map(|traceparent| (text("traceparent"), Reply::Bulk(traceparent)))
}

fn ids(ids: Vec<Bytes>) -> Reply {
    Reply::Array(ids.into_iter().map(Reply::Bulk).collect())
}

/// The time that belongs to the state of a task. −1 if unknown.
pub(super) fn at_ms(at_ms: i64) -> Reply {
    Reply::Integer(if at_ms == 0 { -1 } else { at_ms })
}

pub(super) fn note(note: Option<Bytes>) -> Reply {
    note.map_or(Reply::Null, Reply::Bulk)
}

/// `TASK.RESULT key id [BLOCK ms]` → the result of an acknowledged task, or nothing.
pub(super) async fn result(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    wait_for_result(arguments, context.now_ms)?;
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::TaskQueue).await? else {
        return Ok(Reply::Null);
    };
    let queue = TaskQueue::open(context, &key);
    let result = queue.result(argument(arguments, 2)?).await?;
    Ok(result.map_or(Reply::Null, Reply::Bulk))
}

/// TASK.RESULT waits until its task is acknowledged with a result.
pub(super) fn wait_for_result(
    arguments: &[Bytes],
    _now_ms: i64,
) -> Result<Option<WaitSpec>, CommandError> {
    let timeout = match rest(arguments, 3) {
        [] => return Ok(None),
        [word, value] if is_word(word, "block") => timeout(value)?,
        _ => return Err(CommandError::Syntax),
    };
    Ok(Some(WaitSpec {
        keys: vec![argument(arguments, 1)?.clone()],
        value_type: ValueType::TaskQueue,
        timeout,
        wants: Some(Arc::new(ResultOf(argument(arguments, 2)?.clone()))),
        wake: Wake::All,
        takes_first: false,
        needs_key: false,
    }))
}

/// `TASK.LIST key READY|LEASED|DELAYED|DEAD|WAITING [CURSOR cursor] [COUNT n]` → the next cursor, and tasks without payloads.
pub(super) async fn list(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let state = state(argument(arguments, 2)?)?;
    let options = ListOptions::parse(rest(arguments, 3))?;
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::TaskQueue).await? else {
        return Ok(list_reply(None, Reply::Array(Vec::new())));
    };
    let queue = TaskQueue::open(context, &key);
    let listed = queue.list(state, &options, DELIVERED_BYTES_MAX).await?;
    let mut awaited = Vec::with_capacity(listed.tasks.len());
    for some in listed.tasks.chunks(KEY_READS_AT_ONCE) {
        // Concurrently, because on a cluster each read is a round trip.
        let reads = some.iter();
        let reads = reads.map(|(_, row)| queue.awaited_by(row, TASK_AFTER_SHOWN));
        awaited.extend(try_join_all(reads).await?);
    }
    let tasks = listed.tasks.into_iter().zip(awaited);
    let tasks = tasks.map(|((id, row), awaited)| {
        let needs = named(&listed.registry, row.mask, &row.amounts);
        let mut fields = vec![
            (text("id"), Reply::Bulk(id)),
            (text("priority"), Reply::Double(row.place.priority)),
            (text("tries"), Reply::Integer(row.tries)),
            (text("maxtries"), Reply::Integer(row.tries_max)),
            (text("needs"), super::amounts(&needs)),
            (text("at-ms"), at_ms(row.at_ms)),
            (text("worker"), note(row.notes.worker)),
            (text("reason"), note(row.notes.reason)),
            (text("progress"), note(row.notes.progress)),
            (text("expires-ms"), at_ms(row.notes.expires_ms.unwrap_or(0))),
            (text("group"), note(row.notes.group)),
            (text("after"), ids(awaited)),
        ];
        fields.extend(traceparent(row.notes.traceparent));
        Reply::Map(fields)
    });
    let tasks = Reply::Array(tasks.collect());
    Ok(list_reply(listed.next.as_deref(), tasks))
}

/// `TASK.PEEK key [COUNT n] [HAVING resource amount …]` → the tasks that TASK.TAKE would take.
pub(in crate::taskqueue) async fn peek(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let mut count = 1;
    let mut having = Amounts::default();
    let mut words = rest(arguments, 2);
    while let Some((word, after)) = words.split_first() {
        if is_word(word, "having") && having.0.is_empty() {
            (having, words) = amounts(after, &["count", "having"], Clause::Having)?;
            continue;
        }
        let Some((value, after)) = after.split_first() else {
            return Err(CommandError::Syntax);
        };
        if !is_word(word, "count") {
            return Err(CommandError::Syntax);
        }
        count = how_many(value)?;
        words = after;
    }
    let tasks = match context.find(name, ValueType::TaskQueue).await? {
        Some(key) => TaskQueue::open(context, &key).peek(count, &having).await?,
        None => Vec::new(),
    };
    let tasks = tasks.into_iter().map(|task| super::task(task, None));
    Ok(Reply::Array(tasks.collect()))
}

/// `TASK.LEN key [READY|LEASED|DELAYED|DEAD|WAITING]` → the number of tasks.
pub(super) async fn len(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let state = match rest(arguments, 2) {
        [] => None,
        [word] => Some(state(word)?),
        _ => return Err(CommandError::Syntax),
    };
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::TaskQueue).await? else {
        return Ok(Reply::Integer(0));
    };
    let counts = TaskQueue::open(context, &key).counts().await?;
    Ok(Reply::Integer(match state {
        None => counts.total,
        Some(TaskState::Ready) => counts.ready,
        Some(TaskState::Leased) => counts.leased,
        Some(TaskState::Delayed) => counts.delayed,
        Some(TaskState::Dead) => counts.dead,
        Some(TaskState::Waiting) => counts.waiting,
    }))
}

/// `TASK.DEAD key [COUNT n]` → dead tasks with the reasons of their last TASK.NACK, the oldest death first.
pub(in crate::taskqueue) async fn dead(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let count = match rest(arguments, 2) {
        [] => DEAD_COUNT_DEFAULT,
        [word, value] if is_word(word, "count") => how_many(value)?,
        _ => return Err(CommandError::Syntax),
    };
    let name = argument(arguments, 1)?;
    let tasks = match context.find(name, ValueType::TaskQueue).await? {
        Some(key) => TaskQueue::open(context, &key).dead(count).await?,
        None => Vec::new(),
    };
    let tasks = tasks.into_iter().map(|mut task| {
        let reason = note(task.notes.reason.take());
        let mut parts = super::parts(task);
        parts.push(reason);
        Reply::Array(parts)
    });
    Ok(Reply::Array(tasks.collect()))
}

/// `TASK.INFO key` → counters and resources of a queue.
pub(super) async fn info(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let key = existing(context, name).await?;
    let queue = TaskQueue::open(context, &key);
    let counts = queue.counts().await?;
    let registry = queue.registry(context.isolation).await?;
    let next_due_ms = queue.next_due_ms().await?;
    let left_ms = next_due_ms.map_or(-1, |at_ms| (at_ms - context.now_ms).max(0));
    let resources = registry.resources.into_iter().map(Reply::Bulk).collect();
    Ok(Reply::Map(vec![
        (text("length"), Reply::Integer(counts.total)),
        (text("ready"), Reply::Integer(counts.ready)),
        (text("leased"), Reply::Integer(counts.leased)),
        (text("delayed"), Reply::Integer(counts.delayed)),
        (text("dead"), Reply::Integer(counts.dead)),
        (text("waiting"), Reply::Integer(counts.waiting)),
        (text("added"), Reply::Integer(counts.added)),
        (text("next-due-ms"), Reply::Integer(left_ms)),
        (text("resources"), Reply::Array(resources)),
        (text("classes"), Reply::count(registry.classes.len())),
        (
            text("paused"),
            Reply::Integer(i64::from(registry.options.is_paused)),
        ),
    ]))
}
