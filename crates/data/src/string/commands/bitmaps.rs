//! SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP.

use bytes::Bytes;

use crate::command::arguments::{argument, integer, integer_or, is_word, rest};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::string::{self, Combination, StringValue, StringValueMut};
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::limits::STRING_BYTES_MAX;
use quoin_base::number::parse_i64;
use quoin_base::redis_version::RedisVersion;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// Bits of a byte.
const BITS: i64 = 8;

const NO_OFFSET: CommandError =
    CommandError::text("ERR bit offset is not an integer or out of range");

/// `SETBIT key offset value` → the bit before.
pub(super) async fn setbit(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    const NO_BIT: &str = "ERR bit is not an integer or out of range";
    let offset = bit_offset(argument(arguments, 2)?)?;
    let is_set = match integer_or(argument(arguments, 3)?, NO_BIT)? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::text(NO_BIT)),
    };
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::String).await?;
    let is_new = found.is_none();
    let mut key = match found {
        Some(key) => key,
        None => string::set(context, name, &Bytes::new(), None).await?,
    };
    let (at, mask) = place(offset);
    let old = match is_new {
        true => 0,
        false => byte(context, &key, at).await?,
    };
    let was_set = old & mask != 0;
    let new = if is_set { old | mask } else { old & !mask };
    let string = StringValue::open(context, &key);
    if was_set != is_set || is_new || !string.reaches(at + 1).await? {
        let mut string = StringValueMut::open(context, &mut key);
        string.write(at, &[new]).await?;
        context.notify(EventClasses::STRING, "setbit", name);
    }
    Ok(Reply::Integer(was_set.into()))
}

/// `GETBIT key offset` → the bit, 0 after the end.
pub(super) async fn getbit(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (at, mask) = place(bit_offset(argument(arguments, 2)?)?);
    let key = context.find(argument(arguments, 1)?, ValueType::String);
    let byte = match key.await? {
        Some(key) => byte(context, &key, at).await?,
        None => 0,
    };
    Ok(Reply::Integer((byte & mask != 0).into()))
}

async fn byte(context: &ReadContext<'_>, key: &OpenKey, at: u64) -> Result<u8, CommandError> {
    let string = StringValue::open(context, key);
    let byte = string.range(at, at + 1).await?;
    Ok(byte.first().copied().unwrap_or(0))
}

/// The offset of the byte with a bit, and the bit's mask in it.
fn place(offset: u64) -> (u64, u8) {
    (offset >> 3, 0x80 >> (offset & 7))
}

/// Reads the offset of a bit. The longest string must have it.
///
/// # Errors
/// Redis's `bit offset is not an integer or out of range`.
fn bit_offset(text: &[u8]) -> Result<u64, CommandError> {
    let offset = parse_i64(text).and_then(|offset| u64::try_from(offset).ok());
    check_offset(offset.ok_or(NO_OFFSET)?)
}

/// Reads the offset of a BITFIELD operation. After `#` it counts fields of `bits` bits.
///
/// # Errors
/// As [`bit_offset`].
pub(super) fn field_offset(text: &[u8], bits: u32) -> Result<u64, CommandError> {
    match text {
        [b'#', number @ ..] => {
            let number = parse_i64(number).ok_or(NO_OFFSET)?;
            // Redis's product wraps around.
            let offset = number.wrapping_mul(i64::from(bits));
            check_offset(u64::try_from(offset).map_err(|_| NO_OFFSET)?)
        }
        number => bit_offset(number),
    }
}

fn check_offset(offset: u64) -> Result<u64, CommandError> {
    match offset >> 3 < STRING_BYTES_MAX as u64 {
        true => Ok(offset),
        false => Err(NO_OFFSET),
    }
}

/// A range as clients write it. Negative positions count from the end.
#[derive(Clone, Copy)]
struct Range {
    start: i64,
    end: i64,
    /// Positions count bits, not bytes.
    is_in_bits: bool,
}

