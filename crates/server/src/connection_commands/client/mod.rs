//! CLIENT.

use std::time::Duration;

use bytes::Bytes;

use super::auth::check_attribute;
use super::errors::{lossy_text, not_implemented, refusal};
use crate::clients::Unblock;
use crate::pause::PauseMode;
use crate::session::{ReplyMode, Session};
use crate::state::ServerState;
use quoin_data::command::arguments::{argument, integer, is_word, rest};
use quoin_data::command::help::help;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

mod kill;
mod list;
mod tracking;

/// `CLIENT <subcommand> …`.
pub(super) async fn execute(
    subcommand: &str,
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    match subcommand {
        "caching" => tracking::caching(argument(arguments, 2)?, session),
        "getname" => Ok(name(session)),
        "getredir" => Ok(tracking::redirect(session)),
        "help" => Ok(help(HELP_TITLE, HELP)),
        "id" => Ok(Reply::Integer(
            i64::try_from(session.client.id).unwrap_or(i64::MAX),
        )),
        "info" => Ok(list::info(session, state)),
        "kill" => kill::kill(arguments, session, state),
        "list" => list::list(arguments, state),
        "maint_notifications" => maint_notifications(arguments),
        "no-evict" => {
            let is_on = on_or_off(argument(arguments, 2)?)?;
            session.client.details().no_evict = is_on;
            Ok(Reply::OK)
        }
        "no-touch" => {
            let is_on = on_or_off(argument(arguments, 2)?)?;
            session.client.details().no_touch = is_on;
            Ok(Reply::OK)
        }
        "pause" => pause(arguments, state),
        "reply" => reply(argument(arguments, 2)?, session),
        "setinfo" => set_info(argument(arguments, 2)?, argument(arguments, 3)?, session),
        "setname" => {
            let name = argument(arguments, 2)?;
            check_attribute(name, "Client names")?;
            session
                .client
                .set_attributes(|details| details.name = lossy_text(name));
            Ok(Reply::OK)
        }
        "tracking" => tracking::tracking(arguments, session, state).await,
        "trackinginfo" => Ok(tracking::info(session, state)),
        "unblock" => unblock(arguments, state),
        "unpause" => {
            state.pause.end();
            Ok(Reply::OK)
        }
        _ => Err(not_implemented()),
    }
}

fn name(session: &Session) -> Reply {
    let details = session.client.details();
    if details.name.is_empty() {
        Reply::Null
    } else {
        Reply::bulk(details.name.clone())
    }
}

/// `CLIENT MAINT_NOTIFICATIONS <ON [moving-endpoint-type type] | OFF>`, which new client libraries send when
/// they connect. It is of Redis Enterprise, and tells them of servers that move, which these do not.
fn maint_notifications(arguments: &[Bytes]) -> Result<Reply, CommandError> {
    let is_on = on_or_off(argument(arguments, 2)?)?;
    match rest(arguments, 3) {
        [] => Ok(Reply::OK),
        [word, _] if is_on && is_word(word, "moving-endpoint-type") => Ok(Reply::OK),
        _ => Err(CommandError::Syntax),
    }
}

fn on_or_off(word: &[u8]) -> Result<bool, CommandError> {
    if is_word(word, "on") {
        Ok(true)
    } else if is_word(word, "off") {
        Ok(false)
    } else {
        Err(CommandError::Syntax)
    }
}

/// `CLIENT PAUSE timeout [WRITE | ALL]`.
fn pause(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let mode = match arguments.get(3) {
        None => PauseMode::All,
        Some(mode) if is_word(mode, "all") => PauseMode::All,
        Some(mode) if is_word(mode, "write") => PauseMode::Write,
        Some(_) => {
            return Err(CommandError::text(
                "ERR CLIENT PAUSE mode must be WRITE or ALL",
            ));
        }
    };
    let timeout = super::wait::timeout(argument(arguments, 2)?, state)?;
    state.pause.begin(timeout.unwrap_or(Duration::ZERO), mode);
    Ok(Reply::OK)
}

/// `CLIENT REPLY <ON | OFF | SKIP>`.
fn reply(mode: &[u8], session: &mut Session) -> Result<Reply, CommandError> {
    if is_word(mode, "on") {
        session.reply_mode = ReplyMode::On;
        return Ok(Reply::OK);
    }
    if is_word(mode, "off") {
        session.reply_mode = ReplyMode::Off;
    } else if !is_word(mode, "skip") {
        return Err(CommandError::Syntax);
    } else if session.reply_mode != ReplyMode::Off {
        session.reply_mode = ReplyMode::SkipNext;
    }
    Ok(Reply::Silence)
}

/// `CLIENT SETINFO <LIB-NAME libname | LIB-VER libver>`.
fn set_info(option: &[u8], value: &[u8], session: &Session) -> Result<Reply, CommandError> {
    let is_name = is_word(option, "lib-name");
    if !is_name && !is_word(option, "lib-ver") {
        return Err(refusal(format!(
            "ERR Unrecognized option '{}'",
            lossy_text(option)
        )));
    }
    check_attribute(value, &lossy_text(option))?;
    session.client.set_attributes(|details| match is_name {
        true => details.library_name = lossy_text(value),
        false => details.library_version = lossy_text(value),
    });
    Ok(Reply::OK)
}

/// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`.
fn unblock(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let how = match arguments.get(3) {
        None => Unblock::Timeout,
        Some(how) if is_word(how, "timeout") => Unblock::Timeout,
        Some(how) if is_word(how, "error") => Unblock::Error,
        Some(_) => {
            return Err(CommandError::text(
                "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            ));
        }
    };
    let id = integer(argument(arguments, 2)?)?;
    let client = u64::try_from(id).ok().and_then(|id| state.clients.find(id));
    let was_blocked = client.is_some_and(|client| client.unblock(how));
    Ok(Reply::Integer(was_blocked.into()))
}

const HELP_TITLE: &str = "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "CACHING (YES|NO)",
    "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
    "GETREDIR",
    "    Return the client ID we are redirecting to when tracking is enabled.",
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made from the specified address",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made to specified local address",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Kill connections by type.",
    "    * USER <username>",
    "      Kill connections authenticated by <username>.",
    "    * SKIPME (YES|NO)",
    "      Skip killing current connection (default: yes).",
    "LIST [options ...]",
    "    Return information about client connections. Options:",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Return clients of specified type.",
    "UNPAUSE",
    "    Stop the current client pause, resuming traffic.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Suspend all, or just write, clients for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "SETINFO <option> <value>",
    "    Set client meta attr. Options are:",
    "    * LIB-NAME: the client lib name.",
    "    * LIB-VER: the client lib version.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Control server assisted client side caching.",
    "TRACKINGINFO",
    "    Report tracking status for the current connection.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "NO-TOUCH (ON|OFF)",
    "    Will not touch LRU/LFU stats when this mode is on.",
];
