//! The subcommands of ACL, CLIENT, CONFIG, LATENCY, MODULE and SLOWLOG. There are no modules, and none can be loaded.

use bytes::Bytes;
use quoin_resp::reply::Reply;

use crate::command::flags::Flags;
use crate::command::grammar::{Argument, block, integer, oneof, string, token};
use crate::command::help;
use crate::command::row::{ConnectionCommand, Group, Handler, Row};
use crate::error::CommandError;
use crate::unit::context::Environment;

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

const BY_SERVER: Handler = Handler::Connection(ConnectionCommand::Client);
const CONNECTION: &[&str] = &["@connection"];
const EACH_CLIENT: &str = "O(N) where N is the number of client connections";

const ENABLED: Argument = oneof("enabled", &[token("ON"), token("OFF")]);
const SKIP_ME: Argument = oneof("skipme", &[token("YES"), token("NO")])
    .token("SKIPME")
    .optional();
const LISTED_TYPE: Argument = oneof(
    "client-type",
    &[
        token("normal"),
        token("master"),
        token("replica"),
        token("pubsub"),
    ],
)
.token("TYPE")
.since("5.0.0")
.optional();
const KILLED_TYPE: Argument = oneof(
    "client-type",
    &[
        token("normal"),
        token("master").since("3.2.0"),
        token("slave"),
        token("replica").since("5.0.0"),
        token("pubsub"),
    ],
)
.token("TYPE")
.since("2.8.12")
.optional();
const KILL_FILTERS: Argument = oneof(
    "new-format",
    &[
        integer("client-id").token("ID").since("2.8.12").optional(),
        KILLED_TYPE,
        string("username").token("USER").optional(),
        string("addr").token("ADDR").shown_as("ip:port").optional(),
        string("laddr")
            .token("LADDR")
            .shown_as("ip:port")
            .since("6.2.0")
            .optional(),
        SKIP_ME,
        integer("maxage").token("MAXAGE").since("7.4.0").optional(),
    ],
)
.multiple();

const fn client(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row::new(name, arity, since, Group::Connection, BY_SERVER)
        .flags(Flags::AT_ANY_TIME)
        .categories(CONNECTION)
}

