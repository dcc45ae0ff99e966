//! The rows of the string commands.

use super::{get, lcs, number, range, set};
use crate::command::flags::Flags;
use crate::command::grammar::{
    Argument, block, double, integer, key, oneof, string, token, unix_time,
};
use crate::command::key_specs::{
    CREATE, INSERT, LOOK, OVERWRITE, READ, READ_UPDATE, READ_UPDATE_OR_LESS, TAKE, UPDATE, at,
    every_second, up_to,
};
use crate::command::row::{Group, Handler, Row};
use crate::{read_handler, write_handler};

const GROW_FAST: Flags = Flags::DENYOOM.and(Flags::FAST);

const LENGTH: &str = "O(M) with M bytes of the value";
const EACH_KEY: &str = "O(K + M) with K keys and M bytes of their values";

const SECONDS: Argument = integer("seconds").token("EX");
const MILLISECONDS: Argument = integer("milliseconds").token("PX");
const UNIX_SECONDS: Argument = unix_time("unix-time-seconds").token("EXAT");
const UNIX_MILLISECONDS: Argument = unix_time("unix-time-milliseconds").token("PXAT");
const KEY_VALUE: Argument = block("data", &[key(0), string("value")]).multiple();

const fn on_strings(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::String, handler).categories(&["@string"])
}

