//! BZPOPMIN, BZPOPMAX, BZMPOP: the sorted-set commands that wait. As those of lists do, each
//! answers null where there is nothing to pop.

use super::pop::SortedSet;
use super::rows::{END, KEYS_AND_MEMBERS, NUM_KEYS, sorted_set};
use crate::command::flags::Flags;
use crate::command::grammar::{COUNT, double, key};
use crate::command::key_specs::{TAKE, counted_at, up_to};
use crate::command::popping::{
    FIRST, LAST, blocking_multi_pop, blocking_pop, plan_blocking_multi_pop, plan_blocking_pop,
    wait_to_multi_pop, wait_to_pop,
};
use crate::command::row::Row;
use crate::write_handler;

const TIMEOUT_IS_A_DOUBLE: (&str, &str) = (
    "6.0.0",
    "`timeout` is interpreted as a double instead of an integer.",
);

/// The sorted-set commands that wait.
pub const ROWS: &[Row] = &[
    sorted_set(
        "bzpopmin",
        -3,
        "5.0.0",
        write_handler!(blocking_pop::<SortedSet, FIRST>),
    )
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
    .plan(plan_blocking_pop::<SortedSet, FIRST>)
    .waits(wait_to_pop::<SortedSet>),
    sorted_set(
        "bzpopmax",
        -3,
        "5.0.0",
        write_handler!(blocking_pop::<SortedSet, LAST>),
    )
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
    .plan(plan_blocking_pop::<SortedSet, LAST>)
    .waits(wait_to_pop::<SortedSet>),
    sorted_set(
        "bzmpop",
        -5,
        "7.0.0",
        write_handler!(blocking_multi_pop::<SortedSet>),
    )
    .summary(
        "Removes and returns a member by score from one or more sorted sets. Blocks until a \
             member is available otherwise. Deletes the sorted set if the last element was \
             popped.",
    )
    .complexity(KEYS_AND_MEMBERS)
    .flags(Flags::BLOCKING)
    .keys(&[counted_at(2, TAKE)])
    .arguments(&[double("timeout"), NUM_KEYS, key(0).multiple(), END, COUNT])
    .plan(plan_blocking_multi_pop::<SortedSet>)
    .waits(wait_to_multi_pop::<SortedSet>),
];
