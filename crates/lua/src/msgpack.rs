//! `cmsgpack`: as lua-cmsgpack 0.4.0 has it, to the byte.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::rc::Rc;

use mlua::ffi::{self, lua_State};
use mlua::{Lua, MultiValue, Result, Table, Value};

use super::library::{Outcome, Raise, number, put, type_name};
use super::state::{Meter, State};

/// Maximum nesting depth of packed tables. Deeper ones become nil.
const DEPTH_MAX: usize = 16;

/// Most bytes of a value besides the text of a string.
const VALUE_BYTES_MAX: usize = 9;
type Checked<T> = std::result::Result<T, Raise>;

/// The library.
pub(super) fn library(lua: &Lua, state: &Rc<State>) -> Result<Table> {
    let library = lua.create_table()?;
    let own = Rc::clone(state);
    put(lua, &library, "pack", move |lua, arguments| {
        if arguments.is_empty() {
            let text = "MessagePack pack needs input.".to_owned();
            return Err(Raise::Argument(0, text));
        }
        let mut bytes = Vec::new();
        let mut meter = Meter::new(lua, &own);
        for value in arguments {
            pack(value, 0, &mut bytes, &mut meter)?;
        }
        Ok(vec![Value::String(lua.create_string(bytes)?)])
    })?;
    let own = Rc::clone(state);
    put(lua, &library, "unpack", move |lua, arguments| {
        unpack(lua, &own, arguments, (0, 0), false)
    })?;
    let own = Rc::clone(state);
    put(lua, &library, "unpack_one", move |lua, arguments| {
        let offset = optional(lua, arguments, 2, 0)?;
        unpack(lua, &own, arguments, (1, offset), true)
    })?;
    let own = Rc::clone(state);
    put(lua, &library, "unpack_limit", move |lua, arguments| {
        let limit = number(lua, arguments, 2)? as i64 as i32;
        let offset = optional(lua, arguments, 3, 0)?;
        unpack(lua, &own, arguments, (limit, offset), true)
    })?;
    library.raw_set("_NAME", "cmsgpack")?;
    library.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    library.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    library.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    Ok(library)
}

fn optional(lua: &Lua, arguments: &[Value], place: i32, default: i32) -> Checked<i32> {
    let at = usize::try_from(place - 1).unwrap_or_default();
    match arguments.get(at) {
        None | Some(Value::Nil) => Ok(default),
        Some(_) => Ok(number(lua, arguments, place)? as i64 as i32),
    }
}

fn pack(value: &Value, depth: usize, bytes: &mut Vec<u8>, meter: &mut Meter<'_>) -> Checked<()> {
    meter.add(VALUE_BYTES_MAX)?;
    match value {
        Value::String(text) => {
            let text = text.as_bytes();
            meter.add(text.len())?;
            pack_string(&text, bytes);
        }
        Value::Boolean(value) => bytes.push(if *value { 0xc3 } else { 0xc2 }),
        Value::Number(number) => pack_number(*number, bytes),
        Value::Integer(number) => pack_integer(*number, bytes),
        Value::Table(table) if depth < DEPTH_MAX => pack_table(table, depth, bytes, meter)?,
        _ => bytes.push(0xc0),
    }
    Ok(())
}

fn pack_string(text: &[u8], bytes: &mut Vec<u8>) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    match length {
        0..=31 => bytes.push(0xa0 | length as u8),
        32..=0xff => bytes.extend_from_slice(&[0xd9, length as u8]),
        0x100..=0xffff => {
            bytes.push(0xda);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            bytes.push(0xdb);
            bytes.extend_from_slice(&length.to_be_bytes());
        }
    }
    bytes.extend_from_slice(text);
}

fn pack_number(number: f64, bytes: &mut Vec<u8>) {
    let is_whole = number.trunc() == number && number.is_finite();
    if is_whole && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        return pack_integer(number as i64, bytes);
    }
    let short = number as f32;
    if f64::from(short) == number {
        bytes.push(0xca);
        bytes.extend_from_slice(&short.to_be_bytes());
    } else {
        bytes.push(0xcb);
        bytes.extend_from_slice(&number.to_be_bytes());
    }
}

