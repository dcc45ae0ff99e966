//! How errors of scripts and functions get a place, and how libraries are run.

use mlua::{Function, Lua, Result, Value};

use super::raw;
use super::state::place_in_script;

/// What runs what a machine has compiled.
pub(super) struct Runners {
    /// Calls the function of a library that is loaded: whether it succeeded, and its error. Errors stay
    /// as they are.
    pub(super) library: Function,
    /// What makes errors of scripts and functions tables that say where they were raised.
    pub(super) handler: Function,
}

impl Runners {
    pub(super) fn new(lua: &Lua) -> Result<Self> {
        let code = "local xpcall = ... \
             return function(f) return xpcall(f, function(e) return e end) end";
        let protected: Function = lua.globals().raw_get("xpcall")?;
        let library = lua.load(code).set_name("=quoin").call(protected)?;
        let handler = error_handler(lua)?;
        Ok(Self { library, handler })
    }
}

/// What makes errors tables that say where they were raised.
fn error_handler(lua: &Lua) -> Result<Function> {
    let to_text: Function = lua.globals().raw_get("tostring")?;
    lua.create_function(move |lua, error: Value| {
        if matches!(error, Value::Error(_)) {
            return Ok(error);
        }
        let found = place_in_script(lua);
        let table = match error {
            // A table that scripts share stays as it is.
            Value::Table(table) if !raw::is_read_only(&table)? => table,
            error => {
                let text = match lua.coerce_string(error.clone())? {
                    Some(text) => text.as_bytes().to_vec(),
                    None => to_text.call::<mlua::LuaString>(error)?.as_bytes().to_vec(),
                };
                let table = lua.create_table()?;
                let line = [b"ERR ".as_slice(), &text].concat();
                table.raw_set("err", lua.create_string(line)?)?;
                table
            }
        };
        if let Some((source, line)) = found {
            table.raw_set("source", source)?;
            table.raw_set("line", line)?;
        }
        Ok(Value::Table(table))
    })
}
