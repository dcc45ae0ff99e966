//! The commands that the server carries out itself.

use bytes::Bytes;

use super::ServerState;
use super::session::Session;
use crate::commands::row::{ConnectionCommand, Row};
use crate::error::CommandError;
use crate::reply::Reply;

mod basics;

/// Carries out a command for a client. `row` is that of the subcommand, where there is one.
///
/// # Errors
/// What Redis refuses, in its words.
pub async fn carry_out(
    command: ConnectionCommand,
    _row: &'static Row,
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    match command {
        ConnectionCommand::Ping => basics::ping(arguments, session),
        ConnectionCommand::Echo => basics::echo(arguments),
        ConnectionCommand::Select => basics::select(arguments, session),
        ConnectionCommand::Quit => basics::quit(session),
        ConnectionCommand::Config => basics::config_get(arguments, state),
        _ => Err(CommandError::text("ERR not here yet")),
    }
}
