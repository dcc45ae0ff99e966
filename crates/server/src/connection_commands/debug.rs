//! DEBUG: the subcommands that tests of Redis clients use.

use std::time::Duration;

use bytes::Bytes;

use super::errors::unknown_or_wrong_number;
use crate::state::ServerState;
use quoin_base::number::{parse_double, parse_i64};
use quoin_data::command::arguments::{argument, is_word, rest};
use quoin_data::command::help::help;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// The longest DEBUG SLEEP, in seconds. The clock cannot hold much longer times.
const SLEEP_MAX_S: f64 = 1e9;

/// `DEBUG <subcommand> …`.
pub(super) async fn execute(
    arguments: &[Bytes],
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let subcommand = argument(arguments, 1)?;
    match rest(arguments, 2) {
        [] if is_word(subcommand, "help") => Ok(help(HELP_TITLE, HELP)),
        [seconds] if is_word(subcommand, "sleep") => {
            // All of Redis stops. Here only the client waits.
            let seconds = parse_double(seconds).unwrap_or(0.0).clamp(0.0, SLEEP_MAX_S);
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            Ok(Reply::OK)
        }
        [message] if is_word(subcommand, "error") => {
            let message = String::from_utf8_lossy(message);
            Ok(Reply::Error(message.replace(['\r', '\n'], " ")))
        }
        [flag] if is_word(subcommand, "set-active-expire") => {
            // Like C's `atoi`: anything that is not a number is 0.
            state.set_active_expire(parse_i64(flag).is_some_and(|flag| flag != 0));
            Ok(Reply::OK)
        }
        _ => Err(unknown_or_wrong_number(arguments)),
    }
}

const HELP_TITLE: &str = "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "ERROR <string>",
    "    Return a Redis protocol error with <string> as message. Useful for clients",
    "    unit tests to simulate Redis errors.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Setting it to 0 disables expiring keys in background when they are not",
    "    accessed (otherwise the Redis behavior). Setting it to 1 reenables back the",
    "    default.",
    "SLEEP <seconds>",
    "    Stop this client for <seconds>. Decimals allowed.",
];
