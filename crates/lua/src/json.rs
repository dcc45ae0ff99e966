//! `cjson`: as Lua CJSON 2.1.0 has it, to the byte.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Lua, Table, Value};

use super::json_settings::{Invalid, NESTING_MAX, PRECISION, Settings, null};
use super::library::{Outcome, Raise, number, put, type_name};
use super::numbers::format_g;
use super::state::{Meter, State};

/// The library with these settings.
pub(super) fn library(
    lua: &Lua,
    state: &Rc<State>,
    settings: &Rc<Settings>,
) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    let (own, measuring) = (Rc::clone(settings), Rc::clone(state));
    put(lua, &library, "encode", move |lua, arguments| {
        let [value] = arguments else {
            return Err(expected_one());
        };
        let text = encode(&own, value, Meter::new(lua, &measuring))?;
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
        let value = super::json_decode::decode(lua, &own, &text.as_bytes(), meter)?;
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

fn too_many(arguments: &[Value], most: usize) -> Result<(), Raise> {
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
) -> Result<Value, Raise> {
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

/// The error of `luaL_checkoption` for the first argument.
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

fn switch(lua: &Lua, arguments: &[Value], setting: &Cell<bool>) -> Result<Value, Raise> {
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

/// Bytes of a string between two checks of the meter.
const PIECE_BYTES: usize = 64 * 1024;
type Encoded = Result<(), Raise>;

/// A value as JSON.
pub(crate) fn encode(
    settings: &Settings,
    value: &Value,
    meter: Meter<'_>,
) -> Result<Vec<u8>, Raise> {
    let mut encoder = Encoder {
        settings,
        meter,
        text: Vec::new(),
    };
    encoder.value(value, 0)?;
    Ok(encoder.text)
}

struct Encoder<'s> {
    settings: &'s Settings,
    meter: Meter<'s>,
    text: Vec<u8>,
}

fn refused(value: &Value, reason: &str) -> Raise {
    Raise::Text(format!(
        "Cannot serialise {}: {reason}",
        type_name(Some(value))
    ))
}

impl Encoder<'_> {
    fn value(&mut self, value: &Value, depth: i32) -> Encoded {
        self.meter.reach(self.text.len())?;
        match value {
            Value::String(text) => self.string(&text.as_bytes())?,
            Value::Number(number) => self.number(*number, value)?,
            Value::Integer(number) => self.number(*number as f64, value)?,
            Value::Boolean(true) => self.text.extend_from_slice(b"true"),
            Value::Boolean(false) => self.text.extend_from_slice(b"false"),
            Value::Nil => self.text.extend_from_slice(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => {
                self.text.extend_from_slice(b"null");
            }
            Value::Table(table) => self.table(table, value, depth + 1)?,
            other => return Err(refused(other, "type not supported")),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, value: &Value, depth: i32) -> Encoded {
        if depth > self.settings.encode_max_depth.get().min(NESTING_MAX) {
            let text = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(Raise::Text(text));
        }
        match self.array_length(table, value)? {
            Some(length) if length > 0 => self.array(table, length, depth),
            _ => self.object(table, depth),
        }
    }

    /// The largest index, if all keys are indexes and the table is not too sparse.
    fn array_length(&self, table: &Table, value: &Value) -> Result<Option<i64>, Raise> {
        let mut largest = 0.0_f64;
        let mut items = 0_i64;
        for pair in table.pairs::<Value, Value>() {
            let index = match pair?.0 {
                Value::Number(number) => number,
                Value::Integer(number) => number as f64,
                _ => return Ok(None),
            };
            if index.floor() != index || index < 1.0 {
                return Ok(None);
            }
            largest = largest.max(index);
            items += 1;
        }
        let ratio = i64::from(self.settings.sparse_ratio.get());
        let length = largest as i64;
        let is_sparse = ratio > 0
            && length > items.saturating_mul(ratio)
            && length > i64::from(self.settings.sparse_safe.get());
        if !is_sparse {
            return Ok(Some(length));
        }
        match self.settings.sparse_convert.get() {
            true => Ok(None),
            false => Err(refused(value, "excessively sparse array")),
        }
    }

    fn array(&mut self, table: &Table, length: i64, depth: i32) -> Encoded {
        self.text.push(b'[');
        for place in 1..=length {
            if place > 1 {
                self.text.push(b',');
            }
            self.value(&table.raw_get::<Value>(place)?, depth)?;
        }
        self.text.push(b']');
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: i32) -> Encoded {
        self.text.push(b'{');
        let mut is_first = true;
        for pair in table.pairs::<Value, Value>() {
            let (name, value) = pair?;
            if !is_first {
                self.text.push(b',');
            }
            is_first = false;
            match &name {
                Value::String(text) => self.string(&text.as_bytes())?,
                Value::Number(_) | Value::Integer(_) => {
                    self.text.push(b'"');
                    self.value(&name, depth)?;
                    self.text.push(b'"');
                }
                _ => return Err(refused(&name, "table key must be a number or string")),
            }
            self.text.push(b':');
            self.value(&value, depth)?;
        }
        self.text.push(b'}');
        Ok(())
    }

    fn number(&mut self, number: f64, value: &Value) -> Encoded {
        match self.settings.encode_invalid.get() {
            Invalid::Off if !number.is_finite() => {
                return Err(refused(value, "must not be NaN or Inf"));
            }
            Invalid::On if number.is_nan() => {
                self.text.extend_from_slice(b"nan");
                return Ok(());
            }
            Invalid::Null if !number.is_finite() => {
                self.text.extend_from_slice(b"null");
                return Ok(());
            }
            _ => {}
        }
        let precision = usize::try_from(self.settings.precision.get()).unwrap_or(1);
        self.text
            .extend_from_slice(format_g(number, precision).as_bytes());
        Ok(())
    }

    fn string(&mut self, text: &[u8]) -> Encoded {
        self.text.push(b'"');
        for piece in text.chunks(PIECE_BYTES) {
            self.meter.reach(self.text.len() + piece.len())?;
            self.escape(piece);
        }
        self.text.push(b'"');
        Ok(())
    }

    fn escape(&mut self, text: &[u8]) {
        for byte in text {
            let escaped = match byte {
                b'"' => b'"',
                b'\\' => b'\\',
                b'/' => b'/',
                0x08 => b'b',
                0x09 => b't',
                0x0a => b'n',
                0x0c => b'f',
                0x0d => b'r',
                0..=0x1f | 0x7f => {
                    self.text
                        .extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                    continue;
                }
                plain => {
                    self.text.push(*plain);
                    continue;
                }
            };
            self.text.extend_from_slice(&[b'\\', escaped]);
        }
    }
}
