//! Publish and subscribe. Publishing is a command on data, so that it keeps its place among the
//! others of a pipeline or a transaction; subscribing is the server's own.

use bytes::Bytes;

use crate::command::arguments::argument;
use crate::error::CommandError;
use crate::unit::context::WriteContext;
use crate::unit::signals::ChannelKind;
use quoin_resp::reply::Reply;

mod rows;

pub use rows::ROWS;

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
