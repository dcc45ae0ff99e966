//! Parsing of typed arguments, with Redis's errors.
//!
//! Also arguments and replies that several commands share:
//!
//! - the count of HRANDFIELD, SRANDMEMBER and ZRANDMEMBER,
//! - the options and reply of HSCAN, SSCAN and ZSCAN,
//! - the chunks of PQ.SCANDUMP, TASK.SCANDUMP and their counterparts, which dump a value of one of Quoin's own types.
//!   RedisBloom uses the same names,
//! - the options and reply of PQ.LIST and TASK.LIST.

use bytes::Bytes;
use quoin_base::glob::Glob;
use quoin_base::limits::{DUMP_CHUNK_ELEMENTS_MAX, LIST_COUNT_MAX, RANDOM_MEMBERS_MAX};
use quoin_base::number::{parse_double, parse_i64};
use quoin_base::secret::hex;
use quoin_rdb::Payload;
use quoin_resp::reply::Reply;

use crate::error::CommandError;
use crate::keyspace::dumping::Chunk;
use crate::keyspace::scanning::name_pattern;

/// The argument at `index`. The arity check guarantees that it exists; if it is missing, the grammar is wrong.
///
/// # Errors
/// `Syntax`.
pub fn argument(arguments: &[Bytes], index: usize) -> Result<&Bytes, CommandError> {
    arguments.get(index).ok_or(CommandError::Syntax)
}

/// The arguments from `index` on.
pub fn rest(arguments: &[Bytes], index: usize) -> &[Bytes] {
    arguments.get(index..).unwrap_or(&[])
}

/// A 64-bit integer.
///
/// # Errors
/// `NotAnInteger`.
pub fn integer(argument: &[u8]) -> Result<i64, CommandError> {
    parse_i64(argument).ok_or(CommandError::NotAnInteger)
}

/// A 64-bit integer.
///
/// # Errors
/// `ERR` and `message`.
pub fn integer_or(argument: &[u8], message: &'static str) -> Result<i64, CommandError> {
    parse_i64(argument).ok_or(CommandError::text(message))
}

/// An integer of at least `least`, as `getRangeLongFromObjectOrReply` reads it.
///
/// # Errors
/// `message`, a whole error line.
pub fn integer_at_least(
    argument: &[u8],
    least: i64,
    message: &'static str,
) -> Result<i64, CommandError> {
    parse_i64(argument)
        .filter(|value| *value >= least)
        .ok_or(CommandError::text(message))
}

/// A positive count, as `getPositiveLongFromObjectOrReply` reads it.
///
/// # Errors
/// `ERR value is out of range, must be positive`.
pub fn count(argument: &[u8]) -> Result<i64, CommandError> {
    integer_at_least(argument, 0, "ERR value is out of range, must be positive")
}

/// An integer that can be negated (Redis: `getRangeLongFromObjectOrReply` from `-LONG_MAX`).
///
/// # Errors
/// `NotAnInteger`; `Text` for the smallest integer.
pub fn symmetric_integer(argument: &[u8]) -> Result<i64, CommandError> {
    match integer(argument)? {
        i64::MIN => Err(CommandError::text(
            "ERR value is out of range, value must between -9223372036854775807 and \
             9223372036854775807",
        )),
        value => Ok(value),
    }
}

/// A floating-point number.
///
/// # Errors
/// `NotAFloat`.
pub fn double(argument: &[u8]) -> Result<f64, CommandError> {
    parse_double(argument).ok_or(CommandError::NotAFloat)
}

/// A floating-point number.
///
/// # Errors
/// `message`, a whole error line.
pub fn double_or(argument: &[u8], message: &'static str) -> Result<f64, CommandError> {
    parse_double(argument).ok_or(CommandError::text(message))
}

