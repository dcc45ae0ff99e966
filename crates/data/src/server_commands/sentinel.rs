//! The rows of the commands that only the Sentinel port has. The server executes them. The port
//! also has all other commands with the flag [`Flags::SENTINEL`].

use crate::command::flags::Flags;
use crate::command::grammar::{integer, pattern, string};
use crate::command::row::{ConnectionCommand, Group, Handler, Row};

const BY_SERVER: Handler = Handler::Connection(ConnectionCommand::Sentinel);
/// Clients often have no password for sentinels, so commands that change nothing need none.
const OPEN: Flags = Flags::SENTINEL.and(Flags::AT_ANY_TIME).and(Flags::NO_AUTH);

const fn sentinel(name: &'static str, arity: i32, since: &'static str) -> Row {
    Row::new(name, arity, since, Group::Sentinel, BY_SERVER).flags(OPEN)
}

/// SENTINEL and its subcommands.
pub const ROWS: &[Row] = &[
    Row::container("sentinel", "2.8.4", Group::Sentinel, SENTINEL)
        .summary("A container for Redis Sentinel commands.")
        .flags(OPEN),
];

const SENTINEL: &[Row] = &[
    sentinel("sentinel|ckquorum", 3, "2.8.4")
        .summary("Checks for a Redis Sentinel quorum.")
        .arguments(&[string("master-name")]),
    Row {
        flags: Flags::SENTINEL.and(Flags::ADMIN).and(Flags::AT_ANY_TIME),
        ..sentinel("sentinel|failover", 3, "2.8.4")
    }
    .summary("Forces a Redis Sentinel failover.")
    .arguments(&[string("master-name")]),
    sentinel("sentinel|flushconfig", 2, "2.8.4")
        .summary("Rewrites the Redis Sentinel configuration file."),
    sentinel("sentinel|get-master-addr-by-name", 3, "2.8.4")
        .summary("Returns the port and address of a master Redis instance.")
        .arguments(&[string("master-name")]),
    Row::help("sentinel|help", "6.2.0", Group::Sentinel, BY_SERVER).flags(OPEN),
    sentinel("sentinel|is-master-down-by-addr", 6, "2.8.4")
        .summary("Determines whether a master Redis instance is down.")
        .arguments(&[
            string("ip"),
            integer("port"),
            integer("current-epoch"),
            string("runid"),
        ]),
    sentinel("sentinel|master", 3, "2.8.4")
        .summary("Returns the state of a master Redis instance.")
        .arguments(&[string("master-name")]),
    sentinel("sentinel|masters", 2, "2.8.4").summary("Returns a list of monitored Redis masters."),
    sentinel("sentinel|myid", 2, "6.2.0").summary("Returns the Redis Sentinel instance ID."),
    sentinel("sentinel|pending-scripts", 2, "2.8.4")
        .summary("Returns information about pending scripts for Redis Sentinel."),
    sentinel("sentinel|replicas", 3, "5.0.0")
        .summary("Returns a list of the monitored Redis replicas.")
        .arguments(&[string("master-name")]),
    sentinel("sentinel|reset", 3, "2.8.4")
        .summary("Resets Redis masters by name matching a pattern.")
        .arguments(&[pattern("pattern")]),
    sentinel("sentinel|sentinels", 3, "2.8.4")
        .summary("Returns a list of Sentinel instances.")
        .arguments(&[string("master-name")]),
    sentinel("sentinel|slaves", 3, "2.8.0")
        .summary("Returns a list of the monitored replicas.")
        .arguments(&[string("master-name")]),
];
