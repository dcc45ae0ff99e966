//! The rows of the set commands.

use super::{algebra, members, random};
use crate::command::flags::Flags;
use crate::command::grammar::{Argument, COUNT, integer, key, pattern, string, token};
use crate::command::key_specs::{
    CHECK, DELETE, INSERT, OVERWRITE, READ, TAKE, UPDATE, at, counted_at, up_to,
};
use crate::command::popping::{has_no_count, is_any};
use crate::command::row::{Group, Handler, Row};
use crate::fields::commands::{length, plan_all};
use crate::set::SetType;
use crate::{coalescing, read_handler, write_handler};

const GROW_FAST: Flags = Flags::DENYOOM.and(Flags::FAST);

const ONE_MEMBER: &str = "O(log N), N being all that is stored";
const EACH_MEMBER: &str = "O(log N) for each member, N being all that is stored";
const UNION: &str = "O(M) with M members in all sets together";
const INTERSECTION: &str = "O(M * K) with M members in the smallest of K sets";
const DIFFERENCE: &str = "O(M * K) with M members in the first of K sets";
const DRAWN: &str = "O(log N) for each member returned, N being all that is stored; O(M) for a \
                     third or more of the set's M members";

const DESTINATION: Argument = key(0).named("destination");

const fn set(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Set, handler).categories(&["@set"])
}

