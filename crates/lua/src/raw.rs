//! Code that needs Lua's C interface: raising any value as an error with the caller's line, and
//! protecting tables from scripts.
//!
//! Stock Lua 5.1 has no read-only tables. A table that scripts may only read is shown as an empty
//! table whose metatable reads from the real one and refuses writes. The functions that could
//! bypass a metatable are guarded here.
//!
//! Lua calls each function with its own stack frame. The function leaves its results on top and
//! returns their number. An error leaves by `lua_error`, which jumps over frames that own nothing.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};

use mlua::ffi::{self, lua_State};
use mlua::{Function, LightUserData, Lua, MultiValue, Result, Table, Value};

use super::working::{
    CALL_STEPS, Native, Working, catching, check, check_after_error, counted, making, original,
    spend,
};

/// A text is not parsed if an opening long bracket has at least this many `=` (CVE-2025-46819).
const LONG_BRACKET_MAX: usize = 256;
/// Results that `unpack` gives at most (Lua: `LUAI_MAXCSTACK`).
const UNPACKED_MAX: i64 = 8_000;
/// Maximum number of arguments that are passed individually. Lua has room for 8,000 in a C
/// function, and the bindings need some.
const ARGUMENTS_MAX: c_int = 1_000;
/// Steps to compile a byte.
const COMPILE_STEPS: usize = 10;
/// Maximum number of pieces that a reader function may give to `load`. Each is joined with all
/// previous ones, and if the reader is a C function, nothing can stop it meanwhile.
const LOADED_PIECES_MAX: usize = 16_384;
const READ_ONLY: &CStr = c"Attempt to modify a readonly table";

/// Lua's own settings of its collector (`LUAI_GCPAUSE`, `LUAI_GCMUL`).
const COLLECTOR_PERCENT: c_int = 200;

static MARK: u8 = 0;
/// Its value differs from [`MARK`], so that the two have different addresses.
static COLLECTOR_MARK: u8 = 1;

fn mark() -> *mut c_void {
    (&raw const MARK).cast_mut().cast()
}

/// The key in the registry that records whether a script has used `collectgarbage`.
fn collector_mark() -> *mut c_void {
    (&raw const COLLECTOR_MARK).cast_mut().cast()
}

/// A table through which scripts see `real` without being able to change it. `getmetatable` returns
/// `metatable`, or nil.
pub(super) fn read_only(lua: &Lua, real: &Table, metatable: Option<Table>) -> Result<Table> {
    let proxy = lua.create_table()?;
    let meta = lua.create_table()?;
    meta.raw_set(1, LightUserData(mark()))?;
    show(&meta, real)?;
    meta.raw_set("__newindex", c_function(lua, refuse_write, None)?)?;
    match metatable {
        Some(shown) => meta.raw_set("__metatable", shown)?,
        None => meta.raw_set("__metatable", false)?,
    }
    proxy.set_metatable(Some(meta))?;
    Ok(proxy)
}

/// Makes the table of [`read_only`] that has this metatable show another table.
pub(super) fn show(metatable: &Table, real: &Table) -> Result<()> {
    metatable.raw_set(2, real)?;
    metatable.raw_set("__index", real)
}

/// A function that calls `inner`. The first result of `inner` says what the others are: nil for
/// results, 0 for a value to raise, 1 for a text to raise with the caller's line, n + 2 for an
/// error of argument n.
pub(super) fn raising(lua: &Lua, inner: Function) -> Result<Function> {
    c_function(lua, raise, Some(inner))
}

/// Replaces functions of `globals` with ones that follow the rules of the sandbox.
pub(super) fn guard(working: &Working<'_>, globals: &Table) -> Result<()> {
    let guards: [(&str, Native); 14] = [
        ("collectgarbage", collect_garbage),
        ("pcall", pcall),
        ("xpcall", xpcall),
        ("rawset", refuse_protected),
        ("setmetatable", refuse_protected),
        ("rawget", on_real),
        ("next", on_real),
        ("getmetatable", get_metatable),
        ("pairs", pairs),
        ("unpack", unpack),
        ("loadstring", load_string),
        ("load", load),
        ("tonumber", counted),
        ("tostring", counted),
    ];
    let next: Function = globals.raw_get("next")?;
    for (name, guard) in guards {
        let original: Function = match name {
            "pairs" => next.clone(),
            name => globals.raw_get(name)?,
        };
        globals.raw_set(name, working.function(guard, Some(original))?)?;
    }
    Ok(())
}

