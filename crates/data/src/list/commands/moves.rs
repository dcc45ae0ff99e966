//! LMOVE and RPOPLPUSH.

use bytes::Bytes;

use super::push_pop::prefetch_end;
use super::{LEFT, List, RIGHT};
use crate::command::arguments::argument;
use crate::command::plan::Plan;
use crate::command::popping::{Poppable, move_one};
use crate::error::CommandError;
use crate::unit::context::WriteContext;
use quoin_resp::reply::Reply;

/// `LMOVE source destination LEFT|RIGHT LEFT|RIGHT` → the element moved.
pub(super) async fn lmove(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    move_element(context, arguments, ends(arguments)?).await
}

/// `RPOPLPUSH source destination` → the element moved.
pub(super) async fn rpoplpush(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    move_element(context, arguments, (RIGHT, LEFT)).await
}

async fn move_element(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    (from, to): (bool, bool),
) -> Result<Reply, CommandError> {
    let moved = move_one::<List>(context, arguments, from, to).await?;
    Ok(moved.map_or(Reply::Null, Reply::Bulk))
}

/// The ends of the source and the destination of LMOVE and BLMOVE.
pub(super) fn ends(arguments: &[Bytes]) -> Result<(bool, bool), CommandError> {
    let from = List::from_end(argument(arguments, 3)?)?;
    let to = List::from_end(argument(arguments, 4)?)?;
    Ok((from, to))
}

/// The plan of LMOVE and BLMOVE.
pub(super) fn plan_lmove(arguments: &[Bytes]) -> Option<Plan> {
    let (from, to) = ends(arguments).ok()?;
    // Not a pop that other servers may do for it: afterwards it may fail for its destination.
    Some(Plan::Read(vec![prefetch_end(from, 1), prefetch_end(to, 0)]))
}

/// The plan of RPOPLPUSH and BRPOPLPUSH.
pub(super) fn plan_rpoplpush(_: &[Bytes]) -> Option<Plan> {
    let reads = vec![prefetch_end(RIGHT, 1), prefetch_end(LEFT, 0)];
    Some(Plan::Read(reads))
}
