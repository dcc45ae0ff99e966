//! TASK.ADD, TASK.CANCEL, TASK.REVIVE.

use bytes::Bytes;

use super::arguments::{Clause, amounts, delay, new_id};
use crate::command::arguments::{argument, double_or, integer_at_least, is_word, rest};
use crate::error::CommandError;
use crate::taskqueue::{Amounts, NewTask};
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
    while let Some((word, behind)) = words.split_first() {
        if is_word(word, "needs") && task.needs.0.is_empty() {
            (task.needs, words) = amounts(behind, ADD_KEYWORDS, Clause::Needs)?;
            continue;
        }
        let Some((value, behind)) = behind.split_first() else {
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
        words = behind;
    }
    let id = context.task_add(name, &task).await?;
    context.notify(EventClasses::MODULE, "task.add", name);
    Ok(Reply::Bulk(id))
}

/// `TASK.CANCEL key id [id …]` → how many there were.
pub async fn cancel(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::TaskQueue).await? else {
        return Ok(Reply::Integer(0));
    };
    let mut count = 0;
    for some in rest(arguments, 2).chunks(KEY_READS_AT_ONCE) {
        context.task_read_ahead(&key, some).await?;
        for id in some {
            count += i64::from(context.task_cancel(&key, id).await?);
        }
    }
    if count > 0 {
        context.notify(EventClasses::MODULE, "task.cancel", name);
        context.remove_if_empty(&key).await?;
    }
    Ok(Reply::Integer(count))
}

/// `TASK.REVIVE key id [id …]` → how many were dead.
pub async fn revive(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::TaskQueue).await? else {
        return Ok(Reply::Integer(0));
    };
    let mut count = 0;
    for some in rest(arguments, 2).chunks(KEY_READS_AT_ONCE) {
        context.task_read_ahead(&key, some).await?;
        for id in some {
            count += i64::from(context.task_revive(&key, id).await?);
        }
    }
    if count > 0 {
        context.notify(EventClasses::MODULE, "task.revive", name);
    }
    Ok(Reply::Integer(count))
}