/// The same of the library of coroutines.
pub(super) fn guard_coroutines(working: &Working<'_>, coroutines: &Table) -> Result<()> {
    let guards: [(&str, Native); 3] = [("resume", catching), ("create", making), ("wrap", making)];
    for (name, guard) in guards {
        let original: Function = coroutines.raw_get(name)?;
        coroutines.raw_set(name, working.function(guard, Some(original))?)?;
    }
    Ok(())
}

/// The function that reports a missing global.
pub(super) fn missing_global(lua: &Lua) -> Result<Function> {
    c_function(lua, refuse_missing, None)
}

/// Compiles a text, without garbage collections in between (CVE-2025-49844).
pub(super) fn compile(
    lua: &Lua,
    text: &[u8],
    name: &CStr,
) -> Result<std::result::Result<Function, String>> {
    if let Some(reason) = unparsable(text, name) {
        return Ok(Err(reason));
    }
    // SAFETY: one value is left on the stack for the load, and the text outlives it.
    let (is_done, value): (bool, Value) = unsafe {
        lua.exec_raw((), |state| {
            ffi::lua_gc(state, ffi::LUA_GCSTOP, 0);
            let status =
                ffi::luaL_loadbuffer(state, text.as_ptr().cast(), text.len(), name.as_ptr());
            ffi::lua_gc(state, ffi::LUA_GCRESTART, 0);
            ffi::lua_pushboolean(state, c_int::from(status == 0));
            ffi::lua_insert(state, -2);
        })?
    };
    Ok(match value {
        Value::Function(function) if is_done => Ok(function),
        Value::String(text) => Err(text.to_string_lossy()),
        _ => Err("not enough memory".to_owned()),
    })
}

fn unparsable(text: &[u8], name: &CStr) -> Option<String> {
    let reason = if text.first() == Some(&0x1b) {
        ":1: unexpected symbol near 'char(27)'"
    } else if has_long_bracket(text) {
        ": a long bracket has too many '='"
    } else {
        return None;
    };
    let name = name.to_string_lossy();
    Some(format!("{}{reason}", name.trim_start_matches('@')))
}

fn has_long_bracket(text: &[u8]) -> bool {
    let mut run = None;
    for byte in text {
        run = match (byte, run) {
            (b'[', _) => Some(0_usize),
            (b'=', Some(length)) if length >= LONG_BRACKET_MAX => return true,
            (b'=', Some(length)) => Some(length + 1),
            _ => None,
        };
    }
    false
}

fn c_function(
    lua: &Lua,
    function: unsafe extern "C-unwind" fn(*mut lua_State) -> c_int,
    upvalue: Option<Function>,
) -> Result<Function> {
    let upvalues = c_int::from(upvalue.is_some());
    // SAFETY: the upvalue, if there is one, is the only value on the stack, and the closure
    // replaces it.
    unsafe {
        lua.exec_raw(upvalue, |state| {
            ffi::lua_settop(state, upvalues);
            ffi::lua_pushcclosure(state, function, upvalues);
        })
    }
}

/// Whether the value at `index` is a table that scripts may only read.
unsafe fn is_protected(state: *mut lua_State, index: c_int) -> bool {
    unsafe {
        if ffi::lua_type(state, index) != ffi::LUA_TTABLE
            || ffi::lua_getmetatable(state, index) == 0
        {
            return false;
        }
        ffi::lua_rawgeti(state, -1, 1);
        let is_marked = ffi::lua_touserdata(state, -1) == mark();
        ffi::lua_settop(state, -3);
        is_marked
    }
}

/// Whether scripts may only read a table.
pub(super) fn is_read_only(table: &Table) -> Result<bool> {
    let Some(metatable) = table.metatable() else {
        return Ok(false);
    };
    let first: Value = metatable.raw_get(1)?;
    Ok(matches!(first, Value::LightUserData(found) if found.0 == mark()))
}

/// Raises a text with the line of the caller.
pub(super) unsafe fn refuse_text(state: *mut lua_State, text: &CStr) -> c_int {
    unsafe {
        ffi::lua_pushstring(state, text.as_ptr());
        refuse_at_line(state)
    }
}

