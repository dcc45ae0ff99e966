//! BITFIELD, BITFIELD_RO: integers of any number of bits.

use bytes::Bytes;

use super::bitmaps::field_offset;
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::command::key_specs::{KeyFlags, READ, READ_UPDATE};
use crate::error::CommandError;
use crate::string::{self, StringEditor, StringValueMut};
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::number::parse_i64;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// One operation on one field.
struct Operation {
    field: FieldType,
    /// The offset of the field's first bit.
    offset: u64,
    what: What,
}

/// The action of an operation.
#[derive(Clone, Copy)]
enum What {
    Get,
    Set(i64, Overflow),
    Add(i64, Overflow),
}

/// `BITFIELD key [GET type offset|[OVERFLOW WRAP|SAT|FAIL] SET type offset value|INCRBY type offset
/// increment …]` → a number or null for each operation.
pub(super) async fn bitfield(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let operations = parse(rest(arguments, 2))?;
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::String).await?;
    let Some(last_bit) = last_written_bit(&operations) else {
        return run(StringEditor::reader(context, found), &operations, false)
            .await
            .map(|(reply, _)| reply);
    };
    let (mut key, is_new) = match found {
        Some(key) => (key, false),
        None => (string::set(context, name, &Bytes::new(), None).await?, true),
    };
    let mut string = StringValueMut::open(context, &mut key);
    let is_longer = string.lengthen((last_bit >> 3) + 1).await? || is_new;
    let editor = StringEditor::new(context, key);
    let (reply, is_changed) = run(editor, &operations, is_longer).await?;
    if is_changed {
        context.notify(EventClasses::STRING, "setbit", name);
    }
    Ok(reply)
}

/// `BITFIELD_RO key [GET type offset …]` → numbers.
pub(super) async fn bitfield_ro(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let operations = parse(rest(arguments, 2))?;
    if last_written_bit(&operations).is_some() {
        return Err(CommandError::text(
            "ERR BITFIELD_RO only supports the GET subcommand",
        ));
    }
    let key = context
        .find(argument(arguments, 1)?, ValueType::String)
        .await?;
    let (reply, _) = run(StringEditor::reader(context, key), &operations, false).await?;
    Ok(reply)
}

/// The last bit that operations may write. `None` if they only read.
fn last_written_bit(operations: &[Operation]) -> Option<u64> {
    let written = operations
        .iter()
        .filter(|one| !matches!(one.what, What::Get));
    let last = written.map(|one| one.offset + u64::from(one.field.bits) - 1);
    last.max()
}

/// Returns the reply, and whether a write changed the string or its length.
async fn run(
    mut editor: StringEditor<'_>,
    operations: &[Operation],
    is_longer: bool,
) -> Result<(Reply, bool), CommandError> {
    let mut replies = Vec::with_capacity(operations.len());
    let mut is_changed = false;
    for Operation {
        field,
        offset,
        what,
    } in operations
    {
        let (at, first) = (offset >> 3, offset & 7);
        let mut window = [0; WINDOW_BYTES];
        editor.read(at, &mut window).await?;
        let old = field.number(read_bits(&window, first, field.bits));
        let (new, returns_old) = match *what {
            What::Get => (Some(old), true),
            What::Set(number, overflow) => (field.set(number, overflow), true),
            What::Add(increment, overflow) => (field.add(old, increment, overflow), false),
        };
        replies.push(match new {
            Some(_) if returns_old => Reply::Integer(old),
            Some(new) => Reply::Integer(new),
            None => Reply::Null,
        });
        if let Some(new) = new
            && !matches!(what, What::Get)
        {
            is_changed |= is_longer || new != old;
            write_bits(&mut window, first, field.bits, new.cast_unsigned());
            let bytes = usize::try_from(first + u64::from(field.bits)).unwrap_or(0);
            let written = window.get(..bytes.div_ceil(8)).unwrap_or_default();
            editor.write(at, written).await?;
        }
    }
    if is_changed {
        editor.finish();
    }
    Ok((Reply::Array(replies), is_changed))
}

