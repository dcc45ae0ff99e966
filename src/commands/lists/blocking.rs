//! BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP: the list commands that wait.
//!
//! Each answers null where there is nothing to pop. Outside of MULTI that has its client wait
//! until the command is run again and answers something else (`executor::waiters`).

use bytes::Bytes;

use super::moves::{lmove, rpoplpush};
use super::push_pop::{pop_from_first, take};
use crate::commands::arguments::argument;
use crate::commands::flags::Flags;
use crate::commands::grammar::{COUNT, double, integer, key, oneof};
use crate::commands::key_specs::{INSERT, TAKE, at, counted_at, up_to};
use crate::commands::multi_pop::MultiPop;
use crate::commands::row::Row;
use crate::commands::waits::{TimeoutPosition, WaitKeys, Waits, keys_before_timeout, timeout};
use crate::error::CommandError;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::WriteContext;
use crate::types::list::End;
use crate::write_handler;

use super::rows::{DESTINATION, FROM, KEYS_AND_ELEMENTS, ONE_ELEMENT, SIDES, SOURCE, TO, list};

const POP: Waits = Waits {
    value_type: ValueType::List,
    keys: WaitKeys::All,
    timeout: TimeoutPosition::Last,
};
const MOVE: Waits = Waits {
    keys: WaitKeys::First,
    ..POP
};
const MULTI_POP: Waits = Waits {
    timeout: TimeoutPosition::First,
    ..POP
};

const TIMEOUT_IS_A_DOUBLE: (&str, &str) = (
    "6.0.0",
    "`timeout` is interpreted as a double instead of an integer.",
);

/// The list commands that wait.
pub const ROWS: &[Row] = &[
    list("blpop", -3, "2.0.0", write_handler!(blpop))
        .summary(
            "Removes and returns the first element in a list. Blocks until an element is \
             available otherwise. Deletes the list if the last element was popped.",
        )
        .complexity("O(K) with K keys looked at")
        .flags(Flags::BLOCKING)
        .keys(&[up_to(1, -2, TAKE)])
        .history(&[TIMEOUT_IS_A_DOUBLE])
        .arguments(&[key(0).multiple(), double("timeout")])
        .waits(POP),
    list("brpop", -3, "2.0.0", write_handler!(brpop))
        .summary(
            "Removes and returns the last element in a list. Blocks until an element is available \
             otherwise. Deletes the list if the last element was popped.",
        )
        .complexity("O(K) with K keys looked at")
        .flags(Flags::BLOCKING)
        .keys(&[up_to(1, -2, TAKE)])
        .history(&[TIMEOUT_IS_A_DOUBLE])
        .arguments(&[key(0).multiple(), double("timeout")])
        .waits(POP),
    list("blmove", 6, "6.2.0", write_handler!(blmove))
        .summary(
            "Pops an element from a list, pushes it to another list and returns it. Blocks until \
             an element is available otherwise. Deletes the list if the last element was moved.",
        )
        .complexity(ONE_ELEMENT)
        .flags(Flags::DENYOOM.and(Flags::BLOCKING))
        .keys(&[at(1, TAKE), at(2, INSERT)])
        .arguments(&[SOURCE, DESTINATION, FROM, TO, double("timeout")])
        .waits(MOVE),
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
        .waits(MOVE),
    list("blmpop", -5, "7.0.0", write_handler!(blmpop))
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
        .waits(MULTI_POP),
];

/// `BLPOP key [key …] timeout` → the first key that has elements, and the one popped.
async fn blpop(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    pop(context, arguments, End::Left).await
}

/// `BRPOP key [key …] timeout` → the first key that has elements, and the one popped.
async fn brpop(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    pop(context, arguments, End::Right).await
}

async fn pop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    end: End,
) -> Result<Reply, CommandError> {
    for name in keys_before_timeout(arguments, context.now_ms)? {
        let Some(key) = context.find(name, ValueType::List).await? else {
            continue;
        };
        if let Some(value) = take(context, name, &key, 1, end).await?.pop() {
            return Ok(Reply::Array(vec![
                Reply::Bulk(name.clone()),
                Reply::Bulk(value),
            ]));
        }
    }
    Ok(Reply::NullArray)
}

/// `BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout` → the element moved.
async fn blmove(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    // Redis reads the ends first, and only then the timeout.
    super::end(argument(arguments, 3)?)?;
    super::end(argument(arguments, 4)?)?;
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

/// `BLMPOP timeout numkeys key [key …] LEFT|RIGHT [COUNT count]` → the first key that has
/// elements, and those popped.
async fn blmpop(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let query = MultiPop::parse(arguments, 2, super::end)?;
    timeout(argument(arguments, 1)?, context.now_ms)?;
    pop_from_first(context, &query).await
}