/// Raises the text at the top with the line of the caller.
pub(super) unsafe fn refuse_at_line(state: *mut lua_State) -> c_int {
    unsafe {
        ffi::luaL_where(state, 1);
        ffi::lua_insert(state, -2);
        ffi::lua_concat(state, 2);
        ffi::lua_error(state)
    }
}

unsafe extern "C-unwind" fn refuse_write(state: *mut lua_State) -> c_int {
    unsafe {
        ffi::lua_pushstring(state, READ_ONLY.as_ptr());
        refuse_at_line(state)
    }
}

unsafe extern "C-unwind" fn refuse_missing(state: *mut lua_State) -> c_int {
    unsafe {
        if ffi::lua_isstring(state, 2) == 0 {
            ffi::lua_pushstring(
                state,
                c"Second argument to luaProtectedTableError must be a string or number".as_ptr(),
            );
            return refuse_at_line(state);
        }
        ffi::lua_pushstring(
            state,
            c"Script attempted to access nonexistent global variable '".as_ptr(),
        );
        ffi::lua_pushvalue(state, 2);
        ffi::lua_pushstring(state, c"'".as_ptr());
        ffi::lua_concat(state, 3);
        refuse_at_line(state)
    }
}

/// Refuses to change the first argument if scripts may only read it.
pub(super) unsafe fn refuse_if_protected(state: *mut lua_State) {
    unsafe {
        if is_protected(state, 1) {
            ffi::lua_pushstring(state, READ_ONLY.as_ptr());
            ffi::lua_error(state);
        }
    }
}

unsafe extern "C-unwind" fn refuse_protected(state: *mut lua_State) -> c_int {
    unsafe {
        refuse_if_protected(state);
        original(state)
    }
}

/// `xpcall` that does not call the handler for errors that end a script. Lua calls no hook while a
/// handler runs, so a handler that loops could not be ended.
unsafe extern "C-unwind" fn xpcall(state: *mut lua_State) -> c_int {
    unsafe {
        if ffi::lua_isfunction(state, 2) != 0 {
            ffi::lua_pushvalue(state, 2);
            ffi::lua_pushcclosure(state, handle, 1);
            ffi::lua_replace(state, 2);
        }
        catching(state)
    }
}

unsafe extern "C-unwind" fn handle(state: *mut lua_State) -> c_int {
    unsafe {
        // Scripts have no userdata but the errors of the bindings.
        if ffi::lua_type(state, 1) == ffi::LUA_TUSERDATA {
            ffi::lua_settop(state, 1);
            return 1;
        }
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
        ffi::lua_insert(state, 1);
        ffi::lua_call(state, ffi::lua_gettop(state) - 1, 1);
        1
    }
}

/// Replaces the first argument with the real table if scripts may only read that.
pub(super) unsafe fn replace_by_real(state: *mut lua_State) {
    unsafe {
        if is_protected(state, 1) {
            ffi::lua_getmetatable(state, 1);
            ffi::lua_rawgeti(state, -1, 2);
            ffi::lua_replace(state, 1);
            ffi::lua_settop(state, -2);
        }
    }
}

/// Runs the function on the real table.
unsafe extern "C-unwind" fn on_real(state: *mut lua_State) -> c_int {
    unsafe {
        replace_by_real(state);
        original(state)
    }
}

unsafe extern "C-unwind" fn get_metatable(state: *mut lua_State) -> c_int {
    unsafe {
        let is_protected = is_protected(state, 1);
        let count = original(state);
        if is_protected && ffi::lua_type(state, -1) == ffi::LUA_TBOOLEAN {
            ffi::lua_pushnil(state);
            return 1;
        }
        count
    }
}

/// The upvalue is the stock function. Its changes outlast the script.
unsafe extern "C-unwind" fn collect_garbage(state: *mut lua_State) -> c_int {
    unsafe {
        note_collector_use(state, true);
        // It may examine all memory.
        check(state);
        original(state)
    }
}

/// Resets the collector to Lua's defaults if a script has used `collectgarbage`. Restarting it
/// costs a step each time.
pub(super) unsafe fn reset_collector(state: *mut lua_State) {
    unsafe {
        ffi::lua_pushlightuserdata(state, collector_mark());
        ffi::lua_rawget(state, ffi::LUA_REGISTRYINDEX);
        let was_used = ffi::lua_toboolean(state, -1) != 0;
        ffi::lua_settop(state, -2);
        if was_used {
            ffi::lua_gc(state, ffi::LUA_GCRESTART, 0);
            ffi::lua_gc(state, ffi::LUA_GCSETPAUSE, COLLECTOR_PERCENT);
            ffi::lua_gc(state, ffi::LUA_GCSETSTEPMUL, COLLECTOR_PERCENT);
            note_collector_use(state, false);
        }
    }
}

