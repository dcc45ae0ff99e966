//! AUTH, HELLO, RESET. There is one user, `default`, whose password is the setting `requirepass`.

use bytes::Bytes;

use super::errors::{lossy_text, refusal};
use crate::commands::arguments::{integer_or, is_word, rest};
use crate::error::CommandError;
use crate::reply::Reply;
use crate::server::session::{ReplyMode, Session};
use crate::server::state::{REDIS_VERSION, ServerState};
use crate::wire::encode::Protocol;

/// `AUTH [username] password`.
pub(super) fn auth(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    match rest(arguments, 1) {
        [_] if state.config.requirepass().is_none() => Err(CommandError::text(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        )),
        [password] => authenticate(b"default", password, session, state),
        [user, password] => authenticate(user, password, session, state),
        _ => Err(CommandError::Syntax),
    }?;
    Ok(Reply::OK)
}

fn authenticate(
    user: &[u8],
    password: &[u8],
    session: &mut Session,
    state: &ServerState,
) -> Result<(), CommandError> {
    // The password is checked for any user, so that the time reveals nothing about the name.
    let is_password = state.config.is_password(password);
    if user != b"default" || !is_password {
        state.warnings.wrong_password(session.client.address, user);
        return Err(CommandError::text(
            "WRONGPASS invalid username-password pair or user is disabled.",
        ));
    }
    session.is_authenticated = true;
    Ok(())
}

/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`.
pub(super) fn hello(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let protocol = match arguments.get(1) {
        None => None,
        Some(version) => {
            let version = integer_or(
                version,
                "ERR Protocol version is not an integer or out of range",
            )?;
            Some(match version {
                2 => Protocol::Resp2,
                3 => Protocol::Resp3,
                _ => {
                    return Err(CommandError::text("NOPROTO unsupported protocol version"));
                }
            })
        }
    };
    let mut credentials = None;
    let mut name = None;
    let mut options = rest(arguments, 2);
    loop {
        options = match options {
            [] => break,
            [word, user, password, others @ ..] if is_word(word, "auth") => {
                credentials = Some((user, password));
                others
            }
            [word, given, others @ ..] if is_word(word, "setname") => {
                check_attribute(given, "Client names")?;
                name = Some(given);
                others
            }
            [word, ..] => {
                return Err(refusal(format!(
                    "ERR Syntax error in HELLO option '{}'",
                    lossy_text(word)
                )));
            }
        };
    }
    if let Some((user, password)) = credentials {
        authenticate(user, password, session, state)?;
    }
    if !session.is_allowed(&state.config) {
        return Err(CommandError::text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        session.client.details().name = lossy_text(name);
    }
    if let Some(protocol) = protocol {
        set_protocol(session, protocol);
    }
    Ok(greeting(session))
}

fn greeting(session: &Session) -> Reply {
    let text = |text: &'static str| Reply::bulk(text);
    let id = i64::try_from(session.client.id).unwrap_or(i64::MAX);
    Reply::Map(vec![
        (text("server"), text("redis")),
        (text("version"), text(REDIS_VERSION)),
        (
            text("proto"),
            Reply::Integer(version_number(session.protocol).into()),
        ),
        (text("id"), Reply::Integer(id)),
        (text("mode"), text("standalone")),
        (text("role"), text("master")),
        (text("modules"), Reply::Array(Vec::new())),
    ])
}

fn version_number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    }
}

fn set_protocol(session: &mut Session, protocol: Protocol) {
    session.protocol = protocol;
    session.client.details().protocol = version_number(protocol);
}

/// `RESET`: makes the session a new one.
pub(super) fn reset(session: &mut Session, state: &ServerState) -> Reply {
    let subscriptions = &mut session.subscriptions;
    state.pubsub.unsubscribe_all(&session.client, subscriptions);
    state.monitors.remove(&session.client);
    state.tracking.disable(&session.client);
    session.tracking = None;
    session.is_caching = false;
    set_protocol(session, Protocol::Resp2);
    session.database = 0;
    // Redis: a SKIP before RESET holds for RESET itself.
    if session.reply_mode != ReplyMode::Skip {
        session.reply_mode = ReplyMode::On;
    }
    session.discard(state.executor.watchers());
    session.is_authenticated = state.config.requirepass().is_none();
    let mut details = session.client.details();
    details.database = 0;
    details.name = String::new();
    details.no_evict = false;
    details.no_touch = false;
    Reply::Simple("RESET")
}

/// Refuses values that would make the lines of CLIENT LIST unreadable.
pub(super) fn check_attribute(value: &[u8], what: &str) -> Result<(), CommandError> {
    if value.iter().all(u8::is_ascii_graphic) {
        Ok(())
    } else {
        Err(refusal(format!(
            "ERR {what} cannot contain spaces, newlines or special characters."
        )))
    }
}
