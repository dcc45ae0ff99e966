//! `cjson.encode`.

use mlua::{Table, Value};

use crate::json_settings::{Invalid, NESTING_MAX, Settings};
use crate::library::{Raise, type_name};
use crate::meter::Meter;
use crate::numbers::format_g;

/// Bytes of a string between two looks at the meter.
const PIECE_BYTES: usize = 64 * 1024;

type Encoded = Result<(), Raise>;

/// A value as JSON.
pub(super) fn encode(
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

    /// The largest index, if all keys are indexes and not too few of them are there.
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
