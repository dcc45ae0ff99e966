//! The rows of the stream commands.

use super::{add, groups, info, range, read, references, remove};
use crate::command::flags::Flags;
use crate::command::grammar::{Argument, COUNT, block, integer, key, oneof, string, token};
use crate::command::key_specs::{DELETE, LOOK, READ, UPDATE, at, streams};
use crate::command::row::{Group, Handler, Row};
use crate::{read_handler, series, write_handler};

const EXCLUSIVE_RANGES: (&str, &str) = ("6.2.0", "Added exclusive ranges.");

/// What becomes of what groups know of entries that are deleted.
pub(super) const REFERENCES: Argument = oneof(
    "condition",
    &[token("KEEPREF"), token("DELREF"), token("ACKED")],
)
.optional();

/// Ids with their number in front.
pub(super) const IDS: Argument =
    block("ids", &[integer("numids"), string("id").multiple()]).token("IDS");

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
        ])
        .plan(add::plan)
        .series(series!(add::makes_stream, add::xadd_series)),
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
    stream("xdel", -3, "5.0.0", write_handler!(remove::xdel))
        .summary("Returns the number of messages after removing them from a stream.")
        .complexity("O(log N) for each entry, N being all that is stored")
        .flags(Flags::FAST)
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), string("id").multiple()]),
    stream("xdelex", -5, "8.2.0", write_handler!(references::xdelex))
        .summary(
            "Deletes messages from a stream, and says of each what has become of it. Consumer groups \
             may forget them too, or keep them.",
        )
        .complexity("O(G log N) for each entry, G being the groups, N all that is stored")
        .flags(Flags::FAST)
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), REFERENCES, IDS]),
    stream("xtrim", -4, "5.0.0", write_handler!(remove::xtrim))
        .summary("Deletes messages from the beginning of a stream.")
        .complexity(
            "O(M) with M entries removed, or kept where these are fewer; O(1) for most calls with ~",
        )
        .keys(&[at(1, DELETE)])
        .tips(&["nondeterministic_output"])
        .history(&[(
            "6.2.0",
            "Added the `MINID` trimming strategy and the `LIMIT` option.",
        )])
        .arguments(&[key(0), TRIM]),
    stream("xsetid", -3, "5.0.0", write_handler!(remove::xsetid))
        .summary("An internal command for replicating stream values.")
        .flags(Flags::DENYOOM.and(Flags::FAST))
        .keys(&[at(1, UPDATE)])
        .history(&[(
            "7.0.0",
            "Added the `entries_added` and `max_deleted_entry_id` arguments.",
        )])
        .arguments(&[
            key(0),
            string("last-id"),
            integer("entries-added")
                .token("ENTRIESADDED")
                .since("7.0.0")
                .optional(),
            string("max-deleted-id")
                .token("MAXDELETEDID")
                .since("7.0.0")
                .optional(),
        ]),
    stream("xread", -4, "5.0.0", read_handler!(read::xread))
        .summary(
            "Returns messages from multiple streams with IDs greater than the ones requested. \
             Blocks until a message is available otherwise.",
        )
        .complexity("O(K log N + M) with K streams and M entries returned")
        .flags(Flags::BLOCKING)
        .keys(&[streams(1, READ)])
        .arguments(&[
            COUNT,
            integer("milliseconds").token("BLOCK").optional(),
            block("streams", &[key(0).multiple(), string("id").multiple()]).token("STREAMS"),
        ])
        .waits(read::wait)
        .pins(read::pin),
    Row::container("xinfo", "5.0.0", Group::Stream, INFO)
        .summary("A container for stream introspection commands."),
];

const INFO: &[Row] = &[
    stream(
        "xinfo|consumers",
        4,
        "5.0.0",
        read_handler!(groups::xinfo_consumers),
    )
    .summary("Returns a list of the consumers in a consumer group.")
    .complexity("O(C) with C consumers")
    .keys(&[at(2, READ)])
    .tips(&["nondeterministic_output"])
    .history(&[("7.2.0", "Added the `inactive` field.")])
    .arguments(&[key(0), string("group")]),
    stream(
        "xinfo|groups",
        3,
        "5.0.0",
        read_handler!(groups::xinfo_groups),
    )
    .summary("Returns a list of the consumer groups of a stream.")
    .complexity("O(C) with C consumers of all groups")
    .keys(&[at(2, READ)])
    .history(&[("7.0.0", "Added the `entries-read` and `lag` fields")])
    .arguments(&[key(0)]),
    stream(
        "xinfo|stream",
        -3,
        "5.0.0",
        read_handler!(info::xinfo_stream),
    )
    .summary("Returns information about a stream.")
    .complexity("O(log N + M) with M entries shown")
    .keys(&[at(2, READ)])
    .history(&[
        ("6.0.0", "Added the `FULL` modifier."),
        (
            "7.0.0",
            "Added the `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, \
             `entries-read` and `lag` fields",
        ),
        (
            "7.2.0",
            "Added the `active-time` field, and changed the meaning of `seen-time`.",
        ),
    ])
    .arguments(&[
        key(0),
        block("full-block", &[token("FULL"), COUNT]).optional(),
    ]),
    Row::help(
        "xinfo|help",
        "5.0.0",
        Group::Stream,
        Handler::Pure(info::help),
    )
    .categories(&["@stream"]),
];
