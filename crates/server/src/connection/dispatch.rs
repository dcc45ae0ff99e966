//! Finds the row of a request's command, or Redis's error for the request.

use bytes::Bytes;

use crate::addresses::Face;
use quoin_data::command::arguments::is_word;
use quoin_data::command::flags::Flags;
use quoin_data::command::row::{ConnectionCommand, Group, Handler, Row};
use quoin_data::command::{resolve, resolve_on_sentinel};
use quoin_data::error::CommandError;
use quoin_store::Growth;

/// What to do with a request.
pub(super) enum Dispatch {
    /// A command that needs no connection. The executor runs it, or it runs at once.
    Data(&'static Row),
    /// A command that the server executes.
    Connection(ConnectionCommand, &'static Row),
    /// Refused with this error line. The row is `None` if there is no such command.
    Refused(Option<&'static Row>, String),
    /// A web browser's request: the connection is closed without a reply.
    Hangup,
}

/// What a client may send at present.
#[derive(Debug, Clone)]
pub(super) struct Conditions {
    /// The kind of port that it uses.
    pub(super) face: Face,
    /// It has authenticated, or need not.
    pub(super) is_authenticated: bool,
    /// The answer while a script or function has run for longer than `busy-reply-threshold`.
    pub(super) busy: Option<CommandError>,
    /// Whether the store takes more data.
    pub(super) growth: Growth,
    /// It queues commands for EXEC.
    pub(super) is_in_multi: bool,
    /// It has subscribed and speaks RESP2.
    pub(super) is_confined: bool,
}

/// Finds the command and makes the checks of Redis's `processCommand`, in its order: existence,
/// number of arguments, authentication, the user's rights (`refusal` gives the error line), room
/// for added data (Redis: `maxmemory`), and what a RESP2 subscriber may send.
pub(super) fn dispatch(
    arguments: &[Bytes],
    conditions: Conditions,
    refusal: impl FnOnce(&'static Row) -> Option<String>,
) -> Dispatch {
    let resolved = match conditions.face {
        Face::Data | Face::Cluster { .. } => resolve(arguments),
        Face::Sentinel { .. } => resolve_on_sentinel(arguments),
    };
    let row = match resolved {
        Ok(row) => row,
        Err(refusal) if refusal.row.is_none() && is_web_request(arguments) => {
            return Dispatch::Hangup;
        }
        Err(refusal) => return Dispatch::Refused(refusal.row, refusal.line),
    };
    // A Sentinel's clients need no password, except for changes.
    let is_on_sentinel = matches!(conditions.face, Face::Sentinel { .. });
    let is_free = is_on_sentinel && !row.flags.contains(Flags::ADMIN);
    if !conditions.is_authenticated && !row.flags.contains(Flags::NO_AUTH) && !is_free {
        let line = "NOAUTH Authentication required.".to_owned();
        return Dispatch::Refused(Some(row), line);
    }
    if !is_free && let Some(line) = refusal(row) {
        return Dispatch::Refused(Some(row), line);
    }
    if matches!(conditions.face, Face::Cluster { .. })
        && let Some(line) = refusal_of_cluster(row, arguments)
    {
        return Dispatch::Refused(Some(row), line);
    }
    if let Some(busy) = &conditions.busy
        && !row.flags.contains(Flags::ALLOW_BUSY)
    {
        return Dispatch::Refused(Some(row), busy.to_line());
    }
    if let Some(refusal) = refusal_of_growth(row, &conditions) {
        return Dispatch::Refused(Some(row), refusal.to_line());
    }
    if conditions.is_confined && !row.flags.contains(Flags::FOR_SUBSCRIBERS) {
        let line = format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
             are allowed in this context",
            row.name
        );
        return Dispatch::Refused(Some(row), line);
    }
    match row.handler {
        // The handlers of the table are those of a server that is not part of a cluster.
        Handler::Pure(_)
            if matches!(conditions.face, Face::Cluster { .. }) && row.group == Group::Cluster =>
        {
            Dispatch::Connection(ConnectionCommand::Cluster, row)
        }
        Handler::Connection(command) => Dispatch::Connection(command, row),
        Handler::Read(_) | Handler::Write(_) | Handler::Script(_) | Handler::Pure(_) => {
            Dispatch::Data(row)
        }
        Handler::Container => {
            let line = CommandError::WrongArity(row.name.to_owned()).to_line();
            Dispatch::Refused(Some(row), line)
        }
    }
}

/// The error for what Redis Cluster does not have: other databases, and masters chosen by clients.
fn refusal_of_cluster(row: &Row, arguments: &[Bytes]) -> Option<String> {
    match row.name {
        "copy" => {
            let mut options = arguments.get(3..).unwrap_or_default().windows(2);
            let is_other = options.any(
                |pair| matches!(pair, [word, number] if is_word(word, "db") && **number != *b"0"),
            );
            let line = "ERR Copying to another database is not allowed in cluster mode";
            is_other.then(|| line.to_owned())
        }
        "move" | "swapdb" => {
            let name = row.name.to_ascii_uppercase();
            Some(format!("ERR {name} is not allowed in cluster mode"))
        }
        "replicaof" | "slaveof" => Some("ERR REPLICAOF not allowed in cluster mode.".to_owned()),
        _ => None,
    }
}

/// The error of a command that adds data, if the store does not accept more. As in Redis, MULTI
/// queues nothing at all beyond `maxmemory`.
fn refusal_of_growth(row: &Row, conditions: &Conditions) -> Option<CommandError> {
    let refusal = CommandError::of_growth(conditions.growth)?;
    let ends_multi = matches!(
        row.handler,
        Handler::Connection(
            ConnectionCommand::Exec
                | ConnectionCommand::Discard
                | ConnectionCommand::Quit
                | ConnectionCommand::Reset
        )
    );
    let is_queued = conditions.is_in_multi && !ends_multi;
    let is_refused =
        row.flags.contains(Flags::DENYOOM) || (is_queued && conditions.growth == Growth::AtBound);
    is_refused.then_some(refusal)
}

/// Redis's protection against requests that a browser was tricked into sending.
fn is_web_request(arguments: &[Bytes]) -> bool {
    arguments.first().is_some_and(|name| {
        name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
    })
}
