//! C functions whose work counts. Lua's hook counts only Lua instructions, and one of them may call
//! a function that takes long. Such functions count steps, and check from time to time whether the
//! script should end.
//!
//! Each function has three upvalues: the stock Lua function that it replaces, the state, and the
//! check.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::rc::Rc;

use mlua::ffi::{self, lua_State};
use mlua::{Function, LightUserData, Lua, Result};

use super::state::State;

/// Steps that a call takes at least.
pub(super) const CALL_STEPS: usize = 20;
/// Steps that a new coroutine counts for, about the bytes that it takes.
const COROUTINE_STEPS: usize = 1_000;
/// Index of the state among a function's upvalues. The check follows it.
const STATE: c_int = 2;

/// A function of C.
pub(super) type Native = unsafe extern "C-unwind" fn(*mut lua_State) -> c_int;

/// Creates such functions.
pub(super) struct Working<'l> {
    lua: &'l Lua,
    state: LightUserData,
    check: Function,
}

impl<'l> Working<'l> {
    /// `state` outlives what Lua runs, because the hook holds it.
    pub(super) fn new(lua: &'l Lua, state: &Rc<State>) -> Result<Self> {
        let own = Rc::clone(state);
        Ok(Self {
            lua,
            state: LightUserData(Rc::as_ptr(state).cast_mut().cast()),
            check: lua.create_function(move |lua, ()| own.end_if_due(lua))?,
        })
    }

    /// A function that replaces `original`.
    pub(super) fn function(&self, native: Native, original: Option<Function>) -> Result<Function> {
        let values = (original, self.state, self.check.clone());
        // SAFETY: the values on the stack become the closure's.
        unsafe {
            self.lua.exec_raw(values, |state| {
                ffi::lua_pushcclosure(state, native, 3);
            })
        }
    }
}

/// Calls the stock Lua function in this frame, so that its errors contain the name that it was
/// called by.
pub(super) unsafe fn original(state: *mut lua_State) -> c_int {
    unsafe {
        match ffi::lua_tocfunction(state, ffi::lua_upvalueindex(1)) {
            Some(function) => function(state),
            None => 0,
        }
    }
}

/// The state that counts the function's steps: its upvalue with this number.
pub(super) unsafe fn state_at<'s>(state: *mut lua_State, place: c_int) -> &'s State {
    unsafe {
        let own = ffi::lua_touserdata(state, ffi::lua_upvalueindex(place));
        &*own.cast_const().cast::<State>()
    }
}

/// Pushes the function's two values for counting.
pub(super) unsafe fn push_own(state: *mut lua_State) {
    unsafe {
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(STATE));
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(STATE + 1));
    }
}

/// The state of a function of [`Working::function`].
pub(super) unsafe fn own_state<'s>(state: *mut lua_State) -> &'s State {
    unsafe { state_at(state, STATE) }
}

/// Raises the error that ends the script, if it should end. The check is the function's upvalue
/// with this number.
pub(super) unsafe fn check_at(state: *mut lua_State, place: c_int) {
    unsafe {
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(place));
        ffi::lua_call(state, 0, 0);
    }
}

/// Raises the error that ends the script, if it should end.
pub(super) unsafe fn check(state: *mut lua_State) {
    unsafe { check_at(state, STATE + 1) }
}

/// Counts steps, and raises the error that ends the script if that is due.
pub(super) unsafe fn spend(state: *mut lua_State, steps: usize) {
    unsafe {
        if own_state(state).spend(steps) {
            check(state);
        }
    }
}

/// Call it after catching an error. Code that ran out of memory may have worked for long without
/// counting steps.
pub(super) unsafe fn check_after_error(state: *mut lua_State) {
    unsafe {
        if own_state(state).is_due() {
            check(state);
        }
    }
}

/// The function of stock Lua that catches errors. Its first result is whether it succeeded.
pub(super) unsafe extern "C-unwind" fn catching(state: *mut lua_State) -> c_int {
    unsafe {
        let results = original(state);
        if results > 0 && ffi::lua_toboolean(state, -results) == 0 {
            check_after_error(state);
        }
        results
    }
}

/// The stock Lua function that creates a coroutine. Each coroutine counts its own instructions, so
/// one that ends early is never checked.
pub(super) unsafe extern "C-unwind" fn making(state: *mut lua_State) -> c_int {
    unsafe {
        spend(state, COROUTINE_STEPS);
        original(state)
    }
}

/// The stock Lua function. Its work is assumed to be proportional to the lengths of its arguments
/// and its result.
pub(super) unsafe extern "C-unwind" fn counted(state: *mut lua_State) -> c_int {
    unsafe {
        let length = |place| match ffi::lua_type(state, place) {
            ffi::LUA_TSTRING | ffi::LUA_TTABLE => ffi::lua_objlen(state, place),
            _ => 0,
        };
        let lengths: usize = (1..=ffi::lua_gettop(state)).map(length).sum();
        spend(state, lengths.saturating_add(CALL_STEPS));
        let results = original(state);
        if results > 0 && ffi::lua_type(state, -1) == ffi::LUA_TSTRING {
            spend(state, ffi::lua_objlen(state, -1));
        }
        results
    }
}
