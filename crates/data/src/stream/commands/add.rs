//! XADD, XTRIM, XSETID and XCFGSET.

use bytes::Bytes;

use quoin_base::events::EventClasses;
use quoin_base::limits::{STREAM_PRODUCED_DURATION_S_MAX, STREAM_PRODUCED_MAX};
use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;

use super::delete::references_named;
use super::id_reply;
use super::ids::{new_id, strict_id};
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::command::plan::Plan;
use crate::error::CommandError;
use crate::prefetch::Prefetch;
use crate::stream::StreamMut;
use crate::stream::append::{Appending, NewId, StreamSettings};
use crate::stream::producers::{Produced, content_id};
use crate::stream::trim::{Trim, TrimTo};
use crate::unit::context::WriteContext;

/// The arguments of XADD.
struct Addition<'a> {
    id: NewId,
    producer: Option<Producer<'a>>,
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
        producer: options.producer,
        fields,
        trim: options.trim,
        no_mkstream: options.no_mkstream,
    })
}

/// The producer that adds an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Producer<'a> {
    id: &'a Bytes,
    /// The producer's id of the entry; `None`: the entry's content.
    entry: Option<&'a Bytes>,
}

/// `XADD key [NOMKSTREAM] [KEEPREF|DELREF|ACKED] [IDMPAUTO producer-id | IDMP producer-id idempotent-id]
/// [MAXLEN|MINID [=|~] threshold [LIMIT count]] id field value …` → the id.
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
    let id = match new.producer {
        None => stream.append(new.id, new.fields).await?,
        Some(Producer { id, entry }) => {
            let content;
            let entry = match entry {
                Some(entry) => entry.as_ref(),
                None => {
                    content = content_id(new.fields);
                    content.as_slice()
                }
            };
            match stream.produce(id, entry, new.id, new.fields).await? {
                Produced::Added(id) => id,
                // As in Redis, a duplicate has no other effect.
                Produced::Duplicate(id) => return Ok(id_reply(id)),
            }
        }
    };
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

/// Whether an XADD may be coalesced.
pub(super) fn makes_stream(arguments: &[Bytes]) -> bool {
    addition(arguments).is_ok_and(|new| !new.no_mkstream && new.producer.is_none())
}

/// Several [`xadd`] commands. Reads and writes the stream's head once.
pub(super) async fn xadd_coalesced(
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

/// `XTRIM key MAXLEN|MINID [=|~] threshold [LIMIT count] [KEEPREF|DELREF|ACKED]` → how many entries were
/// removed.
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
struct AddOrTrim<'a> {
    /// The producer of XADD's entry, if given.
    producer: Option<Producer<'a>>,
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
fn options(arguments: &[Bytes], is_xadd: bool) -> Result<AddOrTrim<'_>, CommandError> {
    let mut to = None;
    let mut is_approximate = false;
    let mut limit = None;
    let mut no_mkstream = false;
    let mut references = None;
    let mut producer = None;
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
        } else if let (None, Some(named)) = (references, references_named(option)) {
            references = Some(named);
        } else if is_xadd && is_word(option, "nomkstream") {
            no_mkstream = true;
        } else if is_xadd && is_word(option, "idmpauto") && !following.is_empty() {
            let (id, _) = producer_named(&producer, option, following)?;
            producer = Some(Producer { id, entry: None });
            at += 1;
        } else if is_xadd && is_word(option, "idmp") && following.len() >= 2 {
            let (id, entry) = producer_named(&producer, option, following)?;
            producer = Some(Producer { id, entry });
            at += 2;
        } else if is_xadd {
            id = Some(new_id(option)?);
            if producer.is_some() && !option.starts_with(b"*") {
                return Err(CommandError::text(
                    "ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs",
                ));
            }
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
        references: references.unwrap_or_default(),
    });
    Ok(AddOrTrim {
        producer,
        trim,
        no_mkstream,
        id,
        end: at,
    })
}

/// The ids of a producer and, after IDMP, of its entry.
fn producer_named<'a>(
    before: &Option<Producer<'_>>,
    option: &[u8],
    following: &'a [Bytes],
) -> Result<(&'a Bytes, Option<&'a Bytes>), CommandError> {
    if before.is_some() {
        return Err(CommandError::text(
            "ERR syntax error, IDMP/IDMPAUTO specified multiple times",
        ));
    }
    let is_auto = is_word(option, "idmpauto");
    let producer = following.first().ok_or(CommandError::Syntax)?;
    let entry = following.get(1).filter(|_| !is_auto);
    if producer.is_empty() {
        return Err(CommandError::text(match is_auto {
            true => "ERR syntax error, IDMPAUTO requires a non-empty producer ID",
            false => "ERR syntax error, IDMP requires a non-empty producer ID",
        }));
    }
    if entry.is_some_and(|entry| entry.is_empty()) {
        return Err(CommandError::text(
            "ERR syntax error, IDMP requires a non-empty idempotent ID",
        ));
    }
    Ok((producer, entry))
}

/// `XCFGSET key [IDMP-DURATION seconds] [IDMP-MAXSIZE entries]` → OK (Redis 8.6).
pub(super) async fn xcfgset(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context.find(argument(arguments, 1)?, ValueType::Stream);
    let key = key.await?.ok_or(CommandError::NoSuchKey)?;
    let (mut duration_s, mut entries_max) = (None, None);
    for option in rest(arguments, 2).chunks(2) {
        let (setting, name, max, unit) = match option {
            [word, _] if is_word(word, "idmp-duration") => (
                &mut duration_s,
                "IDMP-DURATION",
                STREAM_PRODUCED_DURATION_S_MAX,
                "seconds",
            ),
            [word, _] if is_word(word, "idmp-maxsize") => (
                &mut entries_max,
                "IDMP-MAXSIZE",
                STREAM_PRODUCED_MAX,
                "entries",
            ),
            _ => return Err(CommandError::Syntax),
        };
        if setting.is_some() {
            return Err(CommandError::Text(
                format!("ERR {name} specified multiple times").into(),
            ));
        }
        let given = integer(option.last().ok_or(CommandError::Syntax)?)?;
        let given = Some(given).filter(|given| (1..=max).contains(given));
        *setting = given.and_then(|given| u64::try_from(given).ok());
        if setting.is_none() {
            return Err(CommandError::Text(
                format!("ERR {name} must be between 1 and {max} {unit}").into(),
            ));
        }
    }
    if duration_s.is_none() && entries_max.is_none() {
        return Err(CommandError::text(
            "ERR At least one parameter must be specified",
        ));
    }
    let stream = StreamMut::open(context, &key);
    stream.set_producers(duration_s, entries_max).await?;
    Ok(Reply::OK)
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
