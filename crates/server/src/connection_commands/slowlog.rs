//! SLOWLOG.

use bytes::Bytes;

use super::errors::{not_implemented, unknown_or_wrong_number};
use crate::slowlog::SlowlogEntry;
use crate::state::ServerState;
use quoin_data::command::arguments::{integer_at_least, to_usize};
use quoin_data::command::help::help;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// Entries that SLOWLOG GET returns by default.
const DEFAULT_COUNT: i64 = 10;

/// `SLOWLOG <subcommand> …`.
pub(super) fn execute(
    subcommand: &str,
    arguments: &[Bytes],
    state: &ServerState,
) -> Result<Reply, CommandError> {
    match subcommand {
        "get" => get(arguments, state),
        "help" => Ok(help(HELP_TITLE, HELP)),
        "len" => Ok(Reply::count(state.slowlog.count())),
        "reset" => {
            state.slowlog.reset();
            Ok(Reply::OK)
        }
        _ => Err(not_implemented()),
    }
}

fn get(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let count = match arguments {
        [_, _] => DEFAULT_COUNT,
        [_, _, count] => {
            integer_at_least(count, -1, "ERR count should be greater than or equal to -1")?
        }
        _ => return Err(unknown_or_wrong_number(arguments)),
    };
    let count = if count == -1 {
        usize::MAX
    } else {
        to_usize(count)
    };
    let entries = state.slowlog.newest(count);
    Ok(Reply::Array(entries.into_iter().map(entry_reply).collect()))
}

fn entry_reply(entry: SlowlogEntry) -> Reply {
    Reply::Array(vec![
        Reply::Integer(entry.id),
        Reply::Integer(entry.time_s),
        Reply::Integer(entry.duration_us),
        Reply::Array(entry.arguments.into_iter().map(Reply::Bulk).collect()),
        Reply::bulk(entry.address),
        Reply::bulk(entry.name),
    ])
}

const HELP_TITLE: &str = "SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "GET [<count>]",
    "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
    "    Entries are made of:",
    "    id, timestamp, time in microseconds, arguments array, client IP and port,",
    "    client name",
    "LEN",
    "    Return the length of the slowlog.",
    "RESET",
    "    Reset the slowlog.",
];
