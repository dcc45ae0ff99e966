//! XDEL, XTRIM, XSETID.

use bytes::Bytes;

use super::ids::strict_id;
use super::trim_arguments::options;
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::error::CommandError;
use crate::stream::StreamSettings;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;

/// `XDEL key id [id …]` → how many were deleted.
pub(super) async fn xdel(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::Stream).await? else {
        return Ok(Reply::Integer(0));
    };
    let ids: Result<Vec<StreamId>, CommandError> = rest(arguments, 2)
        .iter()
        .map(|id| strict_id(id, 0))
        .collect();
    let deleted = context.stream_delete(&key, &ids?).await?;
    if !deleted.is_empty() {
        context.notify(EventClasses::STREAM, "xdel", name);
    }
    Ok(Reply::count(deleted.len()))
}

/// `XTRIM key MAXLEN|MINID [=|~] threshold [LIMIT count]` → how many entries went.
pub(super) async fn xtrim(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let options = options(arguments, false)?;
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::Stream).await?;
    let (Some(key), Some(trim)) = (found, options.trim) else {
        return Ok(Reply::Integer(0));
    };
    let count = context.stream_trim(&key, &trim).await?;
    if count > 0 {
        context.notify(EventClasses::STREAM, "xtrim", name);
    }
    Ok(Reply::Integer(count))
}

/// `XSETID key id [ENTRIESADDED count] [MAXDELETEDID id]` → OK.
pub(super) async fn xsetid(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let last = strict_id(argument(arguments, 2)?, 0)?;
    let mut settings = StreamSettings::default();
    for option in rest(arguments, 3).chunks(2) {
        match option {
            [word, count] if is_word(word, "entriesadded") => {
                let count = u64::try_from(integer(count)?)
                    .map_err(|_| CommandError::text("ERR entries_added must be positive"))?;
                settings.added = Some(count);
            }
            [word, id] if is_word(word, "maxdeletedid") => {
                settings.deleted = strict_id(id, 0)?;
                if last < settings.deleted {
                    return Err(CommandError::text(
                        "ERR The ID specified in XSETID is smaller than the provided \
                         max_deleted_entry_id",
                    ));
                }
            }
            _ => return Err(CommandError::Syntax),
        }
    }
    let name = argument(arguments, 1)?;
    let key = context.find(name, ValueType::Stream).await?;
    let key = key.ok_or(CommandError::NoSuchKey)?;
    context.stream_set_id(&key, last, settings).await?;
    context.notify(EventClasses::STREAM, "xsetid", name);
    Ok(Reply::OK)
}
