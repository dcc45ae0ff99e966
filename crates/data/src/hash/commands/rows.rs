//! The rows of the hash commands.

use super::{expiry, read, write};
use crate::command::flags::Flags;
use crate::command::grammar::{
    Argument, COUNT, block, double, integer, key, oneof, pattern, string, token, unix_time,
};
use crate::command::key_specs::{CHECK, DELETE, INSERT, READ, READ_UPDATE, TAKE, UPDATE, at};
use crate::command::popping::is_any;
use crate::command::row::{Group, Handler, Row};
use crate::fields::commands::{length, plan_all, plan_first};
use crate::hash::HashType;
use crate::{coalescing, read_handler, write_handler};

const GROW_FAST: Flags = Flags::DENYOOM.and(Flags::FAST);

const ONE_FIELD: &str = "O(log N), N being all that is stored";
const EACH_FIELD: &str = "O(log N) for each field, N being all that is stored";
const ALL_FIELDS: &str = "O(M) with M fields";

const FIELDS_AND_VALUES: Argument = block("data", &[string("field"), string("value")]).multiple();

/// The fields that a command names.
const FIELDS: Argument = block(
    "fields",
    &[integer("numfields"), string("field").multiple()],
)
.token("FIELDS");

/// The condition of HEXPIRE.
const CONDITION: Argument = oneof(
    "condition",
    &[token("NX"), token("XX"), token("GT"), token("LT")],
)
.optional();

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
        .coalescing(coalescing!(is_any, write::hset_coalesced)),
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
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0)]),
    hash("hexists", 3, "2.0.0", read_handler!(read::hexists))
        .summary("Determines whether a field exists in a hash.")
        .complexity(ONE_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, CHECK)])
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
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0), string("field")])
        .plan(plan_first::<HashType>),
    hash("hincrby", 4, "2.0.0", write_handler!(write::hincrby))
        .summary(
            "Increments the integer value of a field in a hash by a number. Uses 0 as initial \
             value if the field doesn't exist.",
        )
        .complexity(ONE_FIELD)
        .flags(GROW_FAST)
        .flags(Flags::CONTENDS)
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
    .flags(Flags::CONTENDS)
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
            token("NOVALUES").since("7.4.0").optional(),
        ]),
    hash("hexpire", -6, "7.4.0", write_handler!(expiry::hexpire))
        .summary("Set expiry for hash field using relative time to expire (seconds)")
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0), integer("seconds"), CONDITION, FIELDS])
        .plan(expiry::plan),
    hash("hpexpire", -6, "7.4.0", write_handler!(expiry::hpexpire))
        .summary("Set expiry for hash field using relative time to expire (milliseconds)")
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0), integer("milliseconds"), CONDITION, FIELDS])
        .plan(expiry::plan),
    hash("hexpireat", -6, "7.4.0", write_handler!(expiry::hexpireat))
        .summary("Set expiry for hash field using an absolute Unix timestamp (seconds)")
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0), unix_time("unix-time-seconds"), CONDITION, FIELDS])
        .plan(expiry::plan),
    hash("hpexpireat", -6, "7.4.0", write_handler!(expiry::hpexpireat))
        .summary("Set expiry for hash field using an absolute Unix timestamp (milliseconds)")
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0), unix_time("unix-time-milliseconds"), CONDITION, FIELDS])
        .plan(expiry::plan),
    hash("httl", -5, "7.4.0", read_handler!(expiry::httl))
        .summary("Returns the TTL in seconds of a hash field.")
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output"])
        .arguments(&[key(0), FIELDS])
        .plan(expiry::plan),
    hash("hpttl", -5, "7.4.0", read_handler!(expiry::hpttl))
        .summary("Returns the TTL in milliseconds of a hash field.")
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output"])
        .arguments(&[key(0), FIELDS])
        .plan(expiry::plan),
    hash("hexpiretime", -5, "7.4.0", read_handler!(expiry::hexpiretime))
        .summary("Returns the expiration time of a hash field as a Unix timestamp, in seconds.")
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), FIELDS])
        .plan(expiry::plan),
    hash("hpexpiretime", -5, "7.4.0", read_handler!(expiry::hpexpiretime))
        .summary("Returns the expiration time of a hash field as a Unix timestamp, in msec.")
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), FIELDS])
        .plan(expiry::plan),
    hash("hpersist", -5, "7.4.0", write_handler!(expiry::hpersist))
        .summary("Removes the expiration time for each specified field")
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0), FIELDS])
        .plan(expiry::plan),
    hash("hsetex", -6, "8.0.0", write_handler!(expiry::hsetex))
        .summary(
            "Set the value of one or more fields of a given hash key, and optionally set their expiration.",
        )
        .complexity(EACH_FIELD)
        .flags(GROW_FAST)
        .keys(&[at(1, UPDATE)])
        .arguments(&[
            key(0),
            oneof("condition", &[token("FNX"), token("FXX")]).optional(),
            oneof(
                "expiration",
                &[
                    integer("seconds").token("EX"),
                    integer("milliseconds").token("PX"),
                    unix_time("unix-time-seconds").token("EXAT"),
                    unix_time("unix-time-milliseconds").token("PXAT"),
                    token("KEEPTTL"),
                ],
            )
            .optional(),
            block("fields", &[integer("numfields"), FIELDS_AND_VALUES]).token("FIELDS"),
        ])
        .plan(expiry::plan_set),
    hash("hgetex", -5, "8.0.0", write_handler!(expiry::hgetex))
        .summary(
            "Get the value of one or more fields of a given hash key, and optionally set their expiration.",
        )
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, READ_UPDATE).notes("RW and UPDATE because it changes the TTL")])
        .arguments(&[
            key(0),
            oneof(
                "expiration",
                &[
                    integer("seconds").token("EX"),
                    integer("milliseconds").token("PX"),
                    unix_time("unix-time-seconds").token("EXAT"),
                    unix_time("unix-time-milliseconds").token("PXAT"),
                    token("PERSIST"),
                ],
            )
            .optional(),
            FIELDS,
        ])
        .plan(expiry::plan),
    hash("hgetdel", -5, "8.0.0", write_handler!(expiry::hgetdel))
        .summary(
            "Returns the value of a field and deletes it from the hash.",
        )
        .complexity(EACH_FIELD)
        .flags(Flags::FAST)
        .keys(&[at(1, TAKE)])
        .arguments(&[key(0), FIELDS])
        .plan(expiry::plan),
];
