//! The rows of MULTI and related commands, which the connection executes.

use crate::command::flags::Flags;
use crate::command::grammar::key;
use crate::command::key_specs::{CHECK, up_to};
use crate::command::row::{ConnectionCommand as Command, Group, Handler, Row};

const fn transaction(name: &'static str, arity: i32, since: &'static str, by: Command) -> Row {
    let handler = Handler::Connection(by);
    Row::new(name, arity, since, Group::Transactions, handler)
        .flags(Flags::AT_ANY_TIME)
        .categories(&["@transaction"])
}

const QUICK: Flags = Flags::FAST.and(Flags::ALLOW_BUSY);

/// The commands for transactions.
pub const ROWS: &[Row] = &[
    transaction("discard", 1, "2.0.0", Command::Discard)
        .summary("Discards a transaction.")
        .complexity("O(N), when N is the number of queued commands")
        .flags(QUICK),
    transaction("exec", 1, "1.2.0", Command::Exec)
        .summary("Executes all commands in a transaction.")
        .complexity("Depends on commands in the transaction")
        .flags(Flags::SKIP_SLOWLOG),
    transaction("multi", 1, "1.2.0", Command::Multi)
        .summary("Starts a transaction.")
        .flags(QUICK),
    transaction("unwatch", 1, "2.2.0", Command::Unwatch)
        .summary("Forgets about watched keys of a transaction.")
        .flags(QUICK),
    transaction("watch", -2, "2.2.0", Command::Watch)
        .summary("Monitors changes to keys to determine the execution of a transaction.")
        .complexity("O(1) for every key.")
        .flags(QUICK)
        .keys(&[up_to(1, -1, CHECK)])
        .arguments(&[key(0).multiple()]),
];