fn parse(mut words: &[Bytes]) -> Result<Vec<Operation>, CommandError> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::Wrap;
    loop {
        let (field, offset, what) = match words {
            [] => return Ok(operations),
            [word, field, offset, after @ ..] if is_word(word, "get") => {
                words = after;
                (field, offset, None)
            }
            [word, field, offset, number, after @ ..]
                if is_word(word, "set") || is_word(word, "incrby") =>
            {
                words = after;
                (field, offset, Some((is_word(word, "set"), number)))
            }
            [word, how, after @ ..] if is_word(word, "overflow") => {
                overflow = parse_overflow(how)?;
                words = after;
                continue;
            }
            _ => return Err(CommandError::Syntax),
        };
        let field = parse_type(field)?;
        let offset = field_offset(offset, field.bits)?;
        let what = match what {
            None => What::Get,
            Some((true, number)) => What::Set(integer(number)?, overflow),
            Some((false, number)) => What::Add(integer(number)?, overflow),
        };
        operations.push(Operation {
            field,
            offset,
            what,
        });
    }
}

fn parse_overflow(how: &[u8]) -> Result<Overflow, CommandError> {
    match how {
        how if is_word(how, "wrap") => Ok(Overflow::Wrap),
        how if is_word(how, "sat") => Ok(Overflow::Saturate),
        how if is_word(how, "fail") => Ok(Overflow::Fail),
        _ => Err(CommandError::text("ERR Invalid OVERFLOW type specified")),
    }
}

fn parse_type(text: &[u8]) -> Result<FieldType, CommandError> {
    let (is_signed, bits, bits_max) = match text {
        [b'i', bits @ ..] => (true, bits, 64),
        [b'u', bits @ ..] => (false, bits, 63),
        _ => (false, text, 0),
    };
    let bits = parse_i64(bits).and_then(|bits| u32::try_from(bits).ok());
    match bits {
        Some(bits) if (1..=bits_max).contains(&bits) => Ok(FieldType { is_signed, bits }),
        _ => Err(CommandError::text(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported \
             but i64 is.",
        )),
    }
}

/// The key flags of BITFIELD: with GET only, it reads.
pub(super) fn key_flags_of_bitfield(arguments: &[Bytes]) -> KeyFlags {
    let mut words = rest(arguments, 2);
    loop {
        words = match words {
            [] => return READ,
            [word, _, _, after @ ..] if is_word(word, "get") => after,
            [word, _, after @ ..] if is_word(word, "overflow") => after,
            _ => return READ_UPDATE,
        };
    }
}

/// What to do with a number that does not fit into the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    /// Cut off its highest bits.
    Wrap,
    /// Write the nearest number that fits.
    Saturate,
    /// Write nothing.
    Fail,
}

/// A type of integers: `i1` to `i64`, `u1` to `u63`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FieldType {
    is_signed: bool,
    bits: u32,
}

impl FieldType {
    /// The least and the greatest number.
    fn bounds(self) -> (i128, i128) {
        match self.is_signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// The number in the last bits of `raw`.
    fn number(self, raw: u64) -> i64 {
        let unused = u64::BITS - self.bits;
        match self.is_signed {
            true => (raw << unused).cast_signed() >> unused,
            false => ((raw << unused) >> unused).cast_signed(),
        }
    }

    /// The number that SET writes. `None` if it fails.
    fn set(self, number: i64, overflow: Overflow) -> Option<i64> {
        // As in Redis, a negative number counts as very large if the field is unsigned.
        let number = match self.is_signed {
            true => i128::from(number),
            false => i128::from(number.cast_unsigned()),
        };
        self.fit(number, overflow)
    }

    /// The number that INCRBY writes. `None` if it fails.
    fn add(self, old: i64, increment: i64, overflow: Overflow) -> Option<i64> {
        self.fit(i128::from(old) + i128::from(increment), overflow)
    }

    fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (least, greatest) = self.bounds();
        let fitting = match overflow {
            Overflow::Fail if !(least..=greatest).contains(&number) => return None,
            Overflow::Saturate => number.clamp(least, greatest),
            // The field has the low bits.
            _ => return Some(self.number(number as u64)),
        };
        i64::try_from(fitting).ok()
    }
}

