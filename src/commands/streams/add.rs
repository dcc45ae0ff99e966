//! XADD.

use bytes::Bytes;

use super::replies::id_reply;
use super::trim_arguments::options;
use crate::commands::arguments::{argument, rest};
use crate::error::CommandError;
use crate::events::EventClasses;
use crate::layout::{StreamId, ValueType};
use crate::reply::Reply;
use crate::types::WriteContext;
use crate::types::stream::NewId;

/// `XADD key [NOMKSTREAM] [MAXLEN|MINID [=|~] threshold [LIMIT count]] id field value …` → the id.
pub(super) async fn xadd(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let options = options(arguments, true)?;
    let fields = rest(arguments, options.end);
    let id = match options.id {
        Some(id) if !fields.is_empty() && fields.len() % 2 == 0 => id,
        _ => return Err(CommandError::WrongArity("xadd".to_owned())),
    };
    if id == NewId::Exact(StreamId::MIN) {
        return Err(CommandError::text(
            "ERR The ID specified in XADD must be greater than 0-0",
        ));
    }
    let name = argument(arguments, 1)?;
    let key = match context.find(name, ValueType::Stream).await? {
        Some(key) => key,
        None if options.no_mkstream => return Ok(Reply::Null),
        None => context.create(name, ValueType::Stream, None).await?,
    };
    let id = context.stream_append(&key, id, fields).await?;
    context.notify(EventClasses::STREAM, "xadd", name);
    if let Some(trim) = &options.trim
        && context.stream_trim(&key, trim).await? > 0
    {
        context.notify(EventClasses::STREAM, "xtrim", name);
    }
    Ok(id_reply(id))
}
