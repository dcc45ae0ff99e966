//! The rows of the commands that the server carries out itself.

use super::row::{ConnectionCommand, Flags, Group, Handler, KeyPositions, KeyUse, Row};

const fn connection(name: &'static str, arity: i32, command: ConnectionCommand) -> Row {
    Row {
        name,
        arity,
        flags: Flags::NONE,
        keys: KeyPositions::None,
        key_use: KeyUse::Read,
        since: "1.0.0",
        group: Group::Connection,
        summary: "",
        complexity: "O(1)",
        handler: Handler::Connection(command),
        subcommands: &[],
    }
}

/// The commands on the connection and the server.
pub const ROWS: &[Row] = &[
    Row {
        flags: Flags::FAST,
        summary: "Returns the server's liveliness response.",
        ..connection("ping", -1, ConnectionCommand::Ping)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE).and(Flags::FAST),
        summary: "Returns the given string.",
        ..connection("echo", 2, ConnectionCommand::Echo)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE).and(Flags::FAST),
        summary: "Changes the selected database.",
        ..connection("select", 2, ConnectionCommand::Select)
    },
    Row {
        flags: Flags::NO_AUTH,
        summary: "Closes the connection.",
        ..connection("quit", -1, ConnectionCommand::Quit)
    },
    Row {
        flags: Flags::ADMIN,
        group: Group::Server,
        summary: "Server configuration.",
        ..connection("config", -2, ConnectionCommand::Config)
    },
];
