//! What scripts see: Lua's libraries without what reaches beyond the script, Redis's own, and
//! nothing that a script could change.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Result, Table, Value};

use super::machine::State;
use super::{bits, json, msgpack, raw, structs};

/// Globals of stock Lua that scripts do not get: they read files, write to the server's output, see
/// the environments of other functions, or make objects whose end runs code.
const HIDDEN: &[&str] = &[
    "dofile", "getfenv", "loadfile", "module", "newproxy", "package", "print", "require", "setfenv",
    "debug", "io", "os",
];

/// Why a function of a library has no result.
pub(super) enum Raise {
    /// This value is raised as it is.
    Value(Value),
    /// This text is raised, with the caller's line before it.
    Text(String),
    /// Something is wrong with the argument of that number.
    Argument(i32, String),
    /// Lua failed.
    Lua(mlua::Error),
}

impl From<mlua::Error> for Raise {
    fn from(error: mlua::Error) -> Self {
        Raise::Lua(error)
    }
}

/// What a function of a library answers.
pub(super) type Outcome = std::result::Result<Vec<Value>, Raise>;

/// An outcome as [`raw::raising`] expects it.
pub(super) fn to_results(lua: &Lua, outcome: Outcome) -> Result<MultiValue> {
    let raised = |kind: i32, value: Value| {
        Ok([Value::Number(f64::from(kind)), value].into_iter().collect())
    };
    match outcome {
        Ok(values) => Ok(std::iter::once(Value::Nil).chain(values).collect()),
        Err(Raise::Value(value)) => raised(0, value),
        Err(Raise::Text(text)) => raised(1, Value::String(lua.create_string(text)?)),
        Err(Raise::Argument(number, text)) => {
            raised(number + 2, Value::String(lua.create_string(text)?))
        }
        Err(Raise::Lua(error)) => Err(error),
    }
}

/// Puts a function into a library.
pub(super) fn put(
    lua: &Lua,
    library: &Table,
    name: &str,
    function: impl Fn(&Lua, &[Value]) -> Outcome + 'static,
) -> Result<()> {
    let inner = lua.create_function(move |lua, arguments: MultiValue| {
        let arguments: Vec<Value> = arguments.into_iter().collect();
        to_results(lua, function(lua, &arguments))
    })?;
    library.raw_set(name, raw::raising(lua, inner)?)
}

/// What stock Lua calls a value's type, `no value` for none.
pub(super) fn type_name(value: Option<&Value>) -> &'static str {
    match value {
        None => "no value",
        Some(Value::Integer(_)) => "number",
        Some(Value::LightUserData(_)) => "userdata",
        Some(value) => value.type_name(),
    }
}

/// An argument that is a number or a text of one (Lua: `luaL_checknumber`).
pub(super) fn number(lua: &Lua, arguments: &[Value], place: i32) -> std::result::Result<f64, Raise> {
    let value = usize::try_from(place - 1).ok().and_then(|at| arguments.get(at));
    let number = match value {
        Some(Value::Number(number)) => Some(*number),
        Some(value @ (Value::Integer(_) | Value::String(_))) => lua.coerce_number(value.clone())?,
        _ => None,
    };
    let text = || format!("number expected, got {}", type_name(value));
    number.ok_or_else(|| Raise::Argument(place, text()))
}

/// The same, as `luaL_checkint` of Lua 5.1 makes an `int` of it.
pub(super) fn integer(lua: &Lua, arguments: &[Value], place: i32) -> std::result::Result<i32, Raise> {
    Ok(number(lua, arguments, place)? as i64 as i32)
}

/// Replaces the machine's globals by what scripts see. Returns the table that takes KEYS and ARGV.
pub(super) fn close(lua: &Lua, state: &Rc<State>, redis: Table) -> Result<Table> {
    let globals = lua.globals();
    raw::guard(lua, &globals)?;
    let seen = lua.create_table()?;
    for pair in globals.pairs::<Value, Value>() {
        let (name, value) = pair?;
        let is_hidden = match &name {
            Value::String(name) => HIDDEN.iter().any(|hidden| name.as_bytes() == hidden.as_bytes()),
            _ => false,
        };
        if is_hidden || name.as_string().is_some_and(|name| name.as_bytes() == b"_G") {
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
        ("cjson", json::library(lua, state)?),
        ("cmsgpack", msgpack::library(lua)?),
        ("struct", structs::library(lua)?),
        ("bit", bits::library(lua)?),
    ] {
        seen.raw_set(name, raw::read_only(lua, &library, None)?)?;
    }
    protect_strings(lua, &globals, &seen)?;
    let missing = lua.create_table()?;
    missing.raw_set("__index", raw::missing_global(lua)?)?;
    seen.set_metatable(Some(missing))?;
    let shown = raw::read_only(lua, &lua.create_table()?, None)?;
    let proxy = raw::read_only(lua, &seen, Some(shown))?;
    seen.raw_set("_G", &proxy)?;
    lua.set_globals(proxy)?;
    Ok(seen)
}

/// Strings share one metatable, which scripts may look at and not change.
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
