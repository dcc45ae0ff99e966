//! XREAD.
//!
//! It answers null where no stream has a new entry. Outside of MULTI its client then waits until the
//! command is run again and answers something else (`engine::waiters`). All clients that wait for a
//! stream are told of an entry. `$` is what was last when the command first ran, so it is replaced by
//! that id before the client waits.

use bytes::Bytes;
use futures_util::future::{join_all, try_join_all};

use super::ids::strict_id;
use super::read_arguments::read_arguments;
use super::replies::entries_reply;
use crate::command::waits::{WaitSpec, Wake};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::Answer;
use crate::stream::IdRange;
use crate::unit::context::ReadContext;
use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;

const LAST: &[u8] = b"$";

/// `XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key …] id [id …]` → entries by key.
pub(super) async fn xread(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let read = read_arguments(arguments, context.now_ms, false)?;
    let mut streams = Vec::with_capacity(read.keys.len());
    let named: Vec<(&Bytes, &Bytes)> = read.keys.iter().zip(read.ids).collect();
    context.namespace().await?;
    for some in named.chunks(KEY_READS_AT_ONCE) {
        let finds = some
            .iter()
            .map(|(name, _)| context.find(name, ValueType::Stream));
        // Redis looks at each key and then at its id.
        for ((name, id), found) in some.iter().zip(join_all(finds).await) {
            let found = found?;
            let seen = seen_id(id)?;
            if let (Some(key), Some(seen)) = (found, seen) {
                streams.push((*name, key, seen));
            }
        }
    }
    let mut answer = Vec::new();
    for some in streams.chunks(KEY_READS_AT_ONCE) {
        let reads = some.iter().map(async |(name, key, seen)| {
            let entries = match IdRange::after(*seen) {
                Some(range) => context.stream_range(key, range, false, read.count).await?,
                None => Vec::new(),
            };
            Ok::<_, CommandError>((*name, entries))
        });
        for (name, entries) in try_join_all(reads).await? {
            if !entries.is_empty() {
                answer.push((Reply::Bulk(name.clone()), entries_reply(entries)));
            }
        }
    }
    if answer.is_empty() {
        return Ok(Reply::NullArray);
    }
    Ok(Reply::Keyed(answer))
}

/// What was seen of a stream; `None` is all that it has.
fn seen_id(argument: &[u8]) -> Result<Option<StreamId>, CommandError> {
    match argument {
        LAST => Ok(None),
        b">" => Err(CommandError::text(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
             <consumer> option.",
        )),
        id => strict_id(id, 0).map(Some),
    }
}

/// XREAD waits for all its streams, if it has BLOCK.
pub(super) fn wait(arguments: &[Bytes], now_ms: i64) -> Result<Option<WaitSpec>, CommandError> {
    let read = read_arguments(arguments, now_ms, false)?;
    Ok(read.block.map(|timeout| WaitSpec {
        keys: read.keys.to_vec(),
        value_type: ValueType::Stream,
        timeout,
        wants: None,
        wake: Wake::All,
        takes_first: false,
        needs_key: false,
    }))
}

/// The arguments of an XREAD that begins to wait, with the last ids in place of `$`.
pub(super) fn pin<'c>(
    context: &'c ReadContext<'c>,
    arguments: &'c [Bytes],
) -> Answer<'c, Option<Vec<Bytes>>, CommandError> {
    Box::pin(async move {
        let read = read_arguments(arguments, context.now_ms, false)?;
        if !read.ids.iter().any(|id| id.as_ref() == LAST) {
            return Ok(None);
        }
        let mut pinned = arguments.to_vec();
        for ((name, id), place) in read.keys.iter().zip(read.ids).zip(read.ids_at..) {
            if id.as_ref() != LAST {
                continue;
            }
            let key = context.find(name, ValueType::Stream).await?;
            let last = last_id(context, key.as_ref()).await?;
            if let Some(argument) = pinned.get_mut(place) {
                *argument = Bytes::from(last.to_string());
            }
        }
        Ok(Some(pinned))
    })
}

async fn last_id(
    context: &ReadContext<'_>,
    key: Option<&OpenKey>,
) -> Result<StreamId, CommandError> {
    match key {
        Some(key) => Ok(context.stream_head(key).await?.last),
        None => Ok(StreamId::MIN),
    }
}
