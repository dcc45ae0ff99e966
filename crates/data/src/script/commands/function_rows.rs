//! The rows of FUNCTION.

use super::{libraries, listing};
use crate::command::flags::Flags;
use crate::command::grammar::{oneof, string, token};
use crate::command::row::{ConnectionCommand, Group, Handler, Row};
use crate::script_handler;

const TO_ALL: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];

const fn function(name: &'static str, arity: i32, handler: Handler) -> Row {
    Row::new(name, arity, "7.0.0", Group::Scripting, handler)
        .flags(Flags::NOSCRIPT)
        .categories(&["@scripting"])
}

pub(super) const FUNCTION: &[Row] = &[
    function("function|delete", 3, script_handler!(libraries::delete))
        .summary("Deletes a library and its functions.")
        .flags(Flags::WRITE.and(Flags::REMOVES))
        .tips(TO_ALL)
        .arguments(&[string("library-name")]),
    function("function|dump", 2, script_handler!(listing::dump))
        .summary("Dumps all libraries into a serialized binary payload.")
        .complexity("O(N) where N is the number of functions")
        .flags(Flags::ON_SNAPSHOT),
    function("function|flush", -2, script_handler!(libraries::flush))
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
        Handler::Pure(listing::function_help),
    )
    .categories(&["@scripting"]),
    function("function|kill", 2, Handler::Pure(listing::kill))
        .summary("Terminates a function during execution.")
        .flags(Flags::ALLOW_BUSY)
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
    function("function|list", -2, script_handler!(listing::list))
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
    function("function|load", -3, script_handler!(libraries::load))
        .summary("Creates a library.")
        .complexity("O(1) (considering compilation time is redundant)")
        .flags(Flags::WRITE.and(Flags::DENYOOM))
        .tips(TO_ALL)
        .arguments(&[
            token("REPLACE").named("replace").optional(),
            string("function-code"),
        ]),
    function("function|restore", -3, script_handler!(libraries::restore))
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