/// The string commands.
pub const ROWS: &[Row] = &[
    on_strings("append", 3, "2.0.0", write_handler!(range::append))
        .summary("Appends a string to the value of a key. Creates the key if it doesn't exist.")
        .complexity("O(M) with M bytes appended, and those of a short value")
        .flags(GROW_FAST)
        .keys(&[at(1, INSERT)])
        .arguments(&[key(0), string("value")]),
    on_strings("decr", 2, "1.0.0", write_handler!(number::decr))
        .summary(
            "Decrements the integer value of a key by one. Uses 0 as initial value if the key \
             doesn't exist.",
        )
        .flags(GROW_FAST)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0)]),
    on_strings("decrby", 3, "1.0.0", write_handler!(number::decrby))
        .summary(
            "Decrements a number from the integer value of a key. Uses 0 as initial value if the \
             key doesn't exist.",
        )
        .flags(GROW_FAST)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0), integer("decrement")]),
    on_strings("get", 2, "1.0.0", read_handler!(get::get))
        .summary("Returns the string value of a key.")
        .complexity(LENGTH)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0)]),
    on_strings("getdel", 2, "6.2.0", write_handler!(get::getdel))
        .summary("Returns the string value of a key after deleting the key.")
        .complexity(LENGTH)
        .flags(Flags::FAST)
        .keys(&[at(1, TAKE)])
        .arguments(&[key(0)]),
    on_strings("getex", -2, "6.2.0", write_handler!(get::getex))
        .summary("Returns the string value of a key after setting its expiration time.")
        .complexity(LENGTH)
        .flags(Flags::FAST)
        .keys(&[at(1, READ_UPDATE).notes("RW and UPDATE because it changes the TTL")])
        .arguments(&[
            key(0),
            oneof(
                "expiration",
                &[
                    SECONDS,
                    MILLISECONDS,
                    UNIX_SECONDS,
                    UNIX_MILLISECONDS,
                    token("PERSIST"),
                ],
            )
            .optional(),
        ]),
    on_strings("getrange", 4, "2.4.0", read_handler!(range::getrange))
        .summary("Returns a substring of the string stored at a key.")
        .complexity("O(M) with M bytes returned")
        .keys(&[at(1, READ)])
        .arguments(&[key(0), integer("start"), integer("end")]),
    on_strings("getset", 3, "1.0.0", write_handler!(set::getset))
        .summary("Returns the previous string value of a key after setting it to a new value.")
        .complexity(LENGTH)
        .flags(GROW_FAST)
        .keys(&[at(1, READ_UPDATE)])
        .deprecated("6.2.0", "`SET` with the `!GET` argument")
        .arguments(&[key(0), string("value")]),
    on_strings("incr", 2, "1.0.0", write_handler!(number::incr))
        .summary(
            "Increments the integer value of a key by one. Uses 0 as initial value if the key \
             doesn't exist.",
        )
        .flags(GROW_FAST)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0)]),
    on_strings("incrby", 3, "1.0.0", write_handler!(number::incrby))
        .summary(
            "Increments the integer value of a key by a number. Uses 0 as initial value if the \
             key doesn't exist.",
        )
        .flags(GROW_FAST)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0), integer("increment")]),
    on_strings(
        "incrbyfloat",
        3,
        "2.6.0",
        write_handler!(number::incrbyfloat),
    )
    .summary(
        "Increment the floating point value of a key by a number. Uses 0 as initial value if the \
         key doesn't exist.",
    )
    .flags(GROW_FAST)
    .keys(&[at(1, READ_UPDATE)])
    .arguments(&[key(0), double("increment")]),
    on_strings("lcs", -3, "7.0.0", read_handler!(lcs::lcs))
        .summary("Finds the longest common substring.")
        .complexity("O(L * M) with L and M bytes of the two strings")
        .keys(&[up_to(1, 1, READ)])
        .arguments(&[
            key(0).named("key1"),
            key(0).named("key2"),
            token("LEN").optional(),
            token("IDX").optional(),
            integer("min-match-len").token("MINMATCHLEN").optional(),
            token("WITHMATCHLEN").optional(),
        ]),
    on_strings("mget", -2, "1.0.0", read_handler!(get::mget))
        .summary("Atomically returns the string values of one or more keys.")
        .complexity(EACH_KEY)
        .flags(Flags::FAST)
        .keys(&[up_to(1, -1, READ)])
        .tips(&["request_policy:multi_shard"])
        .arguments(&[key(0).multiple()]),
    on_strings("mset", -3, "1.0.1", write_handler!(set::mset))
        .summary("Atomically creates or modifies the string values of one or more keys.")
        .complexity(EACH_KEY)
        .flags(Flags::DENYOOM)
        .keys(&[every_second(1, OVERWRITE)])
        .tips(&[
            "request_policy:multi_shard",
            "response_policy:all_succeeded",
        ])
        .arguments(&[KEY_VALUE]),
    on_strings("msetnx", -3, "1.0.1", write_handler!(set::msetnx))
        .summary(
            "Atomically modifies the string values of one or more keys only when all keys don't \
             exist.",
        )
        .complexity(EACH_KEY)
        .flags(Flags::DENYOOM)
        .keys(&[every_second(1, CREATE)])
        .arguments(&[KEY_VALUE]),
    on_strings("psetex", 4, "2.6.0", write_handler!(set::psetex))
        .summary(
            "Sets both string value and expiration time in milliseconds of a key. The key is \
             created if it doesn't exist.",
        )
        .complexity(LENGTH)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, OVERWRITE)])
        .deprecated("2.6.12", "`SET` with the `PX` argument")
        .arguments(&[key(0), integer("milliseconds"), string("value")]),
    on_strings("set", -3, "1.0.0", write_handler!(set::set))
        .summary(
            "Sets the string value of a key, ignoring its type. The key is created if it doesn't \
             exist.",
        )
        .complexity(LENGTH)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, READ_UPDATE_OR_LESS)
            .notes("RW and ACCESS due to the optional `GET` argument")
            .narrowed(set::key_flags_of_set)])
        .history(&[
            ("2.6.12", "Added the `EX`, `PX`, `NX` and `XX` options."),
            ("6.0.0", "Added the `KEEPTTL` option."),
            ("6.2.0", "Added the `GET`, `EXAT` and `PXAT` option."),
            (
                "7.0.0",
                "Allowed the `NX` and `GET` options to be used together.",
            ),
        ])
        .arguments(&[
            key(0),
            string("value"),
            oneof("condition", &[token("NX"), token("XX")])
                .since("2.6.12")
                .optional(),
            token("GET").since("6.2.0").optional(),
            oneof(
                "expiration",
                &[
                    SECONDS.since("2.6.12"),
                    MILLISECONDS.since("2.6.12"),
                    UNIX_SECONDS.since("6.2.0"),
                    UNIX_MILLISECONDS.since("6.2.0"),
                    token("KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ]),
    on_strings("setex", 4, "2.0.0", write_handler!(set::setex))
        .summary(
            "Sets the string value and expiration time of a key. Creates the key if it doesn't \
             exist.",
        )
        .complexity(LENGTH)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, OVERWRITE)])
        .deprecated("2.6.12", "`SET` with the `EX` argument")
        .arguments(&[key(0), integer("seconds"), string("value")]),
    on_strings("setnx", 3, "1.0.0", write_handler!(set::setnx))
        .summary("Set the string value of a key only when the key doesn't exist.")
        .complexity(LENGTH)
        .flags(GROW_FAST)
        .keys(&[at(1, CREATE)])
        .deprecated("2.6.12", "`SET` with the `NX` argument")
        .arguments(&[key(0), string("value")]),
    on_strings("setrange", 4, "2.2.0", write_handler!(range::setrange))
        .summary(
            "Overwrites a part of a string value with another by an offset. Creates the key if \
             it doesn't exist.",
        )
        .complexity("O(M) with M bytes written, and those of a short value")
        .flags(Flags::DENYOOM)
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0), integer("offset"), string("value")]),
    on_strings("strlen", 2, "2.2.0", read_handler!(get::strlen))
        .summary("Returns the length of a string value.")
        .flags(Flags::FAST)
        .keys(&[at(1, LOOK)])
        .arguments(&[key(0)]),
    on_strings("substr", 4, "1.0.0", read_handler!(range::getrange))
        .summary("Returns a substring from a string value.")
        .complexity("O(M) with M bytes returned")
        .keys(&[at(1, READ)])
        .deprecated("2.0.0", "`GETRANGE`")
        .arguments(&[key(0), integer("start"), integer("end")]),
];
