//! Calls between Lua and Rust through Lua's C interface. The bindings are too slow for the most
//! frequent calls: `redis.call` and `redis.pcall`, the start of a script or function, and plain
//! results.
//!
//! Arguments that are strings and numbers, and RESP2 replies without errors, are converted here.
//! Everything else is left to a function of the bindings in `api.rs`.
//!
//! Lua raises an error by a jump over the frames of these functions, also if memory is short. So
//! none of them owns anything while Lua may raise. [`Calling`] owns a reply.
#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};
use std::ffi::{CStr, c_int};
use std::ptr::NonNull;
use std::rc::Rc;

use bytes::Bytes;
use mlua::ffi::{self, lua_State};
use mlua::{Function, LightUserData, Lua, Result, Scope, Table, Value};

use super::fiber::{Commands, Fiber};
use super::raw;
use super::state::State;
use super::values::{number_argument, truncated};
use quoin_base::limits::{SCRIPT_MEMORY_BYTES_MAX, SCRIPT_REPLY_DEPTH_MAX};
use quoin_resp::reply::Reply;

/// The state that the calls of a machine share. It outlives the machine's scripts.
pub(super) struct Calling<'y> {
    pub(super) fiber: Fiber<'y>,
    pub(super) state: Rc<State>,
    /// Runs the commands of the current script.
    commands: Cell<Option<NonNull<dyn Commands>>>,
    /// The reply that Lua gets.
    held: UnsafeCell<Reply>,
    /// A reply that is left to the function of the bindings. The inner value is `None` if the
    /// script ends.
    left: Cell<Option<Option<Reply>>>,
}

impl<'y> Calling<'y> {
    pub(super) fn new(fiber: Fiber<'y>, state: Rc<State>) -> Self {
        Self {
            fiber,
            state,
            commands: Cell::new(None),
            held: UnsafeCell::new(Reply::Null),
            left: Cell::new(None),
        }
    }

    /// Sets what runs commands from now on. Without it, nothing does.
    ///
    /// # Safety
    /// Until the next call of this, `commands` must not be moved or used by anything else.
    pub(super) unsafe fn set_commands(&self, commands: Option<NonNull<dyn Commands>>) {
        self.commands.set(commands);
    }

    /// Runs a command. `None` if the script ends.
    pub(super) fn run(&self, arguments: Vec<Bytes>) -> Option<Reply> {
        let mut commands = self.commands.get()?;
        // SAFETY: see `set_commands`. Lua does not run while a command does, so this is the only use.
        unsafe { commands.as_mut() }.call(arguments, &self.fiber)
    }

    /// Whether a command may be called. `None` if the script ends.
    pub(super) fn check(&self, arguments: Vec<Bytes>) -> Option<Reply> {
        let mut commands = self.commands.get()?;
        // SAFETY: as above.
        Some(unsafe { commands.as_mut() }.check(arguments))
    }

    /// The reply to a command that was called here and is converted elsewhere.
    pub(super) fn take_left(&self) -> Option<Option<Reply>> {
        self.left.take()
    }

    /// A function that calls a command. `rest` is called without arguments to convert a reply that
    /// is left to it, and with the script's arguments if nothing was called. Scripts run within the
    /// scope, so this outlives them.
    pub(super) fn function<'scope, 'env>(
        &'env self,
        lua: &Lua,
        _: &'scope Scope<'scope, 'env>,
        rest: Function,
    ) -> Result<Function> {
        let own = LightUserData((&raw const *self).cast_mut().cast());
        // SAFETY: the two values on the stack become the closure's.
        unsafe {
            lua.exec_raw((own, rest), |state| {
                ffi::lua_pushcclosure(state, call, 2);
            })
        }
    }

    /// Whether the command was called, and its reply is held.
    fn ask(&self, arguments: Vec<Bytes>) -> bool {
        match self.run(arguments) {
            Some(reply) if !self.state.is_resp3.get() && is_plain(&reply, 0) => {
                // SAFETY: nothing refers to the held value. It is only read while it is pushed, and
                // no script runs meanwhile.
                unsafe { *self.held.get() = reply };
                true
            }
            answer => {
                self.left.set(Some(answer));
                false
            }
        }
    }
}

/// Whether [`push`] knows a reply.
fn is_plain(reply: &Reply, depth: usize) -> bool {
    let is_inner_plain = |item: &Reply| is_plain(item, depth + 1);
    match reply {
        Reply::Bulk(_) | Reply::Integer(_) | Reply::Simple(_) | Reply::Null | Reply::NullArray => {
            true
        }
        Reply::Array(items) | Reply::Set(items) => {
            depth < SCRIPT_REPLY_DEPTH_MAX && items.iter().all(is_inner_plain)
        }
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            depth < SCRIPT_REPLY_DEPTH_MAX && flat(pairs).all(is_inner_plain)
        }
        _ => false,
    }
}

/// Pairs as RESP2 has them.
fn flat(pairs: &[(Reply, Reply)]) -> impl Iterator<Item = &Reply> {
    pairs.iter().flat_map(|(first, second)| [first, second])
}

