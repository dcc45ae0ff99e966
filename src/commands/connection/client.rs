//! The subcommands of CLIENT.

use super::server_row;
use crate::commands::row::{ConnectionCommand, Flags, Row};

pub(super) const CLIENT: &[Row] = &[
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "6.0.0",
        summary: "Instructs the server whether to track the keys in the next request.",
        ..server_row("caching", 3, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "2.6.9",
        summary: "Returns the name of the connection.",
        ..server_row("getname", 2, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "6.0.0",
        summary: "Returns the client ID to which the connection's tracking notifications are redirected.",
        ..server_row("getredir", 2, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "5.0.0",
        summary: "Returns helpful text about the different subcommands.",
        ..server_row("help", 2, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "5.0.0",
        summary: "Returns the unique client ID of the connection.",
        ..server_row("id", 2, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "6.2.0",
        summary: "Returns information about the connection.",
        ..server_row("info", 2, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "2.4.0",
        summary: "Terminates open connections.",
        complexity: "O(N) where N is the number of client connections",
        ..server_row("kill", -3, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "2.4.0",
        summary: "Lists open connections.",
        complexity: "O(N) where N is the number of client connections",
        ..server_row("list", -2, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "7.0.0",
        summary: "Sets the client eviction mode of the connection.",
        ..server_row("no-evict", 3, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "7.2.0",
        summary: "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.",
        ..server_row("no-touch", 3, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "3.0.0",
        summary: "Suspends commands processing.",
        ..server_row("pause", -3, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "3.2.0",
        summary: "Instructs the server whether to reply to commands.",
        ..server_row("reply", 3, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "7.2.0",
        summary: "Sets information specific to the client or connection.",
        ..server_row("setinfo", 4, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "2.6.9",
        summary: "Sets the connection name.",
        ..server_row("setname", 3, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "6.0.0",
        summary: "Controls server-assisted client-side caching for the connection.",
        complexity: "O(1). Some options may introduce additional complexity.",
        ..server_row("tracking", -3, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
        since: "6.2.0",
        summary: "Returns information about server-assisted client-side caching for the connection.",
        ..server_row("trackinginfo", 2, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "5.0.0",
        summary: "Unblocks a client blocked by a blocking command from a different connection.",
        complexity: "O(log N) where N is the number of client connections",
        ..server_row("unblock", -3, ConnectionCommand::Client)
    },
    Row {
        flags: Flags::ADMIN
            .and(Flags::NOSCRIPT)
            .and(Flags::LOADING)
            .and(Flags::STALE),
        since: "6.2.0",
        summary: "Resumes processing commands from paused clients.",
        complexity: "O(N) Where N is the number of paused clients",
        ..server_row("unpause", 2, ConnectionCommand::Client)
    },
];
