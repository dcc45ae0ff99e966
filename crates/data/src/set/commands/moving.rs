//! SMOVE.

use bytes::Bytes;

use super::members::entry;
use crate::command::arguments::{argument, rest};
use crate::command::plan::Plan;
use crate::error::CommandError;
use crate::prefetch::Prefetch;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `SMOVE source destination member` → 1, or 0 where the source has no such member.
pub(super) async fn smove(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (from, to) = (argument(arguments, 1)?, argument(arguments, 2)?);
    let member = argument(arguments, 3)?;
    let members = std::slice::from_ref(member);
    let Some(mut source) = context.find(from, ValueType::Set).await? else {
        return Ok(Reply::Integer(0));
    };
    let destination = match context.find(to, ValueType::Set).await {
        // Redis looks at the destination's type only where there is a source.
        Err(CommandError::WrongType) if !context.has_elements(&source).await? => {
            return Ok(Reply::Integer(0));
        }
        found => found?,
    };
    if from == to {
        let found = context.fields_exist(&source, members).await?;
        return Ok(Reply::Integer(found.contains(&true).into()));
    }
    if context.fields_remove(&mut source, members).await? == 0 {
        return Ok(Reply::Integer(0));
    }
    context.notify(EventClasses::SET, "srem", from);
    context.remove_if_empty(&source).await?;
    let changed = context
        .fields_put(to, ValueType::Set, destination, vec![entry(member)])
        .await?;
    if changed.added > 0 {
        context.notify(EventClasses::SET, "sadd", to);
    }
    Ok(Reply::Integer(1))
}

/// The plan of SMOVE, which looks the member up in both sets.
pub(super) fn plan_move(arguments: &[Bytes]) -> Option<Plan> {
    let read = || Prefetch::members(ValueType::Set, rest(arguments, 3));
    Some(Plan::Read(vec![read(), read()]))
}
