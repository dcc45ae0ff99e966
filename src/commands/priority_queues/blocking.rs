//! PQ.BPOPMIN, PQ.BPOPMAX: the priority-queue commands that wait. As those of lists do, each
//! answers null where there is nothing to pop.

use bytes::Bytes;

use super::pop::PriorityQueue;
use super::rows::priority_queue;
use crate::commands::popping::{blocking_pop, plan_pop_one, wait_for_one};
use crate::commands::row::{Flags, KeyPositions, KeyUse, Row};
use crate::error::CommandError;
use crate::reply::Reply;
use crate::types::WriteContext;
use crate::types::priority_queue::Extreme;
use crate::write_handler;

/// The priority-queue commands that wait.
pub const ROWS: &[Row] = &[
    Row {
        flags: Flags::WRITE.and(Flags::FAST).and(Flags::BLOCKING),
        keys: KeyPositions::ALL_BUT_LAST,
        key_use: KeyUse::ReadWrite,
        summary: "Removes and returns the oldest value of the lowest priority from one or more priority queues. Blocks until a value is available otherwise. Deletes the queue if the last value was popped.",
        complexity: "O(K) with K keys looked at",
        handler: write_handler!(bpopmin),
        plan: Some(|_| plan_pop_one::<PriorityQueue>(Extreme::Min)),
        waits: Some(wait_for_one::<PriorityQueue>),
        ..priority_queue("pq.bpopmin", -3)
    },
    Row {
        flags: Flags::WRITE.and(Flags::FAST).and(Flags::BLOCKING),
        keys: KeyPositions::ALL_BUT_LAST,
        key_use: KeyUse::ReadWrite,
        summary: "Removes and returns the oldest value of the highest priority from one or more priority queues. Blocks until a value is available otherwise. Deletes the queue if the last value was popped.",
        complexity: "O(K) with K keys looked at",
        handler: write_handler!(bpopmax),
        plan: Some(|_| plan_pop_one::<PriorityQueue>(Extreme::Max)),
        waits: Some(wait_for_one::<PriorityQueue>),
        ..priority_queue("pq.bpopmax", -3)
    },
];

/// `PQ.BPOPMIN key [key …] timeout` → the first key that has elements, the value popped, its
/// priority.
async fn bpopmin(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    blocking_pop::<PriorityQueue>(context, arguments, Extreme::Min).await
}

/// `PQ.BPOPMAX key [key …] timeout` → the first key that has elements, the value popped, its
/// priority.
async fn bpopmax(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    blocking_pop::<PriorityQueue>(context, arguments, Extreme::Max).await
}
