//! MONITOR.

use crate::session::Session;
use crate::state::ServerState;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

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
