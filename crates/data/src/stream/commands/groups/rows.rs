//! The rows of the commands on consumer groups.

use super::{acknowledge, claim, manage, pending, policy, read};
use crate::command::flags::Flags;
use crate::command::grammar::{
    Argument, COUNT, block, integer, key, oneof, string, token, unix_time,
};
use crate::command::key_specs::{DELETE, INSERT, READ, UPDATE, after_word, at, streams};
use crate::command::popping::is_any;
use crate::command::row::{Group, Handler, Row};
use crate::stream::commands::rows::{IDS, REFERENCES, stream};
use crate::{read_handler, series, write_handler};

const GROUP: Argument = string("group");
const CONSUMER: Argument = string("consumer");
const START_ID: Argument = oneof("id-selector", &[string("id"), token("$").named("new-id")]);

/// The commands on consumer groups.
pub const ROWS: &[Row] = &[
    Row::container("xgroup", "5.0.0", Group::Stream, XGROUP)
        .summary("A container for consumer groups commands."),
    stream("xreadgroup", -7, "5.0.0", write_handler!(read::xreadgroup))
        .summary(
            "Returns new or historical messages from a stream for a consumer in a group. Blocks \
             until a message is available otherwise.",
        )
        .complexity("O(K log N + M) with K streams and M entries returned")
        .flags(Flags::BLOCKING)
        .keys(&[streams(4, READ)])
        .arguments(&[
            block("group-block", &[GROUP, CONSUMER]).token("GROUP"),
            COUNT,
            integer("milliseconds").token("BLOCK").optional(),
            token("NOACK").optional(),
            block("streams", &[key(0).multiple(), string("id").multiple()]).token("STREAMS"),
        ])
        .plan(read::plan)
        .waits(read::wait)
        .series(series!(
            read::reads_new_entries,
            read::have_one_group,
            read::xreadgroup_series
        )),
    stream("xack", -4, "5.0.0", write_handler!(acknowledge::xack))
        .summary(
            "Returns the number of messages that were successfully acknowledged by the consumer \
             group member of a stream.",
        )
        .complexity("O(log N) for each entry, N being all that is stored")
        .flags(Flags::FAST)
        .keys(&[at(1, UPDATE)])
        .plan(acknowledge::plan)
        .series(series!(
            is_any,
            acknowledge::have_one_group,
            acknowledge::xack_series
        ))
        .arguments(&[key(0), GROUP, string("id").multiple()]),
    stream("xackdel", -6, "8.2.0", write_handler!(acknowledge::xackdel))
        .summary(
            "Acknowledges messages in a consumer group and deletes them from the stream, and says of \
             each what has become of it.",
        )
        .complexity("O(G log N) for each entry, G being the groups, N all that is stored")
        .flags(Flags::FAST)
        .keys(&[at(1, DELETE)])
        .arguments(&[key(0), GROUP, REFERENCES, IDS]),
    stream("xnack", -7, "8.8.0", write_handler!(acknowledge::xnack))
        .summary(
            "Gives pending messages back to their consumer group: they are no consumer's, and can be \
             claimed at once.",
        )
        .complexity("O(log N) for each entry, N being all that is stored")
        .flags(Flags::FAST)
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
        .complexity("O(C + M) with C consumers and M entries looked at")
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
        // The consumer, where it is new.
        .flags(Flags::ADDS)
        .summary(
            "Changes, or acquires, ownership of messages in a consumer group, as if the messages \
             were delivered to as consumer group member.",
        )
        .complexity("O(M) with M entries looked at, ten times COUNT at most")
        .flags(Flags::FAST)
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

const XGROUP: &[Row] = &[
    stream("xgroup|create", -5, "5.0.0", write_handler!(manage::create))
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
        write_handler!(manage::create_consumer),
    )
    .summary("Creates a consumer in a consumer group.")
    .flags(Flags::DENYOOM)
    .keys(&[at(2, INSERT)])
    .arguments(&[key(0), GROUP, CONSUMER]),
    stream(
        "xgroup|delconsumer",
        5,
        "5.0.0",
        write_handler!(manage::delete_consumer),
    )
    .summary("Deletes a consumer from a consumer group.")
    .complexity("O(M) with M pending entries of the consumer")
    .keys(&[at(2, DELETE)])
    .arguments(&[key(0), GROUP, CONSUMER]),
    stream(
        "xgroup|destroy",
        4,
        "5.0.0",
        write_handler!(manage::destroy),
    )
    .summary("Destroys a consumer group.")
    .complexity("O(M) with M pending entries of the group")
    .keys(&[at(2, DELETE)])
    .arguments(&[key(0), GROUP]),
    Row::help(
        "xgroup|help",
        "5.0.0",
        Group::Stream,
        Handler::Pure(manage::help),
    )
    .categories(&["@stream"]),
    stream("xgroup|setid", -5, "5.0.0", write_handler!(manage::set_id))
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
        write_handler!(policy::set_policy),
    )
    .summary(
        "Has a consumer group hand messages out again that are pending for too long, and move those \
         that were delivered too often to another stream. Without options it does so no more.",
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
