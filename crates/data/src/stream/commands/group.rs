//! XGROUP.

use bytes::Bytes;

use quoin_base::events::EventClasses;
use quoin_base::limits::{STREAM_MIN_IDLE_MS_MAX, STREAM_NAME_BYTES_MAX};
use quoin_layout::{StreamId, StreamPolicy, ValueType};
use quoin_resp::reply::Reply;
use quoin_store::{Isolation, StoreError};

use super::ids::{id, strict_id};
use super::{no_group, subcommand_syntax};
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::command::help;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::stream::group::{GroupMut, OpenGroup};
use crate::stream::{Stream, StreamMut};
use crate::unit::context::{Environment, WriteContext};

const HELP_TITLE: &str = "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";
const HELP: &[&str] = &[
    "CREATE <key> <groupname> <id|$> [option]",
    "    Create a new consumer group. Options are:",
    "    * MKSTREAM",
    "      Create the empty stream if it does not exist.",
    "    * ENTRIESREAD entries_read",
    "      Set the group's entries_read counter (internal use).",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Create a new consumer in the specified group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove the specified consumer.",
    "DESTROY <key> <groupname>",
    "    Remove the specified group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Set the current group ID and entries_read counter.",
    "SETPOLICY <key> <groupname> [option]",
    "    Say what becomes of entries that stay pending; nothing without options, which are:",
    "    * MINIDLE milliseconds",
    "      Hand them out again once they are idle for so long.",
    "    * MAXTRIES count",
    "      Deliver them at most so often.",
    "    * DEADLETTER key",
    "      Move them to this stream after that.",
];
/// The argument that means the last id of a stream.
const LAST: &[u8] = b"$";

/// `XGROUP HELP`.
pub(super) fn help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help::help(HELP_TITLE, HELP))
}

/// The last id of a stream.
async fn last_id(context: &WriteContext<'_>, key: &OpenKey) -> Result<StreamId, StoreError> {
    let head = Stream::open(context, key)
        .head_at(context.relaxed())
        .await?;
    Ok(head.last)
}

/// The options of CREATE and SETID.
#[derive(Default)]
struct Options {
    mkstream: bool,
    entries_read: Option<u64>,
}

fn options(arguments: &[Bytes], is_create: bool) -> Result<Options, CommandError> {
    let mut options = Options::default();
    let mut left = rest(arguments, 5);
    while let [option, following @ ..] = left {
        left = match following {
            rest if is_create && is_word(option, "mkstream") => {
                options.mkstream = true;
                rest
            }
            [count, rest @ ..] if is_word(option, "entriesread") => {
                options.entries_read = match integer(count)? {
                    -1 => None,
                    count => Some(u64::try_from(count).map_err(|_| {
                        CommandError::text("ERR value for ENTRIESREAD must be positive or -1")
                    })?),
                };
                rest
            }
            _ => return Err(subcommand_syntax("XGROUP", argument(arguments, 1)?)),
        };
    }
    Ok(options)
}

