//! CLIENT, except for tracking.

use std::time::Duration;

use bytes::Bytes;

use crate::clients::{Unblock, put_line};
use crate::connection_commands::client_filter::{self, Filter};
use crate::connection_commands::shared::{
    check_attribute, lossy_text, not_implemented, number, refusal, timeout,
};
use crate::connection_commands::tracking;
use crate::pause::PauseMode;
use crate::session::{ReplyMode, Session};
use crate::state::ServerState;
use quoin_data::command::arguments::{argument, integer, integer_or, is_word, rest};
use quoin_data::command::help::help;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// `CLIENT <subcommand> …`.
pub(super) async fn execute(
    subcommand: &str,
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    match subcommand {
        "caching" => tracking::caching(argument(arguments, 2)?, session),
        "capa" => {
            if rest(arguments, 2)
                .iter()
                .any(|word| is_word(word, "redirect"))
            {
                session.client.details().follows_redirect = true;
            }
            Ok(Reply::OK)
        }
        "getname" => Ok(name(session)),
        "getredir" => Ok(tracking::redirect(session)),
        "help" => Ok(help(HELP_TITLE, HELP)),
        "id" => Ok(number(session.client.id)),
        "info" => Ok(info(session, state)),
        "kill" => kill(arguments, session, state),
        "list" => list(arguments, session, state),
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

/// `CLIENT MAINT_NOTIFICATIONS <ON [moving-endpoint-type type] | OFF>`, which new client libraries
/// send when they connect. It belongs to Redis Enterprise and announces that servers move. Quoin's
/// do not, so the reply is OK without effect.
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
    let timeout = timeout(argument(arguments, 2)?, state)?;
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

/// `CLIENT INFO`.
fn info(session: &Session, state: &ServerState) -> Reply {
    let (now_ms, mut text) = (state.clock.now_ms(), String::new());
    put_line(&session.client, now_ms, state.reported_version(), &mut text);
    Reply::Verbatim("txt", text.into())
}

/// `CLIENT LIST [TYPE type | ID client-id [client-id …]]`, or as in Valkey, with the options of
/// CLIENT KILL.
fn list(
    arguments: &[Bytes],
    session: &Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let (now_ms, reported) = (state.clock.now_ms(), state.reported_version());
    let mut text = String::new();
    match rest(arguments, 2) {
        // As in Redis 7.2, in the order of the ids.
        [option, ids @ ..]
            if is_word(option, "id")
                && !ids.is_empty()
                && !ids.iter().any(|word| client_filter::is_option(word)) =>
        {
            for id in ids {
                let id = integer_or(id, "ERR Invalid client ID")?;
                if let Some(client) = u64::try_from(id).ok().and_then(|id| state.clients.find(id)) {
                    put_line(&client, now_ms, reported, &mut text);
                }
            }
        }
        options => {
            let filter = Filter::parse(options, state)?;
            let spares_caller = filter.spares_caller.unwrap_or(false);
            for client in state.clients.all() {
                let is_spared = spares_caller && client.id == session.client.id;
                if filter.matches(&client) && !is_spared {
                    put_line(&client, now_ms, reported, &mut text);
                }
            }
        }
    }
    Ok(Reply::Verbatim("txt", text.into()))
}

/// `CLIENT KILL ip:port`, or `CLIENT KILL` with options.
fn kill(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let (filter, is_old_form) = match rest(arguments, 2) {
        [address] => (Filter::of_address(address), true),
        options => (Filter::parse(options, state)?, false),
    };
    let spares_caller = filter.spares_caller.unwrap_or(!is_old_form);
    let mut count = 0;
    for client in state.clients.all() {
        let is_caller = client.id == session.client.id;
        if !filter.matches(&client) || (is_caller && spares_caller) {
            continue;
        }
        count += 1;
        if is_caller {
            // After the reply.
            session.is_closing = true;
        } else {
            client.kill();
        }
    }
    match (is_old_form, count) {
        (false, count) => Ok(Reply::Integer(count)),
        (true, 0) => Err(CommandError::text("ERR No such client")),
        (true, _) => Ok(Reply::OK),
    }
}
