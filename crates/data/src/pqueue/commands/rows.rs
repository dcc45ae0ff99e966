//! The rows of the priority-queue commands.

use super::{push_pop, read};
use crate::command::flags::Flags;
use crate::command::grammar;
use crate::command::grammar::{Argument, block, double, integer, key, oneof, string, token};
use crate::command::key_specs::{CHECK, DELETE, INSERT, READ, TAKE, at, up_to};
use crate::command::popping::{
    FIRST, LAST, blocking_pop, has_no_zero_count, is_any, plan_blocking_pop, plan_pop,
    pop_coalesced, pop_numbered, wait_to_pop,
};
use crate::command::row::{Group, Handler, Row};
use crate::pqueue::{PriorityQueueType, dumping};
use crate::{coalescing, read_handler, write_handler};

const EACH_VALUE: &str = "O(log N) for each value, N being all that is stored";
const COUNT: Argument = integer("count").optional();

/// A row of a command. Redis has no ACL category for priority queues.
const fn priority_queue(name: &'static str, arity: i32, handler: Handler) -> Row {
    Row::new(name, arity, "0.1.0", Group::PriorityQueue, handler).categories(&["@pqueue"])
}

/// The priority-queue commands.
pub const ROWS: &[Row] = &[
    priority_queue("pq.push", -4, write_handler!(push_pop::push))
        .summary(
            "Adds one or more values to a priority queue, each after the values of the same \
             priority. Creates the key if it doesn't exist.",
        )
        .complexity(EACH_VALUE)
        .flags(Flags::DENYOOM.and(Flags::FAST))
        .keys(&[at(1, INSERT)])
        .arguments(&[
            key(0),
            block("data", &[double("priority"), string("value")]).multiple(),
        ])
        .coalescing(coalescing!(is_any, push_pop::push_coalesced)),
    priority_queue(
        "pq.popmin",
        -2,
        write_handler!(pop_numbered::<PriorityQueueType, FIRST>),
    )
    .summary(
        "Returns the lowest-priority values of a priority queue, oldest first, after removing \
         them. Deletes the queue if the last value was popped.",
    )
    .complexity(EACH_VALUE)
    .flags(Flags::FAST)
    .flags(Flags::CONTENDS)
    .keys(&[at(1, TAKE)])
    .arguments(&[key(0), COUNT])
    .plan(plan_pop::<PriorityQueueType, FIRST>)
    .coalescing(coalescing!(
        has_no_zero_count,
        pop_coalesced::<PriorityQueueType, FIRST>
    )),
    priority_queue(
        "pq.popmax",
        -2,
        write_handler!(pop_numbered::<PriorityQueueType, LAST>),
    )
    .summary(
        "Returns the highest-priority values of a priority queue, oldest first, after removing \
         them. Deletes the queue if the last value was popped.",
    )
    .complexity(EACH_VALUE)
    .flags(Flags::FAST)
    .flags(Flags::CONTENDS)
    .keys(&[at(1, TAKE)])
    .arguments(&[key(0), COUNT])
    .plan(plan_pop::<PriorityQueueType, LAST>)
    .coalescing(coalescing!(
        has_no_zero_count,
        pop_coalesced::<PriorityQueueType, LAST>
    )),
    priority_queue("pq.peekmin", -2, read_handler!(read::peekmin))
        .summary("Returns the lowest-priority values of a priority queue, oldest first.")
        .complexity(EACH_VALUE)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), COUNT]),
    priority_queue("pq.peekmax", -2, read_handler!(read::peekmax))
        .summary("Returns the highest-priority values of a priority queue, oldest first.")
        .complexity(EACH_VALUE)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), COUNT]),
    priority_queue("pq.len", 2, read_handler!(read::len))
        .summary("Returns the number of values in a priority queue.")
        .flags(Flags::FAST)
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0)]),
    priority_queue("pq.count", 4, read_handler!(read::count))
        .summary("Counts the values of a priority queue whose priorities are within a range.")
        .complexity(
            "O(log N); before blocks are counted O(M) with M values inside the range or outside of \
             it, whichever are fewer",
        )
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), double("min"), double("max")]),
    priority_queue("pq.range", -4, read_handler!(read::range))
        .summary(
            "Returns the values of a priority queue within a range of indexes, by ascending or \
             (REV) descending priority, oldest first within a priority.",
        )
        .complexity(
            "O(S + M) with M values returned; S is log N, or before blocks are counted the distance \
             to the nearer end, and with REV the distance to the highest priority",
        )
        .keys(&[at(1, READ)])
        .arguments(&[
            key(0),
            integer("start"),
            integer("stop"),
            token("REV").optional(),
        ]),
    priority_queue("pq.list", -2, read_handler!(read::list))
        .summary(
            "Returns some values with their priorities, lowest priority and oldest first, and the \
             cursor to continue from.",
        )
        .complexity("O(log N + M) with M values returned, N being all that is stored")
        .keys(&[at(1, READ)])
        .arguments(&[
            key(0),
            string("cursor").token("CURSOR").optional(),
            grammar::COUNT,
        ]),
    priority_queue("pq.rem", -4, write_handler!(push_pop::rem))
        .summary(
            "Removes the oldest occurrence of a value with a priority, or the oldest COUNT \
             occurrences. Deletes the queue if the last value was removed.",
        )
        .complexity("O(M) with M values of the priority up to the last one removed")
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), double("priority"), string("value"), grammar::COUNT]),
    priority_queue("pq.move", 4, write_handler!(push_pop::move_value))
        .summary(
            "Moves the oldest value of the lowest or highest priority to another priority queue, \
             and returns it with its priority. Deletes the queue if the last value was moved.",
        )
        .complexity("O(log N), N being all that is stored")
        .flags(Flags::DENYOOM)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE), at(2, INSERT)])
        .arguments(&[
            key(0).named("source"),
            key(1).named("destination"),
            oneof("where", &[token("MIN"), token("MAX")]),
        ]),
    priority_queue("pq.scandump", -3, read_handler!(dumping::scan_dump))
        .summary("Returns some values in the format of DUMP, and the cursor to continue from.")
        .complexity(EACH_VALUE)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), string("cursor"), grammar::COUNT]),
    priority_queue("pq.loadchunk", 3, write_handler!(dumping::load_chunk))
        .summary("Adds values that PQ.SCANDUMP returned. Creates the key if it doesn't exist.")
        .complexity(EACH_VALUE)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, INSERT)])
        .categories(&["@pqueue", "@dangerous"])
        .arguments(&[key(0), string("chunk")]),
    priority_queue(
        "pq.bpopmin",
        -3,
        write_handler!(blocking_pop::<PriorityQueueType, FIRST>),
    )
    .summary(
        "Removes and returns the oldest value of the lowest priority from one or more priority \
         queues. Blocks until a value is available otherwise. Deletes the queue if the last value \
         was popped.",
    )
    .complexity("O(K) with K keys checked")
    .flags(Flags::BLOCKING.and(Flags::FAST))
    .flags(Flags::CONTENDS)
    .keys(&[up_to(1, -2, TAKE)])
    .arguments(&[key(0).multiple(), double("timeout")])
    .plan(plan_blocking_pop::<PriorityQueueType, FIRST>)
    .waits(wait_to_pop::<PriorityQueueType>),
    priority_queue(
        "pq.bpopmax",
        -3,
        write_handler!(blocking_pop::<PriorityQueueType, LAST>),
    )
    .summary(
        "Removes and returns the oldest value of the highest priority from one or more priority \
         queues. Blocks until a value is available otherwise. Deletes the queue if the last value \
         was popped.",
    )
    .complexity("O(K) with K keys checked")
    .flags(Flags::BLOCKING.and(Flags::FAST))
    .flags(Flags::CONTENDS)
    .keys(&[up_to(1, -2, TAKE)])
    .arguments(&[key(0).multiple(), double("timeout")])
    .plan(plan_blocking_pop::<PriorityQueueType, LAST>)
    .waits(wait_to_pop::<PriorityQueueType>),
];
