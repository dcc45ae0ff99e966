//! The rows of commands on the connection and the server. The server executes most of them itself. PING, ECHO and TIME
//! need neither data nor connection state, and their handlers are here.

use bytes::Bytes;
use quoin_resp::reply::Reply;

use crate::command::arguments::argument;
use crate::command::flags::Flags;
use crate::command::grammar::{Argument, block, integer, oneof, string, token};
use crate::command::row::{ConnectionCommand as Command, Group, Handler, Row};
use crate::error::CommandError;
use crate::server_commands::cluster::CLUSTER;
use crate::server_commands::containers::{ACL, CLIENT, CONFIG, LATENCY, MODULE, SLOWLOG};
use crate::server_commands::replication;
use crate::unit::context::Environment;

const CONNECTION: &[&str] = &["@connection"];
const BEFORE_AUTH: Flags = Flags::AT_ANY_TIME
    .and(Flags::FAST)
    .and(Flags::NO_AUTH)
    .and(Flags::ALLOW_BUSY);
const LOADING_FAST: Flags = Flags::LOADING.and(Flags::STALE).and(Flags::FAST);
const SAVES: Flags = Flags::NO_ASYNC_LOADING
    .and(Flags::ADMIN)
    .and(Flags::NOSCRIPT);
const SAVE_SELECTOR: Argument =
    oneof("save-selector", &[token("NOSAVE"), token("SAVE")]).optional();

const fn by(command: Command) -> Handler {
    Handler::Connection(command)
}

const fn server(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Server, handler)
}

const fn connection(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Connection, handler).categories(CONNECTION)
}

const REPLICAOF: Handler = Handler::Pure(replication::replicaof);
const REPLICATES: Flags = Flags::ADMIN
    .and(Flags::NOSCRIPT)
    .and(Flags::STALE)
    .and(Flags::NO_ASYNC_LOADING);
const NO_REPLICATION: Handler = Handler::Pure(replication::no_replication);
const SYNCS: Flags = Flags::NO_ASYNC_LOADING
    .and(Flags::ADMIN)
    .and(Flags::NO_MULTI)
    .and(Flags::NOSCRIPT);
const MASTER: &[Argument] = &[oneof(
    "args",
    &[
        block("host-port", &[string("host"), integer("port")]),
        block("no-one", &[token("NO"), token("ONE")]),
    ],
)];

/// A command for connections to a Redis Cluster.
const fn cluster(name: &'static str, since: &'static str) -> Row {
    Row::new(
        name,
        1,
        since,
        Group::Cluster,
        Handler::Pure(replication::no_cluster),
    )
    .flags(Flags::FAST)
    .categories(CONNECTION)
}

/// A command that waits for replicas or a disk.
const fn waiting(name: &'static str, arity: i32, since: &'static str, handler: Handler) -> Row {
    Row::new(name, arity, since, Group::Generic, handler)
        .categories(CONNECTION)
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
}

