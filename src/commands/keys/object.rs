//! OBJECT.

use bytes::Bytes;

use super::subcommands::{help, unknown};
use crate::commands::arguments::is_word;
use crate::error::CommandError;
use crate::reply::Reply;
use crate::types::{ReadContext, ValueKind};

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

/// `OBJECT HELP` and `OBJECT ENCODING|FREQ|IDLETIME|REFCOUNT key`.
pub(super) async fn object(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (word, name) = match arguments {
        [_, word] if is_word(word, "help") => return Ok(help("OBJECT", HELP)),
        [_, word, name] => (word, name),
        _ => return Err(unknown("OBJECT", arguments)),
    };
    let answer = if is_word(word, "encoding") {
        |kind: &ValueKind| Ok(Reply::bulk(kind.encoding))
    } else if is_word(word, "refcount") {
        |_| Ok(Reply::Integer(1))
    } else if is_word(word, "idletime") {
        |_| {
            Err(CommandError::text(
                "ERR Quoin does not track when a key was last accessed",
            ))
        }
    } else if is_word(word, "freq") {
        |_| {
            Err(CommandError::text(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
            ))
        }
    } else {
        return Err(unknown("OBJECT", arguments));
    };
    match context.find_any(name).await? {
        Some(key) => answer(key.meta.value_type.kind()),
        None => Ok(Reply::Null),
    }
}
