//! The rows of the stream commands.

use super::{add, range};
use crate::commands::flags::Flags;
use crate::commands::grammar::{Argument, COUNT, block, integer, key, oneof, string, token};
use crate::commands::key_specs::{LOOK, READ, UPDATE, at};
use crate::commands::row::{Group, Handler, Row};
use crate::{read_handler, write_handler};

const EXCLUSIVE_RANGES: (&str, &str) = ("6.2.0", "Added exclusive ranges.");

/// How a stream is trimmed.
const TRIM: Argument = block(
    "trim",
    &[
        oneof(
            "strategy",
            &[token("MAXLEN"), token("MINID").since("6.2.0")],
        ),
        oneof(
            "operator",
            &[token("=").named("equal"), token("~").named("approximately")],
        )
        .optional(),
        string("threshold"),
        integer("count").token("LIMIT").since("6.2.0").optional(),
    ],
);

pub(super) const fn stream(
    name: &'static str,
    arity: i32,
    since: &'static str,
    handler: Handler,
) -> Row {
    Row::new(name, arity, since, Group::Stream, handler).categories(&["@stream"])
}

/// The stream commands.
pub const ROWS: &[Row] = &[
    stream("xadd", -5, "5.0.0", write_handler!(add::xadd))
        .summary("Appends a new message to a stream. Creates the key if it doesn't exist.")
        .complexity("O(log N), N being all that is stored; O(M) more where it trims M entries")
        .flags(Flags::DENYOOM.and(Flags::FAST))
        .keys(&[at(1, UPDATE)
            .notes("UPDATE instead of INSERT because of the optional trimming feature")])
        .tips(&["nondeterministic_output"])
        .history(&[
            (
                "6.2.0",
                "Added the `NOMKSTREAM` option, `MINID` trimming strategy and the `LIMIT` option.",
            ),
            ("7.0.0", "Added support for the `<ms>-*` explicit ID form."),
        ])
        .arguments(&[
            key(0),
            token("NOMKSTREAM").since("6.2.0").optional(),
            TRIM.optional(),
            oneof("id-selector", &[token("*").named("auto-id"), string("id")]),
            block("data", &[string("field"), string("value")]).multiple(),
        ]),
    stream("xlen", 2, "5.0.0", read_handler!(range::xlen))
        .summary("Return the number of messages in a stream.")
        .flags(Flags::FAST)
        .keys(&[at(1, LOOK)])
        .arguments(&[key(0)]),
    stream("xrange", -4, "5.0.0", read_handler!(range::xrange))
        .summary("Returns the messages from a stream within a range of IDs.")
        .complexity("O(log N + M) with M entries returned")
        .keys(&[at(1, READ)])
        .history(&[EXCLUSIVE_RANGES])
        .arguments(&[key(0), string("start"), string("end"), COUNT]),
    stream("xrevrange", -4, "5.0.0", read_handler!(range::xrevrange))
        .summary("Returns the messages from a stream within a range of IDs in reverse order.")
        .complexity("O(log N + M) with M entries returned")
        .keys(&[at(1, READ)])
        .history(&[EXCLUSIVE_RANGES])
        .arguments(&[key(0), string("end"), string("start"), COUNT]),
];
