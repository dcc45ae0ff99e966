//! PQ.BPOPMIN, PQ.BPOPMAX: the priority-queue commands that wait. As those of lists do, each
//! answers null where there is nothing to pop.

use super::pop::PriorityQueue;
use super::rows::priority_queue;
use crate::commands::popping::{FIRST, LAST, blocking_pop, plan_blocking_pop, wait_to_pop};
use crate::commands::row::{Flags, KeyPositions, KeyUse, Row};
use crate::write_handler;

/// The priority-queue commands that wait.
pub const ROWS: &[Row] = &[
    Row {
        flags: Flags::WRITE.and(Flags::FAST).and(Flags::BLOCKING),
        keys: KeyPositions::ALL_BUT_LAST,
        key_use: KeyUse::ReadWrite,
        summary: "Removes and returns the oldest value of the lowest priority from one or more priority queues. Blocks until a value is available otherwise. Deletes the queue if the last value was popped.",
        complexity: "O(K) with K keys looked at",
        handler: write_handler!(blocking_pop::<PriorityQueue, FIRST>),
        plan: Some(plan_blocking_pop::<PriorityQueue, FIRST>),
        waits: Some(wait_to_pop::<PriorityQueue>),
        ..priority_queue("pq.bpopmin", -3)
    },
    Row {
        flags: Flags::WRITE.and(Flags::FAST).and(Flags::BLOCKING),
        keys: KeyPositions::ALL_BUT_LAST,
        key_use: KeyUse::ReadWrite,
        summary: "Removes and returns the oldest value of the highest priority from one or more priority queues. Blocks until a value is available otherwise. Deletes the queue if the last value was popped.",
        complexity: "O(K) with K keys looked at",
        handler: write_handler!(blocking_pop::<PriorityQueue, LAST>),
        plan: Some(plan_blocking_pop::<PriorityQueue, LAST>),
        waits: Some(wait_to_pop::<PriorityQueue>),
        ..priority_queue("pq.bpopmax", -3)
    },
];
