//! The rows of the commands on streams and consumer groups.

use super::{add, claim, delete, group, info, pending, read, read_group};
use crate::command::flags::Flags;
use crate::command::grammar::{
    Argument, COUNT, block, integer, key, oneof, string, token, unix_time,
};
use crate::command::key_specs::{CHECK, DELETE, INSERT, READ, UPDATE, after_word, at, streams};
use crate::command::popping::is_any;
use crate::command::row::{Group, Handler, Row};
use crate::{coalescing, read_handler, write_handler};

const EXCLUSIVE_RANGES: (&str, &str) = ("6.2.0", "Added exclusive ranges.");
const REFERENCES_ADDED: (&str, &str) = (
    "8.2.0",
    "Added the `KEEPREF`, `DELREF` and `ACKED` options.",
);

/// What happens to the pending entries of deleted entries.
const REFERENCES: Argument = oneof(
    "condition",
    &[token("KEEPREF"), token("DELREF"), token("ACKED")],
)
.optional();

/// Ids after their number.
const IDS: Argument = block("ids", &[integer("numids"), string("id").multiple()]).token("IDS");

const STRATEGY: Argument = oneof(
    "strategy",
    &[token("MAXLEN"), token("MINID").since("6.2.0")],
);
const OPERATOR: Argument = oneof(
    "operator",
    &[token("=").named("equal"), token("~").named("approximately")],
)
.optional();
const THRESHOLD: Argument = string("threshold");
const LIMIT: Argument = integer("count").token("LIMIT").since("6.2.0").optional();

const fn stream(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Stream, handler).categories(&["@stream"])
}

const GROUP: Argument = string("group");
const CONSUMER: Argument = string("consumer");
const START_ID: Argument = oneof("id-selector", &[string("id"), token("$").named("new-id")]);