pub(super) const CLIENT: &[Row] = &[
    client("client|caching", 3, "6.0.0")
        .summary("Instructs the server whether to track the keys in the next request.")
        .arguments(&[oneof("mode", &[token("YES"), token("NO")])]),
    client("client|capa", -3, "8.0.0")
        .summary("Says what the client can do. No client is redirected.")
        .arguments(&[token("REDIRECT").multiple()]),
    client("client|getname", 2, "2.6.9")
        .flags(Flags::SENTINEL)
        .summary("Returns the name of the connection."),
    client("client|getredir", 2, "6.0.0").summary(
        "Returns the client ID to which the connection's tracking notifications are \
         redirected.",
    ),
    Row::help("client|help", "5.0.0", Group::Connection, BY_SERVER)
        .categories(CONNECTION)
        .flags(Flags::SENTINEL),
    client("client|id", 2, "5.0.0")
        .flags(Flags::SENTINEL)
        .summary("Returns the unique client ID of the connection."),
    client("client|info", 2, "6.2.0")
        .flags(Flags::SENTINEL)
        .summary("Returns information about the connection.")
        .tips(&["nondeterministic_output"]),
    client("client|kill", -3, "2.4.0")
        .summary("Terminates open connections.")
        .complexity(EACH_CLIENT)
        .flags(Flags::ADMIN)
        .history(&[
            ("2.8.12", "Added new filter format."),
            ("2.8.12", "`ID` option."),
            ("3.2.0", "Added `master` type in for `TYPE` option."),
            (
                "5.0.0",
                "Replaced `slave` `TYPE` with `replica`. `slave` still supported for backward \
                 compatibility.",
            ),
            ("6.2.0", "`LADDR` option."),
            ("7.4.0", "`MAXAGE` option."),
        ])
        .arguments(&[oneof(
            "filter",
            &[
                string("old-format")
                    .shown_as("ip:port")
                    .deprecated_since("2.8.12"),
                KILL_FILTERS,
            ],
        )]),
    client("client|list", -2, "2.4.0")
        .summary("Lists open connections.")
        .complexity(EACH_CLIENT)
        .flags(Flags::ADMIN)
        .tips(&["nondeterministic_output"])
        .history(&[
            ("2.8.12", "Added unique client `id` field."),
            ("5.0.0", "Added optional `TYPE` filter."),
            ("6.0.0", "Added `user` field."),
            (
                "6.2.0",
                "Added `argv-mem`, `tot-mem`, `laddr` and `redir` fields and the optional `ID` \
                 filter.",
            ),
            (
                "7.0.0",
                "Added `resp`, `multi-mem`, `rbs` and `rbp` fields.",
            ),
            ("7.0.3", "Added `ssub` field."),
        ])
        .arguments(&[
            LISTED_TYPE,
            integer("client-id")
                .token("ID")
                .since("6.2.0")
                .optional()
                .multiple(),
        ]),
    client("client|no-evict", 3, "7.0.0")
        .summary("Sets the client eviction mode of the connection.")
        .flags(Flags::ADMIN)
        .arguments(&[ENABLED]),
    client("client|no-touch", 3, "7.2.0")
        .summary(
            "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.",
        )
        .arguments(&[ENABLED]),
    client("client|pause", -3, "3.0.0")
        .summary("Suspends commands processing.")
        .flags(Flags::ADMIN)
        .history(&[(
            "6.2.0",
            "`CLIENT PAUSE WRITE` mode added along with the `mode` option.",
        )])
        .arguments(&[
            integer("timeout"),
            oneof("mode", &[token("WRITE"), token("ALL")])
                .since("6.2.0")
                .optional(),
        ]),
    client("client|reply", 3, "3.2.0")
        .flags(Flags::SENTINEL)
        .summary("Instructs the server whether to reply to commands.")
        .arguments(&[oneof("action", &[token("ON"), token("OFF"), token("SKIP")])]),
    client("client|maint_notifications", -3, "7.2.0")
        .flags(Flags::SENTINEL)
        .summary("Asks for notifications of maintenance, which do not come.")
        .arguments(&[
            oneof("status", &[token("ON"), token("OFF")]),
            string("type").token("moving-endpoint-type").optional(),
        ]),
    client("client|setinfo", 4, "7.2.0")
        .flags(Flags::SENTINEL)
        .summary("Sets information specific to the client or connection.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .arguments(&[oneof(
            "attr",
            &[
                string("libname").token("lib-name"),
                string("libver").token("lib-ver"),
            ],
        )]),
    client("client|setname", 3, "2.6.9")
        .flags(Flags::SENTINEL)
        .summary("Sets the connection name.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .arguments(&[string("connection-name")]),
    client("client|tracking", -3, "6.0.0")
        .summary("Controls server-assisted client-side caching for the connection.")
        .complexity("O(1). Some options may introduce additional complexity.")
        .arguments(&[
            oneof("status", &[token("ON"), token("OFF")]),
            integer("client-id").token("REDIRECT").optional(),
            string("prefix")
                .token("PREFIX")
                .optional()
                .multiple_with_token(),
            token("BCAST").named("BCAST").optional(),
            token("OPTIN").named("OPTIN").optional(),
            token("OPTOUT").named("OPTOUT").optional(),
            token("NOLOOP").named("NOLOOP").optional(),
        ]),
    client("client|trackinginfo", 2, "6.2.0").summary(
        "Returns information about server-assisted client-side caching for the connection.",
    ),
    client("client|unblock", -3, "5.0.0")
        .summary("Unblocks a client blocked by a blocking command from a different connection.")
        .complexity("O(log N) where N is the number of client connections")
        .flags(Flags::ADMIN)
        .arguments(&[
            integer("client-id"),
            oneof("unblock-type", &[token("TIMEOUT"), token("ERROR")]).optional(),
        ]),
    client("client|unpause", 2, "6.2.0")
        .summary("Resumes processing commands from paused clients.")
        .complexity("O(N) Where N is the number of paused clients")
        .flags(Flags::ADMIN),
];

const HELP_TITLE: &str = "MODULE <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

const HELP: &[&str] = &[
    "LIST",
    "    Return a list of loaded modules.",
    "LOAD <path> [<arg> ...]",
    "    Load a module library from <path>, passing to it any optional arguments.",
    "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
    "    Load a module library from <path>, while passing it module configurations and optional arguments.",
    "UNLOAD <name>",
    "    Unload a module.",
];

fn list(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::Array(Vec::new()))
}

fn help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help::help(HELP_TITLE, HELP))
}

/// Refuses to load or unload modules, as Redis does by default.
fn refuse(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Err(CommandError::text(
        "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", \
         you can run it from a local connection, otherwise you need to set this option in the \
         configuration file, and then restart the server.",
    ))
}

const fn loading(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row::new(name, arity, since, Group::Server, Handler::Pure(refuse)).flags(
        Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::NO_ASYNC_LOADING),
    )
}

/// The subcommands of MODULE.
pub(super) const MODULE: &[Row] = &[
    Row::help("module|help", "5.0.0", Group::Server, Handler::Pure(help)),
    Row::new(
        "module|list",
        2,
        "4.0.0",
        Group::Server,
        Handler::Pure(list),
    )
    .summary("Returns all loaded modules.")
    .complexity("O(N) where N is the number of loaded modules.")
    .flags(Flags::ADMIN.and(Flags::NOSCRIPT))
    .tips(&["nondeterministic_output_order"]),
    loading("module|load", -3, "4.0.0")
        .summary("Loads a module.")
        .arguments(&[string("path"), string("arg").optional().multiple()]),
    loading("module|loadex", -3, "7.0.0")
        .summary("Loads a module using extended parameters.")
        .arguments(&[
            string("path"),
            block("configs", &[string("name"), string("value")])
                .token("CONFIG")
                .optional()
                .multiple_with_token(),
            block("args", &[string("arg")])
                .token("ARGS")
                .optional()
                .multiple(),
        ]),
    loading("module|unload", 3, "4.0.0")
        .summary("Unloads a module.")
        .arguments(&[string("name")]),
];
