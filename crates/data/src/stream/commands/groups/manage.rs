//! XGROUP.

use bytes::Bytes;

use super::errors::{no_group, subcommand_syntax};
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::command::help;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::stream::OpenGroup;
use crate::stream::commands::ids::{id, strict_id};
use crate::unit::context::{Environment, WriteContext};
use quoin_base::events::EventClasses;
use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;
use quoin_store::Isolation;

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
/// The last id of a stream.
const LAST: &[u8] = b"$";

/// `XGROUP HELP`.
pub(super) fn help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help::help(HELP_TITLE, HELP))
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

/// The stream and the group that a subcommand needs.
pub(super) async fn group_of(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
    isolation: Isolation,
) -> Result<(OpenKey, OpenGroup), CommandError> {
    let key = stream_of(context, arguments).await?;
    let name = argument(arguments, 3)?;
    let group = context.stream_group(&key, name, isolation).await?;
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
    // As in Redis, which counts the words.
    if arguments.len() > 8 {
        return Err(subcommand_syntax("XGROUP", argument(arguments, 1)?));
    }
    let last = argument(arguments, 4)?;
    let last = match (last.as_ref() == LAST, &found) {
        (true, Some(key)) => context.stream_head_at(key, context.relaxed()).await?.last,
        (true, None) => StreamId::MIN,
        (false, _) => strict_id(last, 0)?,
    };
    let key = match found {
        Some(key) => key,
        None => context.create(name, ValueType::Stream, None).await?,
    };
    let group = argument(arguments, 3)?;
    let is_new = context.stream_create_group(&key, group, last, options.entries_read);
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
    let (key, mut group) = group_of(context, arguments, context.isolation).await?;
    if !matches!(arguments.len(), 5 | 7) {
        return Err(subcommand_syntax("XGROUP", argument(arguments, 1)?));
    }
    let last = argument(arguments, 4)?;
    group.row.last = match last.as_ref() {
        LAST => context.stream_head_at(&key, context.relaxed()).await?.last,
        last => id(last, 0)?,
    };
    group.row.entries_read = options.entries_read;
    context.set_stream_group(&key, &group);
    context.notify(
        EventClasses::STREAM,
        "xgroup-setid",
        argument(arguments, 2)?,
    );
    Ok(Reply::OK)
}

/// `XGROUP DESTROY key group` → whether there was such a group.
pub(super) async fn destroy(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = stream_of(context, arguments).await?;
    let name = argument(arguments, 3)?;
    let group = context.stream_group(&key, name, context.isolation).await?;
    let Some(group) = group else {
        return Ok(Reply::Integer(0));
    };
    context.stream_destroy_group(&key, &group);
    let key_name = argument(arguments, 2)?;
    context.notify(EventClasses::STREAM, "xgroup-destroy", key_name);
    Ok(Reply::Integer(1))
}

/// `XGROUP CREATECONSUMER key group consumer` → whether there was none such.
pub(super) async fn create_consumer(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (key, group) = group_of(context, arguments, context.relaxed()).await?;
    let (key_name, name) = (argument(arguments, 2)?, argument(arguments, 4)?);
    let (_, is_new) = context
        .stream_find_or_create_consumer(&key, key_name, &group, name)
        .await?;
    Ok(Reply::Integer(i64::from(is_new)))
}

/// `XGROUP DELCONSUMER key group consumer` → how many pending entries it had.
pub(super) async fn delete_consumer(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (key, group) = group_of(context, arguments, context.relaxed()).await?;
    let (key_name, name) = (argument(arguments, 2)?, argument(arguments, 4)?);
    let Some(consumer) = context.stream_consumer(&key, &group, name).await? else {
        return Ok(Reply::Integer(0));
    };
    let pending = context.stream_delete_consumer(&key, &group, &consumer);
    let pending = pending.await?;
    context.notify(EventClasses::STREAM, "xgroup-delconsumer", key_name);
    Ok(Reply::Integer(pending))
}
