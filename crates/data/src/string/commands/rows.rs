//! The rows of the commands on strings, bitmaps and HyperLogLogs.

use super::{bitfield, bitmaps, comparison, get, hyperloglog, increment, increx, lcs, set};
use crate::command::flags::Flags;
use crate::command::grammar::{
    Argument, block, double, integer, key, oneof, string, token, unix_time,
};
use crate::command::key_specs::{
    CHECK, CREATE, DELETE, DELETE_OR_LESS, INSERT, OVERWRITE, READ, READ_INSERT, READ_UPDATE,
    READ_UPDATE_OR_LESS, READ_WRITE, TAKE, UPDATE, at, counted_pairs_at, every_second, up_to,
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
const IFEQ: Argument = string("ifeq-value").token("IFEQ");
const IFNE: Argument = string("ifne-value").token("IFNE");
const IFDEQ: Argument = string("ifdeq-digest").token("IFDEQ");
const IFDNE: Argument = string("ifdne-digest").token("IFDNE");
const KEY_VALUE: Argument = block("data", &[key(0), string("value")]).multiple();

const fn on_strings(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::String, handler).categories(&["@string"])
}

/// The string commands.
pub const ROWS: &[Row] = &[
    on_strings("append", 3, "2.0.0", write_handler!(set::append))
        .summary("Appends a string to the value of a key. Creates the key if it doesn't exist.")
        .complexity("O(M) with M bytes appended, and those of a short value")
        .flags(GROW_FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, INSERT)])
        .arguments(&[key(0), string("value")]),
    on_strings("decr", 2, "1.0.0", write_handler!(increment::decr))
        .summary(
            "Decrements the integer value of a key by one. Uses 0 as initial value if the key \
             doesn't exist.",
        )
        .flags(GROW_FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0)]),
    on_strings("decrby", 3, "1.0.0", write_handler!(increment::decrby))
        .summary(
            "Decrements a number from the integer value of a key. Uses 0 as initial value if the \
             key doesn't exist.",
        )
        .flags(GROW_FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0), integer("decrement")]),
    on_strings("delex", -2, "8.4.0", write_handler!(comparison::delex))
        .summary("Conditionally removes the specified key based on value or digest comparison.")
        .complexity("O(1), and O(M) with M bytes of the value for a condition")
        .flags(Flags::FAST)
        .keys(&[at(1, DELETE_OR_LESS).narrowed(comparison::key_flags_of_delex)])
        .arguments(&[
            key(0),
            oneof("condition", &[IFEQ, IFNE, IFDEQ, IFDNE]).optional(),
        ]),
    on_strings("delifeq", 3, "9.0.0", write_handler!(comparison::delifeq))
        .summary("Deletes the key if its value matches the given string.")
        .complexity(LENGTH)
        .flags(Flags::FAST)
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), string("value")]),
    on_strings("digest", 2, "8.4.0", read_handler!(comparison::digest))
        .summary("Returns the XXH3 hash of a string value.")
        .complexity(LENGTH)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0)]),
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
        .flags(Flags::CONTENDS)
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
    on_strings("getrange", 4, "2.4.0", read_handler!(get::getrange))
        .summary("Returns a substring of the string stored at a key.")
        .complexity("O(M) with M bytes returned")
        .keys(&[at(1, READ)])
        .arguments(&[key(0), integer("start"), integer("end")]),
    on_strings("getset", 3, "1.0.0", write_handler!(set::getset))
        .summary("Returns the previous string value of a key after setting it to a new value.")
        .complexity(LENGTH)
        .flags(GROW_FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, READ_UPDATE)])
        .deprecated("6.2.0", "`SET` with the `!GET` argument")
        .arguments(&[key(0), string("value")]),
    on_strings("incr", 2, "1.0.0", write_handler!(increment::incr))
        .summary(
            "Increments the integer value of a key by one. Uses 0 as initial value if the key \
             doesn't exist.",
        )
        .flags(GROW_FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0)]),
    on_strings("incrby", 3, "1.0.0", write_handler!(increment::incrby))
        .summary(
            "Increments the integer value of a key by a number. Uses 0 as initial value if the \
             key doesn't exist.",
        )
        .flags(GROW_FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0), integer("increment")]),
    on_strings(
        "incrbyfloat",
        3,
        "2.6.0",
        write_handler!(increment::incrbyfloat),
    )
    .summary(
        "Increment the floating point value of a key by a number. Uses 0 as initial value if the \
         key doesn't exist.",
    )
    .flags(GROW_FAST)
    .flags(Flags::CONTENDS)
    .keys(&[at(1, READ_UPDATE)])
    .arguments(&[key(0), double("increment")]),
    on_strings("increx", -2, "8.8.0", write_handler!(increx::increx))
        .summary(
            "Increments the numeric value of a key by a number and sets its expiration time. Uses 0 \
             as initial value if the key doesn't exist.",
        )
        .flags(GROW_FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[
            key(0),
            oneof(
                "increment",
                &[
                    double("float").token("BYFLOAT"),
                    integer("integer").token("BYINT"),
                ],
            )
            .optional(),
            string("lowerbound").token("LBOUND").optional(),
            string("upperbound").token("UBOUND").optional(),
            token("SATURATE").optional(),
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
            token("ENX").optional(),
        ]),
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
    on_strings("msetex", -4, "8.4.0", write_handler!(set::msetex))
        .summary(
            "Atomically sets multiple string keys with a shared expiration in a single operation.",
        )
        .complexity(EACH_KEY)
        .flags(Flags::DENYOOM)
        .keys(&[counted_pairs_at(1, OVERWRITE)])
        .tips(&["request_policy:multi_shard"])
        .arguments(&[
            integer("numkeys"),
            KEY_VALUE,
            oneof("condition", &[token("NX"), token("XX")]).optional(),
            oneof(
                "expiration",
                &[
                    SECONDS,
                    MILLISECONDS,
                    UNIX_SECONDS,
                    UNIX_MILLISECONDS,
                    token("KEEPTTL"),
                ],
            )
            .optional(),
        ]),
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
            (
                "8.4.0",
                "Added the `IFEQ`, `IFNE`, `IFDEQ` and `IFDNE` options.",
            ),
        ])
        .arguments(&[
            key(0),
            string("value"),
            oneof(
                "condition",
                &[
                    token("NX"),
                    token("XX"),
                    IFEQ.since("8.4.0"),
                    IFNE.since("8.4.0"),
                    IFDEQ.since("8.4.0"),
                    IFDNE.since("8.4.0"),
                ],
            )
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
    on_strings("setrange", 4, "2.2.0", write_handler!(set::setrange))
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
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0)]),
    on_strings("substr", 4, "1.0.0", read_handler!(get::getrange))
        .summary("Returns a substring from a string value.")
        .complexity("O(M) with M bytes returned")
        .keys(&[at(1, READ)])
        .deprecated("2.0.0", "`GETRANGE`")
        .arguments(&[key(0), integer("start"), integer("end")]),
];

