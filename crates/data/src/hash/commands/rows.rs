//! The rows of the hash commands.

use super::{read, write};
use crate::command::flags::Flags;
use crate::command::grammar::{
    Argument, COUNT, block, double, integer, key, pattern, string, token,
};
use crate::command::key_specs::{DELETE, INSERT, LOOK, READ, READ_UPDATE, UPDATE, at};
use crate::command::popping::is_any;
use crate::command::row::{Group, Handler, Row};
use crate::fields::commands::{length, plan_all, plan_first};
use crate::hash::HashType;
use crate::{read_handler, series, write_handler};

const GROW_FAST: Flags = Flags::DENYOOM.and(Flags::FAST);

const ONE_FIELD: &str = "O(log N), N being all that is stored";
const EACH_FIELD: &str = "O(log N) for each field, N being all that is stored";
const ALL_FIELDS: &str = "O(M) with M fields";

const FIELDS_AND_VALUES: Argument = block("data", &[string("field"), string("value")]).multiple();

const fn hash(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Hash, handler).categories(&["@hash"])
}

/// The hash commands.
pub const ROWS: &[Row] = &[
    hash("hset", -4, "2.0.0", write_handler!(write::hset))
        .summary("Creates or modifies the value of a field in a hash.")
        .complexity(EACH_FIELD)
        .flags(GROW_FAST)
        .keys(&[at(1, UPDATE)])
        .history(&[("4.0.0", "Accepts multiple `field` and `value` arguments.")])
        .arguments(&[key(0), FIELDS_AND_VALUES])
        .plan(write::plan_put)
        .series(series!(is_any, write::hset_series)),
    hash("hmset", -4, "2.0.0", write_handler!(write::hmset))
        .summary("Sets the values of multiple fields.")
        .complexity(EACH_FIELD)
        .flags(GROW_FAST)
        .keys(&[at(1, UPDATE)])
        .deprecated("4.0.0", "`HSET` with multiple field-value pairs")
        .arguments(&[key(0), FIELDS_AND_VALUES])
        .plan(write::plan_put),
    hash("hsetnx", 4, "2.0.0", write_handler!(write::hsetnx))
        .summary("Sets the value of a field in a hash only when the field doesn't exist.")
        .complexity(ONE_FIELD)
        .flags(GROW_FAST)
        .keys(&[at(1, INSERT)])
        .arguments(&[key(0), string("field"), string("value")])
        .plan(plan_first::<HashType>),
    hash("hget", 3, "2.0.0", read_handler!(read::hget))
        .summary("Returns the value of a field in a hash.")
        .complexity(ONE_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), string("field")])
        .plan(plan_first::<HashType>),
    hash("hmget", -3, "2.0.0", read_handler!(read::hmget))
        .summary("Returns the values of all fields in a hash.")
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), string("field").multiple()])
        .plan(plan_all::<HashType>),
    hash("hgetall", 2, "2.0.0", read_handler!(read::hgetall))
        .summary("Returns all fields and values in a hash.")
        .complexity(ALL_FIELDS)
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output_order"])
        .arguments(&[key(0)]),
    hash("hkeys", 2, "2.0.0", read_handler!(read::hkeys))
        .summary("Returns all fields in a hash.")
        .complexity(ALL_FIELDS)
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output_order"])
        .arguments(&[key(0)]),
    hash("hvals", 2, "2.0.0", read_handler!(read::hvals))
        .summary("Returns all values in a hash.")
        .complexity(ALL_FIELDS)
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output_order"])
        .arguments(&[key(0)]),
    hash("hlen", 2, "2.0.0", read_handler!(length::<HashType>))
        .summary("Returns the number of fields in a hash.")
        .flags(Flags::FAST)
        .keys(&[at(1, LOOK)])
        .arguments(&[key(0)]),
    hash("hexists", 3, "2.0.0", read_handler!(read::hexists))
        .summary("Determines whether a field exists in a hash.")
        .complexity(ONE_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, LOOK)])
        .arguments(&[key(0), string("field")])
        .plan(plan_first::<HashType>),
    hash("hdel", -3, "2.0.0", write_handler!(write::hdel))
        .summary(
            "Deletes one or more fields and their values from a hash. Deletes the hash if no \
             fields remain.",
        )
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, DELETE)])
        .history(&[("2.4.0", "Accepts multiple `field` arguments.")])
        .arguments(&[key(0), string("field").multiple()])
        .plan(plan_all::<HashType>),
    hash("hstrlen", 3, "3.2.0", read_handler!(read::hstrlen))
        .summary("Returns the length of the value of a field.")
        .complexity(ONE_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, LOOK)])
        .arguments(&[key(0), string("field")])
        .plan(plan_first::<HashType>),
    hash("hincrby", 4, "2.0.0", write_handler!(write::hincrby))
        .summary(
            "Increments the integer value of a field in a hash by a number. Uses 0 as initial \
             value if the field doesn't exist.",
        )
        .complexity(ONE_FIELD)
        .flags(GROW_FAST)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0), string("field"), integer("increment")])
        .plan(plan_first::<HashType>),
    hash(
        "hincrbyfloat",
        4,
        "2.6.0",
        write_handler!(write::hincrbyfloat),
    )
    .summary(
        "Increments the floating point value of a field by a number. Uses 0 as initial value if \
         the field doesn't exist.",
    )
    .complexity(ONE_FIELD)
    .flags(GROW_FAST)
    .keys(&[at(1, READ_UPDATE)])
    .arguments(&[key(0), string("field"), double("increment")])
    .plan(plan_first::<HashType>),
    hash("hrandfield", -2, "6.2.0", read_handler!(read::hrandfield))
        .summary("Returns one or more random fields from a hash.")
        .complexity(
            "O(log N) for each field returned, N being all that is stored; O(M) for a third or \
             more of the hash's M fields",
        )
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output"])
        .arguments(&[
            key(0),
            block(
                "options",
                &[integer("count"), token("WITHVALUES").optional()],
            )
            .optional(),
        ]),
    hash("hscan", -3, "2.8.0", read_handler!(read::hscan))
        .summary("Iterates over fields and values of a hash.")
        .complexity("O(log N) for each call, O(M) for a whole iteration over M fields")
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output"])
        .arguments(&[
            key(0),
            integer("cursor"),
            pattern("pattern").token("MATCH").optional(),
            COUNT,
        ]),
];
