//! The rows of ACL, CONFIG, LATENCY and SLOWLOG.

use crate::command::flags::Flags;
use crate::command::grammar::{block, integer, oneof, string, token};
use crate::command::row::{ConnectionCommand, Group, Handler, Row};

const ADMIN: Flags = Flags::ADMIN.and(Flags::AT_ANY_TIME);
const ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];
const REPORT: &[&str] = &[
    "nondeterministic_output",
    "request_policy:all_nodes",
    "response_policy:special",
];

const BY_ACL: Handler = Handler::Connection(ConnectionCommand::Acl);

const fn acl(name: &'static str, arity: i32) -> Row {
    Row::new(name, arity, "6.0.0", Group::Server, BY_ACL).flags(Flags::AT_ANY_TIME)
}

pub(super) const ACL: &[Row] = &[
    acl("acl|cat", -2)
        .summary("Lists the ACL categories, or the commands inside a category.")
        .complexity("O(1) since the categories and commands are a fixed set.")
        .arguments(&[string("category").optional()]),
    acl("acl|getuser", 3)
        .summary("Lists the ACL rules of a user.")
        .complexity(
            "O(N). Where N is the number of password, command and pattern rules that the user \
             has.",
        )
        .flags(Flags::ADMIN)
        .history(&[
            ("6.2.0", "Added Pub/Sub channel patterns."),
            (
                "7.0.0",
                "Added selectors and changed the format of key and channel patterns from a list to \
                 their rule representation.",
            ),
        ])
        .arguments(&[string("username")]),
    Row::help("acl|help", "6.0.0", Group::Server, BY_ACL),
    acl("acl|genpass", -2)
        .summary(
            "Generates a pseudorandom, secure password that can be used to identify ACL users.",
        )
        .arguments(&[integer("bits").optional()]),
    acl("acl|deluser", -3)
        .summary("Deletes ACL users, and terminates their connections.")
        .complexity("O(1) amortized time considering the typical user.")
        .flags(Flags::ADMIN)
        .tips(ALL_NODES)
        .arguments(&[string("username").multiple()]),
    Row {
        since: "7.0.0",
        ..acl("acl|dryrun", -4)
    }
    .summary("Simulates the execution of a command by a user, without executing the command.")
    .complexity("O(1).")
    .flags(Flags::ADMIN)
    .arguments(&[
        string("username"),
        string("command"),
        string("arg").optional().multiple(),
    ]),
    acl("acl|list", 2)
        .summary("Dumps the effective rules in ACL file format.")
        .complexity("O(N). Where N is the number of configured users.")
        .flags(Flags::ADMIN),
    acl("acl|load", 2)
        .summary("Reloads the rules from the configured ACL file.")
        .complexity("O(N). Where N is the number of configured users.")
        .flags(Flags::ADMIN),
    acl("acl|log", -2)
        .summary("Lists recent security events generated due to ACL rules.")
        .complexity("O(N) with N being the number of entries shown.")
        .flags(Flags::ADMIN)
        .history(&[(
            "7.2.0",
            "Added entry ID, timestamp created, and timestamp last updated.",
        )])
        .arguments(&[oneof("operation", &[integer("count"), token("RESET")]).optional()]),
    acl("acl|save", 2)
        .summary("Saves the effective ACL rules in the configured ACL file.")
        .complexity("O(N). Where N is the number of configured users.")
        .flags(Flags::ADMIN)
        .tips(ALL_NODES),
    acl("acl|setuser", -3)
        .summary("Creates and modifies an ACL user and its rules.")
        .complexity("O(N). Where N is the number of rules provided.")
        .flags(Flags::ADMIN)
        .tips(ALL_NODES)
        .history(&[
            ("6.2.0", "Added Pub/Sub channel patterns."),
            ("7.0.0", "Added selectors and key based permissions."),
        ])
        .arguments(&[string("username"), string("rule").optional().multiple()]),
    acl("acl|users", 2)
        .summary("Lists all ACL users.")
        .complexity("O(N). Where N is the number of configured users.")
        .flags(Flags::ADMIN),
    acl("acl|whoami", 2).summary("Returns the authenticated username of the current connection."),
];

