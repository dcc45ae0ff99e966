//! LMOVE and RPOPLPUSH.

use bytes::Bytes;

use super::List;
use super::push_pop::prefetch_end;
use crate::commands::arguments::argument;
use crate::commands::plan::Plan;
use crate::commands::popping::{Poppable, move_one};
use crate::error::CommandError;
use crate::reply::Reply;
use crate::types::WriteContext;
use crate::types::list::End;

/// `LMOVE source destination LEFT|RIGHT LEFT|RIGHT` → the element moved.
pub(super) async fn lmove(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (from, to) = ends(arguments)?;
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
    let moved = move_one::<List>(context, arguments, from, to).await?;
    Ok(moved.map_or(Reply::Null, Reply::Bulk))
}

/// From which end LMOVE and BLMOVE take, and to which they move.
pub(super) fn ends(arguments: &[Bytes]) -> Result<(End, End), CommandError> {
    let from = List::end(argument(arguments, 3)?)?;
    let to = List::end(argument(arguments, 4)?)?;
    Ok((from, to))
}

/// The plan of LMOVE and BLMOVE.
pub(super) fn plan_lmove(arguments: &[Bytes]) -> Option<Plan> {
    let (from, to) = ends(arguments).ok()?;
    Some(plan_move(from, to))
}

/// The plan of RPOPLPUSH and BRPOPLPUSH.
pub(super) fn plan_rpoplpush(_: &[Bytes]) -> Option<Plan> {
    Some(plan_move(End::Right, End::Left))
}

/// Not a pop, for which other servers could pop: it may fail for its destination when they have.
fn plan_move(from: End, to: End) -> Plan {
    Plan::Read(vec![prefetch_end(from, 1), prefetch_end(to, 0)])
}
