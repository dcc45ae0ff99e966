//! SELECT, QUIT, LOLWUT, FUNCTION FLUSH.

use bytes::Bytes;

use crate::session::Session;
use crate::state::{REDIS_VERSION, ServerState};
use quoin_data::command::arguments::{argument, integer_or};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// `SELECT index`.
pub(super) fn select(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let database = selected_database(arguments, state)?;
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
    state.executor.environment().database(index)
}

/// `QUIT`.
pub(super) fn quit(session: &mut Session) -> Result<Reply, CommandError> {
    session.is_closing = true;
    Ok(Reply::OK)
}

/// `LOLWUT`: only the line with the version. Quoin draws nothing.
pub(super) fn lolwut() -> Reply {
    let version = env!("CARGO_PKG_VERSION");
    let text = format!("Quoin ver. {version} (Redis ver. {REDIS_VERSION})\n");
    Reply::Verbatim("txt", text.into())
}