/// Whether the argument is this word, ignoring case.
pub fn is_word(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// Converts a count to `usize`. Values out of range are clamped.
pub fn to_usize(count: i64) -> usize {
    usize::try_from(count).unwrap_or(if count < 0 { 0 } else { usize::MAX })
}

/// The optional count after a key, as the last argument (ZPOPMIN and similar commands).
///
/// # Errors
/// `Syntax` if more arguments follow; the errors of [`count`].
pub fn optional_count(arguments: &[Bytes]) -> Result<Option<usize>, CommandError> {
    if arguments.len() > 3 {
        return Err(CommandError::Syntax);
    }
    arguments
        .get(2)
        .map(|word| count(word).map(to_usize))
        .transpose()
}

/// Default COUNT of SCAN and similar commands.
pub const SCAN_COUNT_DEFAULT: usize = 10;

/// A cursor of SCAN and similar commands. Redis reads it with `strtoul`: a sign is accepted, a minus wraps around, and
/// anything after a zero byte is ignored.
///
/// # Errors
/// `ERR invalid cursor`.
pub fn cursor(argument: &[u8]) -> Result<u64, CommandError> {
    const INVALID: CommandError = CommandError::text("ERR invalid cursor");
    let text = argument.split(|byte| *byte == 0).next().unwrap_or(argument);
    let (is_negative, digits) = match text {
        [] => return Ok(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(INVALID);
    }
    let number = digits
        .iter()
        .try_fold(0_u64, |number, digit| {
            number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })
        .ok_or(INVALID)?;
    Ok(if is_negative {
        number.wrapping_neg()
    } else {
        number
    })
}

/// The count exceeds what can be drawn.
pub(crate) const OUT_OF_RANGE: CommandError = CommandError::text("ERR value is out of range");

/// How many members to draw, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draw {
    /// Up to this many distinct members.
    Distinct(usize),
    /// This many members, each drawn from all.
    Repeated(usize),
    /// More repeated draws than [`RANDOM_MEMBERS_MAX`]. Redis would start to answer and run out of memory.
    TooMany,
}

impl Draw {
    /// Interprets a count. A negative count allows repetitions.
    fn of_count(count: i64) -> Self {
        let number = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        match count {
            0.. => Draw::Distinct(to_usize(count)),
            _ if number <= RANDOM_MEMBERS_MAX => Draw::Repeated(number),
            _ => Draw::TooMany,
        }
    }

    /// Parses a count with no arguments after it.
    ///
    /// # Errors
    /// Those of [`symmetric_integer`].
    pub(crate) fn parse(count: &Bytes) -> Result<Self, CommandError> {
        Ok(Self::of_count(symmetric_integer(count)?))
    }

    /// Parses `count [with…]`. Also returns whether the option is present.
    ///
    /// # Errors
    /// `Syntax` for other options; the errors of [`symmetric_integer`].
    pub(crate) fn parse_with(
        count: &Bytes,
        options: &[Bytes],
        with: &str,
    ) -> Result<(Self, bool), CommandError> {
        let count = symmetric_integer(count)?;
        let is_with = match options {
            [] => false,
            [option] if is_word(option, with) => true,
            _ => return Err(CommandError::Syntax),
        };
        if is_with && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
            return Err(OUT_OF_RANGE);
        }
        Ok((Self::of_count(count), is_with))
    }
}

/// `[MATCH pattern] [COUNT count]`, and of HSCAN `[NOVALUES]`.
pub(crate) struct ScanOptions {
    /// `None` matches everything.
    pattern: Option<Glob>,
    /// Approximate number of members or fields to examine per call.
    pub(crate) count: usize,
    /// Whether the values of fields are left out.
    pub(crate) without_values: bool,
}

impl ScanOptions {
    /// Parses the words after the cursor.
    ///
    /// # Errors
    /// `Syntax`; `NotAnInteger` for an invalid count.
    pub(crate) fn parse(options: &[Bytes]) -> Result<Self, CommandError> {
        Self::parse_with(options, false)
    }

    /// [`Self::parse`] for HSCAN.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn parse_of_hash(options: &[Bytes]) -> Result<Self, CommandError> {
        Self::parse_with(options, true)
    }

    fn parse_with(mut options: &[Bytes], is_of_hash: bool) -> Result<Self, CommandError> {
        let mut parsed = Self {
            pattern: None,
            count: SCAN_COUNT_DEFAULT,
            without_values: false,
        };
        while let Some((option, values)) = options.split_first() {
            if is_of_hash && is_word(option, "novalues") {
                parsed.without_values = true;
                options = values;
                continue;
            }
            let Some((value, behind)) = values.split_first() else {
                return Err(CommandError::Syntax);
            };
            if is_word(option, "count") {
                let number = integer(value)?;
                if number < 1 {
                    return Err(CommandError::Syntax);
                }
                parsed.count = to_usize(number);
            } else if is_word(option, "match") {
                parsed.pattern = name_pattern(value);
            } else {
                return Err(CommandError::Syntax);
            }
            options = behind;
        }
        Ok(parsed)
    }

    /// Whether the pattern matches a member or field.
    pub(crate) fn accepts(&self, name: &[u8]) -> bool {
        let pattern = self.pattern.as_ref();
        pattern.is_none_or(|pattern| pattern.matches(name))
    }
}

/// The next cursor, and what was found.
pub(crate) fn scan_reply(cursor: u64, items: Vec<Reply>) -> Reply {
    Reply::Array(vec![Reply::bulk(cursor.to_string()), Reply::Array(items)])
}

/// The cursor before the first element and after the last.
const END: &[u8] = b"0";

