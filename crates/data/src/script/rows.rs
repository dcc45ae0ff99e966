//! The rows of EVAL and its variants, SCRIPT and FUNCTION.

use crate::command::flags::Flags;
use crate::command::grammar::{Argument, integer, key, oneof, string, token};
use crate::command::key_specs::{KeySpec, READ, READ_UPDATE, counted_at};
use crate::command::row::{ConnectionCommand, Group, Handler, Row};
use crate::script::{cache, eval, functions};
use crate::script_handler;

const SCRIPT_FLAGS: Flags = Flags::NOSCRIPT
    .and(Flags::STALE)
    .and(Flags::SKIP_MONITOR)
    .and(Flags::NO_MANDATORY_KEYS);

const MAY_WRITE: &[KeySpec] = &[counted_at(2, READ_UPDATE)];
const READS: &[KeySpec] = &[counted_at(2, READ)];
const MAY_WRITE_NOTED: &[KeySpec] = &[counted_at(2, READ_UPDATE)
    .notes("We cannot tell how the keys will be used so we assume the worst, RW and UPDATE")];
const READS_NOTED: &[KeySpec] = &[counted_at(2, READ)
    .notes("We cannot tell how the keys will be used so we assume the worst, RO and ACCESS")];
const BY_TEXT: &[Argument] = &[
    string("script"),
    integer("numkeys"),
    key(0).optional().multiple(),
    string("arg").optional().multiple(),
];
const BY_NAME: &[Argument] = &[
    string("sha1"),
    integer("numkeys"),
    key(0).optional().multiple(),
    string("arg").optional().multiple(),
];

const OF_FUNCTION: &[Argument] = &[
    string("function"),
    integer("numkeys"),
    key(0).optional().multiple(),
    string("arg").optional().multiple(),
];

const fn eval(name: &'static str, since: &'static str, handler: Handler) -> Row {
    Row::new(name, -3, since, Group::Scripting, handler)
        .complexity("Depends on the script that is executed.")
        .flags(SCRIPT_FLAGS)
        .categories(&["@scripting"])
}

const fn script(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Scripting, handler)
        .flags(Flags::NOSCRIPT)
        .categories(&["@scripting"])
}

const SCRIPT: &[Row] = &[
    script("script|debug", 3, "3.2.0", Handler::Pure(cache::debug))
        .summary("Sets the debug mode of server-side Lua scripts.")
        .arguments(&[oneof(
            "mode",
            &[
                token("YES").named("yes"),
                token("SYNC").named("sync"),
                token("NO").named("no"),
            ],
        )]),
    script("script|exists", -3, "2.6.0", script_handler!(cache::exists))
        .summary("Determines whether server-side Lua scripts exist in the script cache.")
        .complexity("O(M)")
        .flags(Flags::ON_SNAPSHOT)
        .tips(&[
            "request_policy:all_shards",
            "response_policy:agg_logical_and",
        ])
        .arguments(&[string("sha1").multiple()]),
    script("script|flush", -2, "2.6.0", script_handler!(cache::flush))
        .summary("Removes all server-side Lua scripts from the script cache.")
        .flags(Flags::REMOVES)
        .history(&[(
            "6.2.0",
            "Added the `ASYNC` and `SYNC` flushing mode modifiers.",
        )])
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .arguments(&[oneof(
            "flush-type",
            &[token("ASYNC").named("async"), token("SYNC").named("sync")],
        )
        .since("6.2.0")
        .optional()]),
    Row::help(
        "script|help",
        "5.0.0",
        Group::Scripting,
        Handler::Pure(cache::script_help),
    )
    .categories(&["@scripting"]),
    script("script|kill", 2, "2.6.0", Handler::Pure(cache::kill))
        .summary("Terminates a server-side Lua script during execution.")
        .flags(Flags::ALLOW_BUSY)
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
    script("script|load", 3, "2.6.0", script_handler!(cache::load))
        .summary("Loads a server-side Lua script to the script cache.")
        .complexity("O(N) with N being the length in bytes of the script body.")
        .flags(Flags::STALE)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .arguments(&[string("script")]),
];