/// The commands.
pub const ROWS: &[Row] = &[
    stream("xadd", -5, "5.0.0", write_handler!(add::xadd))
        .summary("Appends a new message to a stream. Creates the key if it doesn't exist.")
        .complexity("O(log N), N being all that is stored; O(M) more where it trims M entries")
        .flags(Flags::DENYOOM.and(Flags::FAST))
        .flags(Flags::CONTENDS)
        .keys(&[at(1, UPDATE)
            .notes("UPDATE instead of INSERT because of the optional trimming feature")])
        .tips(&["nondeterministic_output"])
        .history(&[
            (
                "6.2.0",
                "Added the `NOMKSTREAM` option, `MINID` trimming strategy and the `LIMIT` option.",
            ),
            ("7.0.0", "Added support for the `<ms>-*` explicit ID form."),
            REFERENCES_ADDED,
            ("8.6.0", "Added the `IDMP` and `IDMPAUTO` options."),
        ])
        .arguments(&[
            key(0),
            token("NOMKSTREAM").since("6.2.0").optional(),
            REFERENCES.since("8.2.0"),
            oneof(
                "idempotency",
                &[
                    string("producer-id").token("IDMPAUTO"),
                    block("idmp", &[string("producer-id"), string("idempotent-id")]).token("IDMP"),
                ],
            )
            .since("8.6.0")
            .optional(),
            block("trim", &[STRATEGY, OPERATOR, THRESHOLD, LIMIT]).optional(),
            oneof("id-selector", &[token("*").named("auto-id"), string("id")]),
            block("data", &[string("field"), string("value")]).multiple(),
        ])
        .plan(add::plan)
        .coalescing(coalescing!(add::makes_stream, add::xadd_coalesced)),
    stream("xlen", 2, "5.0.0", read_handler!(read::xlen))
        .summary("Return the number of messages in a stream.")
        .flags(Flags::FAST)
        .keys(&[at(1, CHECK)])
        .arguments(&[key(0)]),
    stream("xrange", -4, "5.0.0", read_handler!(read::xrange))
        .summary("Returns the messages from a stream within a range of IDs.")
        .complexity("O(log N + M) with M entries returned")
        .keys(&[at(1, READ)])
        .history(&[EXCLUSIVE_RANGES])
        .arguments(&[key(0), string("start"), string("end"), COUNT]),
    stream("xrevrange", -4, "5.0.0", read_handler!(read::xrevrange))
        .summary("Returns the messages from a stream within a range of IDs in reverse order.")
        .complexity("O(log N + M) with M entries returned")
        .keys(&[at(1, READ)])
        .history(&[EXCLUSIVE_RANGES])
        .arguments(&[key(0), string("end"), string("start"), COUNT]),
    stream("xdel", -3, "5.0.0", write_handler!(delete::xdel))
        .summary("Returns the number of messages after removing them from a stream.")
        .complexity("O(log N) for each entry, N being all that is stored")
        .flags(Flags::FAST)
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), string("id").multiple()]),
    stream("xdelex", -5, "8.2.0", write_handler!(delete::xdelex))
        .summary(
            "Deletes messages from a stream, and says of each what has become of it. Consumer groups \
             may forget them too, or keep them.",
        )
        .complexity("O(G log N) for each entry, G being the groups, N all that is stored")
        .flags(Flags::FAST)
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), REFERENCES, IDS]),
    stream("xtrim", -4, "5.0.0", write_handler!(add::xtrim))
        .summary("Deletes messages from the beginning of a stream.")
        .complexity(
            "O(M) with M entries removed, or kept where these are fewer; O(1) for most calls with ~",
        )
        .keys(&[at(1, DELETE)])
        .tips(&["nondeterministic_output"])
        .history(&[
            (
                "6.2.0",
                "Added the `MINID` trimming strategy and the `LIMIT` option.",
            ),
            REFERENCES_ADDED,
        ])
        .arguments(&[
            key(0),
            block("trim", &[STRATEGY, OPERATOR, THRESHOLD, LIMIT, REFERENCES.since("8.2.0")]),
        ]),
    stream("xsetid", -3, "5.0.0", write_handler!(add::xsetid))
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
    stream("xcfgset", -2, "8.6.0", write_handler!(add::xcfgset))
        .summary("Sets the IDMP configuration parameters for a stream.")
        .complexity("O(1); O(log N) if a parameter changes, N being all that is stored")
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .arguments(&[
            key(0),
            integer("duration").token("IDMP-DURATION").optional(),
            integer("maxsize").token("IDMP-MAXSIZE").optional(),
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
    Row::container("xgroup", "5.0.0", Group::Stream, XGROUP)
        .summary("A container for consumer groups commands."),
    stream("xreadgroup", -7, "5.0.0", write_handler!(read_group::xreadgroup))
        .summary(
            "Returns new or historical messages from a stream for a consumer in a group. Blocks \
             until a message is available otherwise.",
        )
        .complexity("O(K log N + M) with K streams and M entries returned")
        .flags(Flags::BLOCKING)
        .flags(Flags::CONTENDS)
        .keys(&[streams(4, READ)])
        .history(&[("8.4.0", "Added the `CLAIM` option.")])
        .arguments(&[
            block("group-block", &[GROUP, CONSUMER]).token("GROUP"),
            COUNT,
            integer("milliseconds").token("BLOCK").optional(),
            integer("min-idle-time").token("CLAIM").since("8.4.0").optional(),
            token("NOACK").optional(),
            block("streams", &[key(0).multiple(), string("id").multiple()]).token("STREAMS"),
        ])
        .plan(read_group::plan)
        .waits(read_group::wait)
        .coalescing(coalescing!(
            read_group::reads_new_entries,
            read_group::have_one_group,
            read_group::xreadgroup_coalesced
        )),
    stream("xack", -4, "5.0.0", write_handler!(pending::xack))
        .summary(
            "Returns the number of messages that were successfully acknowledged by the consumer \
             group member of a stream.",
        )
        .complexity("O(log N) for each entry, N being all that is stored")
        .flags(Flags::FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, UPDATE)])
        .plan(pending::plan)
        .coalescing(coalescing!(
            is_any,
            pending::have_one_group,
            pending::xack_coalesced
        ))
        .arguments(&[key(0), GROUP, string("id").multiple()]),
    stream("xackdel", -6, "8.2.0", write_handler!(delete::xackdel))
        .summary(
            "Acknowledges messages in a consumer group and deletes them from the stream, and says of \
             each what has become of it.",
        )
        .complexity("O(G log N) for each entry, G being the groups, N all that is stored")
        .flags(Flags::FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), GROUP, REFERENCES, IDS]),
    stream("xnack", -7, "8.8.0", write_handler!(claim::xnack))
        .summary(
            "Gives pending messages back to their consumer group: they are no consumer's, and can be \
             claimed at once.",
        )
        .complexity("O(log N) for each entry, N being all that is stored")
        .flags(Flags::FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, UPDATE)])
        .arguments(&[
            key(0),
            GROUP,
            oneof("mode", &[token("SILENT"), token("FAIL"), token("FATAL")]),
            IDS,
            integer("count").token("RETRYCOUNT").optional(),
            token("FORCE").optional(),
        ]),
    stream("xpending", -3, "5.0.0", read_handler!(pending::xpending))
        .summary(
            "Returns the information and entries from a stream consumer group's pending entries \
             list.",
        )
        .complexity("O(C + M) with C consumers and M entries examined")
        .keys(&[at(1, READ)])
        .tips(&["nondeterministic_output"])
        .history(&[(
            "6.2.0",
            "Added the `IDLE` option and exclusive range intervals.",
        )])
        .arguments(&[
            key(0),
            GROUP,
            block(
                "filters",
                &[
                    integer("min-idle-time")
                        .token("IDLE")
                        .since("6.2.0")
                        .optional(),
                    string("start"),
                    string("end"),
                    integer("count"),
                    CONSUMER.optional(),
                ],
            )
            .optional(),
        ]),
    stream("xclaim", -6, "5.0.0", write_handler!(claim::xclaim))
        .summary(
            "Changes, or acquires, ownership of a message in a consumer group, as if the message \
             was delivered a consumer group member.",
        )
        .complexity("O(log N) for each entry, N being all that is stored")
        .flags(Flags::FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, UPDATE)])
        .tips(&["nondeterministic_output"])
        .arguments(&[
            key(0),
            GROUP,
            CONSUMER,
            string("min-idle-time"),
            string("id").multiple(),
            integer("ms").token("IDLE").optional(),
            unix_time("unix-time-milliseconds").token("TIME").optional(),
            integer("count").token("RETRYCOUNT").optional(),
            token("FORCE").optional(),
            token("JUSTID").optional(),
            string("lastid").token("LASTID").optional(),
        ]),
    stream("xautoclaim", -6, "6.2.0", write_handler!(claim::xautoclaim))
        // It may add a new consumer.
        .flags(Flags::ADDS)
        .summary(
            "Changes, or acquires, ownership of messages in a consumer group, as if the messages \
             were delivered to as consumer group member.",
        )
        .complexity("O(M) with M entries examined, ten times COUNT at most")
        .flags(Flags::FAST)
        .flags(Flags::CONTENDS)
        .keys(&[at(1, DELETE)])
        .tips(&["nondeterministic_output"])
        .history(&[(
            "7.0.0",
            "Added an element to the reply array, containing deleted entries the command cleared \
             from the PEL",
        )])
        .arguments(&[
            key(0),
            GROUP,
            CONSUMER,
            string("min-idle-time"),
            string("start"),
            COUNT,
            token("JUSTID").optional(),
        ]),
];

