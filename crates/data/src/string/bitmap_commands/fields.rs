//! BITFIELD, BITFIELD_RO.

use bytes::Bytes;

use super::bit::field_offset;
use super::field::{FieldType, Overflow, WINDOW_BYTES, read_bits, write_bits};
use crate::command::arguments::{argument, integer, is_word, rest};
use crate::command::key_specs::{KeyFlags, READ, READ_UPDATE};
use crate::error::CommandError;
use crate::string::StringEditor;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::number::parse_i64;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// One operation on one field.
struct Operation {
    field: FieldType,
    /// Of the field's first bit.
    offset: u64,
    what: What,
}

/// What is done to a field.
#[derive(Clone, Copy)]
enum What {
    Get,
    Set(i64, Overflow),
    Add(i64, Overflow),
}

/// `BITFIELD key [GET type offset|[OVERFLOW WRAP|SAT|FAIL] SET type offset value|INCRBY type offset
/// increment …]` → a number or nothing for each.
pub(super) async fn bitfield(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let operations = parse(rest(arguments, 2))?;
    let name = argument(arguments, 1)?;
    let found = context.find(name, ValueType::String).await?;
    let Some(last_bit) = last_written_bit(&operations) else {
        return run(context.string_reader(found), &operations, false)
            .await
            .map(|(reply, _)| reply);
    };
    let (mut key, is_new) = match found {
        Some(key) => (key, false),
        None => (context.string_set(name, &Bytes::new(), None).await?, true),
    };
    let is_longer = context
        .string_lengthen(&mut key, (last_bit >> 3) + 1)
        .await?
        || is_new;
    let editor = context.string_editor(key);
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
    let (reply, _) = run(context.string_reader(key), &operations, false).await?;
    Ok(reply)
}

/// The last bit that operations may write; `None` where they only read.
fn last_written_bit(operations: &[Operation]) -> Option<u64> {
    let written = operations
        .iter()
        .filter(|one| !matches!(one.what, What::Get));
    let last = written.map(|one| one.offset + u64::from(one.field.bits) - 1);
    last.max()
}

/// Answers the reply, and whether anything was written that changed the string or its length.
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
        let (new, answers_old) = match *what {
            What::Get => (Some(old), true),
            What::Set(number, overflow) => (field.set(number, overflow), true),
            What::Add(increment, overflow) => (field.add(old, increment, overflow), false),
        };
        replies.push(match new {
            Some(_) if answers_old => Reply::Integer(old),
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

/// What BITFIELD does to its key: it may do no more than read.
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
