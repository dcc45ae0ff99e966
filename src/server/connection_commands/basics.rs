//! PING, ECHO, SELECT, QUIT.

use bytes::Bytes;

use super::super::session::Session;
use crate::commands::arguments::{argument, integer_or};
use crate::error::CommandError;
use crate::limits::DATABASES;
use crate::reply::Reply;
use crate::server::ServerState;

/// `PING [message]`.
pub(super) fn ping(arguments: &[Bytes], _session: &Session) -> Result<Reply, CommandError> {
    match arguments.len() {
        1 => Ok(Reply::Simple("PONG")),
        2 => Ok(Reply::Bulk(argument(arguments, 1)?.clone())),
        _ => Err(CommandError::WrongArity("ping".to_owned())),
    }
}

/// `ECHO message`.
pub(super) fn echo(arguments: &[Bytes]) -> Result<Reply, CommandError> {
    Ok(Reply::Bulk(argument(arguments, 1)?.clone()))
}

/// `SELECT index`.
pub(super) fn select(arguments: &[Bytes], session: &mut Session) -> Result<Reply, CommandError> {
    let index = integer_or(
        argument(arguments, 1)?,
        "ERR value is not an integer or out of range",
    )?;
    let database = u32::try_from(index)
        .ok()
        .filter(|database| *database < DATABASES)
        .ok_or(CommandError::DatabaseOutOfRange)?;
    session.database = database;
    session.client.details().database = database;
    Ok(Reply::OK)
}

/// `QUIT`.
pub(super) fn quit(session: &mut Session) -> Result<Reply, CommandError> {
    session.is_closing = true;
    Ok(Reply::OK)
}

/// `CONFIG GET pattern [pattern …]`.
pub(super) fn config_get(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let patterns: Vec<&[u8]> = arguments.iter().skip(2).map(AsRef::as_ref).collect();
    let found = state.config.get(&patterns);
    Ok(Reply::Map(
        found
            .into_iter()
            .map(|(name, value)| (Reply::bulk(name), Reply::bulk(value)))
            .collect(),
    ))
}
