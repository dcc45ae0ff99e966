//! Between replies of commands and values of Lua, as Redis converts them (Redis: `script_lua.c`).

use bytes::Bytes;
use mlua::{Lua, LuaString, Result, Table, Value};

use super::state::{Meter, Origin};
use quoin_base::limits::SCRIPT_REPLY_DEPTH_MAX;
use quoin_base::number::format_double;
use quoin_resp::reply::Reply;

/// Pairs as tables within a table.
fn nested(lua: &Lua, pairs: &[(Reply, Reply)], is_resp3: bool) -> Result<Value> {
    let table = lua.create_table_with_capacity(pairs.len(), 0)?;
    for (place, (first, second)) in (1_i64..).zip(pairs) {
        let pair = lua.create_table_with_capacity(2, 0)?;
        pair.raw_set(1, from_reply(lua, first, is_resp3)?)?;
        pair.raw_set(2, from_reply(lua, second, is_resp3)?)?;
        table.raw_set(place, pair)?;
    }
    Ok(Value::Table(table))
}

/// The value that a script gets for a reply. `is_resp3`: whether `redis.setresp(3)` is in effect.
pub(super) fn from_reply(lua: &Lua, reply: &Reply, is_resp3: bool) -> Result<Value> {
    let text = |bytes: &[u8]| lua.create_string(bytes).map(Value::String);
    let each = |items: &[Reply]| -> Result<Value> {
        let table = lua.create_table_with_capacity(items.len(), 0)?;
        for (place, item) in (1_i64..).zip(items) {
            table.raw_set(place, from_reply(lua, item, is_resp3)?)?;
        }
        Ok(Value::Table(table))
    };
    let field = |name: &str, value: Value| -> Result<Value> {
        let table = lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Bulk(bytes) => text(bytes),
        Reply::Integer(number) => Ok(Value::Number(*number as f64)),
        Reply::Simple(status) => field("ok", text(status.as_bytes())?),
        Reply::Status(status) => field("ok", text(status)?),
        Reply::Error(line) => error_of_command(lua, line).map(Value::Table),
        Reply::Null | Reply::NullArray if is_resp3 => Ok(Value::Nil),
        Reply::Null | Reply::NullArray => Ok(Value::Boolean(false)),
        Reply::Array(items) | Reply::Push(items) | Reply::Several(items) => each(items),
        Reply::Set(items) if is_resp3 => {
            let set = lua.create_table()?;
            for item in items {
                set.raw_set(from_reply(lua, item, true)?, true)?;
            }
            field("set", Value::Table(set))
        }
        Reply::Set(items) => each(items),
        Reply::Map(pairs) | Reply::Keyed(pairs) if is_resp3 => {
            let map = lua.create_table()?;
            for (name, value) in pairs {
                let value = from_reply(lua, value, true)?;
                map.raw_set(from_reply(lua, name, true)?, value)?;
            }
            field("map", Value::Table(map))
        }
        Reply::Keyed(pairs) => nested(lua, pairs, false),
        Reply::Pairs(pairs) if is_resp3 => nested(lua, pairs, true),
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            let table = lua.create_table_with_capacity(pairs.len().saturating_mul(2), 0)?;
            let flat = pairs.iter().flat_map(|(first, second)| [first, second]);
            for (place, item) in (1_i64..).zip(flat) {
                table.raw_set(place, from_reply(lua, item, false)?)?;
            }
            Ok(Value::Table(table))
        }
        Reply::Double(number) if is_resp3 => field("double", Value::Number(*number)),
        Reply::Double(number) => text(format_double(*number).as_bytes()),
        Reply::Decimal(number) if is_resp3 => {
            // As in Redis, the number as the text of the reply shows it.
            let number = number.to_string().parse().unwrap_or(f64::NAN);
            field("double", Value::Number(number))
        }
        Reply::Decimal(number) => text(number.to_string().as_bytes()),
        Reply::Whole(number) if is_resp3 => Ok(Value::Number(*number as f64)),
        Reply::Whole(number) => text(number.to_string().as_bytes()),
        Reply::Boolean(value) if is_resp3 => Ok(Value::Boolean(*value)),
        Reply::Boolean(value) => Ok(Value::Number(f64::from(u8::from(*value)))),
        Reply::Verbatim(format, bytes) if is_resp3 => verbatim(lua, format.as_bytes(), bytes),
        Reply::FormattedVerbatim(format, bytes) if is_resp3 => verbatim(lua, format, bytes),
        Reply::Verbatim(_, bytes) | Reply::FormattedVerbatim(_, bytes) => text(bytes),
        Reply::BigNumber(digits) if is_resp3 => field("big_number", text(digits)?),
        Reply::BigNumber(digits) => text(digits),
        // Scripts call commands of this server.
        Reply::Silence | Reply::Encoded(_) => Ok(Value::Nil),
    }
}

fn verbatim(lua: &Lua, format: &[u8], bytes: &[u8]) -> Result<Value> {
    let inner = lua.create_table()?;
    inner.raw_set("string", lua.create_string(bytes)?)?;
    inner.raw_set("format", lua.create_string(format)?)?;
    let outer = lua.create_table()?;
    outer.raw_set("verbatim_string", inner)?;
    Ok(Value::Table(outer))
}

