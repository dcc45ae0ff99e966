//! `cjson`: as Lua CJSON 2.1.0 has it, to the byte.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Lua, Result, Table, Value};

use super::json_settings::{Invalid, PRECISION, Settings, null};
use super::library::{Outcome, Raise, number, put, type_name};
use super::meter::Meter;
use super::state::State;

mod decode;
mod encode;

/// The library with these settings.
pub(super) fn library(lua: &Lua, state: &Rc<State>, settings: &Rc<Settings>) -> Result<Table> {
    let library = lua.create_table()?;
    let (own, measuring) = (Rc::clone(settings), Rc::clone(state));
    put(lua, &library, "encode", move |lua, arguments| {
        let [value] = arguments else {
            return Err(expected_one());
        };
        let text = encode::encode(&own, value, Meter::new(lua, &measuring))?;
        Ok(vec![Value::String(lua.create_string(text)?)])
    })?;
    let (own, measuring) = (Rc::clone(settings), Rc::clone(state));
    put(lua, &library, "decode", move |lua, arguments| {
        let [text] = arguments else {
            return Err(expected_one());
        };
        let Some(text) = lua.coerce_string(text.clone())? else {
            let got = type_name(arguments.first());
            return Err(Raise::Argument(1, format!("string expected, got {got}")));
        };
        let meter = Meter::new(lua, &measuring);
        let value = decode::decode(lua, &own, &text.as_bytes(), meter)?;
        Ok(vec![value])
    })?;
    type Setting = fn(&Settings) -> &Cell<i32>;
    let numbers: [(&str, Setting, i32); 3] = [
        ("encode_max_depth", |all| &all.encode_max_depth, i32::MAX),
        ("decode_max_depth", |all| &all.decode_max_depth, i32::MAX),
        ("encode_number_precision", |all| &all.precision, PRECISION),
    ];
    for (name, setting, most) in numbers {
        let own = Rc::clone(settings);
        put(lua, &library, name, move |lua, arguments| {
            too_many(arguments, 1)?;
            let value = number_setting(lua, arguments, 1, setting(&own), 1, most)?;
            Ok(vec![value])
        })?;
    }
    let own = Rc::clone(settings);
    put(
        lua,
        &library,
        "encode_sparse_array",
        move |lua, arguments| {
            too_many(arguments, 3)?;
            Ok(vec![
                switch(lua, arguments, &own.sparse_convert)?,
                number_setting(lua, arguments, 2, &own.sparse_ratio, 0, i32::MAX)?,
                number_setting(lua, arguments, 3, &own.sparse_safe, 0, i32::MAX)?,
            ])
        },
    )?;
    let own = Rc::clone(settings);
    put(
        lua,
        &library,
        "encode_keep_buffer",
        move |lua, arguments| {
            too_many(arguments, 1)?;
            Ok(vec![switch(lua, arguments, &own.keep_buffer)?])
        },
    )?;
    let own = Rc::clone(settings);
    put(
        lua,
        &library,
        "encode_invalid_numbers",
        move |lua, arguments| {
            let names = &[Invalid::Off, Invalid::On, Invalid::Null];
            invalid_setting(lua, arguments, &own.encode_invalid, names)
        },
    )?;
    let own = Rc::clone(settings);
    put(
        lua,
        &library,
        "decode_invalid_numbers",
        move |lua, arguments| {
            let names = &[Invalid::Off, Invalid::On];
            invalid_setting(lua, arguments, &own.decode_invalid, names)
        },
    )?;
    let own = Rc::clone(state);
    put(lua, &library, "new", move |lua, _| {
        let fresh = self::library(lua, &own, &Rc::default())?;
        Ok(vec![Value::Table(fresh)])
    })?;
    library.raw_set("null", null())?;
    library.raw_set("_NAME", "cjson")?;
    library.raw_set("_VERSION", "2.1.0")?;
    Ok(library)
}

fn expected_one() -> Raise {
    Raise::Argument(1, "expected 1 argument".to_owned())
}

fn too_many(arguments: &[Value], most: usize) -> std::result::Result<(), Raise> {
    if arguments.len() <= most {
        return Ok(());
    }
    let place = i32::try_from(most + 1).unwrap_or(i32::MAX);
    Err(Raise::Argument(
        place,
        "found too many arguments".to_owned(),
    ))
}

fn is_given(arguments: &[Value], place: i32) -> bool {
    let at = usize::try_from(place - 1).unwrap_or_default();
    !matches!(arguments.get(at), None | Some(Value::Nil))
}

fn number_setting(
    lua: &Lua,
    arguments: &[Value],
    place: i32,
    setting: &Cell<i32>,
    least: i32,
    most: i32,
) -> std::result::Result<Value, Raise> {
    if is_given(arguments, place) {
        let value = number(lua, arguments, place)? as i64 as i32;
        if value < least || value > most {
            let text = format!("expected integer between {least} and {most}");
            return Err(Raise::Argument(1, text));
        }
        setting.set(value);
    }
    Ok(Value::Number(f64::from(setting.get())))
}

/// What `luaL_checkoption` says of the first argument.
fn wrong_option(lua: &Lua, arguments: &[Value]) -> Raise {
    let first = arguments.first().cloned().unwrap_or(Value::Nil);
    match lua.coerce_string(first) {
        Ok(Some(text)) => {
            Raise::Argument(1, format!("invalid option '{}'", text.to_string_lossy()))
        }
        _ => {
            let got = type_name(arguments.first());
            Raise::Argument(1, format!("string expected, got {got}"))
        }
    }
}

fn switch(
    lua: &Lua,
    arguments: &[Value],
    setting: &Cell<bool>,
) -> std::result::Result<Value, Raise> {
    match arguments.first() {
        None | Some(Value::Nil) => {}
        Some(Value::Boolean(value)) => setting.set(*value),
        Some(Value::String(text)) if text.as_bytes() == b"off".as_slice() => setting.set(false),
        Some(Value::String(text)) if text.as_bytes() == b"on".as_slice() => setting.set(true),
        Some(_) => return Err(wrong_option(lua, arguments)),
    }
    Ok(Value::Boolean(setting.get()))
}

fn invalid_setting(
    lua: &Lua,
    arguments: &[Value],
    setting: &Cell<Invalid>,
    allowed: &[Invalid],
) -> Outcome {
    too_many(arguments, 1)?;
    match arguments.first() {
        None | Some(Value::Nil) => {}
        Some(Value::Boolean(value)) => setting.set(match value {
            true => Invalid::On,
            false => Invalid::Off,
        }),
        Some(Value::String(text)) => {
            let text = text.as_bytes();
            let named = |one: &&Invalid| match one {
                Invalid::Off => text == b"off".as_slice(),
                Invalid::On => text == b"on".as_slice(),
                Invalid::Null => text == b"null".as_slice(),
            };
            match allowed.iter().find(named) {
                Some(found) => setting.set(*found),
                None => return Err(wrong_option(lua, arguments)),
            }
        }
        Some(_) => return Err(wrong_option(lua, arguments)),
    }
    Ok(vec![match setting.get() {
        Invalid::Off => Value::Boolean(false),
        Invalid::On => Value::Boolean(true),
        Invalid::Null => Value::String(lua.create_string("null")?),
    }])
}
