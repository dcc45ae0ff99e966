//! PQ.BPOPMIN, PQ.BPOPMAX: the priority-queue commands that wait. As those of lists do, each
//! answers null where there is nothing to pop.

use super::pop::PriorityQueue;
use super::rows::priority_queue;
use crate::command::flags::Flags;
use crate::command::grammar::{double, key};
use crate::command::key_specs::{TAKE, up_to};
use crate::command::popping::{FIRST, LAST, blocking_pop, plan_blocking_pop, wait_to_pop};
use crate::command::row::Row;
use crate::write_handler;

/// The priority-queue commands that wait.
pub const ROWS: &[Row] = &[
    priority_queue(
        "pq.bpopmin",
        -3,
        write_handler!(blocking_pop::<PriorityQueue, FIRST>),
    )
    .summary(
        "Removes and returns the oldest value of the lowest priority from one or more \
             priority queues. Blocks until a value is available otherwise. Deletes the queue if \
             the last value was popped.",
    )
    .complexity("O(K) with K keys looked at")
    .flags(Flags::BLOCKING.and(Flags::FAST))
    .keys(&[up_to(1, -2, TAKE)])
    .arguments(&[key(0).multiple(), double("timeout")])
    .plan(plan_blocking_pop::<PriorityQueue, FIRST>)
    .waits(wait_to_pop::<PriorityQueue>),
    priority_queue(
        "pq.bpopmax",
        -3,
        write_handler!(blocking_pop::<PriorityQueue, LAST>),
    )
    .summary(
        "Removes and returns the oldest value of the highest priority from one or more \
             priority queues. Blocks until a value is available otherwise. Deletes the queue if \
             the last value was popped.",
    )
    .complexity("O(K) with K keys looked at")
    .flags(Flags::BLOCKING.and(Flags::FAST))
    .keys(&[up_to(1, -2, TAKE)])
    .arguments(&[key(0).multiple(), double("timeout")])
    .plan(plan_blocking_pop::<PriorityQueue, LAST>)
    .waits(wait_to_pop::<PriorityQueue>),
];
