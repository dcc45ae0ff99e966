//! What scripts see: Lua's libraries without anything that reaches beyond the script, Redis's own
//! libraries, and nothing that a script could change.

use std::rc::Rc;

use mlua::{Function, Lua, Result, Table, Value};

use super::library::{Raise, integer, put};
use super::state::State;
use super::working::Working;
use super::{api, json, msgpack, numbers, raw, strings, structs, tables};

/// Globals of stock Lua that scripts do not get: they read files, write to the server's output, see the
/// environments of other functions, or create objects whose destruction runs code.
const HIDDEN: &[&str] = &[
    "dofile", "getfenv", "loadfile", "module", "newproxy", "package", "print", "require",
    "setfenv", "debug", "io", "os",
];

/// The globals of a machine.
pub(super) struct Globals {
    /// The globals of scripts, including KEYS and ARGV.
    pub(super) scripts: Table,
    /// The globals of functions.
    pub(super) functions: FunctionGlobals,
}

/// The globals of functions. They share one table, which shows fewer while a library is loaded.
pub(super) struct FunctionGlobals {
    /// The table.
    pub(super) shown: Table,
    metatable: Table,
    at_run: Table,
    at_load: Table,
}

impl FunctionGlobals {
    fn new(lua: &Lua, at_run: Table, at_load: Table) -> Result<Self> {
        let shown = raw::read_only(
            lua,
            &at_run,
            Some(raw::read_only(lua, &lua.create_table()?, None)?),
        )?;
        let Some(metatable) = shown.metatable() else {
            return Err(mlua::Error::runtime("a table has lost its metatable"));
        };
        at_run.raw_set("_G", &shown)?;
        Ok(Self {
            shown,
            metatable,
            at_run,
            at_load,
        })
    }

    /// From now on a library is loaded, or functions run.
    pub(super) fn show(&self, is_loading: bool) -> Result<()> {
        let real = if is_loading {
            &self.at_load
        } else {
            &self.at_run
        };
        raw::show(&self.metatable, real)
    }
}

/// Replaces the machine's globals with those that scripts see.
pub(super) fn close(lua: &Lua, state: &Rc<State>, redis: Table) -> Result<Globals> {
    let globals = lua.globals();
    let working = Working::new(lua, state)?;
    raw::guard(&working, &globals)?;
    raw::guard_coroutines(&working, &globals.raw_get("coroutine")?)?;
    strings::replace(&working, &globals.raw_get("string")?)?;
    tables::replace(&working, &globals.raw_get("table")?)?;
    let seen = lua.create_table()?;
    for pair in globals.pairs::<Value, Value>() {
        let (name, value) = pair?;
        let is_hidden = match &name {
            Value::String(name) => HIDDEN
                .iter()
                .any(|hidden| name.as_bytes() == hidden.as_bytes()),
            _ => false,
        };
        if is_hidden
            || name
                .as_string()
                .is_some_and(|name| name.as_bytes() == b"_G")
        {
            continue;
        }
        match value {
            Value::Table(library) => seen.raw_set(name, raw::read_only(lua, &library, None)?)?,
            value => seen.raw_set(name, value)?,
        }
    }
    let math: Table = globals.raw_get("math")?;
    put_random(lua, &math, state)?;
    for (name, library) in [
        ("redis", redis),
        ("cjson", json::library(lua, state, &state.json)?),
        ("cmsgpack", msgpack::library(lua, state)?),
        ("struct", structs::library(lua, state)?),
        ("bit", numbers::bit_library(lua)?),
    ] {
        seen.raw_set(name, raw::read_only(lua, &library, None)?)?;
    }
    protect_strings(lua, &globals, &seen)?;
    let missing = lua.create_table()?;
    missing.raw_set("__index", raw::missing_global(lua)?)?;
    let at_run = lua.create_table()?;
    for pair in seen.pairs::<Value, Value>() {
        let (name, value) = pair?;
        at_run.raw_set(name, value)?;
    }
    at_run.set_metatable(Some(missing.clone()))?;
    let functions = FunctionGlobals::new(lua, at_run, api::globals(lua, state)?)?;
    seen.set_metatable(Some(missing))?;
    let shown = raw::read_only(lua, &lua.create_table()?, None)?;
    let proxy = raw::read_only(lua, &seen, Some(shown))?;
    seen.raw_set("_G", &proxy)?;
    lua.set_globals(proxy)?;
    Ok(Globals {
        scripts: seen,
        functions,
    })
}

/// Strings share one metatable. Scripts may read it but not change it.
fn protect_strings(lua: &Lua, globals: &Table, seen: &Table) -> Result<()> {
    let get_metatable: Function = globals.raw_get("getmetatable")?;
    let metatable: Table = get_metatable.call(lua.create_string("")?)?;
    let shown = lua.create_table()?;
    shown.raw_set("__index", seen.raw_get::<Value>("string")?)?;
    metatable.raw_set("__metatable", raw::read_only(lua, &shown, None)?)
}

fn put_random(lua: &Lua, math: &Table, state: &Rc<State>) -> Result<()> {
    let empty = |place| Raise::Argument(place, "interval is empty".to_owned());
    let own = Rc::clone(state);
    put(lua, math, "random", move |lua, arguments| {
        let random = own.random.next();
        let number = match arguments.len() {
            0 => random,
            1 => {
                let last = integer(lua, arguments, 1)?;
                if last < 1 {
                    return Err(empty(1));
                }
                (random * f64::from(last)).floor() + 1.0
            }
            2 => {
                let first = integer(lua, arguments, 1)?;
                let last = integer(lua, arguments, 2)?;
                if first > last {
                    return Err(empty(2));
                }
                let width = last.wrapping_sub(first).wrapping_add(1);
                (random * f64::from(width)).floor() + f64::from(first)
            }
            _ => return Err(Raise::Text("wrong number of arguments".to_owned())),
        };
        Ok(vec![Value::Number(number)])
    })?;
    let own = Rc::clone(state);
    put(lua, math, "randomseed", move |lua, arguments| {
        own.random.seed(integer(lua, arguments, 1)?);
        Ok(Vec::new())
    })
}