const BYTES_IN_RANGE: &str = "O(M) with M bytes stored within the range";
const UNIT_HISTORY: &[(&str, &str)] = &[("7.0.0", "Added the `BYTE|BIT` option.")];
const UNIT: Argument = oneof("unit", &[token("BYTE"), token("BIT")])
    .since("7.0.0")
    .optional();

const fn on_bits(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Bitmap, handler).categories(&["@bitmap"])
}

/// The bitmap commands.
pub const BITMAP_ROWS: &[Row] = &[
    on_bits("bitcount", -2, "2.6.0", read_handler!(bitmaps::bitcount))
        .summary("Counts the number of set bits (population counting) in a string.")
        .complexity(BYTES_IN_RANGE)
        .keys(&[at(1, READ)])
        .history(UNIT_HISTORY)
        .arguments(&[
            key(0),
            block("range", &[integer("start"), integer("end"), UNIT]).optional(),
        ]),
    on_bits("bitfield", -2, "3.2.0", write_handler!(bitfield::bitfield))
        .summary("Performs arbitrary bitfield integer operations on strings.")
        .complexity("O(1) for each subcommand specified")
        .flags(Flags::DENYOOM)
        .keys(&[at(1, READ_UPDATE_OR_LESS)
            .notes("This command allows both access and modification of the key")
            .narrowed(bitfield::key_flags_of_bitfield)])
        .arguments(&[
            key(0),
            oneof(
                "operation",
                &[
                    block("get-block", &[string("encoding"), integer("offset")]).token("GET"),
                    block(
                        "write",
                        &[
                            oneof(
                                "overflow-block",
                                &[token("WRAP"), token("SAT"), token("FAIL")],
                            )
                            .token("OVERFLOW")
                            .optional(),
                            oneof(
                                "write-operation",
                                &[
                                    block(
                                        "set-block",
                                        &[string("encoding"), integer("offset"), integer("value")],
                                    )
                                    .token("SET"),
                                    block(
                                        "incrby-block",
                                        &[
                                            string("encoding"),
                                            integer("offset"),
                                            integer("increment"),
                                        ],
                                    )
                                    .token("INCRBY"),
                                ],
                            ),
                        ],
                    ),
                ],
            )
            .optional()
            .multiple(),
        ]),
    on_bits(
        "bitfield_ro",
        -2,
        "6.0.0",
        read_handler!(bitfield::bitfield_ro),
    )
    .summary("Performs arbitrary read-only bitfield integer operations on strings.")
    .complexity("O(1) for each subcommand specified")
    .flags(Flags::FAST)
    .keys(&[at(1, READ)])
    .arguments(&[
        key(0),
        block("get-block", &[string("encoding"), integer("offset")])
            .token("GET")
            .optional()
            .multiple_with_token(),
    ]),
    on_bits("bitop", -4, "2.6.0", write_handler!(bitmaps::bitop))
        .summary("Performs bitwise operations on multiple strings, and stores the result.")
        .complexity("O(M) with M bytes of all strings together")
        .flags(Flags::DENYOOM)
        .keys(&[at(2, OVERWRITE), up_to(3, -1, READ)])
        .arguments(&[
            oneof(
                "operation",
                &[token("AND"), token("OR"), token("XOR"), token("NOT")],
            ),
            key(0).named("destkey"),
            key(1).multiple(),
        ]),
    on_bits("bitpos", -3, "2.8.7", read_handler!(bitmaps::bitpos))
        .summary("Finds the first set (1) or clear (0) bit in a string.")
        .complexity(BYTES_IN_RANGE)
        .keys(&[at(1, READ)])
        .history(UNIT_HISTORY)
        .arguments(&[
            key(0),
            integer("bit"),
            block(
                "range",
                &[
                    integer("start"),
                    block("end-unit-block", &[integer("end"), UNIT]).optional(),
                ],
            )
            .optional(),
        ]),
    on_bits("getbit", 3, "2.2.0", read_handler!(bitmaps::getbit))
        .summary("Returns a bit value by offset.")
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), integer("offset")]),
    on_bits("setbit", 4, "2.2.0", write_handler!(bitmaps::setbit))
        .summary(
            "Sets or clears the bit at offset of the string value. Creates the key if it doesn't \
             exist.",
        )
        .flags(Flags::DENYOOM)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0), integer("offset"), integer("value")]),
];