unsafe fn note_collector_use(state: *mut lua_State, is_used: bool) {
    unsafe {
        ffi::lua_pushlightuserdata(state, collector_mark());
        ffi::lua_pushboolean(state, c_int::from(is_used));
        ffi::lua_rawset(state, ffi::LUA_REGISTRYINDEX);
    }
}

/// The upvalue is the stock `next`.
unsafe extern "C-unwind" fn pairs(state: *mut lua_State) -> c_int {
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        if is_protected(state, 1) {
            ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
            ffi::lua_pushcclosure(state, on_real, 1);
        } else {
            ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
        }
        ffi::lua_pushvalue(state, 1);
        ffi::lua_pushnil(state);
        3
    }
}

/// Redis's `pcall`: for an error that is a table with a message, returns the message.
unsafe extern "C-unwind" fn pcall(state: *mut lua_State) -> c_int {
    unsafe {
        let count = ffi::lua_gettop(state);
        if count == 0 {
            ffi::lua_pushboolean(state, 0);
            return 1;
        }
        // Before the call, because its results may use up the stack.
        ffi::lua_pushboolean(state, 1);
        ffi::lua_insert(state, 1);
        if ffi::lua_pcall(state, count - 1, ffi::LUA_MULTRET, 0) == 0 {
            return ffi::lua_gettop(state);
        }
        check_after_error(state);
        ffi::lua_pushboolean(state, 0);
        ffi::lua_replace(state, 1);
        if ffi::lua_type(state, 2) == ffi::LUA_TTABLE {
            ffi::lua_pushstring(state, c"err".as_ptr());
            ffi::lua_rawget(state, 2);
            if ffi::lua_isstring(state, 3) != 0 {
                ffi::lua_replace(state, 2);
            }
            ffi::lua_settop(state, 2);
        }
        2
    }
}

unsafe extern "C-unwind" fn unpack(state: *mut lua_State) -> c_int {
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        // As `luaL_checkint` truncates them.
        let first = ffi::luaL_optinteger(state, 2, 1) as i64 as i32;
        let last = if ffi::lua_type(state, 3) > ffi::LUA_TNIL {
            ffi::luaL_checkinteger(state, 3) as i64 as i32
        } else {
            i32::try_from(ffi::lua_objlen(state, 1)).unwrap_or(i32::MAX)
        };
        let count = i64::from(last) - i64::from(first) + 1;
        // Stock Lua counts beyond the largest index (CVE-2025-46817).
        if count > UNPACKED_MAX || (count > 0 && last == i32::MAX) {
            ffi::lua_pushstring(state, c"too many results to unpack".as_ptr());
            return refuse_at_line(state);
        }
        original(state)
    }
}

/// Loads the text at index 1 under the name at index 2: the function, or nil and an error.
unsafe fn load_text(state: *mut lua_State) -> c_int {
    unsafe {
        let mut length = 0;
        let text = ffi::lua_tolstring(state, 1, &raw mut length);
        spend(state, length.saturating_mul(COMPILE_STEPS));
        let bytes = std::slice::from_raw_parts(text.cast::<u8>(), length);
        if has_long_bracket(bytes) {
            ffi::lua_pushnil(state);
            ffi::lua_pushstring(state, c"a long bracket has too many '='".as_ptr());
            return 2;
        }
        let name = ffi::lua_tolstring(state, 2, std::ptr::null_mut());
        // Bytecode is not text. A blank before it has Lua read it as text.
        let (text, length) = if bytes.first() == Some(&0x1b) {
            ffi::lua_pushstring(state, c" ".as_ptr());
            ffi::lua_pushvalue(state, 1);
            ffi::lua_concat(state, 2);
            let mut length = 0;
            let text = ffi::lua_tolstring(state, -1, &raw mut length);
            (text, length)
        } else {
            (text, length)
        };
        ffi::lua_gc(state, ffi::LUA_GCSTOP, 0);
        let status = ffi::luaL_loadbuffer(state, text, length, name);
        ffi::lua_gc(state, ffi::LUA_GCRESTART, 0);
        if status == 0 {
            return 1;
        }
        ffi::lua_pushnil(state);
        ffi::lua_insert(state, -2);
        2
    }
}

