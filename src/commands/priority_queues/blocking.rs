//! PQ.BPOPMIN, PQ.BPOPMAX: the priority-queue commands that wait. As those of lists do, each
//! answers null where there is nothing to pop.

use bytes::Bytes;

use super::pop::take;
use super::rows::priority_queue;
use super::value_and_priority;
use crate::commands::flags::Flags;
use crate::commands::grammar::{double, key};
use crate::commands::key_specs::{TAKE, up_to};
use crate::commands::row::Row;
use crate::commands::waits::{TimeoutPosition, WaitKeys, Waits, keys_before_timeout};
use crate::error::CommandError;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::WriteContext;
use crate::types::priority_queue::Extreme;
use crate::write_handler;

const POP: Waits = Waits {
    value_type: ValueType::PriorityQueue,
    keys: WaitKeys::All,
    timeout: TimeoutPosition::Last,
};

/// The priority-queue commands that wait.
pub const ROWS: &[Row] = &[
    priority_queue("pq.bpopmin", -3, write_handler!(bpopmin))
        .summary(
            "Removes and returns the oldest value of the lowest priority from one or more \
             priority queues. Blocks until a value is available otherwise. Deletes the queue if \
             the last value was popped.",
        )
        .complexity("O(K) with K keys looked at")
        .flags(Flags::BLOCKING.and(Flags::FAST))
        .keys(&[up_to(1, -2, TAKE)])
        .arguments(&[key(0).multiple(), double("timeout")])
        .waits(POP),
    priority_queue("pq.bpopmax", -3, write_handler!(bpopmax))
        .summary(
            "Removes and returns the oldest value of the highest priority from one or more \
             priority queues. Blocks until a value is available otherwise. Deletes the queue if \
             the last value was popped.",
        )
        .complexity("O(K) with K keys looked at")
        .flags(Flags::BLOCKING.and(Flags::FAST))
        .keys(&[up_to(1, -2, TAKE)])
        .arguments(&[key(0).multiple(), double("timeout")])
        .waits(POP),
];

/// `PQ.BPOPMIN key [key …] timeout` → the first key that has elements, the value popped, its
/// priority.
async fn bpopmin(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    pop(context, arguments, Extreme::Min).await
}

/// `PQ.BPOPMAX key [key …] timeout` → the first key that has elements, the value popped, its
/// priority.
async fn bpopmax(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    pop(context, arguments, Extreme::Max).await
}

async fn pop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    end: Extreme,
) -> Result<Reply, CommandError> {
    for name in keys_before_timeout(arguments, context.now_ms)? {
        let Some(key) = context.find(name, ValueType::PriorityQueue).await? else {
            continue;
        };
        if let Some(taken) = take(context, name, &key, 1, end).await?.pop() {
            let (value, priority) = value_and_priority(taken);
            return Ok(Reply::Array(vec![
                Reply::Bulk(name.clone()),
                value,
                priority,
            ]));
        }
    }
    Ok(Reply::NullArray)
}
