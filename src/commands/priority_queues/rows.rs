//! The rows of the priority-queue commands.

use super::pop::PriorityQueue;
use super::{pop, push, read};
use crate::commands::popping::{FIRST, LAST, plan_pop, pop_numbered};
use crate::commands::row::{Flags, Group, KeyPositions, KeyUse, Row};
use crate::{read_handler, write_handler};

const PUT: Flags = Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST);
const TAKE: Flags = Flags::WRITE.and(Flags::FAST);
const GET: Flags = Flags::READONLY.and(Flags::FAST);

pub(super) const fn priority_queue(name: &'static str, arity: i32) -> Row {
    Row {
        name,
        arity,
        flags: GET,
        keys: KeyPositions::FIRST,
        key_use: KeyUse::Read,
        // Quoin's version: Redis has no such command.
        since: "0.1.0",
        group: Group::PriorityQueue,
        summary: "",
        complexity: "",
        handler: read_handler!(read::len),
        subcommands: &[],
        plan: None,
        waits: None,
    }
}

/// The priority-queue commands.
pub const ROWS: &[Row] = &[
    Row {
        flags: PUT,
        key_use: KeyUse::ReadWrite,
        summary: "Adds one or more values to a priority queue, each behind all of its priority. Creates the key if it doesn't exist.",
        complexity: "O(log N) for each value, N being all that is stored",
        handler: write_handler!(push::push),
        ..priority_queue("pq.push", -4)
    },
    Row {
        flags: TAKE,
        key_use: KeyUse::ReadWrite,
        summary: "Returns the values of the lowest priority, the oldest first, after removing them. Deletes the queue if the last value was popped.",
        complexity: "O(log N) for each value, N being all that is stored",
        handler: write_handler!(pop_numbered::<PriorityQueue, FIRST>),
        plan: Some(plan_pop::<PriorityQueue, FIRST>),
        ..priority_queue("pq.popmin", -2)
    },
    Row {
        flags: TAKE,
        key_use: KeyUse::ReadWrite,
        summary: "Returns the values of the highest priority, the oldest first, after removing them. Deletes the queue if the last value was popped.",
        complexity: "O(log N) for each value, N being all that is stored",
        handler: write_handler!(pop_numbered::<PriorityQueue, LAST>),
        plan: Some(plan_pop::<PriorityQueue, LAST>),
        ..priority_queue("pq.popmax", -2)
    },
    Row {
        summary: "Returns the values of the lowest priority, the oldest first.",
        complexity: "O(log N) for each value, N being all that is stored",
        handler: read_handler!(read::peekmin),
        ..priority_queue("pq.peekmin", -2)
    },
    Row {
        summary: "Returns the values of the highest priority, the oldest first.",
        complexity: "O(log N) for each value, N being all that is stored",
        handler: read_handler!(read::peekmax),
        ..priority_queue("pq.peekmax", -2)
    },
    Row {
        summary: "Returns the number of values in a priority queue.",
        complexity: "O(1)",
        ..priority_queue("pq.len", 2)
    },
    Row {
        summary: "Returns the count of values in a priority queue that have priorities within a range.",
        complexity: "O(M) with M values inside the range or outside of it, whichever are fewer",
        handler: read_handler!(read::count),
        ..priority_queue("pq.count", 4)
    },
    Row {
        flags: Flags::READONLY,
        summary: "Returns values in a priority queue within a range of indexes, in ascending or (REV) descending order of priorities; the oldest of a priority first in either.",
        complexity: "O(S + M) with M values returned and S the distance to the nearer end, with REV to the highest priority",
        handler: read_handler!(read::range),
        ..priority_queue("pq.range", -4)
    },
    Row {
        flags: Flags::WRITE.and(Flags::DENYOOM),
        keys: KeyPositions::FIRST_TWO,
        key_use: KeyUse::ReadWrite,
        summary: "Pops the oldest value of the lowest or highest priority, pushes it to another priority queue with that priority, and returns both. Deletes the queue if the last value was moved.",
        complexity: "O(log N), N being all that is stored",
        handler: write_handler!(pop::move_value),
        ..priority_queue("pq.move", 4)
    },
];
