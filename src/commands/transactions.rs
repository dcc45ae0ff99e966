//! The rows of MULTI and what belongs to it. The connection carries them out.

use super::row::{ConnectionCommand, Flags, Group, Handler, KeyPositions, KeyUse, Row};

const ALWAYS: Flags = Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE);

const fn transaction(name: &'static str, arity: i32, command: ConnectionCommand) -> Row {
    Row {
        name,
        arity,
        flags: ALWAYS.and(Flags::FAST).and(Flags::ALLOW_BUSY),
        keys: KeyPositions::None,
        key_use: KeyUse::Read,
        since: "1.2.0",
        group: Group::Transactions,
        summary: "",
        complexity: "O(1)",
        handler: Handler::Connection(command),
        subcommands: &[],
        plan: None,
        waits: None,
    }
}

/// The commands for transactions.
pub const ROWS: &[Row] = &[
    Row {
        since: "2.0.0",
        summary: "Discards a transaction.",
        complexity: "O(N), when N is the number of queued commands",
        ..transaction("discard", 1, ConnectionCommand::Discard)
    },
    Row {
        flags: ALWAYS.and(Flags::SKIP_SLOWLOG),
        summary: "Executes all commands in a transaction.",
        complexity: "Depends on commands in the transaction",
        ..transaction("exec", 1, ConnectionCommand::Exec)
    },
    Row {
        summary: "Starts a transaction.",
        ..transaction("multi", 1, ConnectionCommand::Multi)
    },
    Row {
        since: "2.2.0",
        summary: "Forgets about watched keys of a transaction.",
        ..transaction("unwatch", 1, ConnectionCommand::Unwatch)
    },
    Row {
        keys: KeyPositions::Range {
            first: 1,
            last: -1,
            step: 1,
        },
        since: "2.2.0",
        summary: "Monitors changes to keys to determine the execution of a transaction.",
        complexity: "O(1) for every key.",
        ..transaction("watch", -2, ConnectionCommand::Watch)
    },
];
