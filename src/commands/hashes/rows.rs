//! The rows of the hash commands.

use super::length;
use crate::commands::flags::Flags;
use crate::commands::grammar::key;
use crate::commands::key_specs::{LOOK, at};
use crate::commands::row::{Group, Handler, Row};
use crate::read_handler;

const fn hash(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Hash, handler).categories(&["@hash"])
}

/// The hash commands.
pub const ROWS: &[Row] = &[hash("hlen", 2, "2.0.0", read_handler!(length::hlen))
    .summary("Returns the number of fields in a hash.")
    .flags(Flags::FAST)
    .keys(&[at(1, LOOK)])
    .arguments(&[key(0)])];