/// The commands of scripts.
pub const ROWS: &[Row] = &[
    eval("eval", "2.6.0", script_handler!(eval::eval::<false>))
        .summary("Executes a server-side Lua script.")
        .flags(Flags::MAY_REPLICATE)
        .keys(MAY_WRITE_NOTED)
        .arguments(BY_TEXT),
    eval("evalsha", "2.6.0", script_handler!(eval::evalsha::<false>))
        .summary("Executes a server-side Lua script by SHA1 digest.")
        .flags(Flags::MAY_REPLICATE)
        .keys(MAY_WRITE)
        .arguments(BY_NAME),
    eval(
        "evalsha_ro",
        "7.0.0",
        script_handler!(eval::evalsha::<true>),
    )
    .summary("Executes a read-only server-side Lua script by SHA1 digest.")
    .flags(Flags::READONLY.and(Flags::ON_SNAPSHOT))
    .keys(READS)
    .arguments(BY_NAME),
    eval("eval_ro", "7.0.0", script_handler!(eval::eval::<true>))
        .summary("Executes a read-only server-side Lua script.")
        .flags(Flags::READONLY.and(Flags::ON_SNAPSHOT))
        .keys(READS_NOTED)
        .arguments(BY_TEXT),
    eval("fcall", "7.0.0", script_handler!(eval::fcall::<false>))
        .summary("Invokes a function.")
        .complexity("Depends on the function that is executed.")
        .flags(Flags::MAY_REPLICATE)
        .keys(MAY_WRITE_NOTED)
        .arguments(OF_FUNCTION),
    eval("fcall_ro", "7.0.0", script_handler!(eval::fcall::<true>))
        .summary("Invokes a read-only function.")
        .complexity("Depends on the function that is executed.")
        .flags(Flags::READONLY.and(Flags::ON_SNAPSHOT))
        .keys(READS_NOTED)
        .arguments(OF_FUNCTION),
    Row::container("function", "7.0.0", Group::Scripting, FUNCTION)
        .summary("A container for function commands."),
    Row::container("script", "2.6.0", Group::Scripting, SCRIPT)
        .summary("A container for Lua scripts management commands."),
];

const TO_ALL: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];

const fn function(name: &'static str, arity: i32, handler: Handler) -> Row {
    Row::new(name, arity, "7.0.0", Group::Scripting, handler)
        .flags(Flags::NOSCRIPT)
        .categories(&["@scripting"])
}

pub(super) const FUNCTION: &[Row] = &[
    function("function|delete", 3, script_handler!(functions::delete))
        .summary("Deletes a library and its functions.")
        .flags(Flags::WRITE.and(Flags::REMOVES))
        .tips(TO_ALL)
        .arguments(&[string("library-name")]),
    function("function|dump", 2, script_handler!(functions::dump))
        .summary("Dumps all libraries into a serialized binary payload.")
        .complexity("O(N) where N is the number of functions")
        .flags(Flags::ON_SNAPSHOT),
    function("function|flush", -2, script_handler!(functions::flush))
        .summary("Deletes all libraries and functions.")
        .complexity("O(N) where N is the number of functions deleted")
        .flags(Flags::WRITE.and(Flags::REMOVES))
        .tips(TO_ALL)
        .arguments(&[oneof(
            "flush-type",
            &[token("ASYNC").named("async"), token("SYNC").named("sync")],
        )
        .optional()]),
    Row::help(
        "function|help",
        "7.0.0",
        Group::Scripting,
        Handler::Pure(functions::function_help),
    )
    .categories(&["@scripting"]),
    function("function|kill", 2, Handler::Pure(functions::kill))
        .summary("Terminates a function during execution.")
        .flags(Flags::ALLOW_BUSY)
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
    function("function|list", -2, script_handler!(functions::list))
        .summary("Returns information about all libraries.")
        .complexity("O(N) where N is the number of functions")
        .flags(Flags::ON_SNAPSHOT)
        .tips(&["nondeterministic_output_order"])
        .arguments(&[
            string("library-name-pattern")
                .token("LIBRARYNAME")
                .optional(),
            token("WITHCODE").named("withcode").optional(),
        ]),
    function("function|load", -3, script_handler!(functions::load))
        .summary("Creates a library.")
        .complexity("O(1) (considering compilation time is redundant)")
        .flags(Flags::WRITE.and(Flags::DENYOOM))
        .tips(TO_ALL)
        .arguments(&[
            token("REPLACE").named("replace").optional(),
            string("function-code"),
        ]),
    function("function|restore", -3, script_handler!(functions::restore))
        .summary("Restores all libraries from a payload.")
        .complexity("O(N) where N is the number of functions on the payload")
        .flags(Flags::WRITE.and(Flags::DENYOOM))
        .tips(TO_ALL)
        .arguments(&[
            string("serialized-value"),
            oneof(
                "policy",
                &[
                    token("FLUSH").named("flush"),
                    token("APPEND").named("append"),
                    token("REPLACE").named("replace"),
                ],
            )
            .optional(),
        ]),
    function(
        "function|stats",
        2,
        Handler::Connection(ConnectionCommand::FunctionStats),
    )
    .summary("Returns information about a function during execution.")
    .flags(Flags::ALLOW_BUSY)
    .tips(&[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ]),
];
