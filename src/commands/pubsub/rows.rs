//! The rows of the commands on channels.

use crate::commands::row::{ConnectionCommand, Flags, Group, Handler, KeyPositions, KeyUse, Row};
use crate::write_handler;

const fn row(name: &'static str, arity: i32, handler: Handler) -> Row {
    Row {
        name,
        arity,
        flags: Flags::PUBSUB.and(Flags::LOADING).and(Flags::STALE),
        keys: KeyPositions::None,
        key_use: KeyUse::Read,
        since: "2.0.0",
        group: Group::Pubsub,
        summary: "",
        complexity: "O(1)",
        handler,
        subcommands: &[],
        plan: None,
        waits: None,
    }
}

const PUBLISHES: Flags = Flags::PUBSUB
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::FAST)
    .and(Flags::MAY_REPLICATE);

const SUBSCRIBES: Flags = Flags::PUBSUB
    .and(Flags::NOSCRIPT)
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::FOR_SUBSCRIBERS);

const fn server_row(name: &'static str, arity: i32, command: ConnectionCommand) -> Row {
    Row {
        flags: SUBSCRIBES,
        ..row(name, arity, Handler::Connection(command))
    }
}

const fn subcommand(name: &'static str, arity: i32) -> Row {
    row(name, arity, Handler::Connection(ConnectionCommand::Pubsub))
}

/// The commands on channels.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    Row {
        summary: "Listens for messages published to channels that match one or more patterns.",
        complexity: "O(N) where N is the number of patterns to subscribe to.",
        ..server_row("psubscribe", -2, ConnectionCommand::Psubscribe)
    },
    Row {
        flags: PUBLISHES,
        summary: "Posts a message to a channel.",
        complexity: "O(N+M) where N is the number of clients subscribed to the receiving channel and M is the total number of subscribed patterns (by any client).",
        ..row("publish", 3, write_handler!(super::publish))
    },
    Row {
        flags: Flags::NONE,
        since: "2.8.0",
        summary: "A container for Pub/Sub commands.",
        complexity: "Depends on subcommand.",
        subcommands: PUBSUB,
        ..server_row("pubsub", -2, ConnectionCommand::Pubsub)
    },
    Row {
        summary: "Stops listening to messages published to channels that match one or more patterns.",
        complexity: "O(N) where N is the number of patterns to unsubscribe.",
        ..server_row("punsubscribe", -1, ConnectionCommand::Punsubscribe)
    },
    Row {
        flags: PUBLISHES,
        keys: KeyPositions::ShardChannels { last: 1 },
        since: "7.0.0",
        summary: "Post a message to a shard channel",
        complexity: "O(N) where N is the number of clients subscribed to the receiving shard channel.",
        ..row("spublish", 3, write_handler!(super::publish_to_shard))
    },
    Row {
        keys: KeyPositions::ShardChannels { last: -1 },
        since: "7.0.0",
        summary: "Listens for messages published to shard channels.",
        complexity: "O(N) where N is the number of shard channels to subscribe to.",
        ..server_row("ssubscribe", -2, ConnectionCommand::Ssubscribe)
    },
    Row {
        summary: "Listens for messages published to channels.",
        complexity: "O(N) where N is the number of channels to subscribe to.",
        ..server_row("subscribe", -2, ConnectionCommand::Subscribe)
    },
    Row {
        keys: KeyPositions::ShardChannels { last: -1 },
        since: "7.0.0",
        summary: "Stops listening to messages posted to shard channels.",
        complexity: "O(N) where N is the number of shard channels to unsubscribe.",
        ..server_row("sunsubscribe", -1, ConnectionCommand::Sunsubscribe)
    },
    Row {
        summary: "Stops listening to messages posted to channels.",
        complexity: "O(N) where N is the number of channels to unsubscribe.",
        ..server_row("unsubscribe", -1, ConnectionCommand::Unsubscribe)
    },
];

#[rustfmt::skip]
const PUBSUB: &[Row] = &[
    Row {
        since: "2.8.0",
        summary: "Returns the active channels.",
        complexity: "O(N) where N is the number of active channels, and assuming constant time pattern matching (relatively short channels and patterns)",
        ..subcommand("channels", -2)
    },
    Row {
        flags: Flags::LOADING.and(Flags::STALE),
        since: "6.2.0",
        summary: "Returns helpful text about the different subcommands.",
        ..subcommand("help", 2)
    },
    Row {
        since: "2.8.0",
        summary: "Returns a count of unique pattern subscriptions.",
        ..subcommand("numpat", 2)
    },
    Row {
        since: "2.8.0",
        summary: "Returns a count of subscribers to channels.",
        complexity: "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
        ..subcommand("numsub", -2)
    },
    Row {
        since: "7.0.0",
        summary: "Returns the active shard channels.",
        complexity: "O(N) where N is the number of active shard channels, and assuming constant time pattern matching (relatively short shard channels).",
        ..subcommand("shardchannels", -2)
    },
    Row {
        since: "7.0.0",
        summary: "Returns the count of subscribers of shard channels.",
        complexity: "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
        ..subcommand("shardnumsub", -2)
    },
];
