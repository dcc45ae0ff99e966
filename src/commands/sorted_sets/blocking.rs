//! BZPOPMIN, BZPOPMAX, BZMPOP: the sorted-set commands that wait. As those of lists do, each
//! answers null where there is nothing to pop.

use bytes::Bytes;

use super::pop::SortedSet;
use super::rows::sorted_set;
use crate::commands::popping::{
    blocking_multi_pop, blocking_pop, plan_blocking_multi_pop, plan_pop_one, wait_for_one,
    wait_for_some,
};
use crate::commands::row::{Flags, KeyPositions, KeyUse, Row};
use crate::error::CommandError;
use crate::reply::Reply;
use crate::types::WriteContext;
use crate::types::sorted_set::Extreme;
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
        handler: write_handler!(bzpopmin),
        plan: Some(|_| plan_pop_one::<SortedSet>(Extreme::Min)),
        waits: Some(wait_for_one::<SortedSet>),
        ..sorted_set("bzpopmin", -3)
    },
    Row {
        flags: Flags::WRITE.and(Flags::FAST).and(Flags::BLOCKING),
        keys: KeyPositions::ALL_BUT_LAST,
        key_use: KeyUse::ReadWrite,
        since: "5.0.0",
        summary: "Removes and returns the member with the highest score from one or more sorted sets. Blocks until a member available otherwise.  Deletes the sorted set if the last element was popped.",
        complexity: "O(K) with K keys looked at",
        handler: write_handler!(bzpopmax),
        plan: Some(|_| plan_pop_one::<SortedSet>(Extreme::Max)),
        waits: Some(wait_for_one::<SortedSet>),
        ..sorted_set("bzpopmax", -3)
    },
    Row {
        flags: Flags::WRITE.and(Flags::BLOCKING).and(Flags::MOVABLEKEYS),
        keys: KeyPositions::Counted { count: 2 },
        key_use: KeyUse::ReadWrite,
        since: "7.0.0",
        summary: "Removes and returns a member by score from one or more sorted sets. Blocks until a member is available otherwise. Deletes the sorted set if the last element was popped.",
        complexity: "O(K + M) with K keys looked at and M members returned",
        handler: write_handler!(bzmpop),
        plan: Some(plan_blocking_multi_pop::<SortedSet>),
        waits: Some(wait_for_some::<SortedSet>),
        ..sorted_set("bzmpop", -5)
    },
];

/// `BZPOPMIN key [key …] timeout` → the first key that has members, the one popped, its score.
async fn bzpopmin(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    blocking_pop::<SortedSet>(context, arguments, Extreme::Min).await
}

/// `BZPOPMAX key [key …] timeout` → the first key that has members, the one popped, its score.
async fn bzpopmax(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    blocking_pop::<SortedSet>(context, arguments, Extreme::Max).await
}

/// `BZMPOP timeout numkeys key [key …] MIN|MAX [COUNT count]` → the first key that has members,
/// and those popped.
async fn bzmpop(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    blocking_multi_pop::<SortedSet>(context, arguments).await
}
