//! ACL LOAD and SAVE.

use std::path::Path;

use super::refusal;
use crate::session::Session;
use crate::state::ServerState;
use crate::{user_file, user_store};
use quoin_acl::file;
use quoin_base::threads;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

const NO_FILE: CommandError = CommandError::text(
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via \
     the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration \
     file set) in order to store users in the Redis configuration.",
);
const NOT_SAVED: CommandError = CommandError::text(
    "ERR There was an error trying to save the ACLs. Please check the server logs for more information",
);

/// `ACL LOAD`.
pub(super) async fn load(
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let path = state.config.aclfile().ok_or(NO_FILE)?;
    let defaults = state.access.defaults();
    let read = on_thread(move || user_file::read(&path, defaults)).await?;
    let users = read.map_err(|errors| refusal(format!("ERR {errors}")))?;
    match user_store::is_used(state) {
        true => user_store::replace_users(state, users).await?,
        false => state.access.load_users(users),
    }
    // After the reply.
    session.is_closing |= session.user.is_deleted();
    Ok(Reply::OK)
}

/// `ACL SAVE`.
pub(super) async fn save(state: &ServerState) -> Result<Reply, CommandError> {
    let path = state.config.aclfile().ok_or(NO_FILE)?;
    user_store::refresh(state).await?;
    let users = state.access.users.all();
    let text = file::format(users.iter().map(AsRef::as_ref));
    let written = on_thread(move || user_file::write(Path::new(&path), &text)).await?;
    written.map_err(|error| {
        tracing::warn!(%error, "the users cannot be saved");
        NOT_SAVED
    })?;
    Ok(Reply::OK)
}

/// Runs what waits for the disk.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, CommandError> {
    let done = threads::run("quoin-acl", work).await;
    done.map_err(|error| refusal(format!("ERR cannot use a thread for the file: {error}")))
}
