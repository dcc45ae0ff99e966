//! Whether the server is well: `/healthz` and `/readyz`.

use hyper::StatusCode;

use crate::state::ServerState;
use quoin_base::limits::READY_ANSWER_MAX;
use quoin_data::command::locks::KeyLocks;
use quoin_data::error::CommandError;

/// Whether the process is alive. It is, as this thread answers: a panic in a thread that clients wait
/// for ends the process.
pub(super) fn alive() -> (StatusCode, String) {
    (StatusCode::OK, "ok\n".to_owned())
}

/// Whether commands are answered: a transaction that reads takes the way of a client's writes, and must
/// come back in time. It writes nothing.
pub(super) async fn ready(state: &ServerState) -> (StatusCode, String) {
    if state.shutdown.has_begun() {
        return not_ready("the server is shutting down");
    }
    let read = state.executor.transact(0, KeyLocks::Nothing, |context| {
        Box::pin(async { Ok(context.namespace().await?) })
    });
    match tokio::time::timeout(READY_ANSWER_MAX, read).await {
        Ok(Ok(_)) => match CommandError::of_growth(state.store.growth()) {
            None => (StatusCode::OK, "ok\n".to_owned()),
            Some(refusal) => {
                let line = refusal.to_line();
                not_ready(&format!("commands that add data are refused: {line}"))
            }
        },
        Ok(Err(error)) => not_ready(&format!("the store does not answer: {error}")),
        Err(_) => {
            let bound_ms = READY_ANSWER_MAX.as_millis();
            not_ready(&format!("the store has not answered in {bound_ms} ms"))
        }
    }
}

fn not_ready(why: &str) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"))
}
