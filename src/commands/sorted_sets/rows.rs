//! The rows of the sorted-set commands.

use super::pop::SortedSet;
use super::{add, algebra, random, range, rank, remove, scan, score};
use crate::commands::popping::{FIRST, LAST, multi_pop, plan_multi_pop, plan_pop, pop_numbered};
use crate::commands::row::{Flags, Group, KeyPositions, KeyUse, Row};
use crate::{read_handler, write_handler};

const COUNTED: KeyPositions = KeyPositions::Counted { count: 1 };
const PUT: Flags = Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST);
const TAKE: Flags = Flags::WRITE.and(Flags::FAST);
const STORE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const GET: Flags = Flags::READONLY.and(Flags::FAST);
const READ: Flags = Flags::READONLY;
const COMBINE: Flags = Flags::READONLY.and(Flags::MOVABLEKEYS);
const COMBINE_STORE: Flags = STORE.and(Flags::MOVABLEKEYS);

pub(super) const fn sorted_set(name: &'static str, arity: i32) -> Row {
    Row {
        name,
        arity,
        flags: READ,
        keys: KeyPositions::FIRST,
        key_use: KeyUse::Read,
        since: "1.2.0",
        group: Group::SortedSet,
        summary: "",
        complexity: "",
        handler: read_handler!(score::zcard),
        subcommands: &[],
        plan: None,
        waits: None,
    }
}

