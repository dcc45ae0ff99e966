//! XLEN, XRANGE, XREVRANGE and XREAD, and the arguments that XREAD shares with XREADGROUP.
//!
//! XREAD returns null if no stream has a new entry. Outside of MULTI its client then waits: the
//! command runs again until it returns something else (`engine::waiters`). An entry wakes all
//! clients that wait for its stream. `$` is the last id at the command's first run, so that id
//! replaces it before the client waits.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{join_all, try_join_all};

use quoin_base::limits::KEY_READS_AT_ONCE;
use quoin_layout::{StreamId, ValueType};
use quoin_resp::reply::Reply;

use super::entries_reply;
use super::ids::{interval_first, interval_last, strict_id};
use crate::command::arguments::{argument, integer, integer_or, is_word, rest, to_usize};
use crate::command::row::Row;
use crate::command::waits::{WaitSpec, Wake, timeout_ms};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::Answer;
use crate::stream::{IdRange, Stream};
use crate::unit::context::ReadContext;

/// `XLEN key` → number of entries.
pub(super) async fn xlen(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    Ok(Reply::Integer(
        match context.find(name, ValueType::Stream).await? {
            Some(key) => context.length(&key, context.isolation).await?,
            None => 0,
        },
    ))
}

/// `XRANGE key start end [COUNT count]` → entries.
pub(super) async fn xrange(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let range = IdRange {
        first: interval_first(argument(arguments, 2)?)?,
        last: interval_last(argument(arguments, 3)?)?,
    };
    self::range(context, arguments, range, false).await
}

/// `XREVRANGE key end start [COUNT count]` → entries in reverse.
pub(super) async fn xrevrange(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    // Redis reads the start first.
    let first = interval_first(argument(arguments, 3)?)?;
    let last = interval_last(argument(arguments, 2)?)?;
    range(context, arguments, IdRange { first, last }, true).await
}

async fn range(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
    range: IdRange,
    reverse: bool,
) -> Result<Reply, CommandError> {
    let count = count(rest(arguments, 4))?;
    let name = argument(arguments, 1)?;
    let Some(key) = context.find(name, ValueType::Stream).await? else {
        return Ok(Reply::Array(Vec::new()));
    };
    if count == Some(0) {
        return Ok(Reply::NullArray);
    }
    let count = count.unwrap_or(usize::MAX);
    let entries = Stream::open(context, &key)
        .range(range, reverse, count)
        .await?;
    Ok(entries_reply(entries))
}

/// `[COUNT count]`. As in Redis the last one counts, and a negative count is 0.
fn count(options: &[Bytes]) -> Result<Option<usize>, CommandError> {
    let mut found = None;
    for option in options.chunks(2) {
        match option {
            [word, count] if is_word(word, "count") => found = Some(to_usize(integer(count)?)),
            _ => return Err(CommandError::Syntax),
        }
    }
    Ok(found)
}

/// The last id.
const LAST: &[u8] = b"$";
/// The last entry (Redis 7.4).
const LAST_ENTRY: &[u8] = b"+";

/// `XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key …] id [id …]` → entries by key.
pub(super) async fn xread(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let read = read_arguments(arguments, context.now_ms, false)?;
    let mut streams = Vec::with_capacity(read.keys.len());
    let named: Vec<(&Bytes, &Bytes)> = read.keys.iter().zip(read.ids).collect();
    context.namespace().await?;
    for some in named.chunks(KEY_READS_AT_ONCE) {
        let finds = some
            .iter()
            .map(|(name, _)| context.find(name, ValueType::Stream));
        // Redis checks each key and then its id.
        for ((name, id), found) in some.iter().zip(join_all(finds).await) {
            let found = found?;
            let seen = seen(id)?;
            if let (Some(key), Some(seen)) = (found, seen) {
                streams.push((*name, key, seen));
            }
        }
    }
    let mut answer = Vec::new();
    for some in streams.chunks(KEY_READS_AT_ONCE) {
        let reads = some.iter().map(async |(name, key, seen)| {
            let stream = Stream::open(context, key);
            let entries = match seen {
                Seen::AllButLast => stream.range(IdRange::ALL, true, 1).await?,
                Seen::Id(seen) => match IdRange::after(*seen) {
                    Some(range) => stream.range(range, false, read.count).await?,
                    None => Vec::new(),
                },
            };
            Ok::<_, CommandError>((*name, entries))
        });
        for (name, entries) in try_join_all(reads).await? {
            if !entries.is_empty() {
                answer.push((Reply::Bulk(name.clone()), entries_reply(entries)));
            }
        }
    }
    if answer.is_empty() {
        return Ok(Reply::NullArray);
    }
    Ok(Reply::Keyed(answer))
}

