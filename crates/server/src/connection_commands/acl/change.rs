//! ACL SETUSER and DELUSER.

use bytes::Bytes;

use super::refusal;
use crate::session::Session;
use crate::state::ServerState;
use crate::user_store;
use quoin_acl::{DEFAULT_USER, has_spaces};
use quoin_data::command::arguments::{argument, rest};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// `ACL SETUSER username [rule …]`.
pub(super) async fn set_user(
    arguments: &[Bytes],
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 2)?;
    if has_spaces(name) {
        return Err(CommandError::text(
            "ERR Usernames can't contain spaces or null characters",
        ));
    }
    let rules = rest(arguments, 3);
    if user_store::is_used(state) {
        user_store::set_user(state, name, rules).await?;
        return Ok(Reply::OK);
    }
    let set = state.access.set_user(name, rules);
    set.map_err(|text| refusal(format!("ERR {text}")))?;
    Ok(Reply::OK)
}

/// `ACL DELUSER username [username …]`.
pub(super) async fn delete_users(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let names = rest(arguments, 2);
    if names.iter().any(|name| name == DEFAULT_USER.as_bytes()) {
        return Err(CommandError::text(
            "ERR The 'default' user cannot be removed",
        ));
    }
    let deleted = match user_store::is_used(state) {
        true => user_store::delete_users(state, names).await?,
        false => {
            let deleted = names.iter().filter(|name| state.access.delete_user(name));
            deleted.count()
        }
    };
    // After the reply.
    session.is_closing |= session.user.is_deleted();
    Ok(Reply::count(deleted))
}
