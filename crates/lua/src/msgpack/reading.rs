//! Reads values from bytes. They are made on Lua's stack, as the bindings would cost four times as much:
//! frameworks hand the arguments of their scripts over like this.
//!
//! Lua raises an error by a jump over the frames here, for want of memory too. So nothing is owned
//! while Lua may raise.
#![allow(unsafe_code)]

use std::ffi::c_int;

use mlua::ffi::{self, lua_State};
use mlua::{Lua, MultiValue, Result};

use crate::state::State;

/// Tables within tables that are read: as many as there is room for on Lua's stack where each takes two
/// places, as in Redis.
const DEPTH_MAX: usize = 3_990;
/// Values that are given at most (Lua: `LUAI_MAXCSTACK`).
const RESULTS_MAX: usize = 7_900;
/// Places on Lua's stack for a table, a name and a value.
const PLACES: c_int = 3;
/// Steps that a value takes.
const VALUE_STEPS: usize = 10;
/// Items that a table gets room for before they are read. The bytes may promise any number.
const ROOM_MAX: usize = 64;

/// Why bytes cannot be read.
#[derive(Clone, Copy)]
pub(super) enum Broken {
    /// They end too early.
    Short,
    Bad,
    /// Lua's stack has no room for so many values.
    TooMany,
    /// Nor for so many arrays within each other.
    TooDeep,
    /// The script is to be ended.
    Ended,
    /// A map has a name that no table of Lua can have.
    NameNil,
    NameNan,
}

/// What was read.
pub(super) struct Values {
    pub(super) values: MultiValue,
    /// Bytes that follow them.
    pub(super) rest: usize,
}

/// Reads up to `most` values.
///
/// # Errors
/// Lua's: no memory.
pub(super) fn read(
    lua: &Lua,
    state: &State,
    bytes: &[u8],
    most: usize,
) -> Result<std::result::Result<Values, Broken>> {
    let mut reader = Reader { bytes, state };
    let mut outcome = Ok(());
    let (own, told) = (&mut reader, &mut outcome);
    // SAFETY: what is left on the stack are the values.
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
            if ffi::lua_checkstack(state, PLACES) == 0 || depth > DEPTH_MAX {
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
                    // As in Redis, the largest are negative.
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
        if depth >= DEPTH_MAX {
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
            // It grows as in Redis, since that decides in which order `next` gives its pairs.
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
