//! The options that XADD and XTRIM share.

use bytes::Bytes;

use super::ids::{new_id, strict_id};
use crate::command::arguments::{integer, is_word};
use crate::error::CommandError;
use crate::stream::{NewId, Trim, TrimTo};

/// What the options say.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AddOrTrim {
    /// How the stream is trimmed, if it is.
    pub(super) trim: Option<Trim>,
    /// Whether XADD makes no stream.
    pub(super) no_mkstream: bool,
    /// The id of XADD's entry.
    pub(super) id: Option<NewId>,
    /// Where the options end, and of XADD the id.
    pub(super) end: usize,
}

/// Reads the options of XADD, with the id, or of XTRIM (Redis: `streamParseAddOrTrimArgsOrReply`).
pub(super) fn options(arguments: &[Bytes], is_xadd: bool) -> Result<AddOrTrim, CommandError> {
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
