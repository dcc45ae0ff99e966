//! The rows of the sorted-set commands.

use super::{add, algebra, members, range, remove};
use crate::command::flags::Flags;
use crate::command::grammar::{
    Argument, COUNT, LIMIT, block, double, integer, key, oneof, pattern, string, token,
};
use crate::command::key_specs::{
    CHECK, DELETE, OVERWRITE, READ, READ_UPDATE, TAKE, UPDATE, at, counted_at, up_to,
};
use crate::command::popping::{
    FIRST, LAST, blocking_multi_pop, blocking_pop, has_no_zero_count, is_any, multi_pop,
    plan_blocking_multi_pop, plan_blocking_pop, plan_multi_pop, plan_pop, pop_coalesced,
    pop_numbered, wait_to_multi_pop, wait_to_pop,
};
use crate::command::row::{Group, Handler, Row};
use crate::zset::SortedSetType;
use crate::{coalescing, read_handler, write_handler};

const GROW_FAST: Flags = Flags::DENYOOM.and(Flags::FAST);

const ONE_MEMBER: &str = "O(log N), N being all that is stored";
const EACH_MEMBER: &str = "O(log N) for each member, N being all that is stored";
const EACH_REMOVED: &str = "O(M) with M members removed";
const TO_NEARER_END: &str =
    "O(log N); before blocks are counted O(M) with M members between the member and the nearer end";
const INSIDE_OR_OUTSIDE: &str = "O(log N); before blocks are counted O(M) with M members inside the range or outside of it, \
     whichever are fewer";
const FROM_OFFSET: &str = "O(S + M) with S the offset and M members returned";
const UNION: &str = "O(N log N) with N members in all sets together";
const INTERSECTION: &str = "O(N * K) with N members in the smallest of K sets";
const DIFFERENCE: &str = "O(N * K) with N members in the first of K sets";
const KEYS_AND_MEMBERS: &str = "O(K + M) with K keys checked and M members returned";

const NUM_KEYS: Argument = integer("numkeys");
const END: Argument = oneof("where", &[token("MIN"), token("MAX")]);
const DESTINATION: Argument = key(0).named("destination");
const SORT_BY: Argument = oneof("sortby", &[token("BYSCORE"), token("BYLEX")]);
const WITH_SCORES: Argument = token("WITHSCORES").optional();
const WEIGHTS: Argument = integer("weight").token("WEIGHTS").optional().multiple();
const AGGREGATE: Argument = oneof("aggregate", &[token("SUM"), token("MIN"), token("MAX")])
    .token("AGGREGATE")
    .optional();

const TIMEOUT_IS_A_DOUBLE: (&str, &str) = (
    "6.0.0",
    "`timeout` is interpreted as a double instead of an integer.",
);

const fn sorted_set(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::SortedSet, handler).categories(&["@sortedset"])
}

