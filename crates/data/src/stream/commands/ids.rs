//! Ids as clients write them.

use bytes::Bytes;

use quoin_base::number::parse_i64;
use quoin_layout::StreamId;

use crate::command::arguments::to_usize;
use crate::error::CommandError;
use crate::stream::append::NewId;

/// Bytes of the longest text that Redis tries to read as an id.
const ID_TEXT_BYTES_MAX: usize = 127;

const INVALID_ID: CommandError =
    CommandError::text("ERR Invalid stream ID specified as stream command argument");

/// An id. `missing_seq` completes one that has only milliseconds. `-` and `+` are the least and the
/// greatest id.
///
/// # Errors
/// `Text` if it is not an id.
pub(in crate::stream) fn id(argument: &[u8], missing_seq: u64) -> Result<StreamId, CommandError> {
    match c_text(argument)? {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        text => whole_id(text, missing_seq),
    }
}

/// [`id`] without `-` and `+`.
///
/// # Errors
/// `Text` if it is not such an id.
pub(super) fn strict_id(argument: &[u8], missing_seq: u64) -> Result<StreamId, CommandError> {
    match c_text(argument)? {
        b"-" | b"+" => Err(INVALID_ID),
        text => whole_id(text, missing_seq),
    }
}

/// Ids without `-` and `+`. Each may have only milliseconds.
///
/// # Errors
/// `Text` if one of them is not such an id.
pub(super) fn strict_ids(arguments: &[Bytes]) -> Result<Vec<StreamId>, CommandError> {
    arguments.iter().map(|id| strict_id(id, 0)).collect()
}

/// The ids of `IDS numids id [id …]` and the arguments after them. `rest` follows `numids`.
///
/// # Errors
/// `Text` if the number is not positive, or greater than the number of arguments.
pub(super) fn counted_ids(
    count: Option<i64>,
    rest: &[Bytes],
) -> Result<(&[Bytes], &[Bytes]), CommandError> {
    let count = count.filter(|count| *count > 0);
    let count = count.ok_or(CommandError::text(
        "ERR Number of IDs must be a positive integer",
    ))?;
    rest.split_at_checked(to_usize(count))
        .ok_or(CommandError::text(
            "ERR The `numids` parameter must match the number of arguments",
        ))
}

/// The id of a new entry: `*`, `<ms>-*` or an id.
///
/// # Errors
/// `Text` if it is none of these.
pub(super) fn new_id(argument: &[u8]) -> Result<NewId, CommandError> {
    if argument == b"*" {
        return Ok(NewId::Now);
    }
    match c_text(argument)?.strip_suffix(b"-*") {
        Some(ms) if !ms.contains(&b'-') => Ok(NewId::At(number(ms)?)),
        _ => Ok(NewId::Exact(strict_id(argument, 0)?)),
    }
}

/// The first id of an interval; `(` excludes the id that follows it.
///
/// # Errors
/// `Text` if it is no id, or if no id is left.
pub(super) fn interval_first(argument: &[u8]) -> Result<StreamId, CommandError> {
    match excluded(argument) {
        None => id(argument, 0),
        Some(excluded) => strict_id(excluded, 0)?
            .next()
            .ok_or(CommandError::text("ERR invalid start ID for the interval")),
    }
}

/// The last id of an interval; `(` excludes the id that follows it.
///
/// # Errors
/// `Text` if it is no id, or if no id is left.
pub(super) fn interval_last(argument: &[u8]) -> Result<StreamId, CommandError> {
    match excluded(argument) {
        None => id(argument, u64::MAX),
        Some(excluded) => strict_id(excluded, u64::MAX)?
            .previous()
            .ok_or(CommandError::text("ERR invalid end ID for the interval")),
    }
}

fn excluded(argument: &[u8]) -> Option<&[u8]> {
    argument.strip_prefix(b"(").filter(|rest| !rest.is_empty())
}

