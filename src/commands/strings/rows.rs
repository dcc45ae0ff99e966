//! The rows of the string commands.

use super::length;
use crate::commands::flags::Flags;
use crate::commands::grammar::key;
use crate::commands::key_specs::{LOOK, at};
use crate::commands::row::{Group, Handler, Row};
use crate::read_handler;

const fn string(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::String, handler).categories(&["@string"])
}

/// The string commands.
pub const ROWS: &[Row] = &[string("strlen", 2, "2.2.0", read_handler!(length::strlen))
    .summary("Returns the length of a string value.")
    .flags(Flags::FAST)
    .keys(&[at(1, LOOK)])
    .arguments(&[key(0)])];
