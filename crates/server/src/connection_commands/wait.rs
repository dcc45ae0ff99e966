//! WAIT and WAITAOF. There are no replicas, so waiting for one always times out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::clients::Unblock;
use crate::session::Session;
use crate::state::ServerState;
use quoin_data::command::arguments::{argument, count, integer, integer_or};
use quoin_data::error::CommandError;
use quoin_resp::reply::Reply;

/// `WAIT numreplicas timeout`.
pub(super) async fn wait(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let replicas = integer(argument(arguments, 1)?)?;
    let timeout = timeout(argument(arguments, 2)?, state)?;
    if replicas > 0 && !session.is_in_exec {
        wait_for_timeout(session, timeout).await?;
    }
    Ok(Reply::Integer(0))
}

/// `WAITAOF numlocal numreplicas timeout`. Everything that was acknowledged is on this server's disk.
pub(super) async fn wait_aof(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let local = integer(argument(arguments, 1)?)?;
    if !(0..=1).contains(&local) {
        return Err(CommandError::text(
            "ERR value is out of range, value must between 0 and 1",
        ));
    }
    let replicas = count(argument(arguments, 2)?)?;
    let timeout = timeout(argument(arguments, 3)?, state)?;
    if replicas > 0 && !session.is_in_exec {
        wait_for_timeout(session, timeout).await?;
    }
    Ok(Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]))
}

/// A timeout in milliseconds; `None` waits without an end.
pub(super) fn timeout(
    argument: &[u8],
    state: &ServerState,
) -> Result<Option<Duration>, CommandError> {
    let timeout_ms = integer_or(argument, "ERR timeout is not an integer or out of range")?;
    match u64::try_from(timeout_ms) {
        Err(_) => Err(CommandError::text("ERR timeout is negative")),
        Ok(0) => Ok(None),
        // Redis adds it to the current time.
        Ok(_) if timeout_ms > i64::MAX - state.clock.now_ms() => {
            Err(CommandError::text("ERR timeout is out of range"))
        }
        Ok(timeout_ms) => Ok(Some(Duration::from_millis(timeout_ms))),
    }
}

async fn wait_for_timeout(
    session: &mut Session,
    timeout: Option<Duration>,
) -> Result<(), CommandError> {
    let started = Instant::now();
    let client = Arc::clone(&session.client);
    let blocked = client.enter_block();
    let timed_out = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let how = tokio::select! {
        () = timed_out => Unblock::Timeout,
        how = blocked.wait_unblocked() => how,
    };
    session.waited = started.elapsed();
    match how {
        Unblock::Timeout => Ok(()),
        Unblock::Error => Err(CommandError::text(
            "UNBLOCKED client unblocked via CLIENT UNBLOCK",
        )),
    }
}
