//! SHUTDOWN.

use bytes::Bytes;

use crate::audit::log_change;
use crate::session::Session;
use crate::state::ServerState;
use quoin_data::command::arguments::{is_word, rest};
use quoin_data::error::CommandError;
use quoin_data::script;
use quoin_resp::reply::Reply;

/// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]`. Everything that was acknowledged is in the
/// store already, so the options make no difference, except that as in Redis only NOSAVE stops a server that
/// a script keeps busy: it ends the script. Scripts that run for a shorter time may end, and clients are
/// served until they do. A shutdown cannot be aborted.
pub(super) fn shutdown(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let options = rest(arguments, 1);
    let is_known = |option: &Bytes| {
        ["nosave", "save", "now", "force", "abort"]
            .iter()
            .any(|known| is_word(option, known))
    };
    let has = |name: &str| options.iter().any(|option| is_word(option, name));
    let is_abort_with_others = has("abort") && options.iter().any(|one| !is_word(one, "abort"));
    if !options.iter().all(is_known) || is_abort_with_others || (has("save") && has("nosave")) {
        return Err(CommandError::Syntax);
    }
    if has("abort") {
        return Err(CommandError::text("ERR No shutdown in progress."));
    }
    let scripts = &state.executor.environment().scripts;
    if let Some(run) = scripts.busy(|| state.config.live.busy_reply_threshold_ms()) {
        if !has("nosave") {
            return Err(script::commands::busy(run.caller.is_function()));
        }
        scripts.end_all();
        state.shutdown.begin();
    }
    log_change(arguments, session);
    state.shutdown.ask();
    session.is_closing = true;
    Ok(Reply::Silence)
}