/// How far the client has read a stream.
enum Seen {
    /// All up to this id.
    Id(StreamId),
    /// All except the last entry.
    AllButLast,
}

/// How far the client has read. `None` means to the end.
fn seen(argument: &[u8]) -> Result<Option<Seen>, CommandError> {
    match argument {
        LAST => Ok(None),
        LAST_ENTRY => Ok(Some(Seen::AllButLast)),
        b">" => Err(CommandError::text(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
             <consumer> option.",
        )),
        id => Ok(Some(Seen::Id(strict_id(id, 0)?))),
    }
}

/// XREAD waits for all its streams, if it has BLOCK.
pub(super) fn wait(arguments: &[Bytes], now_ms: i64) -> Result<Option<WaitSpec>, CommandError> {
    let read = read_arguments(arguments, now_ms, false)?;
    Ok(read.block.map(|timeout| WaitSpec {
        keys: read.keys.to_vec(),
        value_type: ValueType::Stream,
        timeout,
        wants: None,
        wake: Wake::All,
        takes_first: false,
        needs_key: false,
    }))
}

/// The arguments of an XREAD that begins to wait, with the last ids in place of `$`.
pub(super) fn pin<'c>(
    context: &'c ReadContext<'c>,
    arguments: &'c [Bytes],
) -> Answer<'c, Option<Vec<Bytes>>, CommandError> {
    Box::pin(async move {
        let read = read_arguments(arguments, context.now_ms, false)?;
        if !read.ids.iter().any(|id| id.as_ref() == LAST) {
            return Ok(None);
        }
        let mut pinned = arguments.to_vec();
        for ((name, id), place) in read.keys.iter().zip(read.ids).zip(read.ids_at..) {
            if id.as_ref() != LAST {
                continue;
            }
            let key = context.find(name, ValueType::Stream).await?;
            let last = last_id(context, key.as_ref()).await?;
            if let Some(argument) = pinned.get_mut(place) {
                *argument = Bytes::from(last.to_string());
            }
        }
        Ok(Some(pinned))
    })
}

async fn last_id(
    context: &ReadContext<'_>,
    key: Option<&OpenKey>,
) -> Result<StreamId, CommandError> {
    match key {
        Some(key) => Ok(Stream::open(context, key).head().await?.last),
        None => Ok(StreamId::MIN),
    }
}

/// The arguments that XREAD and XREADGROUP share. There is an id for each key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadArguments<'a> {
    /// The most entries of each stream.
    pub(super) count: usize,
    /// How long the client waits, if it does. `Some(None)` means forever.
    pub(super) block: Option<Option<Duration>>,
    /// The entries do not become pending.
    pub(super) no_ack: bool,
    /// Entries that have been pending and idle for this many milliseconds come first.
    pub(super) claim: Option<i64>,
    /// Group and consumer.
    pub(super) group: Option<(&'a Bytes, &'a Bytes)>,
    /// The streams.
    pub(super) keys: &'a [Bytes],
    /// The last id that was seen of each.
    pub(super) ids: &'a [Bytes],
    /// The index of the first id among the arguments.
    pub(super) ids_at: usize,
}

