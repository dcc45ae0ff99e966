//! `redis.*`: the functions for scripts (Redis: `script_lua.c`).

use std::rc::Rc;

use bytes::Bytes;
use mlua::{Lua, MultiValue, Result, Scope, Table, Value};

use super::calls::Calling;
use super::functions::{Function, FunctionFlags};
use super::library::{Outcome, Raise, put, to_results};
use super::raw;
use super::script::sha1_hex;
use super::state::{State, Stop, ended};
use super::values::{error_table, from_reply, number_argument};
use quoin_base::limits::{LOG_TEXT_BYTES_MAX, SCRIPT_MEMORY_BYTES_MAX};
use quoin_base::redis_version::RedisVersion;
use quoin_resp::reply::Reply;

const LOG_LEVELS: [(&str, i32); 4] = [
    ("LOG_DEBUG", 0),
    ("LOG_VERBOSE", 1),
    ("LOG_NOTICE", 2),
    ("LOG_WARNING", 3),
];

const REPLICATION: [(&str, i32); 5] = [
    ("REPL_NONE", 0),
    ("REPL_AOF", 1),
    ("REPL_SLAVE", 2),
    ("REPL_REPLICA", 2),
    ("REPL_ALL", 3),
];

/// The library. Its `call` and `pcall` pass their arguments to the code that runs commands.
pub(super) fn library<'scope, 'env>(
    lua: &Lua,
    scope: &'scope Scope<'scope, 'env>,
    calling: &'env Calling<'_>,
) -> Result<Table> {
    let library = lua.create_table()?;
    let state = &calling.state;
    for (name, raises) in [("call", true), ("pcall", false)] {
        let inner = scope.create_function(move |lua, arguments: MultiValue| {
            let arguments = raw::arguments(arguments)?;
            to_results(lua, call(lua, calling, &arguments, raises))
        })?;
        let rest = raw::raising(lua, inner)?;
        library.raw_set(name, calling.function(lua, scope, rest)?)?;
    }
    let inner = scope.create_function(move |lua, arguments: MultiValue| {
        let arguments = raw::arguments(arguments)?;
        to_results(lua, check_command(lua, calling, &arguments))
    })?;
    library.raw_set("acl_check_cmd", raw::raising(lua, inner)?)?;
    for (name, number) in REPLICATION {
        library.raw_set(name, number)?;
    }
    put_log(lua, &library)?;
    put_version(&library, state.version)?;
    put_replies(lua, &library)?;
    put_settings(lua, &library, state)?;
    put(lua, &library, "sha1hex", |lua, arguments| {
        let [text] = arguments else {
            return Err(raised(lua, "ERR wrong number of arguments"));
        };
        let text = lua.coerce_string(text.clone())?;
        let sha = match text {
            Some(text) => sha1_hex(&text.as_bytes()),
            None => sha1_hex(b""),
        };
        Ok(vec![Value::String(lua.create_string(sha)?)])
    })?;
    put(lua, &library, "breakpoint", |_, _| {
        Ok(vec![Value::Boolean(false)])
    })?;
    put(lua, &library, "debug", |_, _| Ok(Vec::new()))?;
    put(lua, &library, "replicate_commands", |_, _| {
        Ok(vec![Value::Boolean(true)])
    })?;
    Ok(library)
}

/// `redis.log` and its levels.
fn put_log(lua: &Lua, library: &Table) -> Result<()> {
    for (name, number) in LOG_LEVELS {
        library.raw_set(name, number)?;
    }
    put(lua, library, "log", log)
}

fn put_version(library: &Table, version: RedisVersion) -> Result<()> {
    library.raw_set("REDIS_VERSION", version.text())?;
    library.raw_set("REDIS_VERSION_NUM", f64::from(version.number()))
}

/// Raises an error of Redis unchanged.
pub(super) fn raised(lua: &Lua, line: &str) -> Raise {
    match error_table(lua, line) {
        Ok(table) => Raise::Value(Value::Table(table)),
        Err(error) => Raise::Lua(error),
    }
}

