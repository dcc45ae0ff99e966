//! The rows of the set commands.

use super::length;
use crate::commands::flags::Flags;
use crate::commands::grammar::key;
use crate::commands::key_specs::{LOOK, at};
use crate::commands::row::{Group, Handler, Row};
use crate::read_handler;

const fn set(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Set, handler).categories(&["@set"])
}

/// The set commands.
pub const ROWS: &[Row] = &[set("scard", 2, "1.0.0", read_handler!(length::scard))
    .summary("Returns the number of members in a set.")
    .flags(Flags::FAST)
    .keys(&[at(1, LOOK)])
    .arguments(&[key(0)])];