const INFO: &[Row] = &[
    stream(
        "xinfo|consumers",
        4,
        "5.0.0",
        read_handler!(info::xinfo_consumers),
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
        read_handler!(info::xinfo_groups),
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

const XGROUP: &[Row] = &[
    stream("xgroup|create", -5, "5.0.0", write_handler!(group::create))
        .summary("Creates a consumer group.")
        .flags(Flags::DENYOOM)
        .keys(&[at(2, INSERT)])
        .history(&[("7.0.0", "Added the `entries_read` named argument.")])
        .arguments(&[
            key(0),
            GROUP,
            START_ID,
            token("MKSTREAM").optional(),
            integer("entries-read").token("ENTRIESREAD").optional(),
        ]),
    stream(
        "xgroup|createconsumer",
        5,
        "6.2.0",
        write_handler!(group::create_consumer),
    )
    .summary("Creates a consumer in a consumer group.")
    .flags(Flags::DENYOOM)
    .keys(&[at(2, INSERT)])
    .arguments(&[key(0), GROUP, CONSUMER]),
    stream(
        "xgroup|delconsumer",
        5,
        "5.0.0",
        write_handler!(group::delete_consumer),
    )
    .summary("Deletes a consumer from a consumer group.")
    .complexity("O(M) with M pending entries of the consumer")
    .keys(&[at(2, DELETE)])
    .arguments(&[key(0), GROUP, CONSUMER]),
    stream("xgroup|destroy", 4, "5.0.0", write_handler!(group::destroy))
        .summary("Destroys a consumer group.")
        .complexity("O(M) with M pending entries of the group")
        .keys(&[at(2, DELETE)])
        .arguments(&[key(0), GROUP]),
    Row::help(
        "xgroup|help",
        "5.0.0",
        Group::Stream,
        Handler::Pure(group::help),
    )
    .categories(&["@stream"]),
    stream("xgroup|setid", -5, "5.0.0", write_handler!(group::set_id))
        .summary("Sets the last-delivered ID of a consumer group.")
        .keys(&[at(2, UPDATE)])
        .history(&[("7.0.0", "Added the optional `entries_read` argument.")])
        .arguments(&[
            key(0),
            GROUP,
            START_ID,
            integer("entriesread")
                .shown_as("entries-read")
                .token("ENTRIESREAD")
                .optional(),
        ]),
    stream(
        "xgroup|setpolicy",
        -4,
        "0.1.0",
        write_handler!(group::set_policy),
    )
    .summary(
        "Makes a consumer group redeliver entries that are pending for too long, and move entries \
         delivered too often to another stream. Without options, removes the policy.",
    )
    .complexity("O(M) with M pending entries of the group")
    .flags(Flags::DENYOOM)
    .keys(&[at(2, UPDATE), after_word("DEADLETTER", 4, INSERT)])
    .arguments(&[
        key(0),
        GROUP,
        integer("max-tries").token("MAXTRIES").optional(),
        integer("milliseconds").token("MINIDLE").optional(),
        key(1).token("DEADLETTER").optional(),
    ]),
];
