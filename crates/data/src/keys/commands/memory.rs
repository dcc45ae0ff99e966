//! MEMORY.

use bytes::Bytes;

use crate::command::arguments::{argument, integer, is_word, rest, to_usize};
use crate::command::help;
use crate::error::CommandError;
use crate::unit::context::{Environment, ReadContext};
use quoin_base::allocator;
use quoin_base::limits::MEMORY_USAGE_SAMPLES_DEFAULT;
use quoin_resp::reply::Reply;

const HELP_TITLE: &str = "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

const HELP: &[&str] = &[
    "DOCTOR",
    "    Return memory problems reports.",
    "MALLOC-STATS",
    "    Return internal statistics report from the memory allocator.",
    "PURGE",
    "    Attempt to purge dirty pages for reclamation by the allocator.",
    "STATS",
    "    Return information about the memory usage of the server.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return memory in bytes used by <key> and its value. Nested values are",
    "    sampled up to <count> times (default: 1000, 0 means sample all).",
];

/// `MEMORY HELP`.
pub(super) fn help(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(help::help(HELP_TITLE, HELP))
}

/// `MEMORY DOCTOR`.
pub(super) fn doctor(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    let text = "Hi Sam, I can't find any memory issue in your instance. I can only account for \
                what occurs on this base.\n";
    Ok(Reply::Verbatim("txt", Bytes::from_static(text.as_bytes())))
}

/// `MEMORY MALLOC-STATS`.
pub(super) fn malloc_stats(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::bulk("Stats not supported for the current allocator"))
}

/// `MEMORY PURGE`.
pub(super) fn purge(_: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    allocator::purge();
    Ok(Reply::OK)
}

/// `MEMORY USAGE key [SAMPLES count]`.
pub(super) async fn usage(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 2)?;
    let options = rest(arguments, 3);
    let mut samples = MEMORY_USAGE_SAMPLES_DEFAULT;
    for option in options.chunks(2) {
        let [word, count] = option else {
            return Err(CommandError::Syntax);
        };
        if !is_word(word, "samples") {
            return Err(CommandError::Syntax);
        }
        samples = match integer(count)? {
            0 => usize::MAX,
            count if count < 0 => return Err(CommandError::Syntax),
            count => to_usize(count),
        };
    }
    let Some(key) = context.find_any(name).await? else {
        return Ok(Reply::Null);
    };
    let bytes = context.stored_bytes(&key, samples).await?;
    Ok(Reply::Integer(i64::try_from(bytes).unwrap_or(i64::MAX)))
}
