//! Reading typed arguments, with Redis's errors.

use bytes::Bytes;

use crate::error::CommandError;
use crate::number::{parse_double, parse_i64};

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

/// Whether an argument is this word, in whatever case.
pub fn is_word(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// A count as an offset in memory; more than memory can hold is as much as it can.
pub fn to_usize(count: i64) -> usize {
    usize::try_from(count).unwrap_or(if count < 0 { 0 } else { usize::MAX })
}
