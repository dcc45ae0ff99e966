//! BITCOUNT, BITPOS.

use bytes::Bytes;

use crate::command::arguments::{argument, integer, is_word};
use crate::error::CommandError;
use crate::unit::context::ReadContext;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// Bits of a byte.
const BITS: i64 = 8;

/// A range as it is written: negative positions count from the end.
#[derive(Clone, Copy)]
struct Range {
    start: i64,
    end: i64,
    /// Positions are those of bits rather than of bytes.
    is_in_bits: bool,
}

impl Range {
    /// The first bit and the last of those that the range has of a string; `None` where it is empty.
    fn bits(self, length_bytes: i64) -> Option<(u64, u64)> {
        let unit_bits = if self.is_in_bits { 1 } else { BITS };
        let length = length_bytes * BITS / unit_bits;
        let from_start = |at: i64| if at < 0 { (length + at).max(0) } else { at };
        let (start, end) = (from_start(self.start), from_start(self.end).min(length - 1));
        (start <= end).then(|| {
            let (first, last) = (start * unit_bits, (end + 1) * unit_bits - 1);
            (first.unsigned_abs(), last.unsigned_abs())
        })
    }

    const WHOLE: Self = Self {
        start: 0,
        end: -1,
        is_in_bits: false,
    };
}

fn unit(word: &[u8]) -> Result<bool, CommandError> {
    match word {
        word if is_word(word, "bit") => Ok(true),
        word if is_word(word, "byte") => Ok(false),
        _ => Err(CommandError::Syntax),
    }
}

/// `BITCOUNT key [start end [BYTE|BIT]]` → how many bits are set.
pub(super) async fn bitcount(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let key = context.find(argument(arguments, 1)?, ValueType::String);
    // Redis looks at what follows only if there is a key.
    let Some(key) = key.await? else {
        return Ok(Reply::Integer(0));
    };
    let range = match arguments {
        [_, _] => Range::WHOLE,
        [_, _, start, end, unit_word @ ..] if unit_word.len() <= 1 => {
            let (start, end) = (integer(start)?, integer(end)?);
            if start < 0 && end < 0 && start > end {
                return Ok(Reply::Integer(0));
            }
            let is_in_bits = unit_word.first().map_or(Ok(false), |word| unit(word))?;
            Range {
                start,
                end,
                is_in_bits,
            }
        }
        _ => return Err(CommandError::Syntax),
    };
    let length = context.length(&key, context.isolation).await?;
    let count = match range.bits(length) {
        Some((first, last)) => context.string_count_bits(&key, first..=last).await?,
        None => 0,
    };
    Ok(Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
}

/// `BITPOS key bit [start [end [BYTE|BIT]]]` → where the first such bit is, or −1.
pub(super) async fn bitpos(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let bit = match integer(argument(arguments, 2)?)? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::text("ERR The bit argument must be 1 or 0.")),
    };
    let key = context.find(argument(arguments, 1)?, ValueType::String);
    let Some(key) = key.await? else {
        return Ok(Reply::Integer(if bit { -1 } else { 0 }));
    };
    let (range, has_end) = match arguments {
        [_, _, _] => (Range::WHOLE, false),
        [_, _, _, start] => {
            let start = integer(start)?;
            (
                Range {
                    start,
                    ..Range::WHOLE
                },
                false,
            )
        }
        [_, _, _, start, end, unit_word @ ..] if unit_word.len() <= 1 => {
            let start = integer(start)?;
            let is_in_bits = unit_word.first().map_or(Ok(false), |word| unit(word))?;
            let end = integer(end)?;
            (
                Range {
                    start,
                    end,
                    is_in_bits,
                },
                true,
            )
        }
        _ => return Err(CommandError::Syntax),
    };
    let length = context.length(&key, context.isolation).await?;
    let Some((first, last)) = range.bits(length) else {
        return Ok(Reply::Integer(-1));
    };
    let found = match context.string_find_bit(&key, bit, first..=last).await? {
        // Zeros follow a string of which no end was given.
        None if !bit && !has_end => Some(last + 1),
        found => found,
    };
    let position = found.and_then(|at| i64::try_from(at).ok());
    Ok(Reply::Integer(position.unwrap_or(-1)))
}
