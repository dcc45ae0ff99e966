//! The rows of the HyperLogLog commands.

use super::{debug, estimate};
use crate::command::flags::Flags;
use crate::command::grammar::{key, string};
use crate::command::key_specs::{INSERT, READ, READ_INSERT, READ_WRITE, at, up_to};
use crate::command::row::{Group, Handler, Row};
use crate::write_handler;

const EACH_ELEMENT: &str = "O(1) for each element, and one value of up to 12 kB";
const EACH_KEY: &str = "O(1) for each key, which is 16,384 registers";

const fn hyperloglog(name: &'static str, arity: i32, handler: Handler) -> Row {
    Row::new(name, arity, "2.8.9", Group::HyperLogLog, handler).categories(&["@hyperloglog"])
}

/// The HyperLogLog commands.
pub const ROWS: &[Row] = &[
    hyperloglog("pfadd", -2, write_handler!(estimate::pfadd))
        .summary("Adds elements to a HyperLogLog key. Creates the key if it doesn't exist.")
        .complexity(EACH_ELEMENT)
        .flags(Flags::DENYOOM.and(Flags::FAST))
        .keys(&[at(1, INSERT)])
        .arguments(&[key(0), string("element").optional().multiple()]),
    hyperloglog("pfcount", -2, write_handler!(estimate::pfcount))
        .summary(
            "Returns the approximated cardinality of the set(s) observed by the HyperLogLog \
             key(s).",
        )
        .complexity(EACH_KEY)
        .shown_as_read()
        .flags(Flags::MAY_REPLICATE)
        .keys(&[up_to(1, -1, READ_WRITE).notes(
            "RW because it may change the internal representation of the key, and propagate to \
             replicas",
        )])
        .arguments(&[key(0).multiple()]),
    hyperloglog("pfmerge", -2, write_handler!(estimate::pfmerge))
        .summary("Merges one or more HyperLogLog values into a single key.")
        .complexity(EACH_KEY)
        .flags(Flags::DENYOOM)
        .keys(&[at(1, READ_INSERT), up_to(2, -1, READ)])
        .arguments(&[
            key(0).named("destkey"),
            key(1).named("sourcekey").optional().multiple(),
        ]),
    hyperloglog("pfdebug", 3, write_handler!(debug::pfdebug))
        .summary("Internal commands for debugging HyperLogLog values.")
        .complexity(EACH_KEY)
        .flags(Flags::DENYOOM.and(Flags::ADMIN))
        .keys(&[at(2, READ_WRITE)])
        .system()
        .arguments(&[string("subcommand"), key(0)]),
    hyperloglog("pfselftest", 1, Handler::Pure(debug::pfselftest))
        .summary("An internal command for testing HyperLogLog values.")
        .complexity("O(1), some milliseconds")
        .flags(Flags::ADMIN)
        .system(),
];
