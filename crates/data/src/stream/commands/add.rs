//! XADD.

use bytes::Bytes;

use super::replies::id_reply;
use super::trim_arguments::options;
use crate::command::arguments::{argument, rest};
use crate::command::plan::Plan;
use crate::error::CommandError;
use crate::prefetch::Prefetch;
use crate::stream::{Appending, NewId, Trim};
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;

/// What an XADD adds.
struct Addition<'a> {
    id: NewId,
    fields: &'a [Bytes],
    trim: Option<Trim>,
    no_mkstream: bool,
}

fn addition(arguments: &[Bytes]) -> Result<Addition<'_>, CommandError> {
    let options = options(arguments, true)?;
    let fields = rest(arguments, options.end);
    let id = match options.id {
        Some(id) if !fields.is_empty() && fields.len().is_multiple_of(2) => id,
        _ => return Err(CommandError::WrongArity("xadd".to_owned())),
    };
    if id == NewId::Exact(StreamId::MIN) {
        return Err(CommandError::text(
            "ERR The ID specified in XADD must be greater than 0-0",
        ));
    }
    Ok(Addition {
        id,
        fields,
        trim: options.trim,
        no_mkstream: options.no_mkstream,
    })
}

/// `XADD key [NOMKSTREAM] [MAXLEN|MINID [=|~] threshold [LIMIT count]] id field value …` → the id.
pub(super) async fn xadd(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let new = addition(arguments)?;
    let name = argument(arguments, 1)?;
    let key = match context.find(name, ValueType::Stream).await? {
        Some(key) => key,
        None if new.no_mkstream => return Ok(Reply::Null),
        None => context.create(name, ValueType::Stream, None).await?,
    };
    let id = context.stream_append(&key, new.id, new.fields).await?;
    context.notify(EventClasses::STREAM, "xadd", name);
    if let Some(trim) = &new.trim
        && context.stream_trim(&key, trim).await? > 0
    {
        context.notify(EventClasses::STREAM, "xtrim", name);
    }
    Ok(id_reply(id))
}

/// XADD reads the stream's head.
pub(super) fn plan(_: &[Bytes]) -> Option<Plan> {
    Some(Plan::Read(vec![Prefetch::Stream {
        head: true,
        group: None,
    }]))
}

/// Whether an XADD may be one of several that run as one.
pub(super) fn makes_stream(arguments: &[Bytes]) -> bool {
    addition(arguments).is_ok_and(|new| !new.no_mkstream)
}

/// Several of [`xadd`], which read and write the stream's head once.
pub(super) async fn xadd_series(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let first = commands.first().ok_or(CommandError::Syntax)?;
    let name = argument(first, 1)?;
    let key = context.find_or_create(name, ValueType::Stream).await?;
    let mut appending = Appending::begin(context, &key).await?;
    let mut replies = Vec::with_capacity(commands.len());
    for arguments in commands {
        let new = addition(arguments)?;
        replies.push(id_reply(appending.append(new.id, new.fields)?));
        if let Some(trim) = &new.trim {
            appending.trim(trim).await?;
        }
    }
    appending.count();
    Ok(replies)
}
