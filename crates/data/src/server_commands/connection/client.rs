//! The rows of CLIENT.

use crate::command::flags::Flags;
use crate::command::grammar::{Argument, integer, oneof, string, token};
use crate::command::row::{ConnectionCommand, Group, Handler, Row};

const BY_SERVER: Handler = Handler::Connection(ConnectionCommand::Client);
const CONNECTION: &[&str] = &["@connection"];
const EACH_CLIENT: &str = "O(N) where N is the number of client connections";

const ENABLED: Argument = oneof("enabled", &[token("ON"), token("OFF")]);
const SKIP_ME: Argument = oneof("skipme", &[token("YES"), token("NO")])
    .token("SKIPME")
    .optional();
const LISTED_TYPE: Argument = oneof(
    "client-type",
    &[
        token("normal"),
        token("master"),
        token("replica"),
        token("pubsub"),
    ],
)
.token("TYPE")
.since("5.0.0")
.optional();
const KILLED_TYPE: Argument = oneof(
    "client-type",
    &[
        token("normal"),
        token("master").since("3.2.0"),
        token("slave"),
        token("replica").since("5.0.0"),
        token("pubsub"),
    ],
)
.token("TYPE")
.since("2.8.12")
.optional();
const KILL_FILTERS: Argument = oneof(
    "new-format",
    &[
        integer("client-id").token("ID").since("2.8.12").optional(),
        KILLED_TYPE,
        string("username").token("USER").optional(),
        string("addr").token("ADDR").shown_as("ip:port").optional(),
        string("laddr")
            .token("LADDR")
            .shown_as("ip:port")
            .since("6.2.0")
            .optional(),
        SKIP_ME,
    ],
)
.multiple();

const fn client(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row::new(name, arity, since, Group::Connection, BY_SERVER)
        .flags(Flags::AT_ANY_TIME)
        .categories(CONNECTION)
}

pub(super) const CLIENT: &[Row] = &[
    client("client|caching", 3, "6.0.0")
        .summary("Instructs the server whether to track the keys in the next request.")
        .arguments(&[oneof("mode", &[token("YES"), token("NO")])]),
    client("client|getname", 2, "2.6.9").summary("Returns the name of the connection."),
    client("client|getredir", 2, "6.0.0").summary(
        "Returns the client ID to which the connection's tracking notifications are \
         redirected.",
    ),
    Row::help("client|help", "5.0.0", Group::Connection, BY_SERVER).categories(CONNECTION),
    client("client|id", 2, "5.0.0").summary("Returns the unique client ID of the connection."),
    client("client|info", 2, "6.2.0")
        .summary("Returns information about the connection.")
        .tips(&["nondeterministic_output"]),
    client("client|kill", -3, "2.4.0")
        .summary("Terminates open connections.")
        .complexity(EACH_CLIENT)
        .flags(Flags::ADMIN)
        .history(&[
            ("2.8.12", "Added new filter format."),
            ("2.8.12", "`ID` option."),
            ("3.2.0", "Added `master` type in for `TYPE` option."),
            (
                "5.0.0",
                "Replaced `slave` `TYPE` with `replica`. `slave` still supported for backward \
                 compatibility.",
            ),
            ("6.2.0", "`LADDR` option."),
        ])
        .arguments(&[oneof(
            "filter",
            &[
                string("old-format")
                    .shown_as("ip:port")
                    .deprecated_since("2.8.12"),
                KILL_FILTERS,
            ],
        )]),
    client("client|list", -2, "2.4.0")
        .summary("Lists open connections.")
        .complexity(EACH_CLIENT)
        .flags(Flags::ADMIN)
        .tips(&["nondeterministic_output"])
        .history(&[
            ("2.8.12", "Added unique client `id` field."),
            ("5.0.0", "Added optional `TYPE` filter."),
            ("6.0.0", "Added `user` field."),
            (
                "6.2.0",
                "Added `argv-mem`, `tot-mem`, `laddr` and `redir` fields and the optional `ID` \
                 filter.",
            ),
            (
                "7.0.0",
                "Added `resp`, `multi-mem`, `rbs` and `rbp` fields.",
            ),
            ("7.0.3", "Added `ssub` field."),
        ])
        .arguments(&[
            LISTED_TYPE,
            integer("client-id")
                .token("ID")
                .since("6.2.0")
                .optional()
                .multiple(),
        ]),
    client("client|no-evict", 3, "7.0.0")
        .summary("Sets the client eviction mode of the connection.")
        .flags(Flags::ADMIN)
        .arguments(&[ENABLED]),
    client("client|no-touch", 3, "7.2.0")
        .summary(
            "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.",
        )
        .arguments(&[ENABLED]),
    client("client|pause", -3, "3.0.0")
        .summary("Suspends commands processing.")
        .flags(Flags::ADMIN)
        .history(&[(
            "6.2.0",
            "`CLIENT PAUSE WRITE` mode added along with the `mode` option.",
        )])
        .arguments(&[
            integer("timeout"),
            oneof("mode", &[token("WRITE"), token("ALL")])
                .since("6.2.0")
                .optional(),
        ]),
    client("client|reply", 3, "3.2.0")
        .summary("Instructs the server whether to reply to commands.")
        .arguments(&[oneof("action", &[token("ON"), token("OFF"), token("SKIP")])]),
    client("client|maint_notifications", -3, "7.2.0")
        .summary("Asks for notifications of maintenance, which do not come.")
        .arguments(&[
            oneof("status", &[token("ON"), token("OFF")]),
            string("type").token("moving-endpoint-type").optional(),
        ]),
    client("client|setinfo", 4, "7.2.0")
        .summary("Sets information specific to the client or connection.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .arguments(&[oneof(
            "attr",
            &[
                string("libname").token("lib-name"),
                string("libver").token("lib-ver"),
            ],
        )]),
    client("client|setname", 3, "2.6.9")
        .summary("Sets the connection name.")
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .arguments(&[string("connection-name")]),
    client("client|tracking", -3, "6.0.0")
        .summary("Controls server-assisted client-side caching for the connection.")
        .complexity("O(1). Some options may introduce additional complexity.")
        .arguments(&[
            oneof("status", &[token("ON"), token("OFF")]),
            integer("client-id").token("REDIRECT").optional(),
            string("prefix")
                .token("PREFIX")
                .optional()
                .multiple_with_token(),
            token("BCAST").named("BCAST").optional(),
            token("OPTIN").named("OPTIN").optional(),
            token("OPTOUT").named("OPTOUT").optional(),
            token("NOLOOP").named("NOLOOP").optional(),
        ]),
    client("client|trackinginfo", 2, "6.2.0").summary(
        "Returns information about server-assisted client-side caching for the connection.",
    ),
    client("client|unblock", -3, "5.0.0")
        .summary("Unblocks a client blocked by a blocking command from a different connection.")
        .complexity("O(log N) where N is the number of client connections")
        .flags(Flags::ADMIN)
        .arguments(&[
            integer("client-id"),
            oneof("unblock-type", &[token("TIMEOUT"), token("ERROR")]).optional(),
        ]),
    client("client|unpause", 2, "6.2.0")
        .summary("Resumes processing commands from paused clients.")
        .complexity("O(N) Where N is the number of paused clients")
        .flags(Flags::ADMIN),
];
