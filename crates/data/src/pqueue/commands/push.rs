//! PQ.PUSH.

use bytes::Bytes;

use super::priority;
use crate::command::arguments::{argument, rest};
use crate::command::put_series::lengths_of_series;
use crate::error::CommandError;
use crate::pqueue::QueuedValue;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// The event of a push. Modules of Redis name theirs after their commands too.
pub(super) const PUSH_EVENT: &str = "pq.push";

/// `PQ.PUSH key priority value [priority value …]` → length.
pub(super) async fn push(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let values = parse_values(rest(arguments, 2))?;
    let name = argument(arguments, 1)?;
    let key = context
        .find_or_create(name, ValueType::PriorityQueue)
        .await?;
    let length = context.queue_push(&key, &values).await?;
    context.notify(EventClasses::MODULE, PUSH_EVENT, name);
    Ok(Reply::Integer(length))
}

/// Several of [`push`]: one push of all values.
pub(super) async fn push_series(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let name = argument(commands.first().ok_or(CommandError::Syntax)?, 1)?;
    let mut values = Vec::new();
    for arguments in commands {
        values.extend(parse_values(rest(arguments, 2))?);
    }
    let key = context
        .find_or_create(name, ValueType::PriorityQueue)
        .await?;
    let length = context.queue_push(&key, &values).await?;
    let pushed = commands
        .iter()
        .map(|arguments| rest(arguments, 2).len() / 2);
    Ok(lengths_of_series(length, pushed))
}

fn parse_values(pairs: &[Bytes]) -> Result<Vec<QueuedValue>, CommandError> {
    let mut values = Vec::with_capacity(pairs.len() / 2);
    let pairs = pairs.chunks_exact(2);
    // Told before a priority that is none, as by ZADD.
    if !pairs.remainder().is_empty() {
        return Err(CommandError::Syntax);
    }
    for pair in pairs {
        let [number, value] = pair else {
            return Err(CommandError::Syntax);
        };
        values.push(QueuedValue {
            priority: priority(number)?,
            value: value.clone(),
        });
    }
    Ok(values)
}
