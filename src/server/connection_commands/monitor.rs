//! MONITOR.

use crate::error::CommandError;
use crate::reply::Reply;
use crate::server::session::Session;
use crate::server::state::ServerState;

/// `MONITOR`: from now on the client sees the commands of all clients.
pub(super) fn monitor(session: &mut Session, state: &ServerState) -> Result<Reply, CommandError> {
    if session.is_in_exec {
        return Err(CommandError::text(
            "ERR MONITOR isn't allowed for DENY BLOCKING client",
        ));
    }
    if !session.client.is_monitor() {
        state.monitors.add(&session.client);
    }
    Ok(Reply::OK)
}