/// The commands on connections and the server.
pub const ROWS: &[Row] = &[
    connection("auth", -2, "1.0.0", by(Command::Auth))
        .summary("Authenticates the connection.")
        .complexity("O(N) where N is the number of passwords defined for the user")
        .flags(BEFORE_AUTH.and(Flags::SENTINEL))
        .history(&[("6.0.0", "Added ACL style (username and password).")])
        .arguments(&[
            string("username").since("6.0.0").optional(),
            string("password"),
        ]),
    Row::container("client", "2.4.0", Group::Connection, CLIENT)
        .summary("A container for client connection commands.")
        .flags(Flags::SENTINEL),
    connection("echo", 2, "1.0.0", Handler::Pure(echo))
        .summary("Returns the given string.")
        .flags(LOADING_FAST)
        .arguments(&[string("message")]),
    connection("hello", -1, "6.0.0", by(Command::Hello))
        .summary("Handshakes with the Redis server.")
        .flags(BEFORE_AUTH.and(Flags::SENTINEL))
        .history(&[(
            "6.2.0",
            "`protover` made optional; when called without arguments the command reports the \
             current connection's context.",
        )])
        .arguments(&[block(
            "arguments",
            &[
                integer("protover"),
                block("auth", &[string("username"), string("password")])
                    .token("AUTH")
                    .optional(),
                string("clientname").token("SETNAME").optional(),
            ],
        )
        .optional()]),
    connection("ping", -1, "1.0.0", Handler::Pure(ping))
        .summary("Returns the server's liveliness response.")
        .flags(Flags::FAST.and(Flags::FOR_SUBSCRIBERS).and(Flags::SENTINEL))
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .arguments(&[string("message").optional()]),
    connection("quit", -1, "1.0.0", by(Command::Quit))
        .summary("Closes the connection.")
        .flags(BEFORE_AUTH.and(Flags::FOR_SUBSCRIBERS).and(Flags::SENTINEL))
        .deprecated("7.2.0", "just closing the connection"),
    connection("reset", 1, "6.2.0", by(Command::Reset))
        .summary("Resets the connection.")
        .flags(BEFORE_AUTH.and(Flags::FOR_SUBSCRIBERS).and(Flags::SENTINEL)),
    connection("select", 2, "1.0.0", by(Command::Select))
        .summary("Changes the selected database.")
        .flags(LOADING_FAST)
        .arguments(&[integer("index")]),
    Row::container("acl", "6.0.0", Group::Server, ACL)
        .summary("A container for Access List Control commands."),
    server("bgrewriteaof", 1, "1.0.0", by(Command::Bgrewriteaof))
        .summary("Asynchronously rewrites the append-only file to disk.")
        .flags(SAVES),
    server("bgsave", -1, "1.0.0", by(Command::Bgsave))
        .summary("Asynchronously saves the database(s) to disk.")
        .flags(SAVES)
        .history(&[("3.2.2", "Added the `SCHEDULE` option.")])
        .arguments(&[token("SCHEDULE").since("3.2.2").optional()]),
    Row::container("config", "2.0.0", Group::Server, CONFIG)
        .summary("A container for server configuration commands."),
    server("debug", -2, "1.0.0", by(Command::Debug))
        .summary("A container for debugging commands.")
        .complexity("Depends on subcommand.")
        .flags(Flags::ADMIN.and(Flags::AT_ANY_TIME))
        .system(),
    server("info", -1, "1.0.0", by(Command::Info))
        .summary("Returns information and statistics about the server.")
        .flags(Flags::LOADING.and(Flags::STALE).and(Flags::SENTINEL))
        .categories(&["@dangerous"])
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ])
        .history(&[(
            "7.0.0",
            "Added support for taking multiple section arguments.",
        )])
        .arguments(&[string("section").optional().multiple()]),
    server("lastsave", 1, "1.0.0", by(Command::Lastsave))
        .summary("Returns the Unix timestamp of the last successful save to disk.")
        .flags(LOADING_FAST)
        .categories(&["@admin", "@dangerous"])
        .tips(&["nondeterministic_output"]),
    Row::container("latency", "2.8.13", Group::Server, LATENCY)
        .summary("A container for latency diagnostics commands."),
    server("lolwut", -1, "5.0.0", by(Command::Lolwut))
        .summary("Displays computer art and the Redis version")
        .flags(Flags::READONLY.and(Flags::FAST))
        .arguments(&[integer("version").token("VERSION").optional()]),
    Row::container("module", "4.0.0", Group::Server, MODULE)
        .summary("A container for module commands."),
    server("monitor", 1, "1.0.0", by(Command::Monitor))
        .summary("Listens for all requests received by the server in real-time.")
        .flags(Flags::ADMIN.and(Flags::AT_ANY_TIME)),
    server("psync", -3, "2.8.0", NO_REPLICATION)
        .summary("An internal command used in replication.")
        .flags(SYNCS)
        .arguments(&[string("replicationid"), integer("offset")]),
    server("replconf", -1, "3.0.0", NO_REPLICATION)
        .summary("An internal command for configuring the replication stream.")
        .flags(
            Flags::ADMIN
                .and(Flags::NOSCRIPT)
                .and(Flags::LOADING)
                .and(Flags::STALE)
                .and(Flags::ALLOW_BUSY),
        )
        .system(),
    server("replicaof", 3, "5.0.0", REPLICAOF)
        .summary("Configures a server as replica of another, or promotes it to a master.")
        .flags(REPLICATES)
        .arguments(MASTER),
    server("role", 1, "2.8.12", by(Command::Role))
        .summary("Returns the replication role.")
        .flags(Flags::AT_ANY_TIME.and(Flags::FAST).and(Flags::SENTINEL))
        .categories(&["@admin", "@dangerous"]),
    server("slaveof", 3, "1.0.0", REPLICAOF)
        .summary("Sets a Redis server as a replica of another, or promotes it to being a master.")
        .flags(REPLICATES)
        .deprecated("5.0.0", "`REPLICAOF`")
        .arguments(MASTER),
    server("sync", 1, "1.0.0", NO_REPLICATION)
        .summary("An internal command used in replication.")
        .flags(SYNCS),
    Row::container("cluster", "3.0.0", Group::Cluster, CLUSTER)
        .summary("A container for Redis Cluster commands."),
    cluster("asking", "3.0.0")
        .summary("Signals that a cluster client is following an -ASK redirect."),
    cluster("readonly", "3.0.0")
        .summary("Enables read-only queries for a connection to a Redis Cluster replica node.")
        .flags(Flags::LOADING.and(Flags::STALE)),
    cluster("readwrite", "3.0.0")
        .summary("Enables read-write queries for a connection to a Reids Cluster replica node.")
        .flags(Flags::LOADING.and(Flags::STALE)),
    server("save", 1, "1.0.0", by(Command::Save))
        .summary("Synchronously saves the database(s) to disk.")
        .complexity("O(N) where N is the total number of keys in all databases")
        .flags(SAVES.and(Flags::NO_MULTI)),
    server("shutdown", -1, "1.0.0", by(Command::Shutdown))
        .summary("Synchronously saves the database(s) to disk and shuts down the Redis server.")
        .complexity(
            "O(N) when saving, where N is the total number of keys in all databases when saving \
             data, otherwise O(1)",
        )
        .flags(
            Flags::ADMIN
                .and(Flags::AT_ANY_TIME)
                .and(Flags::NO_MULTI)
                .and(Flags::ALLOW_BUSY),
        )
        .history(&[("7.0.0", "Added the `NOW`, `FORCE` and `ABORT` modifiers.")])
        .arguments(&[
            SAVE_SELECTOR,
            token("NOW").since("7.0.0").optional(),
            token("FORCE").since("7.0.0").optional(),
            token("ABORT").since("7.0.0").optional(),
        ]),
    Row::container("slowlog", "2.2.12", Group::Server, SLOWLOG)
        .summary("A container for slow log commands."),
    server("time", 1, "2.6.0", Handler::Pure(time))
        .summary("Returns the server time.")
        .flags(LOADING_FAST)
        .tips(&["nondeterministic_output"]),
    waiting("wait", 3, "3.0.0", by(Command::Wait))
        .summary(
            "Blocks until the asynchronous replication of all preceding write commands sent by \
             the connection is completed.",
        )
        .arguments(&[integer("numreplicas"), integer("timeout")]),
    waiting("waitaof", 4, "7.2.0", by(Command::Waitaof))
        .summary(
            "Blocks until all of the preceding write commands sent by the connection are written \
             to the append-only file of the master and/or replicas.",
        )
        .flags(Flags::NOSCRIPT)
        .arguments(&[
            integer("numlocal"),
            integer("numreplicas"),
            integer("timeout"),
        ]),
];

/// `PING [message]`.
fn ping(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    match arguments.len() {
        1 => Ok(Reply::Simple("PONG")),
        2 => Ok(Reply::Bulk(argument(arguments, 1)?.clone())),
        _ => Err(CommandError::WrongArity("ping".to_owned())),
    }
}

/// `ECHO message`.
fn echo(_: &Environment, arguments: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::Bulk(argument(arguments, 1)?.clone()))
}

/// `TIME`: seconds, and microseconds within the current second.
fn time(environment: &Environment, _: &[Bytes]) -> Result<Reply, CommandError> {
    let now_us = environment.clock.now_us();
    let text = |number: i64| Reply::bulk(number.to_string());
    Ok(Reply::Array(vec![
        text(now_us.div_euclid(1_000_000)),
        text(now_us.rem_euclid(1_000_000)),
    ]))
}
