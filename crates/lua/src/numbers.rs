//! Numbers of scripts: text as C's `printf` writes and `strtod` reads it, and the library `bit` (BitOp 1.0.2).

use super::library::{Outcome, Raise, number, put, type_name};
use mlua::{Lua, Result, Table, Value};

/// `%.<precision>g`.
pub(super) fn format_g(number: f64, precision: usize) -> String {
    if number.is_nan() {
        return if number.is_sign_negative() {
            "-nan"
        } else {
            "nan"
        }
        .to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let precision = precision.max(1);
    let scientific = format!("{number:.*e}", precision - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= i32::try_from(precision).unwrap_or(i32::MAX) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.unsigned_abs());
    }
    let whole = i32::try_from(precision).unwrap_or(i32::MAX) - 1 - exponent;
    let decimals = usize::try_from(whole).unwrap_or(0);
    trimmed(&format!("{number:.decimals$}"))
}

fn digits(text: &[u8], is_digit: fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| is_digit(byte)).count()
}

/// The number at the beginning of a text, and its length.
pub(super) fn strtod(text: &[u8]) -> Option<(f64, usize)> {
    let (sign, signed) = match text.first()? {
        b'-' => (-1.0, 1),
        b'+' => (1.0, 1),
        _ => (1.0, 0),
    };
    let rest = text.get(signed..)?;
    let begins = |word: &[u8]| {
        let beginning = rest.get(..word.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(word))
    };
    if begins(b"infinity") {
        return Some((sign * f64::INFINITY, signed + 8));
    }
    if begins(b"inf") {
        return Some((sign * f64::INFINITY, signed + 3));
    }
    if begins(b"nan") {
        let behind = rest.get(3..).unwrap_or_default();
        let named = match behind.strip_prefix(b"(") {
            Some(inner) => {
                let length = digits(inner, |byte| byte.is_ascii_alphanumeric() || *byte == b'_');
                match inner.get(length) {
                    Some(b')') => length + 2,
                    _ => 0,
                }
            }
            None => 0,
        };
        return Some((f64::NAN.copysign(sign), signed + 3 + named));
    }
    if begins(b"0x")
        && let Some((number, length)) = hexadecimal(rest.get(2..).unwrap_or_default())
    {
        return Some((sign * number, signed + 2 + length));
    }
    let (number, length) = decimal(rest)?;
    Some((sign * number, signed + length))
}

/// An exponent after its letter: its value and length.
fn exponent(text: &[u8]) -> Option<(i32, usize)> {
    let (sign, signed) = match text.first()? {
        b'-' => (-1, 1),
        b'+' => (1, 1),
        _ => (1, 0),
    };
    let figures = text.get(signed..)?;
    let length = digits(figures, u8::is_ascii_digit);
    if length == 0 {
        return None;
    }
    let value = figures.get(..length)?.iter().fold(0_i32, |value, digit| {
        value
            .saturating_mul(10)
            .saturating_add(i32::from(digit - b'0'))
    });
    Some((sign * value.min(100_000), signed + length))
}

fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let whole = digits(text, u8::is_ascii_digit);
    let mut length = whole;
    let mut count = whole;
    if text.get(whole) == Some(&b'.') {
        let decimals = digits(text.get(whole + 1..)?, u8::is_ascii_digit);
        count += decimals;
        if count > 0 {
            length = whole + 1 + decimals;
        }
    }
    if count == 0 {
        return None;
    }
    if matches!(text.get(length), Some(b'e' | b'E'))
        && let Some((_, more)) = exponent(text.get(length + 1..).unwrap_or_default())
    {
        length += 1 + more;
    }
    let figures = std::str::from_utf8(text.get(..length)?).ok()?;
    Some((figures.parse().ok()?, length))
}

fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let whole = digits(text, u8::is_ascii_hexdigit);
    let mut length = whole;
    let mut figures = text.get(..whole)?.to_vec();
    let mut scale = 0_i32;
    if text.get(whole) == Some(&b'.') {
        let behind = text.get(whole + 1..)?;
        let decimals = digits(behind, u8::is_ascii_hexdigit);
        figures.extend_from_slice(behind.get(..decimals)?);
        if !figures.is_empty() {
            length = whole + 1 + decimals;
        }
        scale = i32::try_from(decimals).ok()?.checked_mul(-4)?;
    }
    if figures.is_empty() {
        return None;
    }
    let mut number = 0.0_f64;
    for figure in figures {
        number = number * 16.0 + f64::from(char::from(figure).to_digit(16)?);
    }
    if matches!(text.get(length), Some(b'p' | b'P'))
        && let Some((value, more)) = exponent(text.get(length + 1..).unwrap_or_default())
    {
        scale = scale.saturating_add(value);
        length += 1 + more;
    }
    Some((number * 2.0_f64.powi(scale), length))
}

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
pub(super) fn bit_library(lua: &Lua) -> Result<Table> {
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
