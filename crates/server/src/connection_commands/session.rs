//! Commands about the session of a client: AUTH, HELLO, RESET, SELECT, QUIT.

use std::sync::Arc;

use bytes::Bytes;

use crate::addresses::Face;
use crate::connection_commands::shared::{check_attribute, lossy_text, number, refusal};
use crate::session::{ReplyMode, Session};
use crate::state::ServerState;
use crate::users;
use quoin_acl::log::Context;
use quoin_acl::{DEFAULT_USER, Reason, User};
use quoin_data::command::arguments::{argument, integer_or, is_word, rest};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;
use quoin_resp::wire::encode::Protocol;

/// A user's name and a password.
type Credentials<'a> = (&'a [u8], &'a [u8]);

/// The arguments of AUTH.
fn credentials_of_auth(arguments: &[Bytes]) -> Option<Credentials<'_>> {
    match rest(arguments, 1) {
        [password] => Some((DEFAULT_USER.as_bytes(), password)),
        [user, password] => Some((user, password)),
        _ => None,
    }
}

/// The user that a client becomes by AUTH or HELLO with these arguments.
pub(super) fn next_user(
    is_hello: bool,
    arguments: &[Bytes],
    state: &ServerState,
) -> Option<Arc<User>> {
    let (user, password) = match is_hello {
        true => Greeting::parse(arguments).ok()?.credentials?,
        false => credentials_of_auth(arguments)?,
    };
    state.access.authenticate(user, password)
}

/// `AUTH [username] password`.
pub(super) async fn auth(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let (user, password) = credentials_of_auth(arguments).ok_or(CommandError::Syntax)?;
    // Another server may just have created the user.
    users::refresh_for(&session.client, state).await;
    let default = state.access.users.default_user();
    if arguments.len() == 2 && default.definition().needs_no_password() {
        return Err(CommandError::text(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        ));
    }
    authenticate(user, password, arguments, session, state)?;
    Ok(Reply::OK)
}

fn authenticate(
    name: &[u8],
    password: &[u8],
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<(), CommandError> {
    if let Some(user) = state.access.authenticate(name, password) {
        session.set_user(user, true);
        return Ok(());
    }
    state.warnings.wrong_password(&session.client.address, name);
    let context = if session.is_in_exec {
        Context::Multi
    } else {
        Context::Toplevel
    };
    let object = arguments.first().cloned().unwrap_or_default();
    let name = Bytes::copy_from_slice(name);
    let client = &session.client;
    let access = &state.access;
    access.record(client, Reason::Auth, context, object, name);
    Err(CommandError::text(
        "WRONGPASS invalid username-password pair or user is disabled.",
    ))
}

/// The arguments of HELLO.
struct Greeting<'a> {
    protocol: Option<Protocol>,
    credentials: Option<Credentials<'a>>,
    name: Option<&'a Bytes>,
}

impl<'a> Greeting<'a> {
    fn parse(arguments: &'a [Bytes]) -> Result<Self, CommandError> {
        let mut greeting = Self {
            protocol: None,
            credentials: None,
            name: None,
        };
        if let Some(version) = arguments.get(1) {
            let version = integer_or(
                version,
                "ERR Protocol version is not an integer or out of range",
            )?;
            greeting.protocol = Some(match version {
                2 => Protocol::Resp2,
                3 => Protocol::Resp3,
                _ => {
                    return Err(CommandError::text("NOPROTO unsupported protocol version"));
                }
            });
        }
        let mut options = rest(arguments, 2);
        loop {
            options = match options {
                [] => return Ok(greeting),
                [word, user, password, others @ ..] if is_word(word, "auth") => {
                    greeting.credentials = Some((user, password));
                    others
                }
                [word, given, others @ ..] if is_word(word, "setname") => {
                    check_attribute(given, "Client names")?;
                    greeting.name = Some(given);
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
    }
}

/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`.
pub(super) async fn hello(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let Greeting {
        protocol,
        credentials,
        name,
    } = Greeting::parse(arguments)?;
    if let Some((user, password)) = credentials {
        users::refresh_for(&session.client, state).await;
        authenticate(user, password, arguments, session, state)?;
    }
    if !session.is_allowed(&state.access.users) && !session.is_on_sentinel() {
        return Err(CommandError::text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        session
            .client
            .set_attributes(|details| details.name = lossy_text(name));
    }
    if let Some(protocol) = protocol {
        set_protocol(session, protocol);
    }
    Ok(greeting(session, state))
}

fn greeting(session: &Session, state: &ServerState) -> Reply {
    let text = |text: &'static str| Reply::bulk(text);
    let mode = match session.face {
        Face::Data => "standalone",
        Face::Cluster { .. } => "cluster",
        Face::Sentinel { .. } => "sentinel",
    };
    let mut fields = vec![
        (text("server"), text("redis")),
        (text("version"), text(state.reported_version().text())),
        (
            text("proto"),
            Reply::Integer(version_number(session.protocol).into()),
        ),
        (text("id"), number(session.client.id)),
        (text("mode"), text(mode)),
    ];
    if !session.is_on_sentinel() {
        fields.push((text("role"), text("master")));
    }
    fields.push((text("modules"), Reply::Array(Vec::new())));
    Reply::Map(fields)
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

/// `RESET`: resets the session to that of a new client.
pub(super) fn reset(session: &mut Session, state: &ServerState) -> Reply {
    let subscriptions = &mut session.subscriptions;
    state
        .pubsub_of(session.face)
        .unsubscribe_all(&session.client, subscriptions);
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
    let default = state.access.users.default_user();
    let admits_all = default.definition().admits_all();
    session.set_user(Arc::clone(default), admits_all);
    let client = &session.client;
    client.set_attributes(|details| details.name = String::new());
    let mut details = client.details();
    details.database = 0;
    details.no_evict = false;
    details.no_touch = false;
    Reply::Simple("RESET")
}

/// `SELECT index`.
pub(super) fn select(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let database = selected_database(arguments, session, state)?;
    session.database = database;
    session.client.details().database = database;
    Ok(Reply::OK)
}

/// The database that SELECT names.
///
/// # Errors
/// Redis's, if there is no such database.
pub(crate) fn selected_database(
    arguments: &[Bytes],
    session: &Session,
    state: &ServerState,
) -> Result<u32, CommandError> {
    let index = integer_or(
        argument(arguments, 1)?,
        "ERR value is not an integer or out of range",
    )?;
    if i32::try_from(index).is_err() {
        // Redis reads an int here.
        return Err(CommandError::text(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        ));
    }
    if session.is_on_cluster() && index != 0 {
        return Err(CommandError::text(
            "ERR SELECT is not allowed in cluster mode",
        ));
    }
    state.executor.environment().database(index)
}

/// `QUIT`.
pub(super) fn quit(session: &mut Session) -> Result<Reply, CommandError> {
    session.is_closing = true;
    Ok(Reply::OK)
}