const BY_CONFIG: Handler = Handler::Connection(ConnectionCommand::Config);

const fn config(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row::new(name, arity, since, Group::Server, BY_CONFIG).flags(ADMIN)
}

pub(super) const CONFIG: &[Row] = &[
    config("config|get", -3, "2.0.0")
        .summary("Returns the effective values of configuration parameters.")
        .complexity("O(N) when N is the number of configuration parameters provided")
        .history(&[(
            "7.0.0",
            "Added the ability to pass multiple pattern parameters in one call",
        )])
        .arguments(&[string("parameter").multiple()]),
    Row::help("config|help", "5.0.0", Group::Server, BY_CONFIG),
    config("config|resetstat", 2, "2.0.0")
        .summary("Resets the server's statistics.")
        .tips(ALL_NODES),
    config("config|rewrite", 2, "2.8.0")
        .summary("Persists the effective configuration to file.")
        .tips(ALL_NODES),
    config("config|set", -4, "2.0.0")
        .summary("Sets configuration parameters in-flight.")
        .complexity("O(N) when N is the number of configuration parameters provided")
        .tips(ALL_NODES)
        .history(&[(
            "7.0.0",
            "Added the ability to set multiple parameters in one call.",
        )])
        .arguments(&[block("data", &[string("parameter"), string("value")]).multiple()]),
];

const BY_LATENCY: Handler = Handler::Connection(ConnectionCommand::Latency);

const fn latency(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row::new(name, arity, since, Group::Server, BY_LATENCY).flags(ADMIN)
}

pub(super) const LATENCY: &[Row] = &[
    latency("latency|doctor", 2, "2.8.13")
        .summary("Returns a human-readable latency analysis report.")
        .tips(REPORT),
    latency("latency|graph", 3, "2.8.13")
        .summary("Returns a latency graph for an event.")
        .tips(REPORT)
        .arguments(&[string("event")]),
    Row::help("latency|help", "2.8.13", Group::Server, BY_LATENCY),
    latency("latency|histogram", -2, "7.0.0")
        .summary("Returns the cumulative distribution of latencies of a subset or all commands.")
        .complexity(
            "O(N) where N is the number of commands with latency information being retrieved.",
        )
        .tips(REPORT)
        .arguments(&[string("COMMAND").optional().multiple()]),
    latency("latency|history", 3, "2.8.13")
        .summary("Returns timestamp-latency samples for an event.")
        .tips(REPORT)
        .arguments(&[string("event")]),
    latency("latency|latest", 2, "2.8.13")
        .summary("Returns the latest latency samples for all events.")
        .tips(REPORT),
    latency("latency|reset", -2, "2.8.13")
        .summary("Resets the latency data for one or more events.")
        .tips(&["request_policy:all_nodes", "response_policy:agg_sum"])
        .arguments(&[string("event").optional().multiple()]),
];

const BY_SLOWLOG: Handler = Handler::Connection(ConnectionCommand::Slowlog);

const fn slowlog(name: &'static str, arity: i32) -> Row {
    Row::new(name, arity, "2.2.12", Group::Server, BY_SLOWLOG)
        .flags(Flags::ADMIN.and(Flags::LOADING).and(Flags::STALE))
}

pub(super) const SLOWLOG: &[Row] = &[
    slowlog("slowlog|get", -2)
        .summary("Returns the slow log's entries.")
        .complexity("O(N) where N is the number of entries returned")
        .tips(&["request_policy:all_nodes", "nondeterministic_output"])
        .history(&[(
            "4.0.0",
            "Added client IP address, port and name to the reply.",
        )])
        .arguments(&[integer("count").optional()]),
    Row::help("slowlog|help", "6.2.0", Group::Server, BY_SLOWLOG)
        .summary("Show helpful text about the different subcommands"),
    slowlog("slowlog|len", 2)
        .summary("Returns the number of entries in the slow log.")
        .tips(&[
            "request_policy:all_nodes",
            "response_policy:agg_sum",
            "nondeterministic_output",
        ]),
    slowlog("slowlog|reset", 2)
        .summary("Clears all entries from the slow log.")
        .complexity("O(N) where N is the number of entries in the slowlog")
        .tips(ALL_NODES),
];