/// `{err = line}`.
pub(super) fn error_table(lua: &Lua, line: &str) -> Result<Table> {
    let table = lua.create_table_with_capacity(0, 2)?;
    table.raw_set("err", line)?;
    Ok(table)
}

fn error_of_command(lua: &Lua, line: &str) -> Result<Table> {
    let table = error_table(lua, line)?;
    table.raw_set(OF_COMMAND, true)?;
    Ok(table)
}

/// The field of command errors. The name is Redis's, because scripts may see it.
const OF_COMMAND: &str = "ignore_error_stats_update";

/// The origin of an error that a script has returned or raised.
pub(super) fn origin(value: &Value) -> Result<Origin> {
    let Value::Table(table) = value else {
        return Ok(Origin::Script);
    };
    Ok(match table.raw_get::<Value>(OF_COMMAND)? {
        Value::Nil | Value::Boolean(false) => Origin::Script,
        _ => Origin::Call,
    })
}

fn without_line_ends(bytes: &[u8]) -> Bytes {
    let blank = |byte: &u8| match byte {
        b'\r' | b'\n' => b' ',
        other => *other,
    };
    bytes.iter().map(blank).collect::<Vec<u8>>().into()
}

/// The reply that a script's client gets. `is_resp3`: whether `redis.setresp(3)` is in effect.
///
/// # Errors
/// Those of `meter`.
pub(super) fn to_reply(value: &Value, is_resp3: bool, meter: Meter<'_>) -> Result<Reply> {
    ToReply { is_resp3, meter }.value(value, 0)
}

/// Bytes of a reply in addition to its text: its slot in a list, which grows by doubling.
const REPLY_BYTES: usize = 2 * size_of::<Reply>();

struct ToReply<'m> {
    is_resp3: bool,
    meter: Meter<'m>,
}

impl ToReply<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<Reply> {
        if depth > SCRIPT_REPLY_DEPTH_MAX {
            return Ok(Reply::Error("ERR reached lua stack limit".to_owned()));
        }
        self.meter.add(REPLY_BYTES)?;
        Ok(match value {
            Value::String(text) => Reply::Bulk(self.text(text)?),
            Value::Boolean(value) if self.is_resp3 => Reply::Boolean(*value),
            Value::Boolean(true) => Reply::Integer(1),
            Value::Number(number) => Reply::Integer(truncated(*number)),
            Value::Integer(number) => Reply::Integer(*number),
            Value::Table(table) => self.table(table, depth)?,
            _ => Reply::Null,
        })
    }

    fn text(&mut self, text: &LuaString) -> Result<Bytes> {
        let text = text.as_bytes();
        self.meter.add(text.len())?;
        Ok(Bytes::copy_from_slice(&text))
    }

    /// In a reply that is one line of the protocol.
    fn line(&mut self, text: &LuaString) -> Result<Bytes> {
        Ok(without_line_ends(&self.text(text)?))
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<Reply> {
        if let Value::String(line) = table.raw_get::<Value>("err")? {
            let line = self.line(&line)?;
            return Ok(Reply::Error(String::from_utf8_lossy(&line).into_owned()));
        }
        if let Value::String(status) = table.raw_get::<Value>("ok")? {
            return Ok(Reply::Status(self.line(&status)?));
        }
        if let Value::Number(number) = table.raw_get::<Value>("double")? {
            return Ok(Reply::Double(number));
        }
        if let Value::Table(map) = table.raw_get::<Value>("map")? {
            let mut pairs = Vec::new();
            for pair in map.pairs::<Value, Value>() {
                let (name, value) = pair?;
                let name = self.value(&name, depth + 1)?;
                pairs.push((name, self.value(&value, depth + 1)?));
            }
            return Ok(Reply::Map(pairs));
        }
        if let Value::Table(set) = table.raw_get::<Value>("set")? {
            let mut items = Vec::new();
            for pair in set.pairs::<Value, Value>() {
                items.push(self.value(&pair?.0, depth + 1)?);
            }
            return Ok(Reply::Set(items));
        }
        if let Value::String(digits) = table.raw_get::<Value>("big_number")? {
            return Ok(Reply::BigNumber(self.line(&digits)?));
        }
        if let Value::Table(verbatim) = table.raw_get::<Value>("verbatim_string")? {
            let format = verbatim.raw_get::<Value>("format")?;
            let text = verbatim.raw_get::<Value>("string")?;
            if let (Value::String(format), Value::String(text)) = (format, text) {
                let mut padded = [b' '; 3];
                for (to, from) in padded.iter_mut().zip(format.as_bytes().iter()) {
                    *to = *from;
                }
                let text = self.text(&text)?;
                return Ok(Reply::FormattedVerbatim(padded, text));
            }
        }
        let mut items = Vec::new();
        for place in 1_i64.. {
            match table.raw_get::<Value>(place)? {
                Value::Nil => break,
                value => items.push(self.value(&value, depth + 1)?),
            }
        }
        Ok(Reply::Array(items))
    }
}

/// Converts a double to a `long long` like C on x86-64: out of range becomes the least value.
pub(super) fn truncated(number: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// A number as commands get it: shorter than Lua would write it, and exact (Redis: `double2ll`,
/// `fpconv_dtoa`).
pub(super) fn number_argument(number: f64) -> String {
    const HALF: f64 = 4_611_686_018_427_387_904.0;
    if number.abs() <= HALF && number.trunc() == number {
        return (number as i64).to_string();
    }
    format_double(number)
}
