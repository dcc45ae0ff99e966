//! The rows of the list commands.

use super::access;
use super::push_pop::{
    LEFT, RIGHT, blmove, blmovem, brpoplpush, lmove, lmovem, plan_blmovem, plan_lmove, plan_lmovem,
    plan_push, plan_rpoplpush, pop, push, push_coalesced, push_existing, rpoplpush,
    wait_for_length, wait_for_source,
};
use crate::command::flags::Flags;
use crate::command::grammar::{Argument, COUNT, block, double, integer, key, oneof, string, token};
use crate::command::key_specs::{CHECK, DELETE, INSERT, READ, TAKE, UPDATE, at, counted_at, up_to};
use crate::command::popping::{
    blocking_multi_pop, blocking_pop, has_no_zero_count, is_any, multi_pop,
    plan_blocking_multi_pop, plan_blocking_pop, plan_multi_pop, plan_pop, pop_coalesced,
    wait_to_multi_pop, wait_to_pop,
};
use crate::command::row::{Group, Handler, Row};
use crate::list::ListType;
use crate::{coalescing, read_handler, write_handler};

const GROW_FAST: Flags = Flags::DENYOOM.and(Flags::FAST);
const EACH_ELEMENT: &str = "O(log N) for each element, N being all that is stored";
const TO_INDEX: &str =
    "O(log N); before blocks are counted O(M) with M elements between the index and the nearer end";
const EXAMINED: &str = "O(M) with M elements of the list examined";
const ONE_ELEMENT: &str = "O(log N), N being all that is stored";
const KEYS_AND_ELEMENTS: &str = "O(K + M) with K keys checked and M elements returned";

const SIDES: &[Argument] = &[token("LEFT"), token("RIGHT")];
const SOURCE: Argument = key(0).named("source");
const DESTINATION: Argument = key(1).named("destination");
const FROM: Argument = oneof("wherefrom", SIDES);
const TO: Argument = oneof("whereto", SIDES);
const HOW_MANY: Argument = block(
    "how-many",
    &[
        oneof(
            "selector",
            &[
                integer("count").token("COUNT"),
                integer("exactly").token("EXACTLY"),
            ],
        ),
        oneof("ordering", &[token("OBO"), token("BULK")]),
    ],
)
.optional();
const POP_COUNT: Argument = integer("count").since("6.2.0").optional();

const fn list(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::List, handler).categories(&["@list"])
}

const TIMEOUT_IS_A_DOUBLE: (&str, &str) = (
    "6.0.0",
    "`timeout` is interpreted as a double instead of an integer.",
);

