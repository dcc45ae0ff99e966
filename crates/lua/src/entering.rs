//! Runs a script or a function, and reads plain results, without the bindings' detours: this happens
//! once a run.
//!
//! Lua raises an error by a jump over the frames here, for want of memory too. So nothing is owned
//! while Lua may raise.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, c_int};

use bytes::Bytes;
use mlua::ffi::{self, lua_State};
use mlua::{Function, Lua, Result, Table, Value};

use super::raw;
use super::values::truncated;
use quoin_resp::reply::Reply;

/// Tables within each other whose places on Lua's stack are there without asking.
const PLAIN_DEPTH_MAX: usize = 3;
/// Values, and bytes of texts, of a result that is read here. A longer one may be any number of times
/// the same table, so it is left to what measures it.
const PLAIN_VALUES_MAX: usize = 100_000;
const PLAIN_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Where the result of a run is on Lua's stack. The names of [`SPECIAL`] follow it.
const RESULT: c_int = 3;
/// What makes a table something else than a list of replies.
const SPECIAL: [&CStr; 7] = [
    c"err",
    c"ok",
    c"double",
    c"map",
    c"set",
    c"big_number",
    c"verbatim_string",
];

/// What a script or a function has done.
pub(super) enum Done {
    /// It has returned this.
    Replied(Reply),
    /// It has returned this, which the bindings convert.
    Returned(Value),
    /// It has raised this.
    Raised(Value),
}

/// What is run, and how.
pub(super) struct Entry<'l> {
    pub(super) function: &'l Function,
    /// What makes of an error what is raised.
    pub(super) handler: &'l Function,
    /// The globals of scripts, where KEYS and ARGV are put.
    pub(super) globals: &'l Table,
    /// A function is given them as arguments, and finds nothing of scripts in the globals.
    pub(super) is_function: bool,
    pub(super) keys: &'l [Bytes],
    pub(super) arguments: &'l [Bytes],
    /// Whether results are those of RESP3, once it has run.
    pub(super) is_resp3: &'l Cell<bool>,
}

impl Entry<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// No memory for the keys and arguments.
    pub(super) fn run(&self, lua: &Lua) -> Result<Done> {
        let mut reply = None;
        let own = &mut reply;
        let arguments = (self.handler, self.globals, self.function);
        // SAFETY: the three values are at the places 1 to 3. What is left on the stack is whether the
        // call succeeded, and its result.
        let (is_done, value): (bool, Value) = unsafe {
            lua.exec_raw(arguments, |state| {
                raw::reset_collector(state);
                for (name, values) in [(c"KEYS", self.keys), (c"ARGV", self.arguments)] {
                    ffi::lua_pushstring(state, name.as_ptr());
                    match self.is_function {
                        true => ffi::lua_pushnil(state),
                        false => push_texts(state, values),
                    }
                    ffi::lua_rawset(state, 2);
                }
                let mut arguments = 0;
                if self.is_function {
                    push_texts(state, self.keys);
                    push_texts(state, self.arguments);
                    arguments = 2;
                }
                let status = ffi::lua_pcall(state, arguments, 1, 1);
                if status == 0 && !self.is_resp3.get() {
                    *own = read(state);
                    if own.is_some() {
                        ffi::lua_settop(state, 0);
                        return;
                    }
                }
                ffi::lua_pushboolean(state, c_int::from(status == 0));
                ffi::lua_replace(state, 2);
                ffi::lua_remove(state, 1);
            })?
        };
        Ok(match (reply, is_done) {
            (Some(reply), _) => Done::Replied(reply),
            (None, true) => Done::Returned(value),
            (None, false) => Done::Raised(value),
        })
    }
}

unsafe fn push_texts(state: *mut lua_State, texts: &[Bytes]) {
    unsafe {
        let room = c_int::try_from(texts.len()).unwrap_or(c_int::MAX);
        ffi::lua_createtable(state, room, 0);
        for (place, text) in (1..).zip(texts) {
            ffi::lua_pushlstring(state, text.as_ptr().cast(), text.len());
            ffi::lua_rawseti(state, -2, place);
        }
    }
}

/// The result if it is plain, as `values.rs` converts it for RESP2. It stays where it is.
unsafe fn read(state: *mut lua_State) -> Option<Reply> {
    unsafe {
        if ffi::lua_type(state, RESULT) == ffi::LUA_TTABLE {
            for name in SPECIAL {
                ffi::lua_pushstring(state, name.as_ptr());
            }
        }
        // From here on nothing makes Lua allocate.
        let mut room = Room {
            values: PLAIN_VALUES_MAX,
            bytes: PLAIN_BYTES_MAX,
        };
        let reply = read_plain(state, RESULT, 0, &mut room);
        ffi::lua_settop(state, RESULT);
        reply
    }
}

/// What may still be read.
struct Room {
    values: usize,
    bytes: usize,
}

unsafe fn read_plain(
    state: *mut lua_State,
    place: c_int,
    depth: usize,
    room: &mut Room,
) -> Option<Reply> {
    room.values = room.values.checked_sub(1)?;
    unsafe {
        Some(match ffi::lua_type(state, place) {
            ffi::LUA_TSTRING => {
                let mut length = 0;
                let text = ffi::lua_tolstring(state, place, &raw mut length);
                let text = std::slice::from_raw_parts(text.cast::<u8>(), length);
                room.bytes = room.bytes.checked_sub(length)?;
                Reply::Bulk(Bytes::copy_from_slice(text))
            }
            ffi::LUA_TNUMBER => Reply::Integer(truncated(ffi::lua_tonumber(state, place))),
            ffi::LUA_TBOOLEAN if ffi::lua_toboolean(state, place) != 0 => Reply::Integer(1),
            ffi::LUA_TTABLE if depth >= PLAIN_DEPTH_MAX => return None,
            ffi::LUA_TTABLE => {
                for (name, _) in (RESULT + 1..).zip(SPECIAL) {
                    ffi::lua_pushvalue(state, name);
                    ffi::lua_rawget(state, place);
                    let is_there = ffi::lua_type(state, -1) != ffi::LUA_TNIL;
                    ffi::lua_settop(state, -2);
                    if is_there {
                        return None;
                    }
                }
                let mut items = Vec::new();
                for index in 1.. {
                    ffi::lua_rawgeti(state, place, index);
                    let top = ffi::lua_gettop(state);
                    if ffi::lua_type(state, top) == ffi::LUA_TNIL {
                        ffi::lua_settop(state, -2);
                        break;
                    }
                    items.push(read_plain(state, top, depth + 1, room)?);
                    ffi::lua_settop(state, top - 1);
                }
                Reply::Array(items)
            }
            _ => Reply::Null,
        })
    }
}
