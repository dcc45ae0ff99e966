//! BZPOPMIN, BZPOPMAX, BZMPOP: the sorted-set commands that wait. As those of lists do, each
//! answers null where there is nothing to pop.

use bytes::Bytes;

use super::member_and_score;
use super::pop::{extreme, pop_from_first, take};
use super::rows::{END, KEYS_AND_MEMBERS, NUM_KEYS, sorted_set};
use crate::commands::arguments::argument;
use crate::commands::flags::Flags;
use crate::commands::grammar::{COUNT, double, key};
use crate::commands::key_specs::{TAKE, counted_at, up_to};
use crate::commands::multi_pop::MultiPop;
use crate::commands::row::Row;
use crate::commands::waits::{TimeoutPosition, WaitKeys, Waits, keys_before_timeout, timeout};
use crate::error::CommandError;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::WriteContext;
use crate::types::sorted_set::Extreme;
use crate::write_handler;

const POP: Waits = Waits {
    value_type: ValueType::SortedSet,
    keys: WaitKeys::All,
    timeout: TimeoutPosition::Last,
};
const MULTI_POP: Waits = Waits {
    timeout: TimeoutPosition::First,
    ..POP
};

const TIMEOUT_IS_A_DOUBLE: (&str, &str) = (
    "6.0.0",
    "`timeout` is interpreted as a double instead of an integer.",
);

/// The sorted-set commands that wait.
pub const ROWS: &[Row] = &[
    sorted_set("bzpopmin", -3, "5.0.0", write_handler!(bzpopmin))
        .summary(
            "Removes and returns the member with the lowest score from one or more sorted sets. \
             Blocks until a member is available otherwise. Deletes the sorted set if the last \
             element was popped.",
        )
        .complexity("O(K) with K keys looked at")
        .flags(Flags::BLOCKING.and(Flags::FAST))
        .keys(&[up_to(1, -2, TAKE)])
        .history(&[TIMEOUT_IS_A_DOUBLE])
        .arguments(&[key(0).multiple(), double("timeout")])
        .waits(POP),
    sorted_set("bzpopmax", -3, "5.0.0", write_handler!(bzpopmax))
        .summary(
            "Removes and returns the member with the highest score from one or more sorted sets. \
             Blocks until a member available otherwise.  Deletes the sorted set if the last \
             element was popped.",
        )
        .complexity("O(K) with K keys looked at")
        .flags(Flags::BLOCKING.and(Flags::FAST))
        .keys(&[up_to(1, -2, TAKE)])
        .history(&[TIMEOUT_IS_A_DOUBLE])
        .arguments(&[key(0).multiple(), double("timeout")])
        .waits(POP),
    sorted_set("bzmpop", -5, "7.0.0", write_handler!(bzmpop))
        .summary(
            "Removes and returns a member by score from one or more sorted sets. Blocks until a \
             member is available otherwise. Deletes the sorted set if the last element was \
             popped.",
        )
        .complexity(KEYS_AND_MEMBERS)
        .flags(Flags::BLOCKING)
        .keys(&[counted_at(2, TAKE)])
        .arguments(&[double("timeout"), NUM_KEYS, key(0).multiple(), END, COUNT])
        .waits(MULTI_POP),
];

/// `BZPOPMIN key [key …] timeout` → the first key that has members, the one popped, its score.
async fn bzpopmin(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    pop(context, arguments, Extreme::Min).await
}

/// `BZPOPMAX key [key …] timeout` → the first key that has members, the one popped, its score.
async fn bzpopmax(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    pop(context, arguments, Extreme::Max).await
}

async fn pop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    end: Extreme,
) -> Result<Reply, CommandError> {
    for name in keys_before_timeout(arguments, context.now_ms)? {
        let Some(key) = context.find(name, ValueType::SortedSet).await? else {
            continue;
        };
        if let Some(taken) = take(context, name, &key, 1, end).await?.pop() {
            let (member, score) = member_and_score(taken);
            return Ok(Reply::Array(vec![Reply::Bulk(name.clone()), member, score]));
        }
    }
    Ok(Reply::NullArray)
}

/// `BZMPOP timeout numkeys key [key …] MIN|MAX [COUNT count]` → the first key that has members,
/// and those popped.
async fn bzmpop(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let query = MultiPop::parse(arguments, 2, extreme)?;
    timeout(argument(arguments, 1)?, context.now_ms)?;
    pop_from_first(context, &query).await
}
