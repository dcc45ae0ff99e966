//! XDELEX, and what it shares with XACKDEL: what becomes of groups that know of an entry.

use bytes::Bytes;

use super::ids::strict_id;
use crate::command::arguments::{argument, integer, is_word, rest, to_usize};
use crate::error::CommandError;
use crate::stream::{Deletion, References};
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;

/// `XDELEX key [KEEPREF|DELREF|ACKED] IDS numids id [id …]` → of each id what has become of the entry
/// (Redis 8.2).
pub(super) async fn xdelex(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let key = context.find(name, ValueType::Stream).await?;
    let (references, ids) = references_and_ids(rest(arguments, 2))?;
    let Some(key) = key else {
        return Ok(deletion_replies(&vec![Deletion::Missing; ids.len()]));
    };
    let ids = ids.iter().map(|id| strict_id(id, 0));
    let ids: Vec<StreamId> = ids.collect::<Result<_, _>>()?;
    let done = context.stream_delete_with_references(&key, &ids, references);
    let done = done.await?;
    if done.contains(&Deletion::Deleted) {
        context.notify(EventClasses::STREAM, "xdel", name);
    }
    Ok(deletion_replies(&done))
}

/// `[KEEPREF|DELREF|ACKED] IDS numids id [id …]`, in any order (Redis:
/// `streamParseAckDelArgsOrReply`).
pub(super) fn references_and_ids(
    mut options: &[Bytes],
) -> Result<(References, &[Bytes]), CommandError> {
    let mut references = None;
    let mut ids = None;
    while let [option, following @ ..] = options {
        let named = match option {
            word if is_word(word, "keepref") => Some(References::Keep),
            word if is_word(word, "delref") => Some(References::Delete),
            word if is_word(word, "acked") => Some(References::Acknowledged),
            _ => None,
        };
        options = match following {
            rest if named.is_some() && references.is_none() => {
                references = named;
                rest
            }
            [count, rest @ ..] if is_word(option, "ids") => {
                let count = integer(count).ok().filter(|count| *count > 0);
                let count = count.ok_or(CommandError::text(
                    "ERR Number of IDs must be a positive integer",
                ))?;
                let (some, rest) =
                    rest.split_at_checked(to_usize(count))
                        .ok_or(CommandError::text(
                            "ERR The `numids` parameter must match the number of arguments",
                        ))?;
                ids = Some(some);
                rest
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    Ok((
        references.unwrap_or_default(),
        ids.ok_or(CommandError::Syntax)?,
    ))
}

/// The codes of Redis for what has become of entries.
pub(super) fn deletion_replies(done: &[Deletion]) -> Reply {
    let codes = done.iter().map(|one| match one {
        Deletion::Missing => -1,
        Deletion::Deleted => 1,
        Deletion::StillReferenced => 2,
    });
    Reply::Array(codes.map(Reply::Integer).collect())
}
