//! PQ.SCANDUMP and PQ.LOADCHUNK.

use bytes::Bytes;

use super::push::PUSH_EVENT;
use crate::command::arguments::{argument, cursor};
use crate::command::chunks::{chunk_arguments, chunk_payload, chunk_reply};
use crate::error::CommandError;
use crate::keyspace::dumping::Chunk;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// `PQ.SCANDUMP key cursor [COUNT count]` → the next cursor, and a chunk. A cursor is a rank.
pub(super) async fn scan_dump(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (at, count) = chunk_arguments(arguments)?;
    let rank = at.map_or(Ok(0), |at| cursor(at))?;
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    let name = argument(arguments, 1)?;
    Ok(chunk_reply(
        match context.find(name, ValueType::PriorityQueue).await? {
            Some(key) => context.queue_chunk(&key, rank, count).await?,
            None => Chunk::default(),
        },
    ))
}

/// `PQ.LOADCHUNK key chunk` → how many values were added.
pub(super) async fn load_chunk(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let count = context
        .queue_add_chunk(name, chunk_payload(arguments)?)
        .await?;
    context.notify(EventClasses::MODULE, PUSH_EVENT, name);
    Ok(Reply::Integer(count))
}
