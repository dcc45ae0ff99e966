//! ACL DRYRUN.

use bytes::Bytes;

use super::refusal;
use crate::connection_commands::errors::lossy_text;
use crate::state::ServerState;
use crate::user_store;
use quoin_data::command::arguments::{argument, rest};
use quoin_data::command::resolve;
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// `ACL DRYRUN username command [arg …]`: whether the user may run the command.
pub(super) async fn dry_run(
    arguments: &[Bytes],
    state: &ServerState,
) -> Result<Reply, CommandError> {
    user_store::refresh(state).await?;
    let name = argument(arguments, 2)?;
    let Some(user) = state.access.users.find(name) else {
        let name = lossy_text(name);
        return Err(refusal(format!("ERR User '{name}' not found")));
    };
    let command = rest(arguments, 3);
    let row = resolve(command).map_err(|refused| match refused.row {
        Some(_) => refusal(refused.line),
        None => {
            let name = command.first().map_or(&b""[..], Bytes::as_ref);
            refusal(format!("ERR Command '{}' not found", lossy_text(name)))
        }
    })?;
    Ok(match user.definition().check(row, command) {
        Ok(()) => Reply::OK,
        Err(denial) => Reply::bulk(denial.detail(name, row, command)),
    })
}
