//! BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP: the list commands that wait.
//!
//! Each answers null where there is nothing to pop. Outside of MULTI that has its client wait
//! until the command is run again and answers something else (`executor::waiters`).

use bytes::Bytes;

use super::moves::{lmove, rpoplpush};
use super::push_pop::{pop_from_first, take};
use crate::commands::arguments::argument;
use crate::commands::multi_pop::MultiPop;
use crate::commands::row::{Flags, KeyPositions, Row};
use crate::commands::waits::{TimeoutPosition, WaitKeys, Waits, keys_before_timeout, timeout};
use crate::error::CommandError;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::WriteContext;
use crate::types::list::End;
use crate::write_handler;

use super::rows::list;

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

/// The list commands that wait.
pub const ROWS: &[Row] = &[
    Row {
        flags: Flags::WRITE.and(Flags::BLOCKING),
        keys: KeyPositions::ALL_BUT_LAST,
        since: "2.0.0",
        summary: "Removes and returns the first element in a list. Blocks until an element is available otherwise. Deletes the list if the last element was popped.",
        complexity: "O(K) with K keys looked at",
        handler: write_handler!(blpop),
        waits: Some(POP),
        ..list("blpop", -3)
    },
    Row {
        flags: Flags::WRITE.and(Flags::BLOCKING),
        keys: KeyPositions::ALL_BUT_LAST,
        since: "2.0.0",
        summary: "Removes and returns the last element in a list. Blocks until an element is available otherwise. Deletes the list if the last element was popped.",
        complexity: "O(K) with K keys looked at",
        handler: write_handler!(brpop),
        waits: Some(POP),
        ..list("brpop", -3)
    },
    Row {
        flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::BLOCKING),
        keys: KeyPositions::FIRST_TWO,
        since: "6.2.0",
        summary: "Pops an element from a list, pushes it to another list and returns it. Blocks until an element is available otherwise. Deletes the list if the last element was moved.",
        complexity: "O(log N), N being all that is stored",
        handler: write_handler!(blmove),
        waits: Some(MOVE),
        ..list("blmove", 6)
    },
    Row {
        flags: Flags::WRITE.and(Flags::DENYOOM).and(Flags::BLOCKING),
        keys: KeyPositions::FIRST_TWO,
        since: "2.2.0",
        summary: "Pops an element from a list, pushes it to another list and returns it. Block until an element is available otherwise. Deletes the list if the last element was popped.",
        complexity: "O(log N), N being all that is stored",
        handler: write_handler!(brpoplpush),
        waits: Some(MOVE),
        ..list("brpoplpush", 4)
    },
    Row {
        flags: Flags::WRITE.and(Flags::BLOCKING).and(Flags::MOVABLEKEYS),
        keys: KeyPositions::Counted { count: 2 },
        since: "7.0.0",
        summary: "Pops the first element from one of multiple lists. Blocks until an element is available otherwise. Deletes the list if the last element was popped.",
        complexity: "O(K + M) with K keys looked at and M elements returned",
        handler: write_handler!(blmpop),
        waits: Some(MULTI_POP),
        ..list("blmpop", -5)
    },
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
