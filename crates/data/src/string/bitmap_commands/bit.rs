//! SETBIT, GETBIT.

use bytes::Bytes;

use crate::command::arguments::{argument, integer_or};
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::limits::STRING_BYTES_MAX;
use quoin_base::number::parse_i64;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

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
        None => context.string_set(name, &Bytes::new(), None).await?,
    };
    let (at, mask) = place(offset);
    let old = match is_new {
        true => 0,
        false => byte(context, &key, at).await?,
    };
    let was_set = old & mask != 0;
    let new = if is_set { old | mask } else { old & !mask };
    if was_set != is_set || is_new || !context.string_reaches(&key, at + 1).await? {
        context.string_write(&mut key, at, &[new]).await?;
        context.notify(EventClasses::STRING, "setbit", name);
    }
    Ok(Reply::Integer(was_set.into()))
}

/// `GETBIT key offset` → the bit; 0 beyond the end.
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
    let byte = context.string_range(key, at, at + 1).await?;
    Ok(byte.first().copied().unwrap_or(0))
}

/// The byte of a bit, and the bit in it.
fn place(offset: u64) -> (u64, u8) {
    (offset >> 3, 0x80 >> (offset & 7))
}

/// Reads the offset of a bit, which must be within the longest string.
///
/// # Errors
/// Redis's `bit offset is not an integer or out of range`.
pub(super) fn bit_offset(text: &[u8]) -> Result<u64, CommandError> {
    let offset = parse_i64(text).and_then(|offset| u64::try_from(offset).ok());
    check_offset(offset.ok_or(NO_OFFSET)?)
}

/// The same as BITFIELD takes it: `#` makes it a number of fields of so many bits.
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
