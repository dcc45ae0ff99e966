//! How often a script is checked.
#![allow(unsafe_code)]

use std::rc::Rc;

use mlua::{Lua, ffi};

use super::*;
use crate::state::State;

#[test]
fn each_coroutine_is_checked_as_often_as_the_memory_in_use_asks_for() {
    let lua = Lua::new();
    let state = Rc::new(State::default());
    let scripts = Scripts::default();
    let guard = scripts.begin(Caller::Script, TimeLimit::Nothing);
    state.begin(&lua, Arc::clone(guard.run())).unwrap();
    let every = lua.create_function(|lua, ()| {
        // SAFETY: the closure leaves one value on the stack.
        unsafe {
            lua.exec_raw::<i64>((), |state| {
                ffi::lua_pushinteger(state, ffi::lua_gethookcount(state).into());
            })
        }
    });
    lua.globals().set("every", every.unwrap()).unwrap();
    let text = "local function turn() for i = 1, 3000 do end return every() end \
                local before, long = turn() \
                local within = coroutine.wrap(function() long = ('x'):rep(2e7) return turn() end)() \
                return before, within, turn()";
    let found: (i64, i64, i64) = lua.load(text).eval().unwrap();
    assert_eq!(found, (2_000, 100, 100));
}
