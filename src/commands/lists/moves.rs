//! LMOVE and RPOPLPUSH.

use bytes::Bytes;

use super::end;
use super::push_pop::{pop_event, push_event};
use crate::commands::arguments::argument;
use crate::error::CommandError;
use crate::events::EventClasses;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::WriteContext;
use crate::types::list::End;

/// `LMOVE source destination LEFT|RIGHT LEFT|RIGHT` → the element moved.
pub(super) async fn lmove(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let from = end(argument(arguments, 3)?)?;
    let to = end(argument(arguments, 4)?)?;
    move_element(context, arguments, from, to).await
}

/// `RPOPLPUSH source destination` → the element moved.
pub(super) async fn rpoplpush(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    move_element(context, arguments, End::Right, End::Left).await
}

async fn move_element(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    from: End,
    to: End,
) -> Result<Reply, CommandError> {
    let source_name = argument(arguments, 1)?;
    let destination_name = argument(arguments, 2)?;
    let Some(source) = context.find(source_name, ValueType::List).await? else {
        return Ok(Reply::Null);
    };
    // A destination of another type is refused before anything is taken, but only where there is
    // something to take. (Asked last, since the answer conflicts with every push and pop.)
    let destination = match context.find(destination_name, ValueType::List).await {
        Err(CommandError::WrongType) if !context.has_elements(&source).await? => {
            return Ok(Reply::Null);
        }
        found => found?,
    };
    context.transaction.conflict_on_own_rows();
    let values = context.list_pop(&source, 1, from).await?;
    let Some(value) = values.first() else {
        return Ok(Reply::Null);
    };
    let destination = match destination {
        Some(destination) => {
            if destination.meta_key != source.meta_key {
                context
                    .notify_if_reborn(&destination, destination_name)
                    .await?;
            }
            destination
        }
        None => {
            context
                .create(destination_name, ValueType::List, None)
                .await?
        }
    };
    context.list_push(&destination, &values, to).await?;
    context.notify(EventClasses::LIST, push_event(to), destination_name);
    context.notify(EventClasses::LIST, pop_event(from), source_name);
    // After the push: a list that is rotated onto itself never ceases to exist, and keeps its
    // expiry.
    context.remove_if_empty(&source).await?;
    Ok(Reply::Bulk(value.clone()))
}
