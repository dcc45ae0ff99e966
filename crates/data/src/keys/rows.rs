//! The rows of the key commands.

use crate::command::flags::Flags;
use crate::command::grammar::{
    Argument, COUNT, LIMIT, block, integer, key, oneof, pattern, string, token, unix_time,
};
use crate::command::key_specs::{
    CHECK, CREATE, OVERWRITE, READ, READ_UPDATE, REMOVE, TAKE, TAKE_AND_MORE, UPDATE, after_store,
    all_after_word, at, named_by_elements, up_to,
};
use crate::command::row::{ConnectionCommand, Group, Handler, Row};
use crate::keys::{databases, dump, expiry, moving, object, scan, sort};
use crate::{read_handler, write_handler};

const ONE_KEY: &str = "O(log N), N being all that is stored";
const EACH_KEY: &str = "O(log N) for each key, N being all that is stored";
const WHOLE_VALUE: &str = "O(M) with M elements in the value";
const WHOLE_DATABASE: &str = "O(N) with N keys in the database";
const SORTING: &str = "O(M log M) with M elements in the value";

const DANGEROUS: &[&str] = &["@keyspace", "@dangerous"];
const SORT_CATEGORIES: &[&str] = &["@set", "@sortedset", "@list", "@dangerous"];
const KEYS_TIPS: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];
const FLUSH_TIPS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
const REPORT_TIPS: &[&str] = &[
    "nondeterministic_output",
    "request_policy:all_shards",
    "response_policy:special",
];

const CONDITION: Argument = oneof(
    "condition",
    &[token("NX"), token("XX"), token("GT"), token("LT")],
)
.since("7.0.0")
.optional();
const CONDITION_HISTORY: &[(&str, &str)] =
    &[("7.0.0", "Added options: `NX`, `XX`, `GT` and `LT`.")];
const FLUSH_TYPE: Argument = oneof(
    "flush-type",
    &[token("ASYNC").since("4.0.0"), token("SYNC").since("6.2.0")],
)
.optional();
const FLUSH_HISTORY: &[(&str, &str)] = &[
    ("4.0.0", "Added the `ASYNC` flushing mode modifier."),
    ("6.2.0", "Added the `SYNC` flushing mode modifier."),
];

const BY: Argument = pattern("by-pattern")
    .token("BY")
    .shown_as("pattern")
    .key_spec(1)
    .optional();
const GET: Argument = pattern("get-pattern")
    .token("GET")
    .shown_as("pattern")
    .key_spec(1)
    .optional()
    .multiple_with_token();
const ORDER: Argument = oneof("order", &[token("ASC"), token("DESC")]).optional();
const ALPHA: Argument = token("ALPHA").named("sorting").optional();

/// How MIGRATE logs in to the other server.
const CREDENTIALS: Argument = oneof(
    "authentication",
    &[
        string("auth")
            .token("AUTH")
            .shown_as("password")
            .since("4.0.7"),
        block("auth2", &[string("username"), string("password")])
            .token("AUTH2")
            .since("6.0.0"),
    ],
)
.optional();

const fn generic(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Generic, handler).categories(&["@keyspace"])
}

/// A command on whole databases.
const fn database(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Server, handler).categories(DANGEROUS)
}

