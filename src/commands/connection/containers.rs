//! The subcommands of ACL, COMMAND, CONFIG, FUNCTION, LATENCY and SLOWLOG.

use super::server_row;
use crate::commands::row::{ConnectionCommand, Flags, Group, Row};

pub(super) const ACL: &[Row] = &[
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "6.0.0",
        group: Group::Server,
        summary: "Lists the ACL categories, or the commands inside a category.",
        complexity: "O(1) since the categories and commands are a fixed set.",
        ..server_row("cat", -2, ConnectionCommand::Acl)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "6.0.0",
        group: Group::Server,
        summary: "Lists the ACL rules of a user.",
        complexity: "O(N). Where N is the number of password, command and pattern rules that the user has.",
        ..server_row("getuser", 3, ConnectionCommand::Acl)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "6.0.0",
        group: Group::Server,
        summary: "Returns helpful text about the different subcommands.",
        ..server_row("help", 2, ConnectionCommand::Acl)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "6.0.0",
        group: Group::Server,
        summary: "Dumps the effective rules in ACL file format.",
        complexity: "O(N). Where N is the number of configured users.",
        ..server_row("list", 2, ConnectionCommand::Acl)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "6.0.0",
        group: Group::Server,
        summary: "Lists all ACL users.",
        complexity: "O(N). Where N is the number of configured users.",
        ..server_row("users", 2, ConnectionCommand::Acl)
    },
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "6.0.0",
        group: Group::Server,
        summary: "Returns the authenticated username of the current connection.",
        ..server_row("whoami", 2, ConnectionCommand::Acl)
    },
];

pub(super) const COMMAND: &[Row] = &[
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "2.8.13",
        group: Group::Server,
        summary: "Returns a count of commands.",
        ..server_row("count", 2, ConnectionCommand::Command)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "7.0.0",
        group: Group::Server,
        summary: "Returns documentary information about one, multiple or all commands.",
        complexity: "O(N) where N is the number of commands to look up",
        ..server_row("docs", -2, ConnectionCommand::Command)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "2.8.13",
        group: Group::Server,
        summary: "Extracts the key names from an arbitrary command.",
        complexity: "O(N) where N is the number of arguments to the command",
        ..server_row("getkeys", -3, ConnectionCommand::Command)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "7.0.0",
        group: Group::Server,
        summary: "Extracts the key names and access flags for an arbitrary command.",
        complexity: "O(N) where N is the number of arguments to the command",
        ..server_row("getkeysandflags", -3, ConnectionCommand::Command)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "5.0.0",
        group: Group::Server,
        summary: "Returns helpful text about the different subcommands.",
        ..server_row("help", 2, ConnectionCommand::Command)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "2.8.13",
        group: Group::Server,
        summary: "Returns information about one, multiple or all commands.",
        complexity: "O(N) where N is the number of commands to look up",
        ..server_row("info", -2, ConnectionCommand::Command)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "7.0.0",
        group: Group::Server,
        summary: "Returns a list of command names.",
        complexity: "O(N) where N is the total number of Redis commands",
        ..server_row("list", -2, ConnectionCommand::Command)
    },
];

pub(super) const CONFIG: &[Row] = &[
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "2.0.0",
        group: Group::Server,
        summary: "Returns the effective values of configuration parameters.",
        complexity: "O(N) when N is the number of configuration parameters provided",
        ..server_row("get", -3, ConnectionCommand::Config)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "5.0.0",
        group: Group::Server,
        summary: "Returns helpful text about the different subcommands.",
        ..server_row("help", 2, ConnectionCommand::Config)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "2.0.0",
        group: Group::Server,
        summary: "Resets the server's statistics.",
        ..server_row("resetstat", 2, ConnectionCommand::Config)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "2.8.0",
        group: Group::Server,
        summary: "Persists the effective configuration to file.",
        ..server_row("rewrite", 2, ConnectionCommand::Config)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "2.0.0",
        group: Group::Server,
        summary: "Sets configuration parameters in-flight.",
        complexity: "O(N) when N is the number of configuration parameters provided",
        ..server_row("set", -4, ConnectionCommand::Config)
    },
];

pub(super) const FUNCTION: &[Row] = &[Row {
    flags: Flags::NOSCRIPT.and(Flags::WRITE),
    since: "7.0.0",
    group: Group::Scripting,
    summary: "Deletes all libraries and functions.",
    complexity: "O(N) where N is the number of functions deleted",
    ..server_row("flush", -2, ConnectionCommand::Function)
}];

pub(super) const LATENCY: &[Row] = &[
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "2.8.13",
        group: Group::Server,
        summary: "Returns a human-readable latency analysis report.",
        ..server_row("doctor", 2, ConnectionCommand::Latency)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "2.8.13",
        group: Group::Server,
        summary: "Returns a latency graph for an event.",
        ..server_row("graph", 3, ConnectionCommand::Latency)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "2.8.13",
        group: Group::Server,
        summary: "Returns helpful text about the different subcommands.",
        ..server_row("help", 2, ConnectionCommand::Latency)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "7.0.0",
        group: Group::Server,
        summary: "Returns the cumulative distribution of latencies of a subset or all commands.",
        complexity: "O(N) where N is the number of commands with latency information being retrieved.",
        ..server_row("histogram", -2, ConnectionCommand::Latency)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "2.8.13",
        group: Group::Server,
        summary: "Returns timestamp-latency samples for an event.",
        ..server_row("history", 3, ConnectionCommand::Latency)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "2.8.13",
        group: Group::Server,
        summary: "Returns the latest latency samples for all events.",
        ..server_row("latest", 2, ConnectionCommand::Latency)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "2.8.13",
        group: Group::Server,
        summary: "Resets the latency data for one or more events.",
        ..server_row("reset", -2, ConnectionCommand::Latency)
    },
];

pub(super) const SLOWLOG: &[Row] = &[
    Row {
        flags: Flags::ADMIN.and(Flags::LOADING).and(Flags::STALE),
        since: "2.2.12",
        group: Group::Server,
        summary: "Returns the slow log's entries.",
        complexity: "O(N) where N is the number of entries returned",
        ..server_row("get", -2, ConnectionCommand::Slowlog)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "6.2.0",
        group: Group::Server,
        summary: "Show helpful text about the different subcommands",
        ..server_row("help", 2, ConnectionCommand::Slowlog)
    },
    Row {
        flags: Flags::ADMIN.and(Flags::LOADING).and(Flags::STALE),
        since: "2.2.12",
        group: Group::Server,
        summary: "Returns the number of entries in the slow log.",
        ..server_row("len", 2, ConnectionCommand::Slowlog)
    },
    Row {
        flags: Flags::ADMIN.and(Flags::LOADING).and(Flags::STALE),
        since: "2.2.12",
        group: Group::Server,
        summary: "Clears all entries from the slow log.",
        complexity: "O(N) where N is the number of entries in the slowlog",
        ..server_row("reset", 2, ConnectionCommand::Slowlog)
    },
];