fn answered(lua: &Lua, line: &str) -> Outcome {
    Ok(vec![Value::Table(error_table(lua, line)?)])
}

/// The arguments of a command, or why they are none.
fn to_arguments(arguments: &[Value]) -> std::result::Result<Vec<Bytes>, &'static str> {
    if arguments.is_empty() {
        return Err("ERR Please specify at least one argument for this redis lib call");
    }
    let bytes = |value: &Value| value.as_string().map_or(0, |text| text.as_bytes().len());
    if arguments.iter().map(bytes).sum::<usize>() > SCRIPT_MEMORY_BYTES_MAX {
        return Err("ERR not enough memory");
    }
    let to_bytes = |value: &Value| match value {
        Value::String(text) => Some(Bytes::copy_from_slice(&text.as_bytes())),
        Value::Number(number) => Some(number_argument(*number).into()),
        Value::Integer(number) => Some(number_argument(*number as f64).into()),
        _ => None,
    };
    let all: Option<Vec<Bytes>> = arguments.iter().map(to_bytes).collect();
    all.ok_or("ERR Lua redis lib command arguments must be strings or integers")
}

/// Calls a command, or gives Lua the reply to one that [`Calling`] has called.
fn call(lua: &Lua, calling: &Calling<'_>, arguments: &[Value], raises: bool) -> Outcome {
    let state = &calling.state;
    let answer = match calling.take_left() {
        Some(answer) => answer,
        None if state.is_stopping() => return Err(Raise::Lua(ended())),
        None => match to_arguments(arguments) {
            Ok(arguments) => calling.run(arguments),
            Err(line) if raises => return Err(raised(lua, line)),
            Err(line) => return answered(lua, line),
        },
    };
    match answer {
        Some(reply) => {
            let is_resp3 = state.is_resp3.get();
            let value = state.make(lua, || from_reply(lua, &reply, is_resp3))?;
            match reply {
                Reply::Error(_) if raises => Err(Raise::Value(value)),
                _ => Ok(vec![value]),
            }
        }
        None => {
            state.stop(lua, Stop::Aborted)?;
            Err(Raise::Lua(ended()))
        }
    }
}

fn check_command(lua: &Lua, calling: &Calling<'_>, arguments: &[Value]) -> Outcome {
    let state = &calling.state;
    if state.is_stopping() {
        return Err(Raise::Lua(ended()));
    }
    let arguments = match to_arguments(arguments) {
        Ok(arguments) => arguments,
        Err(line) => return Err(raised(lua, line)),
    };
    match calling.check(arguments) {
        Some(Reply::Error(line)) => Err(raised(lua, &line)),
        Some(reply) => {
            let is_allowed = matches!(reply, Reply::Boolean(true));
            Ok(vec![Value::Boolean(is_allowed)])
        }
        None => {
            state.stop(lua, Stop::Aborted)?;
            Err(Raise::Lua(ended()))
        }
    }
}

fn put_replies(lua: &Lua, library: &Table) -> Result<()> {
    const WRONG: &str = "ERR wrong number or type of arguments";
    put(lua, library, "status_reply", |lua, arguments| {
        let [status @ Value::String(_)] = arguments else {
            return answered(lua, WRONG);
        };
        let table = lua.create_table()?;
        table.raw_set("ok", status)?;
        Ok(vec![Value::Table(table)])
    })?;
    put(lua, library, "error_reply", |lua, arguments| {
        let [Value::String(text)] = arguments else {
            return answered(lua, WRONG);
        };
        let text = text.as_bytes();
        let line = text.strip_prefix(b"-").unwrap_or(&text);
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let last = line.iter().rposition(|byte| !is_line_end(byte));
        let line = line
            .get(..last.map_or(0, |last| last + 1))
            .unwrap_or_default();
        // The text before the first blank is a code of its own.
        let mut whole = Vec::with_capacity(line.len() + 4);
        if !line.contains(&b' ') {
            whole.extend_from_slice(b"ERR ");
        }
        whole.extend_from_slice(line);
        let table = lua.create_table()?;
        table.raw_set("err", lua.create_string(whole)?)?;
        Ok(vec![Value::Table(table)])
    })
}

