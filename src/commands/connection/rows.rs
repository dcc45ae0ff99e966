//! The commands that the server carries out itself.

use super::client::CLIENT;
use super::containers::{ACL, COMMAND, CONFIG, FUNCTION, LATENCY, SLOWLOG};
use super::{pure, pure_row, server_row};
use crate::commands::row::{ConnectionCommand, Flags, Group, Row};

/// The commands on the connection and the server.
pub const ROWS: &[Row] = &[
    Row {
        flags: Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::FAST)
            .and(Flags::NO_AUTH)
            .and(Flags::ALLOW_BUSY),
        since: "1.0.0",
        summary: "Authenticates the connection.",
        complexity: "O(N) where N is the number of passwords defined for the user",
        ..server_row("auth", -2, ConnectionCommand::Auth)
    },
    Row {
        since: "2.4.0",
        summary: "A container for client connection commands.",
        complexity: "Depends on subcommand.",
        subcommands: CLIENT,
        ..server_row("client", -2, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE).and(Flags::FAST),
        since: "1.0.0",
        summary: "Returns the given string.",
        ..pure_row("echo", 2, pure::echo)
    },
    Row {
        flags: Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::FAST)
            .and(Flags::NO_AUTH)
            .and(Flags::ALLOW_BUSY),
        since: "6.0.0",
        summary: "Handshakes with the Redis server.",
        ..server_row("hello", -1, ConnectionCommand::Hello)
    },
    Row {
        flags: Flags::FAST.and(Flags::FOR_SUBSCRIBERS),
        since: "1.0.0",
        summary: "Returns the server's liveliness response.",
        ..pure_row("ping", -1, pure::ping)
    },
    Row {
        flags: Flags::ALLOW_BUSY
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::FAST)
            .and(Flags::NO_AUTH)
            .and(Flags::FOR_SUBSCRIBERS),
        since: "1.0.0",
        summary: "Closes the connection.",
        ..server_row("quit", -1, ConnectionCommand::Quit)
    },
    Row {
        flags: Flags::NOSCRIPT
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::FAST)
            .and(Flags::NO_AUTH)
            .and(Flags::ALLOW_BUSY)
            .and(Flags::FOR_SUBSCRIBERS),
        since: "6.2.0",
        summary: "Resets the connection.",
        ..server_row("reset", 1, ConnectionCommand::Reset)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE).and(Flags::FAST),
        since: "1.0.0",
        summary: "Changes the selected database.",
        ..server_row("select", 2, ConnectionCommand::Select)
    },
    Row {
        since: "6.0.0",
        group: Group::Server,
        summary: "A container for Access List Control commands.",
        complexity: "Depends on subcommand.",
        subcommands: ACL,
        ..server_row("acl", -2, ConnectionCommand::Acl)
    },
    Row {
        flags: Flags::NO_ASYNC_LOADING
            .and(Flags::ADMIN)
            .and(Flags::NOSCRIPT),
        group: Group::Server,
        summary: "Asynchronously saves the database(s) to disk.",
        ..server_row("bgsave", -1, ConnectionCommand::Bgsave)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "2.8.13",
        group: Group::Server,
        summary: "Returns detailed information about all commands.",
        complexity: "O(N) where N is the total number of Redis commands",
        subcommands: COMMAND,
        ..server_row("command", -1, ConnectionCommand::Command)
    },
    Row {
        since: "2.0.0",
        group: Group::Server,
        summary: "A container for server configuration commands.",
        complexity: "Depends on subcommand.",
        subcommands: CONFIG,
        ..server_row("config", -2, ConnectionCommand::Config)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "1.0.0",
        group: Group::Server,
        summary: "A container for debugging commands.",
        complexity: "Depends on subcommand.",
        ..server_row("debug", -2, ConnectionCommand::Debug)
    },
    Row {
        since: "7.0.0",
        group: Group::Scripting,
        summary: "A container for function commands.",
        complexity: "Depends on subcommand.",
        subcommands: FUNCTION,
        ..server_row("function", -2, ConnectionCommand::Function)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "1.0.0",
        group: Group::Server,
        summary: "Returns information and statistics about the server.",
        ..server_row("info", -1, ConnectionCommand::Info)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE).and(Flags::FAST),
        group: Group::Server,
        summary: "Returns the Unix timestamp of the last successful save to disk.",
        ..server_row("lastsave", 1, ConnectionCommand::Lastsave)
    },
    Row {
        since: "2.8.13",
        group: Group::Server,
        summary: "A container for latency diagnostics commands.",
        complexity: "Depends on subcommand.",
        subcommands: LATENCY,
        ..server_row("latency", -2, ConnectionCommand::Latency)
    },
    Row {
        flags: Flags::READONLY.and(Flags::FAST),
        since: "5.0.0",
        group: Group::Server,
        summary: "Displays computer art and the Redis version",
        ..server_row("lolwut", -1, ConnectionCommand::Lolwut)
    },
    Row {
        flags: Flags::NO_ASYNC_LOADING
            .and(Flags::ADMIN)
            .and(Flags::NOSCRIPT)
            .and(Flags::NO_MULTI),
        group: Group::Server,
        summary: "Synchronously saves the database(s) to disk.",
        complexity: "O(N) where N is the total number of keys in all databases",
        ..server_row("save", 1, ConnectionCommand::Save)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE)
            .and(Flags::NO_MULTI)
            .and(Flags::ALLOW_BUSY),
        since: "1.0.0",
        group: Group::Server,
        summary: "Synchronously saves the database(s) to disk and shuts down the Redis server.",
        complexity: "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)",
        ..server_row("shutdown", -1, ConnectionCommand::Shutdown)
    },
    Row {
        since: "2.2.12",
        group: Group::Server,
        summary: "A container for slow log commands.",
        complexity: "Depends on subcommand.",
        subcommands: SLOWLOG,
        ..server_row("slowlog", -2, ConnectionCommand::Slowlog)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE).and(Flags::FAST),
        since: "2.6.0",
        group: Group::Server,
        summary: "Returns the server time.",
        ..pure_row("time", 1, pure::time)
    },
    Row {
        since: "3.0.0",
        group: Group::Generic,
        summary: "Blocks until the asynchronous replication of all preceding write commands sent by the connection is completed.",
        ..server_row("wait", 3, ConnectionCommand::Wait)
    },
    Row {
        flags: Flags::NOSCRIPT,
        since: "7.2.0",
        group: Group::Generic,
        summary: "Blocks until all of the preceding write commands sent by the connection are written to the append-only file of the master and/or replicas.",
        ..server_row("waitaof", 4, ConnectionCommand::Waitaof)
    },
];