/// Most bytes that a field of 64 bits touches.
const WINDOW_BYTES: usize = 9;

/// The bits `first..first + bits` of a window, as the last bits of the result.
fn read_bits(window: &[u8; WINDOW_BYTES], first: u64, bits: u32) -> u64 {
    let shift = shift_of(first, bits);
    // `FieldType::number` cuts off the bits above.
    (window_number(window) >> shift) as u64
}

/// Overwrites the bits `first..first + bits` of a window.
fn write_bits(window: &mut [u8; WINDOW_BYTES], first: u64, bits: u32, raw: u64) {
    let shift = shift_of(first, bits);
    let mask = ((1_u128 << bits) - 1) << shift;
    let changed = window_number(window) & !mask | (u128::from(raw) << shift) & mask;
    let bytes = changed.to_be_bytes();
    for (to, from) in window.iter_mut().rev().zip(bytes.iter().rev()) {
        *to = *from;
    }
}

fn shift_of(first: u64, bits: u32) -> u32 {
    let first = u32::try_from(first).unwrap_or(0);
    (WINDOW_BYTES as u32 * 8).saturating_sub(first + bits)
}

fn window_number(window: &[u8; WINDOW_BYTES]) -> u128 {
    window
        .iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn field(is_signed: bool, bits: u32) -> FieldType {
        FieldType { is_signed, bits }
    }

    #[test]
    fn numbers_that_do_not_fit_wrap_saturate_or_fail() {
        let byte = field(false, 8);
        assert_eq!(byte.add(250, 10, Overflow::Wrap), Some(4));
        assert_eq!(byte.add(250, 10, Overflow::Saturate), Some(255));
        assert_eq!(byte.add(250, 10, Overflow::Fail), None);
        assert_eq!(byte.add(5, -10, Overflow::Wrap), Some(251));
        assert_eq!(byte.add(5, -10, Overflow::Saturate), Some(0));
        assert_eq!(byte.set(-1, Overflow::Saturate), Some(255));
        assert_eq!(byte.set(-1, Overflow::Fail), None);
        let long = field(true, 64);
        assert_eq!(long.add(i64::MAX, 1, Overflow::Wrap), Some(i64::MIN));
        assert_eq!(long.add(i64::MAX, 1, Overflow::Saturate), Some(i64::MAX));
        assert_eq!(long.add(i64::MIN, -1, Overflow::Fail), None);
        let bit = field(true, 1);
        assert_eq!(bit.add(0, 1, Overflow::Wrap), Some(-1));
        assert_eq!(bit.add(0, 1, Overflow::Saturate), Some(0));
        assert_eq!(field(false, 63).add(i64::MAX, 1, Overflow::Wrap), Some(0));
    }

    #[test]
    fn bits_are_read_back_and_their_neighbours_stay() {
        for bits in 1..=64 {
            for first in 0..8 {
                for ground in [0x00, 0xff, 0xa5] {
                    let mut window = [ground; WINDOW_BYTES];
                    let raw = 0x0123_4567_89ab_cdef_u64;
                    write_bits(&mut window, first, bits, raw);
                    let kept = raw << (64 - bits) >> (64 - bits);
                    let read = read_bits(&window, first, bits) << (64 - bits) >> (64 - bits);
                    assert_eq!(read, kept, "{bits} from {first}");
                    let old = read_bits(&[ground; WINDOW_BYTES], first, bits);
                    write_bits(&mut window, first, bits, old);
                    assert_eq!(window, [ground; WINDOW_BYTES], "{bits} from {first}");
                }
            }
        }
    }
}