fn put_settings(lua: &Lua, library: &Table, state: &Rc<State>) -> Result<()> {
    let own = Rc::clone(state);
    put(lua, library, "setresp", move |lua, arguments| {
        let [version] = arguments else {
            return Err(raised(lua, "ERR redis.setresp() requires one argument."));
        };
        match to_int(lua, version)? {
            2 => own.is_resp3.set(false),
            3 => own.is_resp3.set(true),
            _ => return Err(raised(lua, "ERR RESP version must be 2 or 3.")),
        }
        Ok(Vec::new())
    })?;
    put(lua, library, "set_repl", |lua, arguments| {
        let [flags] = arguments else {
            return Err(raised(lua, "ERR redis.set_repl() requires two arguments."));
        };
        if to_int(lua, flags)? & !3 != 0 {
            let line = "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or \
                        REPL_NONE.";
            return Err(raised(lua, line));
        }
        Ok(Vec::new())
    })
}

/// As `lua_tonumber`, cast to an `int`.
fn to_int(lua: &Lua, value: &Value) -> Result<i32> {
    let number = match value {
        Value::Number(number) => Some(*number),
        Value::Integer(_) | Value::String(_) => lua.coerce_number(value.clone())?,
        _ => None,
    };
    Ok(number.unwrap_or(0.0) as i64 as i32)
}

fn log(lua: &Lua, arguments: &[Value]) -> Outcome {
    let (level, words) = match arguments {
        [] | [_] => {
            return Err(raised(
                lua,
                "ERR redis.log() requires two arguments or more.",
            ));
        }
        [level, words @ ..] => (level, words),
    };
    let is_number = match level {
        Value::Number(_) | Value::Integer(_) => true,
        Value::String(_) => lua.coerce_number(level.clone())?.is_some(),
        _ => false,
    };
    if !is_number {
        let line = "ERR First argument must be a number (log level).";
        return Err(raised(lua, line));
    }
    let level = to_int(lua, level)?;
    if !(0..=3).contains(&level) {
        return Err(raised(lua, "ERR Invalid debug level."));
    }
    let mut bytes = Vec::new();
    for word in words {
        if let Some(word) = lua.coerce_string(word.clone())? {
            if !bytes.is_empty() {
                bytes.push(b' ');
            }
            let word = word.as_bytes();
            let room = LOG_TEXT_BYTES_MAX.saturating_sub(bytes.len());
            bytes.extend_from_slice(word.get(..room).unwrap_or(&word));
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    match level {
        0 | 1 => tracing::debug!(target: "quoin::script", "{text}"),
        2 => tracing::info!(target: "quoin::script", "{text}"),
        _ => tracing::warn!(target: "quoin::script", "{text}"),
    }
    Ok(Vec::new())
}

/// The error for names that [`is_library_name`] refuses.
pub const LIBRARY_NAME_REFUSED: &str = "Library names can only contain letters, numbers, or underscores(_) and \
                            must be at least one character long";

/// Whether a library or a function may be called so.
pub fn is_library_name(name: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    !name.is_empty() && name.iter().all(is_allowed)
}

/// The globals of a library while it is loaded.
pub(super) fn globals(lua: &Lua, state: &Rc<State>) -> Result<Table> {
    let redis = lua.create_table()?;
    put_log(lua, &redis)?;
    put_version(&redis, state.version)?;
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
    let refused = |reason: &str| Err(raised(lua, &format!("ERR {reason}")));
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

/// The flags with these names. `None` if a name is unknown.
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

/// A string, or a number converted to one.
fn text(lua: &Lua, value: &Value) -> Result<Option<Bytes>> {
    let text = match value {
        Value::String(_) | Value::Number(_) | Value::Integer(_) => {
            lua.coerce_string(value.clone())?
        }
        _ => None,
    };
    Ok(text.map(|text| Bytes::copy_from_slice(&text.as_bytes())))
}
