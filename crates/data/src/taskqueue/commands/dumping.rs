//! TASK.SCANDUMP and TASK.LOADCHUNK.

use bytes::Bytes;

use crate::command::arguments::argument;
use crate::command::chunks::{chunk_arguments, chunk_payload, chunk_reply};
use crate::error::CommandError;
use crate::keyspace::dumping::Chunk;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// Before the id in a cursor: an id may be what stands for the beginning.
const AFTER: &[u8] = b"after:";

/// `TASK.SCANDUMP key cursor [COUNT count]` → the next cursor, and a chunk. A cursor names a task.
pub(super) async fn scan_dump(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (cursor, count) = chunk_arguments(arguments)?;
    let after = match cursor.map(|cursor| cursor.strip_prefix(AFTER)) {
        None => None,
        Some(Some(id)) => Some(id),
        Some(None) => return Err(CommandError::text("ERR invalid cursor")),
    };
    let name = argument(arguments, 1)?;
    let mut chunk = match context.find(name, ValueType::TaskQueue).await? {
        Some(key) => context.task_chunk(&key, after, count).await?,
        None => Chunk::default(),
    };
    chunk.next = chunk.next.map(|id| [AFTER, &id].concat().into());
    Ok(chunk_reply(chunk))
}

/// `TASK.LOADCHUNK key chunk` → how many tasks were added.
pub(super) async fn load_chunk(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let count = context
        .task_add_chunk(name, chunk_payload(arguments)?)
        .await?;
    context.notify(EventClasses::MODULE, "task.add", name);
    Ok(Reply::Integer(count))
}