/// Parses `key cursor [COUNT count]` into the cursor (`None` at the beginning) and the count.
///
/// # Errors
/// `Syntax`; `NotAnInteger` for an invalid count.
pub(crate) fn chunk_arguments(
    arguments: &[Bytes],
) -> Result<(Option<&Bytes>, usize), CommandError> {
    let cursor = argument(arguments, 2)?;
    let count = match rest(arguments, 3) {
        [] => DUMP_CHUNK_ELEMENTS_MAX,
        [word, count] if is_word(word, "count") => match integer(count)? {
            count if count < 1 => return Err(CommandError::Syntax),
            count => to_usize(count).min(DUMP_CHUNK_ELEMENTS_MAX),
        },
        _ => return Err(CommandError::Syntax),
    };
    Ok(((cursor != END).then_some(cursor), count))
}

/// The next cursor, and a list with the chunk, if there is one.
pub(crate) fn chunk_reply(chunk: Chunk) -> Reply {
    let next = chunk.next.unwrap_or(Bytes::from_static(END));
    let payload = chunk.payload.map(Reply::Bulk);
    Reply::Array(vec![
        Reply::Bulk(next),
        Reply::Array(payload.into_iter().collect()),
    ])
}

/// The options of a command that lists elements in their order: `[CURSOR cursor] [COUNT count]`.
#[derive(Debug)]
pub(crate) struct ListOptions {
    /// The place after which the list continues; `None` at the beginning.
    pub(crate) after: Option<Vec<u8>>,
    /// Most elements to return.
    pub(crate) count: usize,
}

/// The error of a cursor that no reply has contained.
pub(crate) const INVALID_CURSOR: CommandError = CommandError::text("ERR invalid cursor");

impl ListOptions {
    /// Reads the options.
    ///
    /// # Errors
    /// `Syntax`; `Text` for an invalid cursor or count.
    pub(crate) fn parse(mut options: &[Bytes]) -> Result<Self, CommandError> {
        let mut parsed = Self {
            after: None,
            count: SCAN_COUNT_DEFAULT,
        };
        while let [option, value, rest @ ..] = options {
            if is_word(option, "cursor") {
                parsed.after = match value.as_ref() {
                    END => None,
                    digits => Some(place(digits).ok_or(INVALID_CURSOR)?),
                };
            } else if is_word(option, "count") {
                let message = "ERR COUNT is out of range, must be positive";
                let count = integer_at_least(value, 1, message)?;
                parsed.count = to_usize(count).min(LIST_COUNT_MAX);
            } else {
                return Err(CommandError::Syntax);
            }
            options = rest;
        }
        match options {
            [] => Ok(parsed),
            _ => Err(CommandError::Syntax),
        }
    }

    /// Reads `[CURSOR cursor]`.
    ///
    /// # Errors
    /// `Syntax`; `Text` for an invalid cursor.
    pub(crate) fn parse_cursor(options: &[Bytes]) -> Result<Option<Vec<u8>>, CommandError> {
        match options {
            [word, _] if !is_word(word, "cursor") => Err(CommandError::Syntax),
            options => Ok(Self::parse(options)?.after),
        }
    }
}

/// The place in a cursor, from its hexadecimal digits.
fn place(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    let byte = |pair: &[u8; 2]| {
        let is_hex = pair.iter().all(u8::is_ascii_hexdigit);
        let text = std::str::from_utf8(pair).ok().filter(|_| is_hex)?;
        u8::from_str_radix(text, 16).ok()
    };
    pairs.iter().map(byte).collect()
}

/// The cursor that continues a list after a place (`None`: the list is complete), and what was found.
pub(crate) fn list_reply(next: Option<&[u8]>, found: Reply) -> Reply {
    let cursor = match next {
        Some(place) => hex(place),
        None => String::from_utf8_lossy(END).into_owned(),
    };
    Reply::Array(vec![Reply::bulk(cursor), found])
}

/// The chunk of `key chunk`.
///
/// # Errors
/// `Payload` if it is damaged.
pub(crate) fn chunk_payload(arguments: &[Bytes]) -> Result<Payload, CommandError> {
    Ok(quoin_rdb::open(argument(arguments, 2)?)?)
}

/// Turns an index range of Redis into offset and count, for a value with `length` elements. `None` if
/// the range is empty.
pub(crate) fn clamp_range(start: i64, stop: i64, length: i64) -> Option<(usize, usize)> {
    let from_end = |index: i64| {
        if index < 0 {
            index.saturating_add(length)
        } else {
            index
        }
    };
    let start = from_end(start).max(0);
    let stop = from_end(stop).min(length - 1);
    if start > stop || start >= length {
        return None;
    }
    let offset = usize::try_from(start).ok()?;
    let count = usize::try_from(stop - start + 1).ok()?;
    Some((offset, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_by_strtoul() {
        for (text, expected) in [
            ("0", 0),
            ("17", 17),
            ("+5", 5),
            ("", 0),
            ("-1", u64::MAX),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(cursor(text.as_bytes()).ok(), Some(expected), "{text}");
        }
        for text in [" 1", "1 ", "x", "18446744073709551616", "+-1", "-"] {
            assert!(cursor(text.as_bytes()).is_err(), "{text}");
        }
    }
}
