//! BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP: the list commands that wait.
//!
//! Each answers null where there is nothing to pop. Outside of MULTI its client then waits until
//! the command is run again and answers something else (`engine::waiters`).

use bytes::Bytes;

use super::moves::{ends, lmove, plan_lmove, plan_rpoplpush, rpoplpush};
use super::{LEFT, List, RIGHT};
use crate::command::arguments::argument;
use crate::command::flags::Flags;
use crate::command::grammar::{COUNT, double, integer, key, oneof};
use crate::command::key_specs::{INSERT, TAKE, at, counted_at, up_to};
use crate::command::popping::{
    blocking_multi_pop, blocking_pop, plan_blocking_multi_pop, plan_blocking_pop,
    wait_to_multi_pop, wait_to_pop,
};
use crate::command::row::Row;
use crate::command::waits::{WaitSpec, keys_and_timeout, timeout};
use crate::error::CommandError;
use crate::unit::context::WriteContext;
use crate::write_handler;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

use super::rows::{DESTINATION, FROM, KEYS_AND_ELEMENTS, ONE_ELEMENT, SIDES, SOURCE, TO, list};

const TIMEOUT_IS_A_DOUBLE: (&str, &str) = (
    "6.0.0",
    "`timeout` is interpreted as a double instead of an integer.",
);

/// The list commands that wait.
pub const ROWS: &[Row] = &[
    list(
        "blpop",
        -3,
        "2.0.0",
        write_handler!(blocking_pop::<List, LEFT>),
    )
    .summary(
        "Removes and returns the first element in a list. Blocks until an element is \
             available otherwise. Deletes the list if the last element was popped.",
    )
    .complexity("O(K) with K keys looked at")
    .flags(Flags::BLOCKING)
    .keys(&[up_to(1, -2, TAKE)])
    .history(&[TIMEOUT_IS_A_DOUBLE])
    .arguments(&[key(0).multiple(), double("timeout")])
    .plan(plan_blocking_pop::<List, LEFT>)
    .waits(wait_to_pop::<List>),
    list(
        "brpop",
        -3,
        "2.0.0",
        write_handler!(blocking_pop::<List, RIGHT>),
    )
    .summary(
        "Removes and returns the last element in a list. Blocks until an element is available \
             otherwise. Deletes the list if the last element was popped.",
    )
    .complexity("O(K) with K keys looked at")
    .flags(Flags::BLOCKING)
    .keys(&[up_to(1, -2, TAKE)])
    .history(&[TIMEOUT_IS_A_DOUBLE])
    .arguments(&[key(0).multiple(), double("timeout")])
    .plan(plan_blocking_pop::<List, RIGHT>)
    .waits(wait_to_pop::<List>),
    list("blmove", 6, "6.2.0", write_handler!(blmove))
        .summary(
            "Pops an element from a list, pushes it to another list and returns it. Blocks until \
             an element is available otherwise. Deletes the list if the last element was moved.",
        )
        .complexity(ONE_ELEMENT)
        .flags(Flags::DENYOOM.and(Flags::BLOCKING))
        .keys(&[at(1, TAKE), at(2, INSERT)])
        .arguments(&[SOURCE, DESTINATION, FROM, TO, double("timeout")])
        .plan(plan_lmove)
        .waits(wait_for_source),
    list("brpoplpush", 4, "2.2.0", write_handler!(brpoplpush))
        .summary(
            "Pops an element from a list, pushes it to another list and returns it. Block until \
             an element is available otherwise. Deletes the list if the last element was popped.",
        )
        .complexity(ONE_ELEMENT)
        .flags(Flags::DENYOOM.and(Flags::BLOCKING))
        .keys(&[at(1, TAKE), at(2, INSERT)])
        .history(&[TIMEOUT_IS_A_DOUBLE])
        .deprecated("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments")
        .arguments(&[SOURCE, DESTINATION, double("timeout")])
        .plan(plan_rpoplpush)
        .waits(wait_for_source),
    list(
        "blmpop",
        -5,
        "7.0.0",
        write_handler!(blocking_multi_pop::<List>),
    )
    .summary(
        "Pops the first element from one of multiple lists. Blocks until an element is \
             available otherwise. Deletes the list if the last element was popped.",
    )
    .complexity(KEYS_AND_ELEMENTS)
    .flags(Flags::BLOCKING)
    .keys(&[counted_at(2, TAKE)])
    .arguments(&[
        double("timeout"),
        integer("numkeys"),
        key(0).multiple(),
        oneof("where", SIDES),
        COUNT,
    ])
    .plan(plan_blocking_multi_pop::<List>)
    .waits(wait_to_multi_pop::<List>),
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
