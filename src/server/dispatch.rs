//! From a request to the row of its command, or to the error with which Redis refuses it.

use bytes::Bytes;

use crate::commands::row::{ConnectionCommand, Flags, Handler};
use crate::commands::{self, Row};
use crate::error::CommandError;

/// Bytes of an unknown command that its error repeats.
const UNKNOWN_NAME_BYTES_MAX: usize = 128;

/// What is to be done with a request.
pub(super) enum Dispatch {
    /// The executor runs it.
    Data(&'static Row),
    /// The server carries it out.
    Connection(ConnectionCommand, &'static Row),
    /// It is refused; where there is such a command, its row stands with the error line.
    Refused(Option<&'static Row>, String),
    /// It is a web browser's: the connection is closed without an answer.
    Hangup,
}

/// What a client may send now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Admission {
    /// It has authenticated, or need not.
    pub(super) is_authenticated: bool,
    /// The store takes commands that add data.
    pub(super) takes_growth: bool,
    /// It has subscribed and speaks RESP2.
    pub(super) is_confined: bool,
}

/// Finds the command and makes the checks that `processCommand` of Redis makes, in its order:
/// existence, number of arguments, authentication, room for what is added (Redis: `maxmemory`), and
/// what a subscriber that speaks RESP2 may send.
pub(super) fn dispatch(arguments: &[Bytes], admission: Admission) -> Dispatch {
    let Some(name) = arguments.first() else {
        return Dispatch::Refused(None, "ERR unknown command ''".to_owned());
    };
    let Some(row) = commands::find(name) else {
        // Redis's protection against requests that a browser was tricked into sending.
        if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
            return Dispatch::Hangup;
        }
        return Dispatch::Refused(None, unknown_command(arguments));
    };
    let subcommand = row.subcommand(arguments);
    if subcommand.is_none() && !row.subcommands.is_empty() && arguments.len() > 1 {
        return Dispatch::Refused(None, unknown_subcommand(row, arguments));
    }
    let checked = subcommand.unwrap_or(row);
    if !checked.accepts(arguments.len()) {
        let error = CommandError::WrongArity(full_name(row, subcommand));
        return Dispatch::Refused(Some(checked), error.to_line());
    }
    if !admission.is_authenticated && !checked.flags.contains(Flags::NO_AUTH) {
        let line = "NOAUTH Authentication required.".to_owned();
        return Dispatch::Refused(Some(checked), line);
    }
    if !admission.takes_growth && checked.flags.contains(Flags::DENYOOM) {
        return Dispatch::Refused(Some(checked), CommandError::NoRoomToGrow.to_line());
    }
    if admission.is_confined && !is_for_subscribers(row) {
        let line = format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
             are allowed in this context",
            full_name(row, subcommand)
        );
        return Dispatch::Refused(Some(checked), line);
    }
    match row.handler {
        Handler::Connection(command) => Dispatch::Connection(command, checked),
        Handler::Read(_) | Handler::Write(_) => Dispatch::Data(row),
    }
}

fn full_name(row: &Row, subcommand: Option<&Row>) -> String {
    match subcommand {
        Some(subcommand) => format!("{}|{}", row.name, subcommand.name),
        None => row.name.to_owned(),
    }
}

fn is_for_subscribers(row: &Row) -> bool {
    matches!(
        row.handler,
        Handler::Connection(
            ConnectionCommand::Ping
                | ConnectionCommand::Subscribe
                | ConnectionCommand::Ssubscribe
                | ConnectionCommand::Unsubscribe
                | ConnectionCommand::Sunsubscribe
                | ConnectionCommand::Psubscribe
                | ConnectionCommand::Punsubscribe
                | ConnectionCommand::Quit
                | ConnectionCommand::Reset
        )
    )
}

fn clipped(text: &[u8], bytes_max: usize) -> String {
    // Redis formats these as C strings, which end at a zero byte.
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = text.get(..bytes_max).unwrap_or(text);
    String::from_utf8_lossy(text).replace(['\r', '\n'], " ")
}

fn unknown_command(arguments: &[Bytes]) -> String {
    let (name, others) = match arguments.split_first() {
        Some((name, others)) => (name.as_ref(), others),
        None => (&b""[..], arguments),
    };
    let mut beginning = String::new();
    for argument in others {
        if beginning.len() >= UNKNOWN_NAME_BYTES_MAX {
            break;
        }
        let room = UNKNOWN_NAME_BYTES_MAX - beginning.len();
        beginning.push_str(&format!("'{}' ", clipped(argument, room)));
    }
    format!(
        "ERR unknown command '{}', with args beginning with: {beginning}",
        clipped(name, UNKNOWN_NAME_BYTES_MAX)
    )
}

fn unknown_subcommand(row: &Row, arguments: &[Bytes]) -> String {
    let name = arguments.get(1).map_or(&b""[..], Bytes::as_ref);
    format!(
        "ERR unknown subcommand '{}'. Try {} HELP.",
        clipped(name, UNKNOWN_NAME_BYTES_MAX),
        row.name.to_ascii_uppercase()
    )
}
