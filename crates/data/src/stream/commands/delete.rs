//! XDEL, XDELEX and XACKDEL.

use bytes::Bytes;

use quoin_base::events::EventClasses;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

use super::ids::{counted_ids, strict_ids};
use super::pending::group_if_any;
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::error::CommandError;
use crate::stream::StreamMut;
use crate::stream::delete::{Deletion, References};
use crate::stream::group::GroupMut;
use crate::unit::context::WriteContext;

/// `XDEL key id [id …]` → how many were deleted.
pub(super) async fn xdel(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::Stream).await? else {
        return Ok(Reply::Integer(0));
    };
    let ids = strict_ids(rest(arguments, 2))?;
    let deleted = StreamMut::open(context, &key).delete(&ids).await?;
    if !deleted.is_empty() {
        context.notify(EventClasses::STREAM, "xdel", name);
    }
    Ok(Reply::count(deleted.len()))
}

/// `XDELEX key [KEEPREF|DELREF|ACKED] IDS numids id [id …]` → the outcome for each entry (Redis
/// 8.2).
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
    let ids = strict_ids(ids)?;
    let stream = StreamMut::open(context, &key);
    let done = stream.delete_with_references(&ids, references).await?;
    if done.contains(&Deletion::Deleted) {
        context.notify(EventClasses::STREAM, "xdel", name);
    }
    Ok(deletion_replies(&done))
}

/// `XACKDEL key group [KEEPREF|DELREF|ACKED] IDS numids id [id …]` → the outcome for each entry
/// (Redis 8.2).
pub(super) async fn xackdel(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let found = group_if_any(context, arguments).await?;
    let (references, ids) = references_and_ids(rest(arguments, 3))?;
    let Some((key, group)) = found else {
        return Ok(deletion_replies(&vec![Deletion::Missing; ids.len()]));
    };
    let ids = strict_ids(ids)?;
    let group = GroupMut::open(context, &key, group);
    let done = group.acknowledge_and_delete(&ids, references).await?;
    if done.contains(&Deletion::Deleted) {
        context.notify(EventClasses::STREAM, "xdel", argument(arguments, 1)?);
    }
    Ok(deletion_replies(&done))
}

/// `[KEEPREF|DELREF|ACKED] IDS numids id [id …]`, in any order (Redis:
/// `streamParseAckDelArgsOrReply`).
fn references_and_ids(mut options: &[Bytes]) -> Result<(References, &[Bytes]), CommandError> {
    let mut references = None;
    let mut ids = None;
    while let [option, following @ ..] = options {
        let named = references_named(option);
        options = match following {
            rest if named.is_some() && references.is_none() => {
                references = named;
                rest
            }
            [count, rest @ ..] if is_word(option, "ids") => {
                let (some, rest) = counted_ids(integer(count).ok(), rest)?;
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

/// KEEPREF, DELREF or ACKED.
pub(super) fn references_named(word: &[u8]) -> Option<References> {
    match word {
        word if is_word(word, "keepref") => Some(References::Keep),
        word if is_word(word, "delref") => Some(References::Delete),
        word if is_word(word, "acked") => Some(References::Acknowledged),
        _ => None,
    }
}

/// The outcomes of deletions as Redis's codes.
fn deletion_replies(done: &[Deletion]) -> Reply {
    let codes = done.iter().map(|one| match one {
        Deletion::Missing => -1,
        Deletion::Deleted => 1,
        Deletion::StillReferenced => 2,
    });
    Reply::Array(codes.map(Reply::Integer).collect())
}
