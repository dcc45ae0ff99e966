//! `struct`: values as bytes of C, as Roberto Ierusalimschy's library in Redis has them.

use std::rc::Rc;

use mlua::{Lua, Result, Table, Value};

use super::library::{Outcome, Raise, number, put, type_name};
use super::state::{Meter, State};

/// Bytes of the largest integer (`MAXINTSIZE`).
const INTEGER_BYTES_MAX: usize = 32;

/// The alignment after `!` without a number (`MAXALIGN`).
const ALIGNMENT: usize = 8;

/// Values that `unpack` gives at most (Lua: `LUAI_MAXCSTACK`).
const RESULTS_MAX: usize = 7_900;
type Checked<T> = std::result::Result<T, Raise>;

fn wrong(text: impl Into<String>) -> Raise {
    Raise::Text(text.into())
}

/// The library.
pub(super) fn library(lua: &Lua, state: &Rc<State>) -> Result<Table> {
    let library = lua.create_table()?;
    let own = Rc::clone(state);
    put(lua, &library, "pack", move |lua, arguments| {
        pack(lua, arguments, Meter::new(lua, &own))
    })?;
    put(lua, &library, "unpack", unpack)?;
    put(lua, &library, "size", size)?;
    Ok(library)
}

/// How the options that follow are laid out.
struct Format<'f> {
    text: &'f [u8],
    at: usize,
    is_little: bool,
    alignment: usize,
}

impl<'f> Format<'f> {
    fn new(text: &'f [u8]) -> Self {
        Self {
            text,
            at: 0,
            is_little: true,
            alignment: 1,
        }
    }

    /// The next option. A format is a string of C.
    fn next(&mut self) -> Option<u8> {
        let option = self.text.get(self.at).copied().filter(|byte| *byte != 0)?;
        self.at += 1;
        Some(option)
    }

    fn number(&mut self, default: usize) -> Checked<usize> {
        let mut number: Option<usize> = None;
        while let Some(digit) = self.text.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            let value = number.unwrap_or(0);
            let digit = usize::from(digit - b'0');
            let most = usize::try_from(i32::MAX).unwrap_or(usize::MAX);
            if value > most / 10 || value * 10 > most - digit {
                return Err(wrong("integral size overflow"));
            }
            number = Some(value * 10 + digit);
            self.at += 1;
        }
        Ok(number.unwrap_or(default))
    }

    /// Bytes that an option takes.
    fn size_of(&mut self, option: u8) -> Checked<usize> {
        Ok(match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > INTEGER_BYTES_MAX {
                    let text =
                        format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
                    return Err(wrong(text));
                }
                size
            }
            _ => 0,
        })
    }

    /// Bytes before an option of this size.
    fn padding(&self, length: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let alignment = size.min(self.alignment);
        if alignment > 1 {
            (alignment - (length & (alignment - 1))) & (alignment - 1)
        } else {
            0
        }
    }

    /// Applies an option that changes the layout of others, and refuses unknown ones.
    fn control(&mut self, option: u8) -> Checked<()> {
        match option {
            b' ' => {}
            b'>' => self.is_little = false,
            b'<' => self.is_little = true,
            b'!' => {
                let alignment = self.number(ALIGNMENT)?;
                if alignment == 0 || !alignment.is_power_of_two() {
                    return Err(wrong(format!("alignment {alignment} is not a power of 2")));
                }
                self.alignment = alignment;
            }
            other => {
                let shown = char::from(other);
                let text = format!("invalid format option '{shown}'");
                return Err(Raise::Argument(1, text));
            }
        }
        Ok(())
    }
}

fn string_at(lua: &Lua, arguments: &[Value], place: i32) -> Checked<Vec<u8>> {
    let value = usize::try_from(place - 1)
        .ok()
        .and_then(|at| arguments.get(at));
    let text = match value {
        Some(value @ (Value::String(_) | Value::Number(_) | Value::Integer(_))) => {
            lua.coerce_string(value.clone())?
        }
        _ => None,
    };
    match text {
        Some(text) => Ok(text.as_bytes().to_vec()),
        None => {
            let text = format!("string expected, got {}", type_name(value));
            Err(Raise::Argument(place, text))
        }
    }
}

fn put_number(bytes: &mut Vec<u8>, number: &[u8], is_little: bool) {
    match is_little {
        true => bytes.extend_from_slice(number),
        false => bytes.extend(number.iter().rev()),
    }
}

