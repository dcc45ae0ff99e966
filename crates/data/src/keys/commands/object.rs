//! OBJECT.

use bytes::Bytes;

use crate::command::arguments::argument;
use crate::command::help;
use crate::error::CommandError;
use crate::keyspace::kind::TypeKind;
use crate::unit::context::{Environment, ReadContext};
use quoin_resp::reply::Reply;

const HELP_TITLE: &str = "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

const HELP: &[&str] = &[
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
];

/// `OBJECT HELP`.
pub(super) fn help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help::help(HELP_TITLE, HELP))
}

/// `OBJECT ENCODING key`: how Redis would represent its value.
pub(super) async fn encoding(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let Some(key) = context.find_any(argument(arguments, 2)?).await? else {
        return Ok(Reply::Null);
    };
    let encoding = (key.meta.value_type.kind().encoding)(context, &key).await?;
    Ok(Reply::bulk(encoding))
}

/// `OBJECT REFCOUNT key`: always 1.
pub(super) async fn refcount(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    of_value(context, arguments, Ok(Reply::Integer(1))).await
}

/// `OBJECT IDLETIME key`: always 0. Reads leave no trace, so nobody knows when the last one was.
pub(super) async fn idletime(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    of_value(context, arguments, Ok(Reply::Integer(0))).await
}

/// `OBJECT FREQ key`, which is refused.
pub(super) async fn freq(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let refusal = CommandError::text(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note \
         that when switching between policies at runtime LRU and LFU data will take some time to \
         adjust.",
    );
    of_value(context, arguments, Err(refusal)).await
}

/// Null where there is no such key.
async fn of_value(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    answer: Result<Reply, CommandError>,
) -> Result<Reply, CommandError> {
    match context.find_any(argument(arguments, 2)?).await? {
        Some(_) => answer,
        None => Ok(Reply::Null),
    }
}
