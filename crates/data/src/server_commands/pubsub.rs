//! The rows of publish and subscribe. Publishing is a data command, so that it keeps its order within a pipeline or a
//! transaction. The server executes subscriptions.

use bytes::Bytes;
use quoin_resp::reply::Reply;

use crate::command::arguments::argument;
use crate::command::flags::Flags;
use crate::command::grammar::{pattern, string};
use crate::command::key_specs::{CHANNEL, at, up_to};
use crate::command::row::{ConnectionCommand as Command, Group, Handler, Row};
use crate::error::CommandError;
use crate::unit::context::WriteContext;
use crate::unit::signals::ChannelKind;
use crate::write_handler;

/// `PUBLISH channel message`.
async fn publish(context: &WriteContext<'_>, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    publish_to(ChannelKind::Global, context, arguments)
}

/// `SPUBLISH shardchannel message`.
async fn publish_to_shard(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    publish_to(ChannelKind::Shard, context, arguments)
}

fn publish_to(
    kind: ChannelKind,
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let channel = argument(arguments, 1)?.clone();
    let payload = argument(arguments, 2)?.clone();
    Ok(Reply::count(context.publish(kind, channel, payload)))
}

const TELL: Handler = Handler::Connection(Command::Pubsub);

/// A command that publishes. It takes part in transactions but writes no data.
const fn publishing(name: &'static str, since: &'static str, handler: Handler) -> Row {
    let flags = Flags::PUBSUB.and(Flags::LOADING).and(Flags::STALE);
    Row {
        flags: flags.and(Flags::FAST).and(Flags::MAY_REPLICATE),
        ..Row::new(name, 3, since, Group::Pubsub, handler)
    }
}

const fn subscribing(name: &'static str, arity: i32, since: &'static str, by: Command) -> Row {
    Row::new(name, arity, since, Group::Pubsub, Handler::Connection(by)).flags(
        Flags::PUBSUB
            .and(Flags::AT_ANY_TIME)
            .and(Flags::FOR_SUBSCRIBERS),
    )
}

const fn subcommand(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row::new(name, arity, since, Group::Pubsub, TELL)
        .flags(Flags::PUBSUB.and(Flags::LOADING).and(Flags::STALE))
}

/// The Pub/Sub commands.
pub const ROWS: &[Row] = &[
    subscribing("psubscribe", -2, "2.0.0", Command::Psubscribe)
        .flags(Flags::SENTINEL)
        .summary("Listens for messages published to channels that match one or more patterns.")
        .complexity("O(N) where N is the number of patterns to subscribe to.")
        .arguments(&[pattern("pattern").multiple()]),
    publishing("publish", "2.0.0", write_handler!(publish))
        .summary("Posts a message to a channel.")
        .complexity(
            "O(N+M) where N is the number of clients subscribed to the receiving channel and M is \
             the total number of subscribed patterns (by any client).",
        )
        .arguments(&[string("channel"), string("message")]),
    Row::container("pubsub", "2.8.0", Group::Pubsub, PUBSUB)
        .summary("A container for Pub/Sub commands."),
    subscribing("punsubscribe", -1, "2.0.0", Command::Punsubscribe)
        .flags(Flags::SENTINEL)
        .summary(
            "Stops listening to messages published to channels that match one or more patterns.",
        )
        .complexity("O(N) where N is the number of patterns to unsubscribe.")
        .arguments(&[pattern("pattern").optional().multiple()]),
    publishing("spublish", "7.0.0", write_handler!(publish_to_shard))
        .summary("Post a message to a shard channel")
        .complexity(
            "O(N) where N is the number of clients subscribed to the receiving shard channel.",
        )
        .keys(&[at(1, CHANNEL)])
        .arguments(&[string("shardchannel"), string("message")]),
    subscribing("ssubscribe", -2, "7.0.0", Command::Ssubscribe)
        .summary("Listens for messages published to shard channels.")
        .complexity("O(N) where N is the number of shard channels to subscribe to.")
        .keys(&[up_to(1, -1, CHANNEL)])
        .arguments(&[string("shardchannel").multiple()]),
    subscribing("subscribe", -2, "2.0.0", Command::Subscribe)
        .flags(Flags::SENTINEL)
        .summary("Listens for messages published to channels.")
        .complexity("O(N) where N is the number of channels to subscribe to.")
        .arguments(&[string("channel").multiple()]),
    subscribing("sunsubscribe", -1, "7.0.0", Command::Sunsubscribe)
        .summary("Stops listening to messages posted to shard channels.")
        .complexity("O(N) where N is the number of shard channels to unsubscribe.")
        .keys(&[up_to(1, -1, CHANNEL)])
        .arguments(&[string("shardchannel").optional().multiple()]),
    subscribing("unsubscribe", -1, "2.0.0", Command::Unsubscribe)
        .flags(Flags::SENTINEL)
        .summary("Stops listening to messages posted to channels.")
        .complexity("O(N) where N is the number of channels to unsubscribe.")
        .arguments(&[string("channel").optional().multiple()]),
];

const PUBSUB: &[Row] = &[
    subcommand("pubsub|channels", -2, "2.8.0")
        .summary("Returns the active channels.")
        .complexity(
            "O(N) where N is the number of active channels, and assuming constant time pattern \
             matching (relatively short channels and patterns)",
        )
        .arguments(&[pattern("pattern").optional()]),
    Row::help("pubsub|help", "6.2.0", Group::Pubsub, TELL),
    subcommand("pubsub|numpat", 2, "2.8.0")
        .summary("Returns a count of unique pattern subscriptions."),
    subcommand("pubsub|numsub", -2, "2.8.0")
        .summary("Returns a count of subscribers to channels.")
        .complexity("O(N) for the NUMSUB subcommand, where N is the number of requested channels")
        .arguments(&[string("channel").optional().multiple()]),
    subcommand("pubsub|shardchannels", -2, "7.0.0")
        .summary("Returns the active shard channels.")
        .complexity(
            "O(N) where N is the number of active shard channels, and assuming constant time \
             pattern matching (relatively short shard channels).",
        )
        .arguments(&[pattern("pattern").optional()]),
    subcommand("pubsub|shardnumsub", -2, "7.0.0")
        .summary("Returns the count of subscribers of shard channels.")
        .complexity(
            "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard \
             channels",
        )
        .arguments(&[string("shardchannel").optional().multiple()]),
];