unsafe extern "C-unwind" fn load_string(state: *mut lua_State) -> c_int {
    unsafe {
        if ffi::lua_isstring(state, 1) == 0
            || (ffi::lua_type(state, 2) > ffi::LUA_TNIL && ffi::lua_isstring(state, 2) == 0)
        {
            // It knows how to complain.
            return original(state);
        }
        ffi::lua_settop(state, 2);
        if ffi::lua_isnil(state, 2) != 0 {
            ffi::lua_pushvalue(state, 1);
            ffi::lua_replace(state, 2);
        }
        load_text(state)
    }
}

unsafe extern "C-unwind" fn load(state: *mut lua_State) -> c_int {
    unsafe {
        if ffi::lua_type(state, 1) != ffi::LUA_TFUNCTION
            || (ffi::lua_type(state, 2) > ffi::LUA_TNIL && ffi::lua_isstring(state, 2) == 0)
        {
            return original(state);
        }
        ffi::lua_settop(state, 2);
        if ffi::lua_isnil(state, 2) != 0 {
            ffi::lua_pushstring(state, c"=(load)".as_ptr());
            ffi::lua_replace(state, 2);
        }
        ffi::lua_pushstring(state, c"".as_ptr());
        let mut pieces = 0;
        loop {
            pieces += 1;
            if pieces > LOADED_PIECES_MAX {
                ffi::lua_pushnil(state);
                ffi::lua_pushstring(state, c"reader function gives too many pieces".as_ptr());
                return 2;
            }
            ffi::lua_pushvalue(state, 1);
            if ffi::lua_pcall(state, 0, 1, 0) != 0 {
                check_after_error(state);
                ffi::lua_pushnil(state);
                ffi::lua_insert(state, -2);
                return 2;
            }
            if ffi::lua_isnil(state, -1) != 0 {
                break;
            }
            if ffi::lua_isstring(state, -1) == 0 {
                ffi::lua_pushnil(state);
                ffi::lua_pushstring(state, c"reader function must return a string".as_ptr());
                return 2;
            }
            if ffi::lua_objlen(state, -1) == 0 {
                break;
            }
            ffi::lua_concat(state, 2);
            spend(state, CALL_STEPS + ffi::lua_objlen(state, -1));
        }
        ffi::lua_settop(state, 3);
        ffi::lua_replace(state, 1);
        load_text(state)
    }
}

/// Arguments of a function in the form in which [`raising`] passes them on.
pub(super) fn arguments(handed: MultiValue) -> Result<Vec<Value>> {
    let handed: Vec<Value> = handed.into_iter().collect();
    let [Value::LightUserData(marked), Value::Table(packed)] = handed.as_slice() else {
        return Ok(handed);
    };
    if marked.0 != mark() {
        return Ok(handed);
    }
    let count: i64 = packed.raw_get(0)?;
    (1..=count).map(|place| packed.raw_get(place)).collect()
}

unsafe extern "C-unwind" fn raise(state: *mut lua_State) -> c_int {
    unsafe {
        let mut count = ffi::lua_gettop(state);
        if count > ARGUMENTS_MAX {
            ffi::lua_createtable(state, count, 1);
            ffi::lua_insert(state, 1);
            for place in (1..=count).rev() {
                ffi::lua_rawseti(state, 1, place.into());
            }
            ffi::lua_pushnumber(state, count.into());
            ffi::lua_rawseti(state, 1, 0);
            ffi::lua_pushlightuserdata(state, mark());
            ffi::lua_insert(state, 1);
            count = 2;
        }
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
        ffi::lua_insert(state, 1);
        ffi::lua_call(state, count, ffi::LUA_MULTRET);
        if ffi::lua_isnil(state, 1) != 0 {
            return ffi::lua_gettop(state) - 1;
        }
        let kind = ffi::lua_tonumber(state, 1) as c_int;
        ffi::lua_settop(state, 2);
        match kind {
            0 => ffi::lua_error(state),
            1 => refuse_at_line(state),
            number => {
                let text = ffi::lua_tolstring(state, 2, std::ptr::null_mut());
                ffi::luaL_argerror(state, number - 2, text)
            }
        }
    }
}