/// As C converts a double to a `long long`.
fn to_integer(number: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// A number to pack. If it is missing, the library uses nil.
fn packed(lua: &Lua, arguments: &[Value], place: i32) -> Checked<f64> {
    let at = usize::try_from(place - 1).unwrap_or_default();
    if arguments.get(at).is_none() {
        let text = "number expected, got nil".to_owned();
        return Err(Raise::Argument(place, text));
    }
    number(lua, arguments, place)
}

fn pack(lua: &Lua, arguments: &[Value], mut meter: Meter<'_>) -> Outcome {
    let text = string_at(lua, arguments, 1)?;
    let mut format = Format::new(&text);
    let mut bytes: Vec<u8> = Vec::new();
    let mut place = 2;
    while let Some(option) = format.next() {
        let size = format.size_of(option)?;
        meter.reach(bytes.len())?;
        let padding = format.padding(bytes.len(), option, size);
        bytes.resize(bytes.len() + padding, 0);
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let value = to_word(packed(lua, arguments, place)?);
                place += 1;
                // Beyond eight bytes the library writes the result of further shifting, which is
                // zero.
                let mut wide = value.to_le_bytes().to_vec();
                wide.resize(size.max(8), 0);
                put_number(
                    &mut bytes,
                    wide.get(..size).unwrap_or_default(),
                    format.is_little,
                );
            }
            b'x' => bytes.push(0),
            b'f' => {
                let value = packed(lua, arguments, place)? as f32;
                place += 1;
                put_number(&mut bytes, &value.to_le_bytes(), format.is_little);
            }
            b'd' => {
                let value = packed(lua, arguments, place)?;
                place += 1;
                put_number(&mut bytes, &value.to_le_bytes(), format.is_little);
            }
            b'c' | b's' => {
                let string = string_at(lua, arguments, place)?;
                let length = if size == 0 { string.len() } else { size };
                let Some(beginning) = string.get(..length) else {
                    return Err(Raise::Argument(place + 1, "string too short".to_owned()));
                };
                place += 1;
                meter.reach(bytes.len().saturating_add(beginning.len()))?;
                bytes.extend_from_slice(beginning);
                if option == b's' {
                    bytes.push(0);
                }
            }
            other => format.control(other)?,
        }
    }
    Ok(vec![Value::String(lua.create_string(bytes)?)])
}

/// Converts a non-negative double to an unsigned number like C on x86-64.
fn to_word(number: f64) -> i64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    match number >= HALF {
        true => to_integer(number - HALF) ^ i64::MIN,
        false => to_integer(number),
    }
}

fn integer(bytes: &[u8], is_little: bool, is_signed: bool) -> f64 {
    let mut value: u64 = 0;
    let mut add = |byte: &u8| value = (value << 8) | u64::from(*byte);
    match is_little {
        true => bytes.iter().rev().for_each(&mut add),
        false => bytes.iter().for_each(&mut add),
    }
    if !is_signed {
        return value as f64;
    }
    let unused = 64_u32.saturating_sub(u32::try_from(bytes.len() * 8).unwrap_or(64));
    match unused {
        64 => 0.0,
        unused => ((value << unused).cast_signed() >> unused) as f64,
    }
}

fn unpack(lua: &Lua, arguments: &[Value]) -> Outcome {
    let text = string_at(lua, arguments, 1)?;
    let data = string_at(lua, arguments, 2)?;
    let mut format = Format::new(&text);
    let first = match arguments.get(2) {
        None | Some(Value::Nil) => 1.0,
        Some(_) => number(lua, arguments, 3)?,
    };
    let first = to_integer(first);
    if first <= 0 {
        return Err(Raise::Argument(3, "offset must be 1 or greater".to_owned()));
    }
    let mut at = usize::try_from(first - 1).unwrap_or(usize::MAX);
    let too_short = || Raise::Argument(2, "data string too short".to_owned());
    let mut values: Vec<Value> = Vec::new();
    while let Some(option) = format.next() {
        let mut size = format.size_of(option)?;
        at = at.saturating_add(format.padding(at, option, size));
        let end = at.checked_add(size).filter(|end| *end <= data.len());
        let mut bytes = end
            .and_then(|end| data.get(at..end))
            .ok_or_else(too_short)?;
        if values.len() >= RESULTS_MAX {
            return Err(wrong("stack overflow (too many results)"));
        }
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let value = integer(bytes, format.is_little, option.is_ascii_lowercase());
                values.push(Value::Number(value));
            }
            b'x' => {}
            b'f' | b'd' => {
                let mut bytes = bytes.to_vec();
                if !format.is_little {
                    bytes.reverse();
                }
                let value = match option {
                    b'f' => {
                        <[u8; 4]>::try_from(bytes).map(|all| f64::from(f32::from_le_bytes(all)))
                    }
                    _ => <[u8; 8]>::try_from(bytes).map(f64::from_le_bytes),
                };
                values.push(Value::Number(value.map_err(|_| too_short())?));
            }
            b'c' => {
                if size == 0 {
                    let length = match values.pop() {
                        Some(Value::Number(length)) => to_integer(length),
                        _ => return Err(wrong("format 'c0' needs a previous size")),
                    };
                    size = usize::try_from(length).unwrap_or(usize::MAX);
                    let end = at.checked_add(size).filter(|end| *end <= data.len());
                    bytes = end
                        .and_then(|end| data.get(at..end))
                        .ok_or_else(too_short)?;
                }
                values.push(Value::String(lua.create_string(bytes)?));
            }
            b's' => {
                let rest = data.get(at..).unwrap_or_default();
                let Some(length) = rest.iter().position(|byte| *byte == 0) else {
                    return Err(wrong("unfinished string in data"));
                };
                let string = rest.get(..length).unwrap_or_default();
                values.push(Value::String(lua.create_string(string)?));
                size = length + 1;
            }
            other => format.control(other)?,
        }
        at = at.saturating_add(size);
    }
    values.push(Value::Number((at + 1) as f64));
    Ok(values)
}

fn size(lua: &Lua, arguments: &[Value]) -> Outcome {
    let text = string_at(lua, arguments, 1)?;
    let mut format = Format::new(&text);
    let mut total = 0_usize;
    while let Some(option) = format.next() {
        let size = format.size_of(option)?;
        total = total.saturating_add(format.padding(total, option, size));
        if option == b's' || (option == b'c' && size == 0) {
            let shown = if option == b's' { "s" } else { "c0" };
            let text = format!("option '{shown}' has no fixed size");
            return Err(Raise::Argument(1, text));
        }
        total = total.saturating_add(size);
        if option == b'!' {
            format.control(option)?;
        }
    }
    Ok(vec![Value::Number(total as f64)])
}