/// The list commands.
pub const ROWS: &[Row] = &[
    list("lpush", -3, "1.0.0", write_handler!(push::<LEFT>))
        .summary("Prepends one or more elements to a list. Creates the key if it doesn't exist.")
        .complexity(EACH_ELEMENT)
        .flags(GROW_FAST)
        .keys(&[at(1, INSERT)])
        .history(&[("2.4.0", "Accepts multiple `element` arguments.")])
        .arguments(&[key(0), string("element").multiple()])
        .plan(plan_push::<LEFT>)
        .coalescing(coalescing!(is_any, push_coalesced::<LEFT>)),
    list("rpush", -3, "1.0.0", write_handler!(push::<RIGHT>))
        .summary("Appends one or more elements to a list. Creates the key if it doesn't exist.")
        .complexity(EACH_ELEMENT)
        .flags(GROW_FAST)
        .keys(&[at(1, INSERT)])
        .history(&[("2.4.0", "Accepts multiple `element` arguments.")])
        .arguments(&[key(0), string("element").multiple()])
        .plan(plan_push::<RIGHT>)
        .coalescing(coalescing!(is_any, push_coalesced::<RIGHT>)),
    list("lpushx", -3, "2.2.0", write_handler!(push_existing::<LEFT>))
        .summary("Prepends one or more elements to a list only when the list exists.")
        .complexity(EACH_ELEMENT)
        .flags(GROW_FAST)
        .keys(&[at(1, INSERT)])
        .history(&[("4.0.0", "Accepts multiple `element` arguments.")])
        .arguments(&[key(0), string("element").multiple()])
        .plan(plan_push::<LEFT>),
    list(
        "rpushx",
        -3,
        "2.2.0",
        write_handler!(push_existing::<RIGHT>),
    )
    .summary("Appends an element to a list only when the list exists.")
    .complexity(EACH_ELEMENT)
    .flags(GROW_FAST)
    .keys(&[at(1, INSERT)])
    .history(&[("4.0.0", "Accepts multiple `element` arguments.")])
    .arguments(&[key(0), string("element").multiple()])
    .plan(plan_push::<RIGHT>),
    list("lpop", -2, "1.0.0", write_handler!(pop::<LEFT>))
        .summary(
            "Returns the first elements in a list after removing it. Deletes the list if the last \
             element was popped.",
        )
        .complexity(EACH_ELEMENT)
        .flags(Flags::FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE)])
        .history(&[("6.2.0", "Added the `count` argument.")])
        .arguments(&[key(0), POP_COUNT])
        .plan(plan_pop::<ListType, LEFT>)
        .coalescing(coalescing!(
            has_no_zero_count,
            pop_coalesced::<ListType, LEFT>
        )),
    list("rpop", -2, "1.0.0", write_handler!(pop::<RIGHT>))
        .summary(
            "Returns and removes the last elements of a list. Deletes the list if the last \
             element was popped.",
        )
        .complexity(EACH_ELEMENT)
        .flags(Flags::FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE)])
        .history(&[("6.2.0", "Added the `count` argument.")])
        .arguments(&[key(0), POP_COUNT])
        .plan(plan_pop::<ListType, RIGHT>)
        .coalescing(coalescing!(
            has_no_zero_count,
            pop_coalesced::<ListType, RIGHT>
        )),
    list("lmpop", -4, "7.0.0", write_handler!(multi_pop::<ListType>))
        .summary(
            "Returns multiple elements from a list after removing them. Deletes the list if the \
             last element was popped.",
        )
        .complexity(KEYS_AND_ELEMENTS)
        .flags(Flags::CONTENDS)
        .keys(&[counted_at(1, TAKE)])
        .arguments(&[
            integer("numkeys"),
            key(0).multiple(),
            oneof("where", SIDES),
            COUNT,
        ])
        .plan(plan_multi_pop::<ListType>),
    list("llen", 2, "1.0.0", read_handler!(access::llen))
        .summary("Returns the length of a list.")
        .flags(Flags::FAST)
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0)]),
    list("lindex", 3, "1.0.0", read_handler!(access::lindex))
        .summary("Returns an element from a list by its index.")
        .complexity(TO_INDEX)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), integer("index")]),
    list("lrange", 4, "1.0.0", read_handler!(access::lrange))
        .summary("Returns a range of elements from a list.")
        .complexity(
            "O(S + M) with M elements returned; S is log N, or before blocks are counted the \
             distance to the nearer end",
        )
        .keys(&[at(1, READ)])
        .arguments(&[key(0), integer("start"), integer("stop")]),
    list("lset", 4, "1.0.0", write_handler!(access::lset))
        .summary("Sets the value of an element in a list by its index.")
        .complexity(TO_INDEX)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0), integer("index"), string("element")]),
    list("linsert", 5, "2.2.0", write_handler!(access::linsert))
        .summary("Inserts an element before or after another element in a list.")
        .complexity("O(M) with M elements up to the pivot")
        .flags(Flags::DENYOOM)
        .keys(&[at(1, INSERT)])
        .arguments(&[
            key(0),
            oneof("where", &[token("BEFORE"), token("AFTER")]),
            string("pivot"),
            string("element"),
        ]),
    list("lrem", 4, "1.0.0", write_handler!(access::lrem))
        .summary("Removes elements from a list. Deletes the list if the last element was removed.")
        .complexity(EXAMINED)
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), integer("count"), string("element")]),
    list("ltrim", 4, "1.0.0", write_handler!(access::ltrim))
        .summary(
            "Removes elements from both ends a list. Deletes the list if all elements were \
             trimmed.",
        )
        .complexity(
            "O(S + M) with M elements removed; S is log N, or before blocks are counted the \
             distance to the nearer end",
        )
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), integer("start"), integer("stop")]),
    list("lpos", -3, "6.0.6", read_handler!(access::lpos))
        .summary("Returns the index of matching elements in a list.")
        .complexity(EXAMINED)
        .keys(&[at(1, READ)])
        .arguments(&[
            key(0),
            string("element"),
            integer("rank").token("RANK").optional(),
            integer("num-matches").token("COUNT").optional(),
            integer("len").token("MAXLEN").optional(),
        ]),
    list("lmove", 5, "6.2.0", write_handler!(lmove))
        .summary(
            "Returns an element after popping it from one list and pushing it to another. Deletes \
             the list if the last element was moved.",
        )
        .complexity(ONE_ELEMENT)
        .flags(Flags::DENYOOM)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE), at(2, INSERT)])
        .arguments(&[SOURCE, DESTINATION, FROM, TO])
        .plan(plan_lmove),
    list("lmovem", -5, "8.10.0", write_handler!(lmovem))
        .summary(
            "Moves up to (or exactly) a number of elements from one list to another and returns \
             them. Deletes the source list if it becomes empty.",
        )
        .complexity(EACH_ELEMENT)
        .flags(Flags::DENYOOM)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE), at(2, INSERT)])
        .arguments(&[SOURCE, DESTINATION, FROM, TO, HOW_MANY])
        .plan(plan_lmovem),
    list("rpoplpush", 3, "1.2.0", write_handler!(rpoplpush))
        .summary(
            "Returns the last element of a list after removing and pushing it to another list. \
             Deletes the list if the last element was popped.",
        )
        .complexity(ONE_ELEMENT)
        .flags(Flags::DENYOOM)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE), at(2, INSERT)])
        .deprecated("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments")
        .arguments(&[SOURCE, DESTINATION])
        .plan(plan_rpoplpush),
    list(
        "blpop",
        -3,
        "2.0.0",
        write_handler!(blocking_pop::<ListType, LEFT>),
    )
    .summary(
        "Removes and returns the first element in a list. Blocks until an element is \
             available otherwise. Deletes the list if the last element was popped.",
    )
    .complexity("O(K) with K keys checked")
    .flags(Flags::BLOCKING)
    .flags(Flags::CONTENDS)
    .keys(&[up_to(1, -2, TAKE)])
    .history(&[TIMEOUT_IS_A_DOUBLE])
    .arguments(&[key(0).multiple(), double("timeout")])
    .plan(plan_blocking_pop::<ListType, LEFT>)
    .waits(wait_to_pop::<ListType>),
    list(
        "brpop",
        -3,
        "2.0.0",
        write_handler!(blocking_pop::<ListType, RIGHT>),
    )
    .summary(
        "Removes and returns the last element in a list. Blocks until an element is available \
             otherwise. Deletes the list if the last element was popped.",
    )
    .complexity("O(K) with K keys checked")
    .flags(Flags::BLOCKING)
    .flags(Flags::CONTENDS)
    .keys(&[up_to(1, -2, TAKE)])
    .history(&[TIMEOUT_IS_A_DOUBLE])
    .arguments(&[key(0).multiple(), double("timeout")])
    .plan(plan_blocking_pop::<ListType, RIGHT>)
    .waits(wait_to_pop::<ListType>),
    list("blmove", 6, "6.2.0", write_handler!(blmove))
        .summary(
            "Pops an element from a list, pushes it to another list and returns it. Blocks until \
             an element is available otherwise. Deletes the list if the last element was moved.",
        )
        .complexity(ONE_ELEMENT)
        .flags(Flags::DENYOOM.and(Flags::BLOCKING))
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE), at(2, INSERT)])
        .arguments(&[SOURCE, DESTINATION, FROM, TO, double("timeout")])
        .plan(plan_lmove)
        .waits(wait_for_source),
    list("blmovem", -6, "8.10.0", write_handler!(blmovem))
        .summary(
            "Moves up to (or exactly) a number of elements from one list to another and returns \
             them. Blocks until the elements are available otherwise. Deletes the source list if \
             it becomes empty.",
        )
        .complexity(EACH_ELEMENT)
        .flags(Flags::DENYOOM.and(Flags::BLOCKING))
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE), at(2, INSERT)])
        .arguments(&[SOURCE, DESTINATION, FROM, TO, double("timeout"), HOW_MANY])
        .plan(plan_blmovem)
        .waits(wait_for_length),
    list("brpoplpush", 4, "2.2.0", write_handler!(brpoplpush))
        .summary(
            "Pops an element from a list, pushes it to another list and returns it. Block until \
             an element is available otherwise. Deletes the list if the last element was popped.",
        )
        .complexity(ONE_ELEMENT)
        .flags(Flags::DENYOOM.and(Flags::BLOCKING))
        .flags(Flags::CONTENDS)
        .keys(&[at(1, TAKE), at(2, INSERT)])
        .history(&[TIMEOUT_IS_A_DOUBLE])
        .deprecated("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments")
        .arguments(&[SOURCE, DESTINATION, double("timeout")])
        .plan(plan_rpoplpush)
        .waits(wait_for_source),
    list(
        "blmpop",
        -5,
        "7.0.0",
        write_handler!(blocking_multi_pop::<ListType>),
    )
    .summary(
        "Pops the first element from one of multiple lists. Blocks until an element is \
             available otherwise. Deletes the list if the last element was popped.",
    )
    .complexity(KEYS_AND_ELEMENTS)
    .flags(Flags::BLOCKING)
    .flags(Flags::CONTENDS)
    .keys(&[counted_at(2, TAKE)])
    .arguments(&[
        double("timeout"),
        integer("numkeys"),
        key(0).multiple(),
        oneof("where", SIDES),
        COUNT,
    ])
    .plan(plan_blocking_multi_pop::<ListType>)
    .waits(wait_to_multi_pop::<ListType>),
];