const EACH_ELEMENT: &str = "O(1) for each element, and one value of up to 12 kB";
const EACH_HYPERLOGLOG: &str = "O(1) for each key, which is 16,384 registers";

const fn on_hyperloglogs(name: &'static str, arity: i32, handler: Handler) -> Row {
    Row::new(name, arity, "2.8.9", Group::HyperLogLog, handler).categories(&["@hyperloglog"])
}

/// The HyperLogLog commands.
pub const HYPERLOGLOG_ROWS: &[Row] = &[
    on_hyperloglogs("pfadd", -2, write_handler!(hyperloglog::pfadd))
        .summary("Adds elements to a HyperLogLog key. Creates the key if it doesn't exist.")
        .complexity(EACH_ELEMENT)
        .flags(Flags::DENYOOM.and(Flags::FAST))
        .keys(&[at(1, INSERT)])
        .arguments(&[key(0), string("element").optional().multiple()]),
    on_hyperloglogs("pfcount", -2, write_handler!(hyperloglog::pfcount))
        .summary(
            "Returns the approximated cardinality of the set(s) observed by the HyperLogLog \
             key(s).",
        )
        .complexity(EACH_HYPERLOGLOG)
        .shown_as_read()
        .flags(Flags::MAY_REPLICATE)
        .keys(&[up_to(1, -1, READ_WRITE).notes(
            "RW because it may change the internal representation of the key, and propagate to \
             replicas",
        )])
        .arguments(&[key(0).multiple()]),
    on_hyperloglogs("pfmerge", -2, write_handler!(hyperloglog::pfmerge))
        .summary("Merges one or more HyperLogLog values into a single key.")
        .complexity(EACH_HYPERLOGLOG)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, READ_INSERT), up_to(2, -1, READ)])
        .arguments(&[
            key(0).named("destkey"),
            key(1).named("sourcekey").optional().multiple(),
        ]),
    on_hyperloglogs("pfdebug", 3, write_handler!(hyperloglog::pfdebug))
        .summary("Internal commands for debugging HyperLogLog values.")
        .complexity(EACH_HYPERLOGLOG)
        .flags(Flags::DENYOOM.and(Flags::ADMIN))
        .keys(&[at(2, READ_WRITE)])
        .system()
        .arguments(&[string("subcommand"), key(0)]),
    on_hyperloglogs("pfselftest", 1, Handler::Pure(hyperloglog::pfselftest))
        .summary("An internal command for testing HyperLogLog values.")
        .complexity("O(1), some milliseconds")
        .flags(Flags::ADMIN)
        .system(),
];
