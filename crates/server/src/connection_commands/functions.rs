//! FUNCTION STATS: it answers while a function keeps the lanes busy, so it does without them then.

use std::sync::Arc;

use crate::state::ServerState;
use quoin_data::error::CommandError;
use quoin_data::script;
use quoin_lua::{Caller, Libraries, Run};
use quoin_resp::reply::Reply;

/// `FUNCTION STATS`.
pub(super) async fn stats(state: &ServerState) -> Result<Reply, CommandError> {
    let scripts = &state.executor.environment().scripts;
    let running = scripts.busy(|| state.config.live.busy_reply_threshold_ms());
    let script = match running.as_deref() {
        None => Reply::Null,
        Some(run) => describe(run)?,
    };
    let libraries = libraries(state, running.is_some()).await?;
    let count = |count: usize| Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    let lua = Reply::Map(vec![
        (Reply::bulk("libraries_count"), count(libraries.len())),
        (
            Reply::bulk("functions_count"),
            count(libraries.function_count()),
        ),
    ]);
    Ok(Reply::Map(vec![
        (Reply::bulk("running_script"), script),
        (
            Reply::bulk("engines"),
            Reply::Map(vec![(Reply::bulk("LUA"), lua)]),
        ),
    ]))
}

fn describe(run: &Run) -> Result<Reply, CommandError> {
    let Caller::Function(name, command) = &run.caller else {
        return Err(script::commands::busy(false));
    };
    let command = command.iter().cloned().map(Reply::Bulk).collect();
    let milliseconds = i64::try_from(run.elapsed().as_millis()).unwrap_or(i64::MAX);
    Ok(Reply::Map(vec![
        (Reply::bulk("name"), Reply::bulk(name.clone())),
        (Reply::bulk("command"), Reply::Array(command)),
        (Reply::bulk("duration_ms"), Reply::Integer(milliseconds)),
    ]))
}

/// The libraries, as this server has last seen them if it is `busy`.
async fn libraries(state: &ServerState, is_busy: bool) -> Result<Arc<Libraries>, CommandError> {
    if is_busy {
        return Ok(state.executor.environment().scripts.libraries());
    }
    let read = state.executor.read(0, |context| {
        Box::pin(async move { Ok(context.libraries().await?) })
    });
    Ok(read.await?)
}
