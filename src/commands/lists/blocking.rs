//! BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP: the list commands that wait.
//!
//! Each answers null where there is nothing to pop. Outside of MULTI its client then waits until
//! the command is run again and answers something else (`executor::waiters`).

use bytes::Bytes;

use super::moves::{ends, lmove, plan_lmove, plan_rpoplpush, rpoplpush};
use super::{LEFT, List, RIGHT};
use crate::commands::arguments::argument;
use crate::commands::popping::{
    blocking_multi_pop, blocking_pop, plan_blocking_multi_pop, plan_blocking_pop,
    wait_to_multi_pop, wait_to_pop,
};
use crate::commands::row::{Flags, KeyPositions, Row};
use crate::commands::waits::{WaitSpec, keys_and_timeout, timeout};
use crate::error::CommandError;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::WriteContext;
use crate::write_handler;

use super::rows::list;

/// The list commands that wait.
pub const ROWS: &[Row] = &[
    Row {
        flags: Flags::WRITE.and(Flags::BLOCKING),
        keys: KeyPositions::ALL_BUT_LAST,
        since: "2.0.0",
        summary: "Removes and returns the first element in a list. Blocks until an element is available otherwise. Deletes the list if the last element was popped.",
        complexity: "O(K) with K keys looked at",
        handler: write_handler!(blocking_pop::<List, LEFT>),
        plan: Some(plan_blocking_pop::<List, LEFT>),
        waits: Some(wait_to_pop::<List>),
        ..list("blpop", -3)
    },
    Row {
        flags: Flags::WRITE.and(Flags::BLOCKING),
        keys: KeyPositions::ALL_BUT_LAST,
        since: "2.0.0",
        summary: "Removes and returns the last element in a list. Blocks until an element is available otherwise. Deletes the list if the last element was popped.",
        complexity: "O(K) with K keys looked at",
        handler: write_handler!(blocking_pop::<List, RIGHT>),
        plan: Some(plan_blocking_pop::<List, RIGHT>),
        waits: Some(wait_to_pop::<List>),
        ..list("brpop", -3)
    },
    Row {
        flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::BLOCKING),
        keys: KeyPositions::FIRST_TWO,
        since: "6.2.0",
        summary: "Pops an element from a list, pushes it to another list and returns it. Blocks until an element is available otherwise. Deletes the list if the last element was moved.",
        complexity: "O(log N), N being all that is stored",
        handler: write_handler!(blmove),
        plan: Some(plan_lmove),
        waits: Some(wait_for_source),
        ..list("blmove", 6)
    },
    Row {
        flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::BLOCKING),
        keys: KeyPositions::FIRST_TWO,
        since: "2.2.0",
        summary: "Pops an element from a list, pushes it to another list and returns it. Block until an element is available otherwise. Deletes the list if the last element was popped.",
        complexity: "O(log N), N being all that is stored",
        handler: write_handler!(brpoplpush),
        plan: Some(plan_rpoplpush),
        waits: Some(wait_for_source),
        ..list("brpoplpush", 4)
    },
    Row {
        flags: Flags::WRITE.and(Flags::BLOCKING).and(Flags::MOVABLEKEYS),
        keys: KeyPositions::Counted { count: 2 },
        since: "7.0.0",
        summary: "Pops the first element from one of multiple lists. Blocks until an element is available otherwise. Deletes the list if the last element was popped.",
        complexity: "O(K + M) with K keys looked at and M elements returned",
        handler: write_handler!(blocking_multi_pop::<List>),
        plan: Some(plan_blocking_multi_pop::<List>),
        waits: Some(wait_to_multi_pop::<List>),
        ..list("blmpop", -5)
    },
];

/// `BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout` → the element moved.
async fn blmove(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    // Redis reads the ends first, and only then the timeout.
    ends(arguments)?;
    timeout(argument(arguments, 5)?, context.now_ms)?;
    lmove(context, arguments).await
}

/// `BRPOPLPUSH source destination timeout` → the element moved.
async fn brpoplpush(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    timeout(argument(arguments, 3)?, context.now_ms)?;
    rpoplpush(context, arguments).await
}

/// BLMOVE and BRPOPLPUSH wait for their source. The timeout is their last argument.
fn wait_for_source(arguments: &[Bytes], now_ms: i64) -> Result<Option<WaitSpec>, CommandError> {
    let (keys, timeout) = keys_and_timeout(arguments, now_ms)?;
    let source = keys.get(..1).unwrap_or_default();
    Ok(Some(WaitSpec::to_take(ValueType::List, source, timeout)))
}
