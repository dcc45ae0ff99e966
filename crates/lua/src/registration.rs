//! What a library sees while it is loaded: `redis.register_function`, the log, the version, and
//! nothing else (Redis: `function_lua.c`).

use std::rc::Rc;

use bytes::Bytes;
use mlua::{Lua, Result, Table, Value};

use super::functions::{Function, FunctionFlags};
use super::library::{Outcome, put};
use super::state::State;
use super::{api, raw};

/// What [`is_library_name`] refuses is answered so.
pub const LIBRARY_NAME_REFUSED: &str = "Library names can only contain letters, numbers, or underscores(_) and \
                            must be at least one character long";

/// Whether a library or a function may be called so.
pub fn is_library_name(name: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !name.is_empty() && name.iter().all(is_allowed)
}

/// The globals of a library that is being loaded.
pub(super) fn globals(lua: &Lua, state: &Rc<State>) -> Result<Table> {
    let redis = lua.create_table()?;
    api::put_log(lua, &redis)?;
    api::put_version(&redis)?;
    let own = Rc::clone(state);
    put(lua, &redis, "register_function", move |lua, arguments| {
        register(lua, &own, arguments)
    })?;
    let missing = lua.create_table()?;
    missing.raw_set("__index", raw::missing_global(lua)?)?;
    redis.set_metatable(Some(missing.clone()))?;
    let globals = lua.create_table()?;
    globals.raw_set("redis", raw::read_only(lua, &redis, None)?)?;
    globals.set_metatable(Some(missing))?;
    Ok(globals)
}

fn register(lua: &Lua, state: &State, arguments: &[Value]) -> Outcome {
    let refused = |reason: &str| Err(api::raised(lua, &format!("ERR {reason}")));
    let mut registered = state.registered.borrow_mut();
    let Some(registered) = registered.as_mut() else {
        return refused("redis.register_function can only be called on FUNCTION LOAD command");
    };
    let read = match arguments {
        [Value::Table(named)] => read_named(lua, named)?,
        [_] => Err(
            "calling redis.register_function with a single argument is only applicable to Lua \
             table (representing named arguments).",
        ),
        [name, callback] => read_positional(lua, name, callback)?,
        _ => Err("wrong number of arguments to redis.register_function"),
    };
    let (name, description, flags, callback) = match read {
        Ok(read) => read,
        Err(reason) => return refused(reason),
    };
    if !is_library_name(&name) {
        return refused(LIBRARY_NAME_REFUSED);
    }
    // A name has only letters of ASCII.
    let name = String::from_utf8_lossy(&name).into_owned();
    if registered.by_name.contains_key(name.as_str())? {
        return refused("Function already exists in the library");
    }
    let function = Function {
        name,
        description,
        flags,
    };
    registered
        .by_name
        .raw_set(function.name.as_str(), callback)?;
    registered.described.push(function);
    Ok(Vec::new())
}

type Read =
    std::result::Result<(Bytes, Option<Bytes>, FunctionFlags, mlua::Function), &'static str>;

fn read_positional(lua: &Lua, name: &Value, callback: &Value) -> Result<Read> {
    let Some(name) = text(lua, name)? else {
        return Ok(Err(
            "first argument to redis.register_function must be a string",
        ));
    };
    let Value::Function(callback) = callback else {
        return Ok(Err(
            "second argument to redis.register_function must be a function",
        ));
    };
    let flags = FunctionFlags::default();
    Ok(Ok((name, None, flags, callback.clone())))
}

fn read_named(lua: &Lua, named: &Table) -> Result<Read> {
    let mut name = None;
    let mut description = None;
    let mut callback = None;
    let mut flags = FunctionFlags::default();
    for pair in named.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let Some(key) = text(lua, &key)? else {
            return Ok(Err(
                "named argument key given to redis.register_function is not a string",
            ));
        };
        match key.to_ascii_lowercase().as_slice() {
            b"function_name" => match text(lua, &value)? {
                Some(given) => name = Some(given),
                None => {
                    return Ok(Err(
                        "function_name argument given to redis.register_function must be a string",
                    ));
                }
            },
            b"description" => match text(lua, &value)? {
                Some(given) => description = Some(given),
                None => {
                    return Ok(Err(
                        "description argument given to redis.register_function must be a string",
                    ));
                }
            },
            b"callback" => match value {
                Value::Function(given) => callback = Some(given),
                _ => {
                    return Ok(Err(
                        "callback argument given to redis.register_function must be a function",
                    ));
                }
            },
            b"flags" => match &value {
                Value::Table(names) => match read_flags(lua, names)? {
                    Some(given) => flags = given,
                    None => return Ok(Err("unknown flag given")),
                },
                _ => {
                    return Ok(Err(
                        "flags argument to redis.register_function must be a table representing \
                         function flags",
                    ));
                }
            },
            _ => return Ok(Err("unknown argument given to redis.register_function")),
        }
    }
    let Some(name) = name else {
        return Ok(Err(
            "redis.register_function must get a function name argument",
        ));
    };
    let Some(callback) = callback else {
        return Ok(Err("redis.register_function must get a callback argument"));
    };
    Ok(Ok((name, description, flags, callback)))
}

/// The flags of these names; nothing where there is no such flag.
fn read_flags(lua: &Lua, names: &Table) -> Result<Option<FunctionFlags>> {
    let mut flags = FunctionFlags::default();
    for place in 1_i64.. {
        let name = match names.raw_get::<Value>(place)? {
            Value::Nil => break,
            value => text(lua, &value)?,
        };
        match name.and_then(|name| flags.with(&name)) {
            Some(more) => flags = more,
            None => return Ok(None),
        }
    }
    Ok(Some(flags))
}

/// A string, or a number as one.
fn text(lua: &Lua, value: &Value) -> Result<Option<Bytes>> {
    let text = match value {
        Value::String(_) | Value::Number(_) | Value::Integer(_) => {
            lua.coerce_string(value.clone())?
        }
        _ => None,
    };
    Ok(text.map(|text| Bytes::copy_from_slice(&text.as_bytes())))
}
