//! The rows of the bitmap commands.

use super::{bit, count, fields, operation};
use crate::command::flags::Flags;
use crate::command::grammar::{Argument, block, integer, key, oneof, string, token};
use crate::command::key_specs::{OVERWRITE, READ, READ_UPDATE, READ_UPDATE_OR_LESS, at, up_to};
use crate::command::row::{Group, Handler, Row};
use crate::{read_handler, write_handler};

const BYTES_LOOKED_AT: &str = "O(M) with M bytes stored within the range";
const UNIT_HISTORY: &[(&str, &str)] = &[("7.0.0", "Added the `BYTE|BIT` option.")];
const UNIT: Argument = oneof("unit", &[token("BYTE"), token("BIT")])
    .since("7.0.0")
    .optional();

const fn on_bits(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Bitmap, handler).categories(&["@bitmap"])
}

/// The bitmap commands.
pub const ROWS: &[Row] = &[
    on_bits("bitcount", -2, "2.6.0", read_handler!(count::bitcount))
        .summary("Counts the number of set bits (population counting) in a string.")
        .complexity(BYTES_LOOKED_AT)
        .keys(&[at(1, READ)])
        .history(UNIT_HISTORY)
        .arguments(&[
            key(0),
            block("range", &[integer("start"), integer("end"), UNIT]).optional(),
        ]),
    on_bits("bitfield", -2, "3.2.0", write_handler!(fields::bitfield))
        .summary("Performs arbitrary bitfield integer operations on strings.")
        .complexity("O(1) for each subcommand specified")
        .flags(Flags::DENYOOM)
        .keys(&[at(1, READ_UPDATE_OR_LESS)
            .notes("This command allows both access and modification of the key")
            .narrowed(fields::key_flags_of_bitfield)])
        .arguments(&[
            key(0),
            oneof(
                "operation",
                &[
                    block("get-block", &[string("encoding"), integer("offset")]).token("GET"),
                    block(
                        "write",
                        &[
                            oneof(
                                "overflow-block",
                                &[token("WRAP"), token("SAT"), token("FAIL")],
                            )
                            .token("OVERFLOW")
                            .optional(),
                            oneof(
                                "write-operation",
                                &[
                                    block(
                                        "set-block",
                                        &[string("encoding"), integer("offset"), integer("value")],
                                    )
                                    .token("SET"),
                                    block(
                                        "incrby-block",
                                        &[
                                            string("encoding"),
                                            integer("offset"),
                                            integer("increment"),
                                        ],
                                    )
                                    .token("INCRBY"),
                                ],
                            ),
                        ],
                    ),
                ],
            )
            .optional()
            .multiple(),
        ]),
    on_bits(
        "bitfield_ro",
        -2,
        "6.0.0",
        read_handler!(fields::bitfield_ro),
    )
    .summary("Performs arbitrary read-only bitfield integer operations on strings.")
    .complexity("O(1) for each subcommand specified")
    .flags(Flags::FAST)
    .keys(&[at(1, READ)])
    .arguments(&[
        key(0),
        block("get-block", &[string("encoding"), integer("offset")])
            .token("GET")
            .optional()
            .multiple_with_token(),
    ]),
    on_bits("bitop", -4, "2.6.0", write_handler!(operation::bitop))
        .summary("Performs bitwise operations on multiple strings, and stores the result.")
        .complexity("O(M) with M bytes of all strings together")
        .flags(Flags::DENYOOM)
        .keys(&[at(2, OVERWRITE), up_to(3, -1, READ)])
        .arguments(&[
            oneof(
                "operation",
                &[token("AND"), token("OR"), token("XOR"), token("NOT")],
            ),
            key(0).named("destkey"),
            key(1).multiple(),
        ]),
    on_bits("bitpos", -3, "2.8.7", read_handler!(count::bitpos))
        .summary("Finds the first set (1) or clear (0) bit in a string.")
        .complexity(BYTES_LOOKED_AT)
        .keys(&[at(1, READ)])
        .history(UNIT_HISTORY)
        .arguments(&[
            key(0),
            integer("bit"),
            block(
                "range",
                &[
                    integer("start"),
                    block("end-unit-block", &[integer("end"), UNIT]).optional(),
                ],
            )
            .optional(),
        ]),
    on_bits("getbit", 3, "2.2.0", read_handler!(bit::getbit))
        .summary("Returns a bit value by offset.")
        .flags(Flags::FAST)
        .keys(&[at(1, READ)])
        .arguments(&[key(0), integer("offset")]),
    on_bits("setbit", 4, "2.2.0", write_handler!(bit::setbit))
        .summary(
            "Sets or clears the bit at offset of the string value. Creates the key if it doesn't \
             exist.",
        )
        .flags(Flags::DENYOOM)
        .keys(&[at(1, READ_UPDATE)])
        .arguments(&[key(0), integer("offset"), integer("value")]),
];