/// Reads the arguments at a time in milliseconds since the Unix epoch (Redis: `xreadCommand`).
pub(super) fn read_arguments(
    arguments: &[Bytes],
    now_ms: i64,
    is_group: bool,
) -> Result<ReadArguments<'_>, CommandError> {
    let mut read = ReadArguments {
        count: usize::MAX,
        block: None,
        no_ack: false,
        claim: None,
        group: None,
        keys: &[],
        ids: &[],
        ids_at: 0,
    };
    let mut rest = arguments.get(1..).unwrap_or_default();
    while let [option, following @ ..] = rest {
        rest = match following {
            [timeout, rest @ ..] if is_word(option, "block") => {
                read.block = Some(timeout_ms(timeout, now_ms)?);
                rest
            }
            [min_idle_ms, rest @ ..] if is_word(option, "claim") => {
                only_of_groups(is_group, "CLAIM")?;
                read.claim = Some(min_idle_time(min_idle_ms)?);
                rest
            }
            [count, rest @ ..] if is_word(option, "count") => {
                let count = to_usize(integer(count)?);
                read.count = if count == 0 { usize::MAX } else { count };
                rest
            }
            streams @ [_, ..] if is_word(option, "streams") => {
                if !streams.len().is_multiple_of(2) {
                    return Err(unbalanced(is_group));
                }
                (read.keys, read.ids) = streams.split_at(streams.len() / 2);
                read.ids_at = arguments.len() - read.ids.len();
                break;
            }
            [group, consumer, rest @ ..] if is_word(option, "group") => {
                only_of_groups(is_group, "GROUP")?;
                read.group = Some((group, consumer));
                rest
            }
            rest if is_word(option, "noack") => {
                only_of_groups(is_group, "NOACK")?;
                read.no_ack = true;
                rest
            }
            _ => return Err(CommandError::Syntax),
        };
    }
    if read.keys.is_empty() {
        return Err(CommandError::Syntax);
    }
    if is_group && read.group.is_none() {
        return Err(CommandError::text(
            "ERR Missing GROUP option for XREADGROUP",
        ));
    }
    Ok(read)
}

fn min_idle_time(argument: &Bytes) -> Result<i64, CommandError> {
    let min_idle_ms = integer_or(
        argument,
        "ERR min-idle-time is not an integer or out of range",
    )?;
    match min_idle_ms {
        0.. => Ok(min_idle_ms),
        _ => Err(CommandError::text(
            "ERR min-idle-time must be a positive integer",
        )),
    }
}

fn only_of_groups(is_group: bool, option: &str) -> Result<(), CommandError> {
    if is_group {
        return Ok(());
    }
    Err(CommandError::Text(
        format!(
            "ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."
        )
        .into(),
    ))
}

fn unbalanced(is_group: bool) -> CommandError {
    CommandError::text(if is_group {
        "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be \
         specified."
    } else {
        "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified."
    })
}

/// The refusal of XREAD and XREADGROUP with BLOCK in a script. A script may not wait.
pub(crate) fn refusal_in_script(row: &Row, arguments: &[Bytes]) -> Option<String> {
    let is_group = match row.name {
        "xread" => false,
        "xreadgroup" => true,
        _ => return None,
    };
    // Redis refuses the option as soon as it reads it, so later arguments do not matter.
    let streams = arguments.iter().position(|one| is_word(one, "streams"));
    let options = arguments.get(..streams.unwrap_or(arguments.len()))?;
    let mut at = 1;
    while let Some(option) = options.get(at) {
        if is_word(option, "block") {
            let name = String::from_utf8_lossy(arguments.first()?);
            return Some(format!(
                "ERR {name} command is not allowed with BLOCK option from scripts"
            ));
        }
        at += match option {
            option if is_word(option, "count") => 2,
            option if is_group && is_word(option, "group") => 3,
            option if is_group && is_word(option, "claim") => 2,
            option if is_group && is_word(option, "noack") => 1,
            _ => return None,
        };
    }
    None
}
