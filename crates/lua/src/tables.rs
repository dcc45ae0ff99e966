//! Functions of `table` that may take long, as in `ltablib.c` of Lua 5.1. They count steps, so that
//! they can be ended even if they call no Lua code.
//!
//! An error leaves by `lua_error`, which jumps over frames that own nothing.
#![allow(unsafe_code)]

use std::ffi::c_int;

use mlua::ffi::{self, lua_State};
use mlua::{Function, Result, Table};

use super::raw::{refuse_if_protected, refuse_text, replace_by_real};
use super::working::{CALL_STEPS, Native, Working, counted, spend};

/// Places on Lua's stack that a sort needs: it sorts the smaller of two parts within itself.
const SORT_PLACES: c_int = 40;

/// Replaces functions of the library.
pub(super) fn replace(working: &Working<'_>, tables: &Table) -> Result<()> {
    let own: [(&str, Native); 7] = [
        ("sort", sort),
        ("insert", insert),
        ("foreach", for_each),
        ("foreachi", for_each_index),
        ("concat", counted),
        ("remove", counted),
        ("maxn", counted),
    ];
    for (name, native) in own {
        let original: Function = tables.raw_get(name)?;
        tables.raw_set(name, working.function(native, Some(original))?)?;
    }
    Ok(())
}

/// The length of the first argument, which is a table, as an `int`.
unsafe fn length(state: *mut lua_State) -> c_int {
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        c_int::try_from(ffi::lua_objlen(state, 1)).unwrap_or(c_int::MAX)
    }
}

unsafe fn get(state: *mut lua_State, index: c_int) {
    unsafe { ffi::lua_rawgeti(state, 1, index.into()) };
}

unsafe fn set(state: *mut lua_State, index: c_int) {
    unsafe { ffi::lua_rawseti(state, 1, index.into()) };
}

unsafe fn pop(state: *mut lua_State, count: c_int) {
    unsafe { ffi::lua_settop(state, -count - 1) };
}

unsafe extern "C-unwind" fn insert(state: *mut lua_State) -> c_int {
    unsafe {
        refuse_if_protected(state);
        let mut end = length(state).wrapping_add(1);
        let place = match ffi::lua_gettop(state) {
            2 => end,
            3 => ffi::luaL_checkinteger(state, 2) as i64 as c_int,
            _ => return refuse_text(state, c"wrong number of arguments to 'insert'"),
        };
        end = end.max(place);
        while end > place {
            get(state, end - 1);
            set(state, end);
            end -= 1;
            spend(state, 1);
        }
        set(state, place);
        0
    }
}

unsafe extern "C-unwind" fn for_each(state: *mut lua_State) -> c_int {
    unsafe {
        replace_by_real(state);
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        ffi::luaL_checktype(state, 2, ffi::LUA_TFUNCTION);
        ffi::lua_pushnil(state);
        while ffi::lua_next(state, 1) != 0 {
            spend(state, CALL_STEPS);
            ffi::lua_pushvalue(state, 2);
            ffi::lua_pushvalue(state, -3);
            ffi::lua_pushvalue(state, -3);
            ffi::lua_call(state, 2, 1);
            if ffi::lua_isnil(state, -1) == 0 {
                return 1;
            }
            pop(state, 2);
        }
        0
    }
}

unsafe extern "C-unwind" fn for_each_index(state: *mut lua_State) -> c_int {
    unsafe {
        replace_by_real(state);
        let count = length(state);
        ffi::luaL_checktype(state, 2, ffi::LUA_TFUNCTION);
        for index in 1..=count {
            spend(state, CALL_STEPS);
            ffi::lua_pushvalue(state, 2);
            ffi::lua_pushnumber(state, index.into());
            get(state, index);
            ffi::lua_call(state, 2, 1);
            if ffi::lua_isnil(state, -1) == 0 {
                return 1;
            }
            pop(state, 1);
        }
        0
    }
}