/// The key commands.
pub const ROWS: &[Row] = &[
    generic("del", -2, "1.0.0", write_handler!(moving::del))
        .summary("Deletes one or more keys.")
        .complexity(EACH_KEY)
        .keys(&[up_to(1, -1, REMOVE)])
        .tips(KEYS_TIPS)
        .arguments(&[key(0).multiple()]),
    generic("unlink", -2, "4.0.0", write_handler!(moving::del))
        .summary("Asynchronously deletes one or more keys.")
        .complexity(EACH_KEY)
        .flags(Flags::FAST)
        .keys(&[up_to(1, -1, REMOVE)])
        .tips(KEYS_TIPS)
        .arguments(&[key(0).multiple()]),
    generic("exists", -2, "1.0.0", read_handler!(moving::exists))
        .summary("Determines whether one or more keys exist.")
        .complexity(EACH_KEY)
        .flags(Flags::FAST)
        .keys(&[up_to(1, -1, CHECK)])
        .tips(KEYS_TIPS)
        .history(&[("3.0.3", "Accepts multiple `key` arguments.")])
        .arguments(&[key(0).multiple()]),
    generic("touch", -2, "3.2.1", read_handler!(moving::exists))
        .summary(
            "Returns the number of existing keys out of those specified after updating the time \
             they were last accessed.",
        )
        .complexity(EACH_KEY)
        .flags(Flags::FAST)
        .keys(&[up_to(1, -1, CHECK)])
        .tips(KEYS_TIPS)
        .arguments(&[key(0).multiple()]),
    generic("type", 2, "1.0.0", read_handler!(moving::type_of))
        .summary("Determines the type of value stored at a key.")
        .complexity(ONE_KEY)
        .flags(Flags::FAST)
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0)]),
    generic("keys", 2, "1.0.0", read_handler!(scan::keys))
        .summary("Returns all key names that match a pattern.")
        .flags(Flags::AT_SNAPSHOT)
        .complexity(WHOLE_DATABASE)
        .categories(DANGEROUS)
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .arguments(&[pattern("pattern")]),
    generic("scan", -2, "2.8.0", read_handler!(scan::scan))
        .summary("Iterates over the key names in the database.")
        .flags(Flags::AT_SNAPSHOT)
        .complexity("O(log N + COUNT) for every call, N being all that is stored")
        .tips(&[
            "nondeterministic_output",
            "request_policy:special",
            "response_policy:special",
        ])
        .history(&[("6.0.0", "Added the `TYPE` subcommand.")])
        .arguments(&[
            integer("cursor"),
            pattern("pattern").token("MATCH").optional(),
            COUNT,
            string("type").token("TYPE").since("6.0.0").optional(),
        ]),
    generic("randomkey", 1, "1.0.0", read_handler!(scan::randomkey))
        .summary("Returns a random key name from the database.")
        .flags(Flags::AT_SNAPSHOT)
        .complexity(ONE_KEY)
        .tips(&[
            "request_policy:all_shards",
            "response_policy:special",
            "nondeterministic_output",
        ]),
    generic("rename", 3, "1.0.0", write_handler!(moving::rename))
        .summary("Renames a key and overwrites the destination.")
        .complexity(ONE_KEY)
        .keys(&[at(1, TAKE), at(2, OVERWRITE)])
        .arguments(&[key(0), key(1).named("newkey")]),
    generic("renamenx", 3, "1.0.0", write_handler!(moving::renamenx))
        .summary("Renames a key only when the target key name doesn't exist.")
        .complexity(ONE_KEY)
        .flags(Flags::FAST)
        .keys(&[at(1, TAKE), at(2, CREATE)])
        .history(&[(
            "3.2.0",
            "The command no longer returns an error when source and destination names are the \
             same.",
        )])
        .arguments(&[key(0), key(1).named("newkey")]),
    generic("copy", -3, "6.2.0", write_handler!(moving::copy))
        .summary("Copies the value of a key to a new key.")
        .complexity(WHOLE_VALUE)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, READ), at(2, OVERWRITE)])
        .arguments(&[
            key(0).named("source"),
            key(1).named("destination"),
            integer("destination-db").token("DB").optional(),
            token("REPLACE").optional(),
        ]),
    generic("dump", 2, "2.6.0", read_handler!(dump::dump))
        .summary("Returns a serialized representation of the value stored at a key.")
        .complexity(WHOLE_VALUE)
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output"])
        .arguments(&[key(0)]),
    generic("restore", -4, "2.6.0", write_handler!(dump::restore))
        .summary("Creates a key from the serialized representation of a value.")
        .complexity(SORTING)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, OVERWRITE)])
        .categories(DANGEROUS)
        .history(&[
            ("3.0.0", "Added the `REPLACE` modifier."),
            ("5.0.0", "Added the `ABSTTL` modifier."),
            ("5.0.0", "Added the `IDLETIME` and `FREQ` options."),
        ])
        .arguments(&[
            key(0),
            integer("ttl"),
            string("serialized-value"),
            token("REPLACE").since("3.0.0").optional(),
            token("ABSTTL").since("5.0.0").optional(),
            integer("seconds")
                .token("IDLETIME")
                .since("5.0.0")
                .optional(),
            integer("frequency").token("FREQ").since("5.0.0").optional(),
        ]),
    generic(
        "migrate",
        -6,
        "2.6.0",
        Handler::Connection(ConnectionCommand::Migrate),
    )
    .summary("Atomically transfers a key from one Redis instance to another.")
    .complexity(WHOLE_VALUE)
    .flags(Flags::WRITE)
    .keys(&[at(3, TAKE), all_after_word("KEYS", 6, TAKE_AND_MORE)])
    .categories(DANGEROUS)
    .tips(&["nondeterministic_output"])
    .history(&[
        ("3.0.0", "Added the `COPY` and `REPLACE` options."),
        ("3.0.6", "Added the `KEYS` option."),
        ("4.0.7", "Added the `AUTH` option."),
        ("6.0.0", "Added the `AUTH2` option."),
    ])
    .arguments(&[
        string("host"),
        integer("port"),
        oneof(
            "key-selector",
            &[key(0), token("\"\"").named("empty-string")],
        ),
        integer("destination-db"),
        integer("timeout"),
        token("COPY").since("3.0.0").optional(),
        token("REPLACE").since("3.0.0").optional(),
        CREDENTIALS,
        key(1)
            .named("keys")
            .token("KEYS")
            .shown_as("key")
            .since("3.0.6")
            .optional()
            .multiple(),
    ]),
    generic("move", 3, "1.0.0", write_handler!(moving::move_key))
        .summary("Moves a key to another database.")
        .complexity(ONE_KEY)
        .flags(Flags::FAST)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0), integer("db")]),
    database("dbsize", 1, "1.0.0", read_handler!(scan::dbsize))
        .summary("Returns the number of keys in the database.")
        .flags(Flags::AT_SNAPSHOT)
        .complexity(WHOLE_DATABASE)
        .flags(Flags::FAST)
        .categories(&["@keyspace"])
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"]),
    database("flushdb", -1, "1.0.0", write_handler!(databases::flushdb))
        .summary("Remove all keys from the current database.")
        .flags(Flags::REMOVES)
        .complexity("O(1); the keys' room is given back in the background")
        .categories(DANGEROUS)
        .tips(FLUSH_TIPS)
        .history(FLUSH_HISTORY)
        .arguments(&[FLUSH_TYPE]),
    database("flushall", -1, "1.0.0", write_handler!(databases::flushall))
        .summary("Removes all keys from all databases.")
        .flags(Flags::REMOVES)
        .complexity("O(D) with D databases; the keys' room is given back in the background")
        .categories(DANGEROUS)
        .tips(FLUSH_TIPS)
        .history(FLUSH_HISTORY)
        .arguments(&[FLUSH_TYPE]),
    database("swapdb", 3, "4.0.0", write_handler!(databases::swapdb))
        .summary("Swaps two Redis databases.")
        .flags(Flags::FAST)
        .categories(DANGEROUS)
        .arguments(&[integer("index1"), integer("index2")]),
    generic("expire", -3, "1.0.0", write_handler!(expiry::expire))
        .summary("Sets the expiration time of a key in seconds.")
        .complexity(ONE_KEY)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .history(CONDITION_HISTORY)
        .arguments(&[key(0), integer("seconds"), CONDITION]),
    generic("pexpire", -3, "2.6.0", write_handler!(expiry::pexpire))
        .summary("Sets the expiration time of a key in milliseconds.")
        .complexity(ONE_KEY)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .history(CONDITION_HISTORY)
        .arguments(&[key(0), integer("milliseconds"), CONDITION]),
    generic("expireat", -3, "1.2.0", write_handler!(expiry::expireat))
        .summary("Sets the expiration time of a key to a Unix timestamp.")
        .complexity(ONE_KEY)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .history(CONDITION_HISTORY)
        .arguments(&[key(0), unix_time("unix-time-seconds"), CONDITION]),
    generic("pexpireat", -3, "2.6.0", write_handler!(expiry::pexpireat))
        .summary("Sets the expiration time of a key to a Unix milliseconds timestamp.")
        .complexity(ONE_KEY)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .history(CONDITION_HISTORY)
        .arguments(&[key(0), unix_time("unix-time-milliseconds"), CONDITION]),
    generic("ttl", 2, "1.0.0", read_handler!(expiry::ttl))
        .summary("Returns the expiration time in seconds of a key.")
        .complexity(ONE_KEY)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output"])
        .history(&[("2.8.0", "Added the -2 reply.")])
        .arguments(&[key(0)]),
    generic("pttl", 2, "2.6.0", read_handler!(expiry::pttl))
        .summary("Returns the expiration time in milliseconds of a key.")
        .complexity(ONE_KEY)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output"])
        .history(&[("2.8.0", "Added the -2 reply.")])
        .arguments(&[key(0)]),
    generic("expiretime", 2, "7.0.0", read_handler!(expiry::expiretime))
        .summary("Returns the expiration time of a key as a Unix timestamp.")
        .complexity(ONE_KEY)
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0)]),
    generic(
        "pexpiretime",
        2,
        "7.0.0",
        read_handler!(expiry::pexpiretime),
    )
    .summary("Returns the expiration time of a key as a Unix milliseconds timestamp.")
    .complexity(ONE_KEY)
    .flags(Flags::FAST)
    .keys(&[at(1, READ)])
    .arguments(&[key(0)]),
    generic("persist", 2, "2.2.0", write_handler!(expiry::persist))
        .summary("Removes the expiration time of a key.")
        .complexity(ONE_KEY)
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .arguments(&[key(0)]),
    generic("sort", -2, "1.0.0", write_handler!(sort::sort))
        .summary(
            "Sorts the elements in a list, a set, or a sorted set, optionally storing the \
             result.",
        )
        .complexity(SORTING)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, READ), named_by_elements(READ), after_store(OVERWRITE)])
        .categories(SORT_CATEGORIES)
        .arguments(&[
            key(0),
            BY,
            LIMIT,
            GET,
            ORDER,
            ALPHA,
            key(2).named("destination").token("STORE").optional(),
        ]),
    generic("sort_ro", -2, "7.0.0", read_handler!(sort::sort_ro))
        .summary("Returns the sorted elements of a list, a set, or a sorted set.")
        .complexity(SORTING)
        .keys(&[at(1, READ), named_by_elements(READ)])
        .categories(SORT_CATEGORIES)
        .arguments(&[key(0), BY, LIMIT, GET, ORDER, ALPHA]),
    Row::container("object", "2.2.3", Group::Generic, OBJECT)
        .summary("A container for object introspection commands."),
    Row::container("memory", "4.0.0", Group::Server, MEMORY)
        .summary("A container for memory diagnostics commands."),
];