impl Range {
    /// The first and the last bit of the range in a string. `None` if the range is empty.
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

/// Reads `BIT` (true) or `BYTE`.
fn unit(word: &[u8]) -> Result<bool, CommandError> {
    match word {
        word if is_word(word, "bit") => Ok(true),
        word if is_word(word, "byte") => Ok(false),
        _ => Err(CommandError::Syntax),
    }
}

/// Checks the range of BITCOUNT or BITPOS, as Redis 8 does before it looks up the key.
///
/// # Errors
/// `Syntax`, or `NotAnInteger`.
fn check_range(words: &[Bytes], is_of_bitpos: bool) -> Result<(), CommandError> {
    match words {
        [] => Ok(()),
        [start] if is_of_bitpos => integer(start).map(drop),
        [start, end] => integer(start).and(integer(end)).map(drop),
        [start, end, word] if is_of_bitpos => {
            integer(start)?;
            unit(word)?;
            integer(end).map(drop)
        }
        [start, end, word] => {
            integer(start).and(integer(end))?;
            unit(word).map(drop)
        }
        _ => Err(CommandError::Syntax),
    }
}

/// `BITCOUNT key [start end [BYTE|BIT]]` → the number of set bits.
pub(super) async fn bitcount(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    if context.environment.reported_version >= RedisVersion::V8_4 {
        check_range(rest(arguments, 2), false)?;
    }
    let key = context.find(argument(arguments, 1)?, ValueType::String);
    // Redis 7.2 reads the other arguments only if the key exists.
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
        Some((first, last)) => {
            let string = StringValue::open(context, &key);
            string.count_bits(first..=last).await?
        }
        None => 0,
    };
    Ok(Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
}

/// `BITPOS key bit [start [end [BYTE|BIT]]]` → the position of the first bit with this value, or
/// −1.
pub(super) async fn bitpos(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let bit = match integer(argument(arguments, 2)?)? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::text("ERR The bit argument must be 1 or 0.")),
    };
    if context.environment.reported_version >= RedisVersion::V8_4 {
        check_range(rest(arguments, 3), true)?;
    }
    let key = context.find(argument(arguments, 1)?, ValueType::String);
    let Some(key) = key.await? else {
        return Ok(Reply::Integer(if bit { -1 } else { 0 }));
    };
    let (range, has_end) = match arguments {
        [_, _, _] => (Range::WHOLE, false),
        [_, _, _, start] => {
            let range = Range {
                start: integer(start)?,
                ..Range::WHOLE
            };
            (range, false)
        }
        [_, _, _, start, end, unit_word @ ..] if unit_word.len() <= 1 => {
            let start = integer(start)?;
            let is_in_bits = unit_word.first().map_or(Ok(false), |word| unit(word))?;
            let range = Range {
                start,
                end: integer(end)?,
                is_in_bits,
            };
            (range, true)
        }
        _ => return Err(CommandError::Syntax),
    };
    let length = context.length(&key, context.isolation).await?;
    let Some((first, last)) = range.bits(length) else {
        return Ok(Reply::Integer(-1));
    };
    let string = StringValue::open(context, &key);
    let found = match string.find_bit(bit, first..=last).await? {
        // Without an end, zeros follow the string.
        None if !bit && !has_end => Some(last + 1),
        found => found,
    };
    let position = found.and_then(|at| i64::try_from(at).ok());
    Ok(Reply::Integer(position.unwrap_or(-1)))
}

/// `BITOP AND|OR|XOR|NOT destkey key [key …]` → length of the result.
pub(super) async fn bitop(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let word = argument(arguments, 1)?;
    let combination = [
        ("and", Combination::And),
        ("or", Combination::Or),
        ("xor", Combination::Xor),
        ("not", Combination::Not),
    ]
    .into_iter()
    .find_map(|(name, combination)| is_word(word, name).then_some(combination))
    .ok_or(CommandError::Syntax)?;
    let names = rest(arguments, 3);
    if combination == Combination::Not && names.len() != 1 {
        return Err(CommandError::text(
            "ERR BITOP NOT must be called with a single source key.",
        ));
    }
    let sources = context.find_each(names).await?;
    let mut found = sources.iter().flatten();
    if found.any(|key| key.meta.value_type != ValueType::String) {
        return Err(CommandError::WrongType);
    }
    let name = argument(arguments, 2)?;
    let length = string::combine(context, combination, &sources, name).await?;
    if length > 0 {
        context.notify(EventClasses::STRING, "set", name);
    } else if let Some(old) = context.find_any(name).await? {
        context.remove(&old);
        context.notify(EventClasses::GENERIC, "del", name);
    }
    Ok(Reply::Integer(i64::try_from(length).unwrap_or(i64::MAX)))
}
