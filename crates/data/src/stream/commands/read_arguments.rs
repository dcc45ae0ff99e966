//! The arguments that XREAD and XREADGROUP share.

use std::time::Duration;

use bytes::Bytes;

use crate::command::arguments::{integer, is_word, to_usize};
use crate::command::row::Row;
use crate::command::waits::timeout_ms;
use crate::error::CommandError;

/// What the arguments say. Keys and ids are as many.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadArguments<'a> {
    /// The most entries of each stream.
    pub(super) count: usize,
    /// How long it waits, if it does; `None` within is without an end.
    pub(super) block: Option<Option<Duration>>,
    /// Whether what is read needs no acknowledgement.
    pub(super) no_ack: bool,
    /// Group and consumer.
    pub(super) group: Option<(&'a Bytes, &'a Bytes)>,
    /// The streams.
    pub(super) keys: &'a [Bytes],
    /// What was seen of each.
    pub(super) ids: &'a [Bytes],
    /// Where the ids stand.
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

/// The refusal of XREAD and XREADGROUP with BLOCK in a script, which may not wait.
pub(crate) fn refusal_in_script(row: &Row, arguments: &[Bytes]) -> Option<String> {
    let is_group = match row.name {
        "xread" => false,
        "xreadgroup" => true,
        _ => return None,
    };
    // Redis refuses it where it meets the option, whatever follows.
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
            option if is_group && is_word(option, "noack") => 1,
            _ => return None,
        };
    }
    None
}