async fn stream_of(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<OpenKey, CommandError> {
    let found = context.find(argument(arguments, 2)?, ValueType::Stream);
    found.await?.ok_or(CommandError::text(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to \
         use the MKSTREAM option to create an empty stream automatically.",
    ))
}

/// The stream and the group of a subcommand.
async fn stream_and_group(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    isolation: Isolation,
) -> Result<(OpenKey, OpenGroup), CommandError> {
    let key = stream_of(context, arguments).await?;
    let name = argument(arguments, 3)?;
    let group = Stream::open(context, &key).group(name, isolation).await?;
    match group {
        Some(group) => Ok((key, group)),
        None => Err(no_group(argument(arguments, 2)?, name)),
    }
}

/// `XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD entries-read]` → OK.
pub(super) async fn create(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let options = options(arguments, true)?;
    let name = argument(arguments, 2)?;
    let found = match options.mkstream {
        true => context.find(name, ValueType::Stream).await?,
        false => Some(stream_of(context, arguments).await?),
    };
    // As in Redis, which checks the number of arguments.
    if arguments.len() > 8 {
        return Err(subcommand_syntax("XGROUP", argument(arguments, 1)?));
    }
    let last = argument(arguments, 4)?;
    let last = match (last.as_ref() == LAST, &found) {
        (true, Some(key)) => last_id(context, key).await?,
        (true, None) => StreamId::MIN,
        (false, _) => strict_id(last, 0)?,
    };
    let key = match found {
        Some(key) => key,
        None => context.create(name, ValueType::Stream, None).await?,
    };
    let group = argument(arguments, 3)?;
    let stream = StreamMut::open(context, &key);
    let is_new = stream.create_group(group, last, options.entries_read);
    if !is_new.await? {
        return Err(CommandError::text(
            "BUSYGROUP Consumer Group name already exists",
        ));
    }
    context.notify(EventClasses::STREAM, "xgroup-create", name);
    Ok(Reply::OK)
}

/// `XGROUP SETID key group id|$ [ENTRIESREAD entries-read]` → OK.
pub(super) async fn set_id(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let options = options(arguments, false)?;
    let (key, mut group) = stream_and_group(context, arguments, context.isolation).await?;
    if !matches!(arguments.len(), 5 | 7) {
        return Err(subcommand_syntax("XGROUP", argument(arguments, 1)?));
    }
    let last = argument(arguments, 4)?;
    group.row.last = match last.as_ref() {
        LAST => last_id(context, &key).await?,
        last => id(last, 0)?,
    };
    group.row.entries_read = options.entries_read;
    GroupMut::open(context, &key, group).save();
    context.notify(
        EventClasses::STREAM,
        "xgroup-setid",
        argument(arguments, 2)?,
    );
    Ok(Reply::OK)
}

/// `XGROUP DESTROY key group` → whether the group existed.
pub(super) async fn destroy(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = stream_of(context, arguments).await?;
    let name = argument(arguments, 3)?;
    let stream = Stream::open(context, &key);
    let Some(group) = stream.group(name, context.isolation).await? else {
        return Ok(Reply::Integer(0));
    };
    GroupMut::open(context, &key, group).destroy();
    let key_name = argument(arguments, 2)?;
    context.notify(EventClasses::STREAM, "xgroup-destroy", key_name);
    Ok(Reply::Integer(1))
}

/// `XGROUP CREATECONSUMER key group consumer` → whether it is new.
pub(super) async fn create_consumer(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (key, group) = stream_and_group(context, arguments, context.relaxed()).await?;
    let group = GroupMut::open(context, &key, group);
    let (key_name, name) = (argument(arguments, 2)?, argument(arguments, 4)?);
    let (_, is_new) = group.find_or_create_consumer(key_name, name).await?;
    Ok(Reply::Integer(i64::from(is_new)))
}

/// `XGROUP DELCONSUMER key group consumer` → the number of pending entries that it had.
pub(super) async fn delete_consumer(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (key, group) = stream_and_group(context, arguments, context.relaxed()).await?;
    let group = GroupMut::open(context, &key, group);
    let (key_name, name) = (argument(arguments, 2)?, argument(arguments, 4)?);
    let Some(consumer) = group.consumer(name).await? else {
        return Ok(Reply::Integer(0));
    };
    let pending = group.delete_consumer(&consumer).await?;
    context.notify(EventClasses::STREAM, "xgroup-delconsumer", key_name);
    Ok(Reply::Integer(pending))
}

/// `XGROUP SETPOLICY key group [MAXTRIES n] [MINIDLE ms] [DEADLETTER key]` → OK. Without options it
/// removes the group's policy.
pub(super) async fn set_policy(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let policy = policy(arguments)?;
    let (key, group) = stream_and_group(context, arguments, context.isolation).await?;
    let dead_letter = policy
        .as_ref()
        .and_then(|policy| policy.dead_letter.as_ref());
    if let Some(name) = dead_letter {
        context.find(name, ValueType::Stream).await?;
    }
    let mut group = GroupMut::open(context, &key, group);
    group.set_policy(policy).await?;
    let name = argument(arguments, 2)?;
    context.notify(EventClasses::STREAM, "xgroup-setpolicy", name);
    Ok(Reply::OK)
}

fn policy(arguments: &[Bytes]) -> Result<Option<StreamPolicy>, CommandError> {
    let mut min_idle_ms = None;
    let mut max_tries = None;
    let mut dead_letter = None;
    let mut left = rest(arguments, 4);
    while let [option, following @ ..] = left {
        left = match following {
            [count, rest @ ..] if max_tries.is_none() && is_word(option, "maxtries") => {
                let count = u64::try_from(integer(count)?).ok();
                let count = count.filter(|count| *count > 0);
                max_tries = Some(count.ok_or(CommandError::text("ERR MAXTRIES must be > 0"))?);
                rest
            }
            [idle, rest @ ..] if min_idle_ms.is_none() && is_word(option, "minidle") => {
                let idle_ms = integer(idle)?;
                if !(1..=STREAM_MIN_IDLE_MS_MAX).contains(&idle_ms) {
                    return Err(CommandError::Text(
                        format!("ERR MINIDLE must be from 1 to {STREAM_MIN_IDLE_MS_MAX}").into(),
                    ));
                }
                min_idle_ms = Some(idle_ms);
                rest
            }
            [name, rest @ ..] if dead_letter.is_none() && is_word(option, "deadletter") => {
                dead_letter = Some(name.clone());
                rest
            }
            _ => return Err(subcommand_syntax("XGROUP", argument(arguments, 1)?)),
        };
    }
    if dead_letter.is_some() && max_tries.is_none() {
        return Err(CommandError::text("ERR DEADLETTER needs MAXTRIES"));
    }
    if dead_letter.as_ref() == Some(argument(arguments, 2)?) {
        return Err(CommandError::text(
            "ERR DEADLETTER must be another key than the stream's",
        ));
    }
    if dead_letter
        .as_ref()
        .is_some_and(|name| name.len() > STREAM_NAME_BYTES_MAX)
    {
        return Err(CommandError::Text(
            format!("ERR DEADLETTER is longer than {STREAM_NAME_BYTES_MAX} bytes").into(),
        ));
    }
    match (min_idle_ms, max_tries) {
        (Some(min_idle_ms), max_tries) => Ok(Some(StreamPolicy {
            min_idle_ms,
            max_tries,
            dead_letter,
        })),
        (None, Some(_)) => Err(CommandError::text("ERR MAXTRIES needs MINIDLE")),
        (None, None) => Ok(None),
    }
}