/// The sorted-set commands.
pub const ROWS: &[Row] = &[
    Row {
        flags: PUT,
        key_use: KeyUse::ReadWrite,
        summary: "Adds one or more members to a sorted set, or updates their scores. Creates the key if it doesn't exist.",
        complexity: "O(log N) for each member, N being all that is stored",
        handler: write_handler!(add::zadd),
        plan: Some(add::plan_add),
        ..sorted_set("zadd", -4)
    },
    Row {
        flags: PUT,
        key_use: KeyUse::ReadWrite,
        summary: "Increments the score of a member in a sorted set.",
        complexity: "O(log N), N being all that is stored",
        handler: write_handler!(add::zincrby),
        plan: Some(add::plan_add),
        ..sorted_set("zincrby", 4)
    },
    Row {
        flags: TAKE,
        key_use: KeyUse::ReadWrite,
        summary: "Removes one or more members from a sorted set. Deletes the sorted set if all members were removed.",
        complexity: "O(log N) for each member, N being all that is stored",
        handler: write_handler!(remove::zrem),
        ..sorted_set("zrem", -3)
    },
    Row {
        flags: GET,
        summary: "Returns the number of members in a sorted set.",
        complexity: "O(1)",
        handler: read_handler!(score::zcard),
        ..sorted_set("zcard", 2)
    },
    Row {
        flags: GET,
        summary: "Returns the score of a member in a sorted set.",
        complexity: "O(log N), N being all that is stored",
        handler: read_handler!(score::zscore),
        ..sorted_set("zscore", 3)
    },
    Row {
        flags: GET,
        since: "6.2.0",
        summary: "Returns the score of one or more members in a sorted set.",
        complexity: "O(log N) for each member, N being all that is stored",
        handler: read_handler!(score::zmscore),
        ..sorted_set("zmscore", -3)
    },
    Row {
        flags: GET,
        since: "2.0.0",
        summary: "Returns the index of a member in a sorted set ordered by ascending scores.",
        complexity: "O(M) with M members between the member and the nearer end",
        handler: read_handler!(rank::zrank),
        ..sorted_set("zrank", -3)
    },
    Row {
        flags: GET,
        since: "2.0.0",
        summary: "Returns the index of a member in a sorted set ordered by descending scores.",
        complexity: "O(M) with M members between the member and the nearer end",
        handler: read_handler!(rank::zrevrank),
        ..sorted_set("zrevrank", -3)
    },
    Row {
        flags: GET,
        since: "2.0.0",
        summary: "Returns the count of members in a sorted set that have scores within a range.",
        complexity: "O(M) with M members inside the range or outside of it, whichever are fewer",
        handler: read_handler!(rank::zcount),
        ..sorted_set("zcount", 4)
    },
    Row {
        flags: GET,
        since: "2.8.9",
        summary: "Returns the number of members in a sorted set within a lexicographical range.",
        complexity: "O(M) with M members inside the range or outside of it, whichever are fewer",
        handler: read_handler!(rank::zlexcount),
        ..sorted_set("zlexcount", 4)
    },
    Row {
        summary: "Returns members in a sorted set within a range of indexes.",
        complexity: "O(S + M) with M members returned; by rank S is the distance to the nearer end, else the offset",
        handler: read_handler!(range::zrange),
        ..sorted_set("zrange", -4)
    },
    Row {
        flags: STORE,
        keys: KeyPositions::FIRST_TWO,
        key_use: KeyUse::Overwrite,
        since: "6.2.0",
        summary: "Stores a range of members from sorted set in a key.",
        complexity: "O(S + M) with M members stored; by rank S is the distance to the nearer end, else the offset",
        handler: write_handler!(range::zrangestore),
        ..sorted_set("zrangestore", -5)
    },
    Row {
        summary: "Returns members in a sorted set within a range of indexes in reverse order.",
        complexity: "O(S + M) with S the distance to the nearer end and M members returned",
        handler: read_handler!(range::zrevrange),
        ..sorted_set("zrevrange", -4)
    },
    Row {
        since: "1.0.5",
        summary: "Returns members in a sorted set within a range of scores.",
        complexity: "O(S + M) with S the offset and M members returned",
        handler: read_handler!(range::zrangebyscore),
        ..sorted_set("zrangebyscore", -4)
    },
    Row {
        since: "2.2.0",
        summary: "Returns members in a sorted set within a range of scores in reverse order.",
        complexity: "O(S + M) with S the offset and M members returned",
        handler: read_handler!(range::zrevrangebyscore),
        ..sorted_set("zrevrangebyscore", -4)
    },
    Row {
        since: "2.8.9",
        summary: "Returns members in a sorted set within a lexicographical range.",
        complexity: "O(S + M) with S the offset and M members returned",
        handler: read_handler!(range::zrangebylex),
        ..sorted_set("zrangebylex", -4)
    },
    Row {
        since: "2.8.9",
        summary: "Returns members in a sorted set within a lexicographical range in reverse order.",
        complexity: "O(S + M) with S the offset and M members returned",
        handler: read_handler!(range::zrevrangebylex),
        ..sorted_set("zrevrangebylex", -4)
    },
    Row {
        flags: TAKE,
        key_use: KeyUse::ReadWrite,
        since: "5.0.0",
        summary: "Returns the lowest-scoring members from a sorted set after removing them. Deletes the sorted set if the last member was popped.",
        complexity: "O(log N) for each member, N being all that is stored",
        handler: write_handler!(pop_numbered::<SortedSet, FIRST>),
        plan: Some(plan_pop::<SortedSet, FIRST>),
        ..sorted_set("zpopmin", -2)
    },
    Row {
        flags: TAKE,
        key_use: KeyUse::ReadWrite,
        since: "5.0.0",
        summary: "Returns the highest-scoring members from a sorted set after removing them. Deletes the sorted set if the last member was popped.",
        complexity: "O(log N) for each member, N being all that is stored",
        handler: write_handler!(pop_numbered::<SortedSet, LAST>),
        plan: Some(plan_pop::<SortedSet, LAST>),
        ..sorted_set("zpopmax", -2)
    },
    Row {
        flags: Flags::WRITE.and(Flags::MOVABLEKEYS),
        keys: COUNTED,
        key_use: KeyUse::ReadWrite,
        since: "7.0.0",
        summary: "Returns the highest- or lowest-scoring members from one or more sorted sets after removing them. Deletes the sorted set if the last member was popped.",
        complexity: "O(K + M) with K keys looked at and M members returned",
        handler: write_handler!(multi_pop::<SortedSet>),
        plan: Some(plan_multi_pop::<SortedSet>),
        ..sorted_set("zmpop", -4)
    },
    Row {
        flags: Flags::WRITE,
        key_use: KeyUse::ReadWrite,
        since: "2.0.0",
        summary: "Removes members in a sorted set within a range of indexes. Deletes the sorted set if all members were removed.",
        complexity: "O(S + M) with S the distance to the nearer end and M members removed",
        handler: write_handler!(remove::zremrangebyrank),
        ..sorted_set("zremrangebyrank", 4)
    },
    Row {
        flags: Flags::WRITE,
        key_use: KeyUse::ReadWrite,
        summary: "Removes members in a sorted set within a range of scores. Deletes the sorted set if all members were removed.",
        complexity: "O(M) with M members removed",
        handler: write_handler!(remove::zremrangebyscore),
        ..sorted_set("zremrangebyscore", 4)
    },
    Row {
        flags: Flags::WRITE,
        key_use: KeyUse::ReadWrite,
        since: "2.8.9",
        summary: "Removes members in a sorted set within a lexicographical range. Deletes the sorted set if all members were removed.",
        complexity: "O(M) with M members removed",
        handler: write_handler!(remove::zremrangebylex),
        ..sorted_set("zremrangebylex", 4)
    },
    Row {
        flags: COMBINE,
        keys: COUNTED,
        since: "6.2.0",
        summary: "Returns the union of multiple sorted sets.",
        complexity: "O(N log N) with N members in all sets together",
        handler: read_handler!(algebra::zunion),
        ..sorted_set("zunion", -3)
    },
    Row {
        flags: COMBINE_STORE,
        keys: KeyPositions::DestinationAndCounted,
        key_use: KeyUse::Overwrite,
        since: "2.0.0",
        summary: "Stores the union of multiple sorted sets in a key.",
        complexity: "O(N log N) with N members in all sets together",
        handler: write_handler!(algebra::zunionstore),
        ..sorted_set("zunionstore", -4)
    },
    Row {
        flags: COMBINE,
        keys: COUNTED,
        since: "6.2.0",
        summary: "Returns the intersect of multiple sorted sets.",
        complexity: "O(N * K) with N members in the smallest of K sets",
        handler: read_handler!(algebra::zinter),
        ..sorted_set("zinter", -3)
    },
    Row {
        flags: COMBINE_STORE,
        keys: KeyPositions::DestinationAndCounted,
        key_use: KeyUse::Overwrite,
        since: "2.0.0",
        summary: "Stores the intersect of multiple sorted sets in a key.",
        complexity: "O(N * K) with N members in the smallest of K sets",
        handler: write_handler!(algebra::zinterstore),
        ..sorted_set("zinterstore", -4)
    },
    Row {
        flags: COMBINE,
        keys: COUNTED,
        since: "7.0.0",
        summary: "Returns the number of members of the intersect of multiple sorted sets.",
        complexity: "O(N * K) with N members in the smallest of K sets",
        handler: read_handler!(algebra::zintercard),
        ..sorted_set("zintercard", -3)
    },
    Row {
        flags: COMBINE,
        keys: COUNTED,
        since: "6.2.0",
        summary: "Returns the difference between multiple sorted sets.",
        complexity: "O(N * K) with N members in the first of K sets",
        handler: read_handler!(algebra::zdiff),
        ..sorted_set("zdiff", -3)
    },
    Row {
        flags: COMBINE_STORE,
        keys: KeyPositions::DestinationAndCounted,
        key_use: KeyUse::Overwrite,
        since: "6.2.0",
        summary: "Stores the difference of multiple sorted sets in a key.",
        complexity: "O(N * K) with N members in the first of K sets",
        handler: write_handler!(algebra::zdiffstore),
        ..sorted_set("zdiffstore", -4)
    },
    Row {
        since: "6.2.0",
        summary: "Returns one or more random members from a sorted set.",
        complexity: "O(log N) for each member returned, N being all that is stored; O(M) for a third or more of the set's M members",
        handler: read_handler!(random::zrandmember),
        ..sorted_set("zrandmember", -2)
    },
    Row {
        since: "2.8.0",
        summary: "Iterates over members and scores of a sorted set.",
        complexity: "O(log N) for each call, O(M) for a whole iteration over M members",
        handler: read_handler!(scan::zscan),
        ..sorted_set("zscan", -3)
    },
];