unsafe extern "C-unwind" fn sort(state: *mut lua_State) -> c_int {
    unsafe {
        let count = length(state);
        ffi::luaL_checkstack(state, SORT_PLACES, c"".as_ptr());
        if ffi::lua_type(state, 2) > ffi::LUA_TNIL {
            ffi::luaL_checktype(state, 2, ffi::LUA_TFUNCTION);
        }
        ffi::lua_settop(state, 2);
        sort_range(state, 1, count);
        0
    }
}

/// Whether one value sorts before another. Both indexes count from the top of the stack.
unsafe fn is_before(state: *mut lua_State, one: c_int, other: c_int) -> bool {
    unsafe {
        if ffi::lua_isnil(state, 2) != 0 {
            let steps = match ffi::lua_type(state, one) {
                ffi::LUA_TSTRING => ffi::lua_objlen(state, one).saturating_add(CALL_STEPS),
                _ => CALL_STEPS,
            };
            spend(state, steps);
            return ffi::lua_lessthan(state, one, other) != 0;
        }
        spend(state, CALL_STEPS);
        ffi::lua_pushvalue(state, 2);
        // The function is before them now, then also the first.
        ffi::lua_pushvalue(state, one - 1);
        ffi::lua_pushvalue(state, other - 2);
        ffi::lua_call(state, 2, 1);
        let is_before = ffi::lua_toboolean(state, -1) != 0;
        pop(state, 1);
        is_before
    }
}

/// Sets two elements to the values on top of the stack.
unsafe fn set_two(state: *mut lua_State, one: c_int, other: c_int) {
    unsafe {
        set(state, one);
        set(state, other);
    }
}

/// Sorts the elements from `low` to `high` with the comparisons of stock Lua in the same order. The order of
/// equal elements, and the result of a contradictory function, depend on it.
unsafe fn sort_range(state: *mut lua_State, mut low: c_int, mut high: c_int) {
    unsafe {
        while low < high {
            get(state, low);
            get(state, high);
            match is_before(state, -1, -2) {
                true => set_two(state, low, high),
                false => pop(state, 2),
            }
            if high - low == 1 {
                break;
            }
            let middle = low.midpoint(high);
            get(state, middle);
            get(state, low);
            if is_before(state, -2, -1) {
                set_two(state, middle, low);
            } else {
                pop(state, 1);
                get(state, high);
                match is_before(state, -1, -2) {
                    true => set_two(state, middle, high),
                    false => pop(state, 2),
                }
            }
            if high - low == 2 {
                break;
            }
            // The pivot stays on the stack.
            get(state, middle);
            ffi::lua_pushvalue(state, -1);
            get(state, high - 1);
            set_two(state, middle, high - 1);
            let (mut from_low, mut from_high) = (low, high - 1);
            loop {
                loop {
                    from_low += 1;
                    get(state, from_low);
                    if !is_before(state, -1, -2) {
                        break;
                    }
                    if from_low > high {
                        refuse_text(state, c"invalid order function for sorting");
                    }
                    pop(state, 1);
                }
                loop {
                    from_high -= 1;
                    get(state, from_high);
                    if !is_before(state, -3, -1) {
                        break;
                    }
                    if from_high < low {
                        refuse_text(state, c"invalid order function for sorting");
                    }
                    pop(state, 1);
                }
                if from_high < from_low {
                    pop(state, 3);
                    break;
                }
                set_two(state, from_low, from_high);
            }
            get(state, high - 1);
            get(state, from_low);
            set_two(state, high - 1, from_low);
            // Sorts the larger part here, and the smaller one recursively.
            if from_low - low < high - from_low {
                let smaller = (low, from_low - 1);
                low = from_low + 1;
                sort_range(state, smaller.0, smaller.1);
            } else {
                let smaller = (from_low + 1, high);
                high = from_low - 1;
                sort_range(state, smaller.0, smaller.1);
            }
        }
    }
}