fn pack_integer(number: i64, bytes: &mut Vec<u8>) {
    match number {
        0..=127 => bytes.push(number as u8),
        128..=0xff => bytes.extend_from_slice(&[0xcc, number as u8]),
        0x100..=0xffff => {
            bytes.push(0xcd);
            bytes.extend_from_slice(&(number as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            bytes.push(0xce);
            bytes.extend_from_slice(&(number as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            bytes.push(0xcf);
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        -32..=-1 => bytes.push(number as u8),
        -128..=-33 => bytes.extend_from_slice(&[0xd0, number as u8]),
        -32_768..=-129 => {
            bytes.push(0xd1);
            bytes.extend_from_slice(&(number as i16).to_be_bytes());
        }
        -2_147_483_648..=-32_769 => {
            bytes.push(0xd2);
            bytes.extend_from_slice(&(number as i32).to_be_bytes());
        }
        _ => {
            bytes.push(0xd3);
            bytes.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// The length of a table whose keys are exactly 1 to that length.
fn array_length(table: &Table) -> Checked<Option<usize>> {
    let mut count = 0_usize;
    let mut largest = 0.0_f64;
    for pair in table.pairs::<Value, Value>() {
        let index = match pair?.0 {
            Value::Number(number) => number,
            Value::Integer(number) => number as f64,
            _ => return Ok(None),
        };
        if index <= 0.0 || index.floor() != index {
            return Ok(None);
        }
        count += 1;
        largest = largest.max(index);
    }
    Ok((largest == count as f64).then_some(count))
}

fn pack_length(length: usize, short: u8, long: u8, bytes: &mut Vec<u8>) {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    match length {
        0..=15 => bytes.push(short | length as u8),
        16..=0xffff => {
            bytes.push(long);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            bytes.push(long + 1);
            bytes.extend_from_slice(&length.to_be_bytes());
        }
    }
}

fn pack_table(
    table: &Table,
    depth: usize,
    bytes: &mut Vec<u8>,
    meter: &mut Meter<'_>,
) -> Checked<()> {
    if let Some(length) = array_length(table)? {
        pack_length(length, 0x90, 0xdc, bytes);
        for place in 1..=length {
            let value: Value = table.raw_get(place)?;
            pack(&value, depth + 1, bytes, meter)?;
        }
        return Ok(());
    }
    let mut count = 0_usize;
    let mut pairs = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (name, value) = pair?;
        pack(&name, depth + 1, &mut pairs, meter)?;
        pack(&value, depth + 1, &mut pairs, meter)?;
        count += 1;
    }
    pack_length(count, 0x80, 0xde, bytes);
    bytes.extend_from_slice(&pairs);
    Ok(())
}

/// Reads up to `limit` values (0: all) from an offset on. With `tells_offset`, the offset after
/// them comes first, or −1 at the end.
fn unpack(
    lua: &Lua,
    state: &Rc<State>,
    arguments: &[Value],
    (limit, offset): (i32, i32),
    tells_offset: bool,
) -> Outcome {
    let text = match arguments.first() {
        Some(value @ (Value::String(_) | Value::Number(_) | Value::Integer(_))) => {
            lua.coerce_string(value.clone())?
        }
        _ => None,
    };
    let Some(text) = text else {
        let got = type_name(arguments.first());
        return Err(Raise::Argument(1, format!("string expected, got {got}")));
    };
    let bytes = text.as_bytes();
    let (Ok(start), Ok(most)) = (usize::try_from(offset), usize::try_from(limit)) else {
        let text = format!(
            "Invalid request to unpack with offset of {offset} and limit of {}.",
            bytes.len()
        );
        return Err(Raise::Text(text));
    };
    let Some(rest) = bytes.get(start..) else {
        let text = format!(
            "Start offset {offset} greater than input length {}.",
            bytes.len()
        );
        return Err(Raise::Text(text));
    };
    let most = if most == 0 { usize::MAX } else { most };
    let read = match read(lua, state, rest, most)? {
        Ok(read) => read,
        Err(broken) => {
            state.end_if_due(lua)?;
            return Err(raised(lua, broken)?);
        }
    };
    let offset = tells_offset.then(|| {
        Value::Number(match read.rest {
            0 => -1.0,
            behind => (bytes.len() - behind) as f64,
        })
    });
    Ok(offset.into_iter().chain(read.values).collect())
}

fn raised(lua: &Lua, broken: Broken) -> Result<Raise> {
    let at_line = |text: &str| Ok(Raise::Text(text.to_owned()));
    let as_it_is = |text: &str| Ok(Raise::Value(Value::String(lua.create_string(text)?)));
    match broken {
        // If the script should end, that has already been raised.
        Broken::Short | Broken::Ended => at_line("Missing bytes in input."),
        Broken::Bad => at_line("Bad data format in input."),
        Broken::TooMany => at_line(
            "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)",
        ),
        Broken::TooDeep => at_line("stack overflow (in function mp_decode_to_lua_array)"),
        Broken::NameNil => as_it_is("table index is nil"),
        Broken::NameNan => as_it_is("table index is NaN"),
    }
}

/// Maximum nesting depth of tables that are read. As in Redis, as deep as Lua's stack allows if
/// each takes two slots.
const READ_DEPTH_MAX: usize = 3_990;

/// Values that are given at most (Lua: `LUAI_MAXCSTACK`).
const RESULTS_MAX: usize = 7_900;

/// Places on Lua's stack for a table, a name and a value.
const PLACES: c_int = 3;

/// Steps that a value takes.
const VALUE_STEPS: usize = 10;

/// Maximum number of items that a table gets space for in advance. The bytes may claim any number.
const ROOM_MAX: usize = 64;

/// Why bytes cannot be read.
#[derive(Clone, Copy)]
pub(crate) enum Broken {
    /// They end too early.
    Short,
    Bad,
    /// Lua's stack has no room for this many values.
    TooMany,
    /// Lua's stack has no room for this nesting of arrays.
    TooDeep,
    /// The script should end.
    Ended,
    /// A map has a name that no table of Lua can have.
    NameNil,
    NameNan,
}

/// The values that were read.
pub(crate) struct Values {
    pub(crate) values: MultiValue,
    /// Bytes that follow them.
    pub(crate) rest: usize,
}

/// Reads up to `most` values.
///
/// # Errors
/// Lua's: no memory.
pub(crate) fn read(
    lua: &Lua,
    state: &State,
    bytes: &[u8],
    most: usize,
) -> Result<std::result::Result<Values, Broken>> {
    let mut reader = Reader { bytes, state };
    let mut outcome = Ok(());
    let (own, told) = (&mut reader, &mut outcome);
    // SAFETY: the closure leaves the values on the stack.
    let values = unsafe {
        lua.exec_raw((), |state| {
            *told = own.values(state, most);
            if told.is_err() {
                ffi::lua_settop(state, 0);
            }
        })?
    };
    let rest = reader.bytes.len();
    Ok(outcome.map(|()| Values { values, rest }))
}

struct Reader<'b> {
    bytes: &'b [u8],
    state: &'b State,
}

type Read<T> = std::result::Result<T, Broken>;

impl<'b> Reader<'b> {
    fn take(&mut self, length: usize) -> Read<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(Broken::Short)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn unsigned(&mut self, length: usize) -> Read<u64> {
        let bytes = self.take(length)?;
        Ok(bytes
            .iter()
            .fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    fn signed(&mut self, length: usize) -> Read<i64> {
        let unused = 64 - 8 * length;
        Ok((self.unsigned(length)? << unused).cast_signed() >> unused)
    }

    fn length(&mut self, length: usize) -> Read<usize> {
        let value = self.unsigned(length)?;
        usize::try_from(value).map_err(|_| Broken::Short)
    }

    /// Pushes all values, but no more than `most`.
    unsafe fn values(&mut self, state: *mut lua_State, most: usize) -> Read<()> {
        let mut count = 0;
        while !self.bytes.is_empty() && count < most {
            if count >= RESULTS_MAX {
                return Err(Broken::TooMany);
            }
            unsafe { self.value(state, 0)? };
            count += 1;
        }
        Ok(())
    }

    /// Pushes a value.
    unsafe fn value(&mut self, state: *mut lua_State, depth: usize) -> Read<()> {
        if !self.state.go_on_after(VALUE_STEPS) {
            return Err(Broken::Ended);
        }
        let kind = self.unsigned(1)? as u8;
        unsafe {
            if ffi::lua_checkstack(state, PLACES) == 0 || depth > READ_DEPTH_MAX {
                return Err(Broken::TooMany);
            }
            match kind {
                0..=0x7f => ffi::lua_pushnumber(state, kind.into()),
                0xe0..=0xff => ffi::lua_pushnumber(state, kind.cast_signed().into()),
                0x80..=0x8f => self.map(state, usize::from(kind & 0xf), depth)?,
                0x90..=0x9f => self.array(state, usize::from(kind & 0xf), depth)?,
                0xa0..=0xbf => self.text(state, usize::from(kind & 0x1f))?,
                0xc0 => ffi::lua_pushnil(state),
                0xc2 | 0xc3 => ffi::lua_pushboolean(state, c_int::from(kind == 0xc3)),
                0xca => {
                    let bits = self.unsigned(4)? as u32;
                    ffi::lua_pushnumber(state, f32::from_bits(bits).into());
                }
                0xcb => ffi::lua_pushnumber(state, f64::from_bits(self.unsigned(8)?)),
                0xcc..=0xcf => {
                    // As in Redis, the largest numbers are negative.
                    let number = self.unsigned(1 << (kind - 0xcc))?.cast_signed();
                    ffi::lua_pushnumber(state, number as f64);
                }
                0xd0..=0xd3 => {
                    let number = self.signed(1 << (kind - 0xd0))?;
                    ffi::lua_pushnumber(state, number as f64);
                }
                0xd9..=0xdb => {
                    let length = self.length(1 << (kind - 0xd9))?;
                    self.text(state, length)?;
                }
                0xdc | 0xdd => {
                    let length = self.length(2 << (kind - 0xdc))?;
                    self.array(state, length, depth)?;
                }
                0xde | 0xdf => {
                    let length = self.length(2 << (kind - 0xde))?;
                    self.map(state, length, depth)?;
                }
                _ => return Err(Broken::Bad),
            }
        }
        Ok(())
    }

    unsafe fn text(&mut self, state: *mut lua_State, length: usize) -> Read<()> {
        let text = self.take(length)?;
        unsafe {
            ffi::lua_pushlstring(state, text.as_ptr().cast(), text.len());
        }
        Ok(())
    }

    unsafe fn array(&mut self, state: *mut lua_State, length: usize, depth: usize) -> Read<()> {
        if depth >= READ_DEPTH_MAX {
            return Err(Broken::TooDeep);
        }
        unsafe {
            ffi::lua_createtable(state, room(length), 0);
            for place in (1..).take(length) {
                self.value(state, depth + 1)?;
                ffi::lua_rawseti(state, -2, place);
            }
        }
        Ok(())
    }

    unsafe fn map(&mut self, state: *mut lua_State, length: usize, depth: usize) -> Read<()> {
        unsafe {
            // Grows as in Redis, because that decides the order of `next`.
            ffi::lua_createtable(state, 0, 0);
            for _ in 0..length {
                self.value(state, depth + 1)?;
                self.value(state, depth + 1)?;
                match ffi::lua_type(state, -2) {
                    ffi::LUA_TNIL => return Err(Broken::NameNil),
                    ffi::LUA_TNUMBER if ffi::lua_tonumber(state, -2).is_nan() => {
                        return Err(Broken::NameNan);
                    }
                    _ => ffi::lua_rawset(state, -3),
                }
            }
        }
        Ok(())
    }
}

fn room(length: usize) -> c_int {
    c_int::try_from(length.min(ROOM_MAX)).unwrap_or_default()
}
