//! What PQ.SCANDUMP, TASK.SCANDUMP and their counterparts share: a value of one of Quoin's own types in
//! chunks. The names are RedisBloom's for the same.

use bytes::Bytes;

use crate::command::arguments::{argument, integer, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::keyspace::dumping::Chunk;
use quoin_base::limits::DUMP_CHUNK_ELEMENTS_MAX;
use quoin_rdb::Payload;
use quoin_resp::reply::Reply;

/// The cursor before the first element and after the last.
const END: &[u8] = b"0";

/// `key cursor [COUNT count]`: the cursor, `None` at the beginning, and the count.
///
/// # Errors
/// `Syntax`; `NotAnInteger` for a count that is none.
pub(crate) fn chunk_arguments(
    arguments: &[Bytes],
) -> Result<(Option<&Bytes>, usize), CommandError> {
    let cursor = argument(arguments, 2)?;
    let count = match rest(arguments, 3) {
        [] => DUMP_CHUNK_ELEMENTS_MAX,
        [word, count] if is_word(word, "count") => match integer(count)? {
            count if count < 1 => return Err(CommandError::Syntax),
            count => to_usize(count).min(DUMP_CHUNK_ELEMENTS_MAX),
        },
        _ => return Err(CommandError::Syntax),
    };
    Ok(((cursor != END).then_some(cursor), count))
}

/// The cursor to go on from, and a list with the chunk, if there is one.
pub(crate) fn chunk_reply(chunk: Chunk) -> Reply {
    let next = chunk.next.unwrap_or(Bytes::from_static(END));
    let payload = chunk.payload.map(Reply::Bulk);
    Reply::Array(vec![
        Reply::Bulk(next),
        Reply::Array(payload.into_iter().collect()),
    ])
}

/// The chunk of `key chunk`.
///
/// # Errors
/// `Payload` where it is damaged.
pub(crate) fn chunk_payload(arguments: &[Bytes]) -> Result<Payload, CommandError> {
    Ok(quoin_rdb::open(argument(arguments, 2)?)?)
}