/// The part of an argument that Redis reads: it copies the argument into a buffer and reads up to a zero
/// byte.
fn c_text(argument: &[u8]) -> Result<&[u8], CommandError> {
    if argument.len() > ID_TEXT_BYTES_MAX {
        return Err(INVALID_ID);
    }
    let mut parts = argument.split(|byte| *byte == 0);
    Ok(parts.next().unwrap_or_default())
}

fn whole_id(text: &[u8], missing_seq: u64) -> Result<StreamId, CommandError> {
    let mut parts = text.splitn(2, |byte| *byte == b'-');
    let ms = number(parts.next().unwrap_or_default())?;
    let seq = match parts.next() {
        Some(seq) => number(seq)?,
        None => missing_seq,
    };
    Ok(StreamId { ms, seq })
}

/// An unsigned number as Redis's `string2ull` reads it. If it is not a signed integer, `strtoull`
/// reads it and accepts blanks and a sign.
fn number(text: &[u8]) -> Result<u64, CommandError> {
    if let Some(number) = parse_i64(text) {
        return u64::try_from(number).map_err(|_| INVALID_ID);
    }
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let blanks = text.iter().take_while(|byte| is_blank(byte)).count();
    let (is_negative, digits) = match text.get(blanks..).unwrap_or_default() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return Err(INVALID_ID);
    }
    let number = digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    });
    let number = number.ok_or(INVALID_ID)?;
    Ok(match is_negative {
        true => number.wrapping_neg(),
        false => number,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ms: u64, seq: u64) -> Option<StreamId> {
        Some(StreamId { ms, seq })
    }

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        for (text, expected) in [
            ("5-3", of(5, 3)),
            ("5", of(5, 7)),
            ("-", of(0, 0)),
            ("+", of(u64::MAX, u64::MAX)),
            (
                "18446744073709551615-18446744073709551615",
                of(u64::MAX, u64::MAX),
            ),
            ("007-1", of(7, 1)),
            ("+5-3", of(5, 3)),
            (" 5- 3", of(5, 3)),
            ("5-3\x001", of(5, 3)),
            ("5-", None),
            ("-5", None),
            ("5--3", None),
            ("5-3-1", None),
            ("", None),
            ("*", None),
            ("5-*", None),
            ("18446744073709551616", None),
            ("x", None),
            ("1 ", None),
        ] {
            assert_eq!(id(text.as_bytes(), 7).ok(), expected, "{text}");
        }
        let long = "0".repeat(127);
        assert_eq!(id(long.as_bytes(), 7).ok(), of(0, 7));
        assert!(id(format!("{long}0").as_bytes(), 7).is_err());
        assert!(strict_id(b"-", 0).is_err() && strict_id(b"+", 0).is_err());
    }

    #[test]
    fn new_ids_may_leave_their_end_to_the_server() {
        assert_eq!(new_id(b"*").ok(), Some(NewId::Now));
        assert_eq!(new_id(b"5-*").ok(), Some(NewId::At(5)));
        let exact = |ms, seq| Some(NewId::Exact(StreamId { ms, seq }));
        assert_eq!(new_id(b"5").ok(), exact(5, 0));
        assert_eq!(new_id(b"5-6").ok(), exact(5, 6));
        for text in ["-", "+", "5-6-*", "-*", "x-*", "**"] {
            assert!(new_id(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn intervals_may_exclude_their_ends() {
        assert_eq!(interval_first(b"(5").ok(), of(5, 1));
        assert_eq!(interval_first(b"(5-18446744073709551615").ok(), of(6, 0));
        assert_eq!(interval_last(b"5").ok(), of(5, u64::MAX));
        assert_eq!(interval_last(b"(5").ok(), of(5, u64::MAX - 1));
        assert_eq!(interval_last(b"(5-0").ok(), of(4, u64::MAX));
        for text in [
            "(",
            "(-",
            "(+",
            "(18446744073709551615-18446744073709551615",
        ] {
            assert!(interval_first(text.as_bytes()).is_err(), "{text}");
        }
        assert!(interval_last(b"(0-0").is_err());
    }
}