/// The arguments of a command. `None` unless all are texts and numbers, and not too long.
unsafe fn arguments(state: *mut lua_State) -> Option<Vec<Bytes>> {
    // SAFETY: the indexes are those of the arguments. A string's bytes are copied while it is on
    // the stack, and nothing here makes Lua allocate or raise.
    unsafe {
        let count = ffi::lua_gettop(state);
        if count == 0 {
            return None;
        }
        let mut length = 0_usize;
        for place in 1..=count {
            match ffi::lua_type(state, place) {
                ffi::LUA_TSTRING => length += ffi::lua_objlen(state, place),
                ffi::LUA_TNUMBER => {}
                _ => return None,
            }
        }
        if length > SCRIPT_MEMORY_BYTES_MAX {
            return None;
        }
        let bytes = |place| {
            if ffi::lua_type(state, place) == ffi::LUA_TNUMBER {
                return number_argument(ffi::lua_tonumber(state, place)).into();
            }
            let mut length = 0;
            let text = ffi::lua_tolstring(state, place, &raw mut length);
            Bytes::copy_from_slice(std::slice::from_raw_parts(text.cast(), length))
        };
        Some((1..=count).map(bytes).collect())
    }
}

unsafe extern "C-unwind" fn call(state: *mut lua_State) -> c_int {
    // SAFETY: the first value of the closure is a `Calling` that outlives the scripts.
    unsafe {
        let own = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast_const();
        let own = &*own.cast::<Calling<'_>>();
        // A script may have caught an error between an answer and its use.
        own.left.set(None);
        if !own.state.is_stopping()
            && let Some(arguments) = arguments(state)
        {
            let is_held = own.ask(arguments);
            ffi::lua_settop(state, 0);
            if is_held {
                push(state, &*own.held.get());
                *own.held.get() = Reply::Null;
                return 1;
            }
        }
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(2));
        ffi::lua_insert(state, 1);
        ffi::lua_call(state, ffi::lua_gettop(state) - 1, ffi::LUA_MULTRET);
        ffi::lua_gettop(state)
    }
}

/// Pushes a reply that [`is_plain`], as `values.rs` converts it.
unsafe fn push(state: *mut lua_State, reply: &Reply) {
    unsafe {
        match reply {
            Reply::Bulk(text) => push_text(state, text),
            Reply::Integer(number) => ffi::lua_pushnumber(state, *number as f64),
            Reply::Simple(status) => {
                ffi::lua_createtable(state, 0, 1);
                push_text(state, b"ok");
                push_text(state, status.as_bytes());
                ffi::lua_rawset(state, -3);
            }
            Reply::Array(items) | Reply::Set(items) => {
                push_table(state, items.len(), items.iter());
            }
            Reply::Map(pairs) | Reply::Pairs(pairs) => {
                push_table(state, pairs.len().saturating_mul(2), flat(pairs));
            }
            _ => ffi::lua_pushboolean(state, 0),
        }
    }
}

unsafe fn push_table<'r>(
    state: *mut lua_State,
    count: usize,
    items: impl Iterator<Item = &'r Reply>,
) {
    unsafe {
        // Room for a table, its element and temporary values.
        ffi::luaL_checkstack(state, 4, c"too deep a reply".as_ptr());
        let room = c_int::try_from(count).unwrap_or(c_int::MAX);
        ffi::lua_createtable(state, room, 0);
        for (place, item) in (1..).zip(items) {
            push(state, item);
            ffi::lua_rawseti(state, -2, place);
        }
    }
}

unsafe fn push_text(state: *mut lua_State, text: &[u8]) {
    unsafe {
        ffi::lua_pushlstring(state, text.as_ptr().cast(), text.len());
    }
}

/// Nesting of tables for which Lua's stack always has room.
const PLAIN_DEPTH_MAX: usize = 3;

/// Maximum number of values, and bytes of strings, in a result that is converted here. A larger one
/// may contain the same table many times, so it is left to code that measures it.
const PLAIN_VALUES_MAX: usize = 100_000;
const PLAIN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Index of a run's result on Lua's stack. The names of [`SPECIAL`] follow it.
const RESULT: c_int = 3;

/// Fields that make a table something other than a list of replies.
const SPECIAL: [&CStr; 7] = [
    c"err",
    c"ok",
    c"double",
    c"map",
    c"set",
    c"big_number",
    c"verbatim_string",
];

/// The outcome of a script or function.
pub(super) enum Done {
    /// It has returned this.
    Replied(Reply),
    /// It returned this value, which the bindings convert.
    Returned(Value),
    /// It has raised this.
    Raised(Value),
}

/// What to run, and how.
pub(super) struct Entry<'l> {
    pub(super) function: &'l Function,
    /// Converts an error into the value to raise.
    pub(super) handler: &'l Function,
    /// The globals of scripts, including KEYS and ARGV.
    pub(super) globals: &'l Table,
    /// Whether it is a function. A function gets them as arguments, and its globals contain nothing
    /// of scripts.
    pub(super) is_function: bool,
    pub(super) keys: &'l [Bytes],
    pub(super) arguments: &'l [Bytes],
    /// Whether results are those of RESP3 after it has run.
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
        // SAFETY: the three values are at the indexes 1 to 3. The closure leaves on the stack
        // whether the call succeeded, and its result.
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

/// The result if it is plain, converted as `values.rs` does for RESP2. It stays on the stack.
unsafe fn read(state: *mut lua_State) -> Option<Reply> {
    unsafe {
        if ffi::lua_type(state, RESULT) == ffi::LUA_TTABLE {
            for name in SPECIAL {
                ffi::lua_pushstring(state, name.as_ptr());
            }
        }
        // From here on, nothing makes Lua allocate memory.
        let mut room = Room {
            values: PLAIN_VALUES_MAX,
            bytes: PLAIN_BYTES_MAX,
        };
        let reply = read_plain(state, RESULT, 0, &mut room);
        ffi::lua_settop(state, RESULT);
        reply
    }
}

/// How much may still be converted.
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