/// The set commands.
pub const ROWS: &[Row] = &[
    set("sadd", -3, "1.0.0", write_handler!(members::sadd))
        .summary("Adds one or more members to a set. Creates the key if it doesn't exist.")
        .complexity(EACH_MEMBER)
        .flags(GROW_FAST)
        .keys(&[at(1, INSERT)])
        .history(&[("2.4.0", "Accepts multiple `member` arguments.")])
        .arguments(&[key(0), string("member").multiple()])
        .plan(plan_all::<SetType>)
        .coalescing(coalescing!(is_any, members::sadd_coalesced)),
    set("srem", -3, "1.0.0", write_handler!(members::srem))
        .summary(
            "Removes one or more members from a set. Deletes the set if the last member was \
             removed.",
        )
        .complexity(EACH_MEMBER)
        .flags(Flags::FAST)
        .keys(&[at(1, DELETE)])
        .history(&[("2.4.0", "Accepts multiple `member` arguments.")])
        .arguments(&[key(0), string("member").multiple()])
        .plan(plan_all::<SetType>),
    set("sismember", 3, "1.0.0", read_handler!(members::sismember))
        .summary("Determines whether a member belongs to a set.")
        .complexity(ONE_MEMBER)
        .flags(Flags::FAST)
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0), string("member")])
        .plan(plan_all::<SetType>),
    set(
        "smismember",
        -3,
        "6.2.0",
        read_handler!(members::smismember),
    )
    .summary("Determines whether multiple members belong to a set.")
    .complexity(EACH_MEMBER)
    .flags(Flags::FAST)
    .keys(&[at(1, READ)])
    .arguments(&[key(0), string("member").multiple()])
    .plan(plan_all::<SetType>),
    set("smembers", 2, "1.0.0", read_handler!(members::smembers))
        .summary("Returns all members of a set.")
        .complexity("O(M) with M members")
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output_order"])
        .arguments(&[key(0)]),
    set("scard", 2, "1.0.0", read_handler!(length::<SetType>))
        .summary("Returns the number of members in a set.")
        .flags(Flags::FAST)
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0)]),
    set("spop", -2, "1.0.0", write_handler!(random::spop))
        .summary(
            "Returns one or more random members from a set after removing them. Deletes the set \
             if the last member was popped.",
        )
        .complexity(DRAWN)
        .flags(Flags::FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE)])
        .tips(&["nondeterministic_output"])
        .history(&[("3.2.0", "Added the `count` argument.")])
        .arguments(&[key(0), integer("count").since("3.2.0").optional()])
        .coalescing(coalescing!(has_no_count, random::spop_coalesced)),
    set(
        "srandmember",
        -2,
        "1.0.0",
        read_handler!(random::srandmember),
    )
    .summary("Get one or multiple random members from a set")
    .complexity(DRAWN)
    .keys(&[at(1, READ)])
    .tips(&["nondeterministic_output"])
    .history(&[("2.6.0", "Added the optional `count` argument.")])
    .arguments(&[key(0), integer("count").since("2.6.0").optional()]),
    set("smove", 4, "1.0.0", write_handler!(members::smove))
        .summary("Moves a member from one set to another.")
        .complexity(ONE_MEMBER)
        .flags(Flags::FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE), at(2, INSERT)])
        .arguments(&[
            key(0).named("source"),
            key(1).named("destination"),
            string("member"),
        ])
        .plan(members::plan_move),
    set("sdiffcard", -3, "8.10.0", read_handler!(algebra::sdiffcard))
        .summary(
            "Returns the number of members of the difference between the first set and all \
             successive sets.",
        )
        .complexity(DIFFERENCE)
        .keys(&[counted_at(1, READ)])
        .arguments(&[
            integer("numkeys"),
            key(0).multiple(),
            integer("limit").token("LIMIT").optional(),
        ]),
    set("sinter", -2, "1.0.0", read_handler!(algebra::sinter))
        .summary("Returns the intersect of multiple sets.")
        .complexity(INTERSECTION)
        .keys(&[up_to(1, -1, READ)])
        .tips(&["nondeterministic_output_order"])
        .arguments(&[key(0).multiple()]),
    set(
        "sintercard",
        -3,
        "7.0.0",
        read_handler!(algebra::sintercard),
    )
    .summary("Returns the number of members of the intersect of multiple sets.")
    .complexity(INTERSECTION)
    .keys(&[counted_at(1, READ)])
    .arguments(&[
        integer("numkeys"),
        key(0).multiple(),
        integer("limit").token("LIMIT").optional(),
    ]),
    set(
        "sinterstore",
        -3,
        "1.0.0",
        write_handler!(algebra::sinterstore),
    )
    .summary("Stores the intersect of multiple sets in a key.")
    .complexity(INTERSECTION)
    .flags(Flags::DENYOOM)
    .keys(&[at(1, UPDATE), up_to(2, -1, READ)])
    .arguments(&[DESTINATION, key(1).multiple()]),
    set("sunion", -2, "1.0.0", read_handler!(algebra::sunion))
        .summary("Returns the union of multiple sets.")
        .complexity(UNION)
        .keys(&[up_to(1, -1, READ)])
        .tips(&["nondeterministic_output_order"])
        .arguments(&[key(0).multiple()]),
    set(
        "sunioncard",
        -3,
        "8.10.0",
        read_handler!(algebra::sunioncard),
    )
    .summary("Returns the number of members of the union of multiple sets.")
    .complexity(UNION)
    .keys(&[counted_at(1, READ)])
    .arguments(&[
        integer("numkeys"),
        key(0).multiple(),
        token("APPROX").optional(),
        integer("limit").token("LIMIT").optional(),
    ]),
    set(
        "sunionstore",
        -3,
        "1.0.0",
        write_handler!(algebra::sunionstore),
    )
    .summary("Stores the union of multiple sets in a key.")
    .complexity(UNION)
    .flags(Flags::DENYOOM)
    .keys(&[at(1, OVERWRITE), up_to(2, -1, READ)])
    .arguments(&[DESTINATION, key(1).multiple()]),
    set("sdiff", -2, "1.0.0", read_handler!(algebra::sdiff))
        .summary("Returns the difference of multiple sets.")
        .complexity(DIFFERENCE)
        .keys(&[up_to(1, -1, READ)])
        .tips(&["nondeterministic_output_order"])
        .arguments(&[key(0).multiple()]),
    set(
        "sdiffstore",
        -3,
        "1.0.0",
        write_handler!(algebra::sdiffstore),
    )
    .summary("Stores the difference of multiple sets in a key.")
    .complexity(DIFFERENCE)
    .flags(Flags::DENYOOM)
    .keys(&[at(1, OVERWRITE), up_to(2, -1, READ)])
    .arguments(&[DESTINATION, key(1).multiple()]),
    set("sscan", -3, "2.8.0", read_handler!(members::sscan))
        .summary("Iterates over members of a set.")
        .complexity("O(log N) for each call, O(M) for a whole iteration over M members")
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output"])
        .arguments(&[
            key(0),
            integer("cursor"),
            pattern("pattern").token("MATCH").optional(),
            COUNT,
        ]),
];
