//! What scripts' libraries are built from: functions that return values or raise errors like C
//! functions.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Result, Table, Value};

use super::raw;
use super::state::State;
use super::working::CALL_STEPS;

/// Why a function of a library has no result.
pub(super) enum Raise {
    /// Raises this value unchanged.
    Value(Value),
    /// This text is raised, with the caller's line before it.
    Text(String),
    /// Raises an error about the argument with this number.
    Argument(i32, String),
    /// Lua failed.
    Lua(mlua::Error),
}

impl From<mlua::Error> for Raise {
    fn from(error: mlua::Error) -> Self {
        match error {
            mlua::Error::MemoryError(_) => Raise::Text("not enough memory".to_owned()),
            error => Raise::Lua(error),
        }
    }
}

/// The result of a function of a library.
pub(super) type Outcome = std::result::Result<Vec<Value>, Raise>;

/// An outcome as [`raw::raising`] expects it.
pub(super) fn to_results(lua: &Lua, outcome: Outcome) -> Result<MultiValue> {
    let raised = |kind: i32, value: Value| {
        Ok([Value::Number(f64::from(kind)), value]
            .into_iter()
            .collect())
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

/// Puts a function into a library. Its work is assumed to be proportional to the lengths of its
/// arguments. A function with more work counts the steps itself.
pub(super) fn put(
    lua: &Lua,
    library: &Table,
    name: &str,
    function: impl Fn(&Lua, &[Value]) -> Outcome + 'static,
) -> Result<()> {
    let inner = lua.create_function(move |lua, arguments: MultiValue| {
        let arguments = raw::arguments(arguments)?;
        count(lua, &arguments)?;
        to_results(lua, function(lua, &arguments))
    })?;
    library.raw_set(name, raw::raising(lua, inner)?)
}

/// Takes the steps of a call.
fn count(lua: &Lua, arguments: &[Value]) -> Result<()> {
    let length = |value: &Value| value.as_string().map_or(0, |text| text.as_bytes().len());
    let steps = arguments.iter().map(length).sum::<usize>() + CALL_STEPS;
    let state = lua.app_data_ref::<Rc<State>>();
    let Some(state) = state.filter(|state| state.spend(steps)) else {
        return Ok(());
    };
    let state = Rc::clone(&state);
    state.end_if_due(lua)
}

/// Stock Lua's name for a value's type. `no value` for none.
pub(super) fn type_name(value: Option<&Value>) -> &'static str {
    match value {
        None => "no value",
        Some(Value::Integer(_)) => "number",
        Some(Value::LightUserData(_)) => "userdata",
        Some(value) => value.type_name(),
    }
}

/// An argument that is a number or a string with one (Lua: `luaL_checknumber`).
pub(super) fn number(
    lua: &Lua,
    arguments: &[Value],
    place: i32,
) -> std::result::Result<f64, Raise> {
    let value = usize::try_from(place - 1)
        .ok()
        .and_then(|at| arguments.get(at));
    let number = match value {
        Some(Value::Number(number)) => Some(*number),
        Some(value @ (Value::Integer(_) | Value::String(_))) => lua.coerce_number(value.clone())?,
        _ => None,
    };
    let text = || format!("number expected, got {}", type_name(value));
    number.ok_or_else(|| Raise::Argument(place, text()))
}

/// The same, converted to an `int` as `luaL_checkint` of Lua 5.1 does.
pub(super) fn integer(
    lua: &Lua,
    arguments: &[Value],
    place: i32,
) -> std::result::Result<i32, Raise> {
    Ok(number(lua, arguments, place)? as i64 as i32)
}
