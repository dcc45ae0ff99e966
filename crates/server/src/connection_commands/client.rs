//! CLIENT, except for tracking.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::addresses::Endpoint;
use crate::clients::{ClientRecord, Unblock, put_line};
use crate::connection_commands::shared::{
    check_attribute, lossy_text, not_implemented, number, refusal, timeout,
};
use crate::connection_commands::tracking;
use crate::pause::PauseMode;
use crate::session::{ReplyMode, Session};
use crate::state::ServerState;
use quoin_acl::User;
use quoin_data::command::arguments::{
    argument, integer, integer_at_least, integer_or, is_word, rest,
};
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
        "getname" => Ok(name(session)),
        "getredir" => Ok(tracking::redirect(session)),
        "help" => Ok(help(HELP_TITLE, HELP)),
        "id" => Ok(number(session.client.id)),
        "info" => Ok(info(session, state)),
        "kill" => kill(arguments, session, state),
        "list" => list(arguments, state),
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

/// `CLIENT MAINT_NOTIFICATIONS <ON [moving-endpoint-type type] | OFF>`, which new client libraries send
/// when they connect. It belongs to Redis Enterprise and announces servers that move. Quoin has none, so
/// the reply is OK without effect.
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

/// Types of clients. Quoin has normal ones and subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientType {
    /// A client without subscriptions.
    Normal,
    /// A client with subscriptions.
    Pubsub,
    /// A type that only Redis has.
    Other,
}

impl ClientType {
    fn from_name(name: &[u8]) -> Result<Self, CommandError> {
        let is_other = ["slave", "replica", "master"]
            .iter()
            .any(|other| is_word(name, other));
        if is_word(name, "normal") {
            Ok(ClientType::Normal)
        } else if is_word(name, "pubsub") {
            Ok(ClientType::Pubsub)
        } else if is_other {
            Ok(ClientType::Other)
        } else {
            Err(refusal(format!(
                "ERR Unknown client type '{}'",
                lossy_text(name)
            )))
        }
    }
}

impl ClientType {
    fn of(client: &ClientRecord) -> Self {
        if client.is_subscriber() {
            ClientType::Pubsub
        } else {
            ClientType::Normal
        }
    }
}

/// `CLIENT INFO`.
fn info(session: &Session, state: &ServerState) -> Reply {
    let mut text = String::new();
    put_line(&session.client, state.clock.now_ms(), &mut text);
    Reply::Verbatim("txt", text.into())
}

/// `CLIENT LIST [TYPE type | ID client-id [client-id …]]`.
fn list(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let mut text = String::new();
    match rest(arguments, 2) {
        [] => put_all(None, state, &mut text),
        [option, name] if is_word(option, "type") => {
            put_all(Some(ClientType::from_name(name)?), state, &mut text);
        }
        [option, ids @ ..] if !ids.is_empty() && is_word(option, "id") => {
            for id in ids {
                let id = integer_or(id, "ERR Invalid client ID")?;
                if let Some(client) = u64::try_from(id).ok().and_then(|id| state.clients.find(id)) {
                    put_line(&client, state.clock.now_ms(), &mut text);
                }
            }
        }
        _ => return Err(CommandError::Syntax),
    }
    Ok(Reply::Verbatim("txt", text.into()))
}

fn put_all(wanted: Option<ClientType>, state: &ServerState, text: &mut String) {
    let now_ms = state.clock.now_ms();
    for client in state.clients.all() {
        if wanted.is_none_or(|wanted| wanted == ClientType::of(&client)) {
            put_line(&client, now_ms, text);
        }
    }
}

/// Which clients to kill: those to which all given conditions apply.
#[derive(Debug, Default)]
struct Filter<'a> {
    id: Option<u64>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    client_type: Option<ClientType>,
    user: Option<Arc<User>>,
    /// Connected at this time, in seconds since the Unix epoch, or before.
    connected_by_s: Option<i64>,
    spares_caller: bool,
}

/// `CLIENT KILL ip:port`, or `CLIENT KILL` with options.
fn kill(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let (filter, is_old_form) = match rest(arguments, 2) {
        [address] => {
            let filter = Filter {
                address: Some(address),
                ..Filter::default()
            };
            (filter, true)
        }
        options => (parse_filter(options, state)?, false),
    };
    let mut count = 0;
    for client in state.clients.all() {
        let is_caller = client.id == session.client.id;
        if !filter.matches(&client) || (is_caller && filter.spares_caller) {
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

fn parse_filter<'a>(options: &'a [Bytes], state: &ServerState) -> Result<Filter<'a>, CommandError> {
    let mut filter = Filter {
        spares_caller: true,
        ..Filter::default()
    };
    for pair in options.chunks(2) {
        let [option, value] = pair else {
            return Err(CommandError::Syntax);
        };
        if is_word(option, "id") {
            let message = "ERR client-id should be greater than 0";
            filter.id = u64::try_from(integer_at_least(value, 1, message)?).ok();
        } else if is_word(option, "type") {
            filter.client_type = Some(ClientType::from_name(value)?);
        } else if is_word(option, "addr") {
            filter.address = Some(value);
        } else if is_word(option, "laddr") {
            filter.local_address = Some(value);
        } else if is_word(option, "user") {
            let user = state.access.users.find(value);
            filter.user = Some(
                user.ok_or_else(|| refusal(format!("ERR No such user '{}'", lossy_text(value))))?,
            );
        } else if is_word(option, "maxage") {
            let message = "ERR maxage is not an integer or out of range";
            let age_s = integer_at_least(value, i64::MIN, message)?;
            if age_s < 1 {
                return Err(CommandError::text("ERR maxage should be greater than 0"));
            }
            filter.connected_by_s = Some((state.clock.now_ms() / 1000).saturating_sub(age_s));
        } else if is_word(option, "skipme") {
            filter.spares_caller = if is_word(value, "yes") {
                true
            } else if is_word(value, "no") {
                false
            } else {
                return Err(CommandError::Syntax);
            };
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(filter)
}

impl Filter<'_> {
    fn matches(&self, client: &ClientRecord) -> bool {
        let is_at = |wanted: Option<&[u8]>, address: &Endpoint| {
            wanted.is_none_or(|wanted| wanted == address.to_string().as_bytes())
        };
        is_at(self.address, &client.address)
            && is_at(self.local_address, &client.local_address)
            && self
                .client_type
                .is_none_or(|wanted| wanted == ClientType::of(client))
            && self.id.is_none_or(|wanted| wanted == client.id)
            && self
                .connected_by_s
                .is_none_or(|latest| client.connected_ms / 1000 <= latest)
            && self
                .user
                .as_ref()
                .is_none_or(|wanted| Arc::ptr_eq(wanted, &client.user()))
    }
}
