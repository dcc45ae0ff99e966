//! Reading typed arguments, with Redis's errors.

use bytes::Bytes;

use crate::error::CommandError;
use quoin_base::number::{parse_double, parse_i64};

/// The argument at `index`. The arity check has made sure that it is there; where it is not,
/// the grammar is what is wrong.
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

/// A 64-bit integer, or a refusal of the caller's.
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

/// An integer whose negation is one too (Redis: `getRangeLongFromObjectOrReply` from
/// `-LONG_MAX`).
///
/// # Errors
/// `NotAnInteger`; `Text` for the least integer.
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

/// A floating-point number, or a refusal of the caller's.
///
/// # Errors
/// `message`, a whole error line.
pub fn double_or(argument: &[u8], message: &'static str) -> Result<f64, CommandError> {
    parse_double(argument).ok_or(CommandError::text(message))
}

/// Whether an argument is this word, in whatever case.
pub fn is_word(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// A count as an offset in memory; more than memory can hold is as much as it can.
pub fn to_usize(count: i64) -> usize {
    usize::try_from(count).unwrap_or(if count < 0 { 0 } else { usize::MAX })
}

/// `[count]` behind a key, the last argument (of ZPOPMIN and its like).
///
/// # Errors
/// `Syntax` where more follows; [`count`]'s.
pub fn optional_count(arguments: &[Bytes]) -> Result<Option<usize>, CommandError> {
    if arguments.len() > 3 {
        return Err(CommandError::Syntax);
    }
    arguments
        .get(2)
        .map(|word| count(word).map(to_usize))
        .transpose()
}

/// COUNT of SCAN and its like where it is not given.
pub const SCAN_COUNT_DEFAULT: usize = 10;

/// A cursor of SCAN and its like, which Redis reads with `strtoul`: a sign is taken, a minus
/// wraps around, and what follows a zero byte is not seen.
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