const fn object(name: &'static str, since: &'static str, handler: Handler) -> Row {
    generic(name, 3, since, handler)
        .complexity(ONE_KEY)
        .keys(const { &[at(2, CHECK)] })
        .tips(&["nondeterministic_output"])
        .arguments(const { &[key(0)] })
}

const OBJECT: &[Row] = &[
    object("object|encoding", "2.2.3", read_handler!(object::encoding))
        .summary("Returns the internal encoding of a Redis object."),
    object("object|freq", "4.0.0", read_handler!(object::freq))
        .summary("Returns the logarithmic access frequency counter of a Redis object."),
    Row::help(
        "object|help",
        "6.2.0",
        Group::Generic,
        Handler::Pure(object::help),
    )
    .categories(&["@keyspace"]),
    object("object|idletime", "2.2.3", read_handler!(object::idletime))
        .summary("Returns the time since the last access to a Redis object."),
    object("object|refcount", "2.2.3", read_handler!(object::refcount))
        .summary("Returns the reference count of a value of a key."),
];

const fn memory(name: &'static str, arity: i32, handler: Handler) -> Row {
    Row::new(name, arity, "4.0.0", Group::Server, handler)
}

const MEMORY: &[Row] = &[
    memory("memory|doctor", 2, Handler::Pure(object::doctor))
        .summary("Outputs a memory problems report.")
        .tips(REPORT_TIPS),
    Row::help(
        "memory|help",
        "4.0.0",
        Group::Server,
        Handler::Pure(object::memory_help),
    ),
    memory(
        "memory|malloc-stats",
        2,
        Handler::Pure(object::malloc_stats),
    )
    .summary("Returns the allocator statistics.")
    .tips(REPORT_TIPS),
    memory("memory|purge", 2, Handler::Pure(object::purge))
        .summary("Asks the allocator to release memory.")
        .tips(FLUSH_TIPS),
    memory(
        "memory|stats",
        2,
        Handler::Connection(ConnectionCommand::MemoryStats),
    )
    .summary("Returns details about memory usage.")
    .tips(REPORT_TIPS),
    memory("memory|usage", -3, read_handler!(object::usage))
        .summary("Estimates the memory usage of a key.")
        .complexity("O(M) with M elements examined")
        .keys(&[at(2, CHECK)])
        .arguments(&[key(0), integer("count").token("SAMPLES").optional()]),
];
