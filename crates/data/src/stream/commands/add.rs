//! XADD, XTRIM and XSETID.

use bytes::Bytes;

use quoin_base::events::EventClasses;
use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;

use super::id_reply;
use super::ids::{new_id, strict_id};
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::command::plan::Plan;
use crate::error::CommandError;
use crate::prefetch::Prefetch;
use crate::stream::StreamMut;
use crate::stream::append::{Appending, NewId, StreamSettings};
use crate::stream::trim::{Trim, TrimTo};
use crate::unit::context::WriteContext;

/// The arguments of XADD.
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
    let stream = StreamMut::open(context, &key);
    let id = stream.append(new.id, new.fields).await?;
    context.notify(EventClasses::STREAM, "xadd", name);
    if let Some(trim) = &new.trim
        && stream.trim(trim).await? > 0
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

/// Whether an XADD may be part of a series.
pub(super) fn makes_stream(arguments: &[Bytes]) -> bool {
    addition(arguments).is_ok_and(|new| !new.no_mkstream)
}

/// Several [`xadd`], which read and write the stream's head once.
pub(super) async fn xadd_series(
    context: &WriteContext<'_>,
    commands: &[&[Bytes]],
) -> Result<Vec<Reply>, CommandError> {
    let first = commands.first().ok_or(CommandError::Syntax)?;
    let name = argument(first, 1)?;
    let key = context.find_or_create(name, ValueType::Stream).await?;
    let mut appending = Appending::begin(StreamMut::open(context, &key)).await?;
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

/// `XTRIM key MAXLEN|MINID [=|~] threshold [LIMIT count]` → how many entries were removed.
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
    let count = StreamMut::open(context, &key).trim(&trim).await?;
    if count > 0 {
        context.notify(EventClasses::STREAM, "xtrim", name);
    }
    Ok(Reply::Integer(count))
}

/// The options that XADD and XTRIM share.
#[derive(Debug, PartialEq, Eq)]
struct AddOrTrim {
    /// How the stream is trimmed; `None`: it is not.
    trim: Option<Trim>,
    /// XADD does not create the stream.
    no_mkstream: bool,
    /// The id of XADD's entry.
    id: Option<NewId>,
    /// The index of the argument after the options and, for XADD, after the id.
    end: usize,
}

/// Reads the options of XADD, with the id, or of XTRIM (Redis: `streamParseAddOrTrimArgsOrReply`).
fn options(arguments: &[Bytes], is_xadd: bool) -> Result<AddOrTrim, CommandError> {
    let mut to = None;
    let mut is_approximate = false;
    let mut limit = None;
    let mut no_mkstream = false;
    let mut id = None;
    let mut at = 2;
    while let Some(option) = arguments.get(at) {
        let following = arguments.get(at + 1..).unwrap_or_default();
        let is_maxlen = is_word(option, "maxlen");
        if is_xadd && option.as_ref() == b"*" {
            id = Some(NewId::Now);
        } else if (is_maxlen || is_word(option, "minid")) && !following.is_empty() {
            if to.is_some() {
                return Err(CommandError::text(
                    "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
                ));
            }
            let (operator, threshold) = match following {
                [operator, threshold, ..] if matches!(operator.as_ref(), b"~" | b"=") => {
                    at += 1;
                    (operator.as_ref(), threshold)
                }
                [threshold, ..] => (b"=".as_slice(), threshold),
                [] => return Err(CommandError::Syntax),
            };
            is_approximate = operator == b"~";
            at += 1;
            to = Some(match is_maxlen {
                true => TrimTo::Length(
                    u64::try_from(integer(threshold)?)
                        .map_err(|_| CommandError::text("ERR The MAXLEN argument must be >= 0."))?,
                ),
                false => TrimTo::First(strict_id(threshold, 0)?),
            });
        } else if is_word(option, "limit")
            && let [given, ..] = following
        {
            let given = u64::try_from(integer(given)?);
            limit = Some(
                given.map_err(|_| CommandError::text("ERR The LIMIT argument must be >= 0."))?,
            );
            at += 1;
        } else if is_xadd && is_word(option, "nomkstream") {
            no_mkstream = true;
        } else if is_xadd {
            id = Some(new_id(option)?);
        } else {
            return Err(CommandError::Syntax);
        }
        at += 1;
        if id.is_some() {
            break;
        }
    }
    if limit.is_some_and(|limit| limit > 0) && to.is_none() {
        return Err(CommandError::text(
            "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
        ));
    }
    if !is_xadd && to.is_none() {
        return Err(CommandError::text(
            "ERR syntax error, XTRIM must be called with a trimming strategy",
        ));
    }
    if limit.is_some() && !is_approximate {
        return Err(CommandError::text(
            "ERR syntax error, LIMIT cannot be used without the special ~ option",
        ));
    }
    let trim = to.map(|to| Trim {
        to,
        is_approximate,
        limit,
    });
    Ok(AddOrTrim {
        trim,
        no_mkstream,
        id,
        end: at,
    })
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
    StreamMut::open(context, &key)
        .set_id(last, settings)
        .await?;
    context.notify(EventClasses::STREAM, "xsetid", name);
    Ok(Reply::OK)
}
