//! `bit`: operations on 32 bits, as BitOp 1.0.2 has them.

use mlua::{Lua, Result, Table, Value};

use super::library::{Outcome, Raise, number, put, type_name};

/// An argument as 32 bits: rounded, wrapped around.
fn bits(lua: &Lua, arguments: &[Value], place: i32) -> std::result::Result<i32, Raise> {
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    let number = number(lua, arguments, place)?;
    // Adding 2^52 + 2^51 leaves the integer in the low bits of the mantissa.
    let low = (number + SHIFT).to_bits() as u32;
    let text = || format!("number expected, got {}", type_name(arguments.first()));
    match low == 0 && number.is_nan() {
        true => Err(Raise::Argument(place, text())),
        false => Ok(low.cast_signed()),
    }
}

fn answer(bits: i32) -> Outcome {
    Ok(vec![Value::Number(f64::from(bits))])
}

type Fold = fn(i32, i32) -> i32;
type Shift = fn(i32, u32) -> i32;

const FOLDS: [(&str, Fold); 3] = [
    ("band", |one, other| one & other),
    ("bor", |one, other| one | other),
    ("bxor", |one, other| one ^ other),
];

const SHIFTS: [(&str, Shift); 5] = [
    ("lshift", |bits, by| bits.wrapping_shl(by)),
    ("rshift", |bits, by| {
        bits.cast_unsigned().wrapping_shr(by).cast_signed()
    }),
    ("arshift", |bits, by| bits.wrapping_shr(by)),
    ("rol", |bits, by| bits.rotate_left(by & 31)),
    ("ror", |bits, by| bits.rotate_right(by & 31)),
];

/// The library.
pub(super) fn library(lua: &Lua) -> Result<Table> {
    let library = lua.create_table()?;
    put(lua, &library, "tobit", |lua, arguments| {
        answer(bits(lua, arguments, 1)?)
    })?;
    put(lua, &library, "bnot", |lua, arguments| {
        answer(!bits(lua, arguments, 1)?)
    })?;
    put(lua, &library, "bswap", |lua, arguments| {
        answer(bits(lua, arguments, 1)?.swap_bytes())
    })?;
    for (name, fold) in FOLDS {
        put(lua, &library, name, move |lua, arguments| {
            let mut all = bits(lua, arguments, 1)?;
            for place in (2..).take(arguments.len().saturating_sub(1)) {
                all = fold(all, bits(lua, arguments, place)?);
            }
            answer(all)
        })?;
    }
    for (name, shift) in SHIFTS {
        put(lua, &library, name, move |lua, arguments| {
            let value = bits(lua, arguments, 1)?;
            let by = bits(lua, arguments, 2)?.cast_unsigned() & 31;
            answer(shift(value, by))
        })?;
    }
    put(lua, &library, "tohex", to_hex)?;
    Ok(library)
}

fn to_hex(lua: &Lua, arguments: &[Value]) -> Outcome {
    let value = bits(lua, arguments, 1)?.cast_unsigned();
    let digits = match arguments.get(1) {
        None | Some(Value::Nil) => 8,
        Some(_) => bits(lua, arguments, 2)?,
    };
    let count = usize::try_from(digits.unsigned_abs()).unwrap_or(8).min(8);
    let hex = match digits < 0 {
        true => format!("{value:08X}"),
        false => format!("{value:08x}"),
    };
    let shown = hex.get(8 - count..).unwrap_or_default();
    Ok(vec![Value::String(lua.create_string(shown)?)])
}