/// The sorted-set commands.
pub const ROWS: &[Row] = &[
    sorted_set("zadd", -4, "1.2.0", write_handler!(add::zadd))
        .summary(
            "Adds one or more members to a sorted set, or updates their scores. Creates the key \
             if it doesn't exist.",
        )
        .complexity(EACH_MEMBER)
        .flags(GROW_FAST)
        .keys(&[at(1, UPDATE)])
        .history(&[
            ("2.4.0", "Accepts multiple elements."),
            ("3.0.2", "Added the `XX`, `NX`, `CH` and `INCR` options."),
            ("6.2.0", "Added the `GT` and `LT` options."),
        ])
        .arguments(&[
            key(0),
            oneof("condition", &[token("NX"), token("XX")])
                .since("3.0.2")
                .optional(),
            oneof("comparison", &[token("GT"), token("LT")])
                .since("6.2.0")
                .optional(),
            token("CH").named("change").since("3.0.2").optional(),
            token("INCR").named("increment").since("3.0.2").optional(),
            block("data", &[double("score"), string("member")]).multiple(),
        ])
        .plan(add::plan_add)
        .coalescing(coalescing!(is_any, add::zadd_coalesced)),
    sorted_set("zincrby", 4, "1.2.0", write_handler!(add::zincrby))
        .summary("Increments the score of a member in a sorted set.")
        .complexity(ONE_MEMBER)
        .flags(GROW_FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0), integer("increment"), string("member")])
        .plan(add::plan_add),
    sorted_set("zrem", -3, "1.2.0", write_handler!(remove::zrem))
        .summary(
            "Removes one or more members from a sorted set. Deletes the sorted set if all members \
             were removed.",
        )
        .complexity(EACH_MEMBER)
        .flags(Flags::FAST)
        .keys(&[at(1, DELETE)])
        .history(&[("2.4.0", "Accepts multiple elements.")])
        .arguments(&[key(0), string("member").multiple()]),
    sorted_set("zcard", 2, "1.2.0", read_handler!(members::zcard))
        .summary("Returns the number of members in a sorted set.")
        .flags(Flags::FAST)
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0)]),
    sorted_set("zscore", 3, "1.2.0", read_handler!(members::zscore))
        .summary("Returns the score of a member in a sorted set.")
        .complexity(ONE_MEMBER)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), string("member")]),
    sorted_set("zmscore", -3, "6.2.0", read_handler!(members::zmscore))
        .summary("Returns the score of one or more members in a sorted set.")
        .complexity(EACH_MEMBER)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), string("member").multiple()]),
    sorted_set("zrank", -3, "2.0.0", read_handler!(range::zrank))
        .summary("Returns the index of a member in a sorted set ordered by ascending scores.")
        .complexity(TO_NEARER_END)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .history(&[("7.2.0", "Added the optional `WITHSCORE` argument.")])
        .arguments(&[key(0), string("member"), token("WITHSCORE").optional()]),
    sorted_set("zrevrank", -3, "2.0.0", read_handler!(range::zrevrank))
        .summary("Returns the index of a member in a sorted set ordered by descending scores.")
        .complexity(TO_NEARER_END)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .history(&[("7.2.0", "Added the optional `WITHSCORE` argument.")])
        .arguments(&[key(0), string("member"), token("WITHSCORE").optional()]),
    sorted_set("zcount", 4, "2.0.0", read_handler!(range::zcount))
        .summary("Returns the count of members in a sorted set that have scores within a range.")
        .complexity(INSIDE_OR_OUTSIDE)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), double("min"), double("max")]),
    sorted_set("zlexcount", 4, "2.8.9", read_handler!(range::zlexcount))
        .summary("Returns the number of members in a sorted set within a lexicographical range.")
        .complexity(INSIDE_OR_OUTSIDE)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), string("min"), string("max")]),
    sorted_set("zrange", -4, "1.2.0", read_handler!(range::zrange))
        .summary("Returns members in a sorted set within a range of indexes.")
        .complexity(
            "O(S + M) with M members returned; by rank S is log N, or before blocks are \
             counted the distance to the nearer end, else the offset",
        )
        .keys(&[at(1, READ)])
        .history(&[(
            "6.2.0",
            "Added the `REV`, `BYSCORE`, `BYLEX` and `LIMIT` options.",
        )])
        .arguments(&[
            key(0),
            string("start"),
            string("stop"),
            SORT_BY.since("6.2.0").optional(),
            token("REV").since("6.2.0").optional(),
            LIMIT.since("6.2.0"),
            WITH_SCORES,
        ]),
    sorted_set(
        "zrangestore",
        -5,
        "6.2.0",
        write_handler!(range::zrangestore),
    )
    .summary("Stores a range of members from sorted set in a key.")
    .complexity(
        "O(S + M) with M members stored; by rank S is log N, or before blocks are \
         counted the distance to the nearer end, else the offset",
    )
    .flags(Flags::DENYOOM)
    .keys(&[at(1, OVERWRITE), at(2, READ)])
    .arguments(&[
        key(0).named("dst"),
        key(1).named("src"),
        string("min"),
        string("max"),
        SORT_BY.optional(),
        token("REV").optional(),
        LIMIT,
    ]),
    sorted_set("zrevrange", -4, "1.2.0", read_handler!(range::zrevrange))
        .summary("Returns members in a sorted set within a range of indexes in reverse order.")
        .complexity(
            "O(S + M) with M members returned; S is log N, or before blocks are counted the \
             distance to the nearer end",
        )
        .keys(&[at(1, READ)])
        .deprecated("6.2.0", "`ZRANGE` with the `REV` argument")
        .arguments(&[key(0), integer("start"), integer("stop"), WITH_SCORES]),
    sorted_set(
        "zrangebyscore",
        -4,
        "1.0.5",
        read_handler!(range::zrangebyscore),
    )
    .summary("Returns members in a sorted set within a range of scores.")
    .complexity(FROM_OFFSET)
    .keys(&[at(1, READ)])
    .history(&[("2.0.0", "Added the `WITHSCORES` modifier.")])
    .deprecated("6.2.0", "`ZRANGE` with the `BYSCORE` argument")
    .arguments(&[
        key(0),
        double("min"),
        double("max"),
        token("WITHSCORES").since("2.0.0").optional(),
        LIMIT,
    ]),
    sorted_set(
        "zrevrangebyscore",
        -4,
        "2.2.0",
        read_handler!(range::zrevrangebyscore),
    )
    .summary("Returns members in a sorted set within a range of scores in reverse order.")
    .complexity(FROM_OFFSET)
    .keys(&[at(1, READ)])
    .history(&[("2.1.6", "`min` and `max` can be exclusive.")])
    .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments")
    .arguments(&[key(0), double("max"), double("min"), WITH_SCORES, LIMIT]),
    sorted_set(
        "zrangebylex",
        -4,
        "2.8.9",
        read_handler!(range::zrangebylex),
    )
    .summary("Returns members in a sorted set within a lexicographical range.")
    .complexity(FROM_OFFSET)
    .keys(&[at(1, READ)])
    .deprecated("6.2.0", "`ZRANGE` with the `BYLEX` argument")
    .arguments(&[key(0), string("min"), string("max"), LIMIT]),
    sorted_set(
        "zrevrangebylex",
        -4,
        "2.8.9",
        read_handler!(range::zrevrangebylex),
    )
    .summary("Returns members in a sorted set within a lexicographical range in reverse order.")
    .complexity(FROM_OFFSET)
    .keys(&[at(1, READ)])
    .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments")
    .arguments(&[key(0), string("max"), string("min"), LIMIT]),
    sorted_set(
        "zpopmin",
        -2,
        "5.0.0",
        write_handler!(pop_numbered::<SortedSetType, FIRST>),
    )
    .summary(
        "Returns the lowest-scoring members from a sorted set after removing them. Deletes \
             the sorted set if the last member was popped.",
    )
    .complexity(EACH_MEMBER)
    .flags(Flags::FAST)
    .flags(Flags::CONTENDS)
    .keys(&[at(1, TAKE)])
    .arguments(&[key(0), integer("count").optional()])
    .plan(plan_pop::<SortedSetType, FIRST>)
    .coalescing(coalescing!(
        has_no_zero_count,
        pop_coalesced::<SortedSetType, FIRST>
    )),
    sorted_set(
        "zpopmax",
        -2,
        "5.0.0",
        write_handler!(pop_numbered::<SortedSetType, LAST>),
    )
    .summary(
        "Returns the highest-scoring members from a sorted set after removing them. Deletes \
             the sorted set if the last member was popped.",
    )
    .complexity(EACH_MEMBER)
    .flags(Flags::FAST)
    .flags(Flags::CONTENDS)
    .keys(&[at(1, TAKE)])
    .arguments(&[key(0), integer("count").optional()])
    .plan(plan_pop::<SortedSetType, LAST>)
    .coalescing(coalescing!(
        has_no_zero_count,
        pop_coalesced::<SortedSetType, LAST>
    )),
    sorted_set(
        "zmpop",
        -4,
        "7.0.0",
        write_handler!(multi_pop::<SortedSetType>),
    )
    .summary(
        "Returns the highest- or lowest-scoring members from one or more sorted sets after \
             removing them. Deletes the sorted set if the last member was popped.",
    )
    .complexity(KEYS_AND_MEMBERS)
    .flags(Flags::CONTENDS)
    .keys(&[counted_at(1, TAKE)])
    .arguments(&[NUM_KEYS, key(0).multiple(), END, COUNT])
    .plan(plan_multi_pop::<SortedSetType>),
    sorted_set(
        "zremrangebyrank",
        4,
        "2.0.0",
        write_handler!(remove::zremrangebyrank),
    )
    .summary(
        "Removes members in a sorted set within a range of indexes. Deletes the sorted set if \
         all members were removed.",
    )
    .complexity(
        "O(S + M) with M members removed; S is log N, or before blocks are counted the distance \
         to the nearer end",
    )
    .keys(&[at(1, DELETE)])
    .arguments(&[key(0), integer("start"), integer("stop")]),
    sorted_set(
        "zremrangebyscore",
        4,
        "1.2.0",
        write_handler!(remove::zremrangebyscore),
    )
    .summary(
        "Removes members in a sorted set within a range of scores. Deletes the sorted set if \
         all members were removed.",
    )
    .complexity(EACH_REMOVED)
    .keys(&[at(1, DELETE)])
    .arguments(&[key(0), double("min"), double("max")]),
    sorted_set(
        "zremrangebylex",
        4,
        "2.8.9",
        write_handler!(remove::zremrangebylex),
    )
    .summary(
        "Removes members in a sorted set within a lexicographical range. Deletes the sorted \
         set if all members were removed.",
    )
    .complexity(EACH_REMOVED)
    .keys(&[at(1, DELETE)])
    .arguments(&[key(0), string("min"), string("max")]),
    sorted_set("zunion", -3, "6.2.0", read_handler!(algebra::zunion))
        .summary("Returns the union of multiple sorted sets.")
        .complexity(UNION)
        .keys(&[counted_at(1, READ)])
        .arguments(&[NUM_KEYS, key(0).multiple(), WEIGHTS, AGGREGATE, WITH_SCORES]),
    sorted_set(
        "zunionstore",
        -4,
        "2.0.0",
        write_handler!(algebra::zunionstore),
    )
    .summary("Stores the union of multiple sorted sets in a key.")
    .complexity(UNION)
    .flags(Flags::DENYOOM)
    .keys(&[at(1, OVERWRITE), counted_at(2, READ)])
    .arguments(&[DESTINATION, NUM_KEYS, key(1).multiple(), WEIGHTS, AGGREGATE]),
    sorted_set("zinter", -3, "6.2.0", read_handler!(algebra::zinter))
        .summary("Returns the intersect of multiple sorted sets.")
        .complexity(INTERSECTION)
        .keys(&[counted_at(1, READ)])
        .arguments(&[NUM_KEYS, key(0).multiple(), WEIGHTS, AGGREGATE, WITH_SCORES]),
    sorted_set(
        "zinterstore",
        -4,
        "2.0.0",
        write_handler!(algebra::zinterstore),
    )
    .summary("Stores the intersect of multiple sorted sets in a key.")
    .complexity(INTERSECTION)
    .flags(Flags::DENYOOM)
    .keys(&[at(1, OVERWRITE), counted_at(2, READ)])
    .arguments(&[DESTINATION, NUM_KEYS, key(1).multiple(), WEIGHTS, AGGREGATE]),
    sorted_set(
        "zintercard",
        -3,
        "7.0.0",
        read_handler!(algebra::zintercard),
    )
    .summary("Returns the number of members of the intersect of multiple sorted sets.")
    .complexity(INTERSECTION)
    .keys(&[counted_at(1, READ)])
    .arguments(&[
        NUM_KEYS,
        key(0).multiple(),
        integer("limit").token("LIMIT").optional(),
    ]),
    sorted_set("zdiff", -3, "6.2.0", read_handler!(algebra::zdiff))
        .summary("Returns the difference between multiple sorted sets.")
        .complexity(DIFFERENCE)
        .keys(&[counted_at(1, READ)])
        .arguments(&[NUM_KEYS, key(0).multiple(), WITH_SCORES]),
    sorted_set(
        "zdiffstore",
        -4,
        "6.2.0",
        write_handler!(algebra::zdiffstore),
    )
    .summary("Stores the difference of multiple sorted sets in a key.")
    .complexity(DIFFERENCE)
    .flags(Flags::DENYOOM)
    .keys(&[at(1, OVERWRITE), counted_at(2, READ)])
    .arguments(&[DESTINATION, NUM_KEYS, key(1).multiple()]),
    sorted_set(
        "zrandmember",
        -2,
        "6.2.0",
        read_handler!(members::zrandmember),
    )
    .summary("Returns one or more random members from a sorted set.")
    .complexity(
        "O(log N) for each member returned, N being all that is stored; O(M) for a third or \
         more of the set's M members",
    )
    .keys(&[at(1, READ)])
    .tips(&["nondeterministic_output"])
    .arguments(&[
        key(0),
        block("options", &[integer("count"), WITH_SCORES]).optional(),
    ]),
    sorted_set("zscan", -3, "2.8.0", read_handler!(members::zscan))
        .summary("Iterates over members and scores of a sorted set.")
        .complexity("O(log N) for each call, O(M) for a whole iteration over M members")
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output"])
        .arguments(&[
            key(0),
            integer("cursor"),
            pattern("pattern").token("MATCH").optional(),
            COUNT,
        ]),
    sorted_set(
        "bzpopmin",
        -3,
        "5.0.0",
        write_handler!(blocking_pop::<SortedSetType, FIRST>),
    )
    .summary(
        "Removes and returns the member with the lowest score from one or more sorted sets. \
             Blocks until a member is available otherwise. Deletes the sorted set if the last \
             element was popped.",
    )
    .complexity("O(K) with K keys checked")
    .flags(Flags::BLOCKING.and(Flags::FAST))
    .flags(Flags::CONTENDS)
    .keys(&[up_to(1, -2, TAKE)])
    .history(&[TIMEOUT_IS_A_DOUBLE])
    .arguments(&[key(0).multiple(), double("timeout")])
    .plan(plan_blocking_pop::<SortedSetType, FIRST>)
    .waits(wait_to_pop::<SortedSetType>),
    sorted_set(
        "bzpopmax",
        -3,
        "5.0.0",
        write_handler!(blocking_pop::<SortedSetType, LAST>),
    )
    .summary(
        "Removes and returns the member with the highest score from one or more sorted sets. \
             Blocks until a member available otherwise.  Deletes the sorted set if the last \
             element was popped.",
    )
    .complexity("O(K) with K keys checked")
    .flags(Flags::BLOCKING.and(Flags::FAST))
    .flags(Flags::CONTENDS)
    .keys(&[up_to(1, -2, TAKE)])
    .history(&[TIMEOUT_IS_A_DOUBLE])
    .arguments(&[key(0).multiple(), double("timeout")])
    .plan(plan_blocking_pop::<SortedSetType, LAST>)
    .waits(wait_to_pop::<SortedSetType>),
    sorted_set(
        "bzmpop",
        -5,
        "7.0.0",
        write_handler!(blocking_multi_pop::<SortedSetType>),
    )
    .summary(
        "Removes and returns a member by score from one or more sorted sets. Blocks until a \
             member is available otherwise. Deletes the sorted set if the last element was \
             popped.",
    )
    .complexity(KEYS_AND_MEMBERS)
    .flags(Flags::BLOCKING)
    .flags(Flags::CONTENDS)
    .keys(&[counted_at(2, TAKE)])
    .arguments(&[double("timeout"), NUM_KEYS, key(0).multiple(), END, COUNT])
    .plan(plan_blocking_multi_pop::<SortedSetType>)
    .waits(wait_to_multi_pop::<SortedSetType>),
];
