//! BZPOPMIN, BZPOPMAX, BZMPOP: the sorted-set commands that wait. As those of lists do, each
//! answers null where there is nothing to pop.

use super::pop::SortedSet;
use super::rows::sorted_set;
use crate::commands::popping::{
    FIRST, LAST, blocking_multi_pop, blocking_pop, plan_blocking_multi_pop, plan_blocking_pop,
    wait_to_multi_pop, wait_to_pop,
};
use crate::commands::row::{Flags, KeyPositions, KeyUse, Row};
use crate::write_handler;

/// The sorted-set commands that wait.
pub const ROWS: &[Row] = &[
    Row {
        flags: Flags::WRITE.and(Flags::FAST).and(Flags::BLOCKING),
        keys: KeyPositions::ALL_BUT_LAST,
        key_use: KeyUse::ReadWrite,
        since: "5.0.0",
        summary: "Removes and returns the member with the lowest score from one or more sorted sets. Blocks until a member is available otherwise. Deletes the sorted set if the last element was popped.",
        complexity: "O(K) with K keys looked at",
        handler: write_handler!(blocking_pop::<SortedSet, FIRST>),
        plan: Some(plan_blocking_pop::<SortedSet, FIRST>),
        waits: Some(wait_to_pop::<SortedSet>),
        ..sorted_set("bzpopmin", -3)
    },
    Row {
        flags: Flags::WRITE.and(Flags::FAST).and(Flags::BLOCKING),
        keys: KeyPositions::ALL_BUT_LAST,
        key_use: KeyUse::ReadWrite,
        since: "5.0.0",
        summary: "Removes and returns the member with the highest score from one or more sorted sets. Blocks until a member available otherwise.  Deletes the sorted set if the last element was popped.",
        complexity: "O(K) with K keys looked at",
        handler: write_handler!(blocking_pop::<SortedSet, LAST>),
        plan: Some(plan_blocking_pop::<SortedSet, LAST>),
        waits: Some(wait_to_pop::<SortedSet>),
        ..sorted_set("bzpopmax", -3)
    },
    Row {
        flags: Flags::WRITE.and(Flags::BLOCKING).and(Flags::MOVABLEKEYS),
        keys: KeyPositions::Counted { count: 2 },
        key_use: KeyUse::ReadWrite,
        since: "7.0.0",
        summary: "Removes and returns a member by score from one or more sorted sets. Blocks until a member is available otherwise. Deletes the sorted set if the last element was popped.",
        complexity: "O(K + M) with K keys looked at and M members returned",
        handler: write_handler!(blocking_multi_pop::<SortedSet>),
        plan: Some(plan_blocking_multi_pop::<SortedSet>),
        waits: Some(wait_to_multi_pop::<SortedSet>),
        ..sorted_set("bzmpop", -5)
    },
];
