//! Commands about the server that are small: DEBUG, FUNCTION STATS, LOLWUT, MONITOR, SHUTDOWN, WAIT, WAITAOF.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::audit::log_change;
use crate::clients::{Unblock, WaitsFor};
use crate::connection_commands::shared::{timeout, unknown_or_wrong_number};
use crate::session::Session;
use crate::state::ServerState;
use quoin_base::number::{parse_double, parse_i64};
use quoin_data::command::arguments::{argument, count, integer, is_word, rest};
use quoin_data::command::help::help;
use quoin_data::error::CommandError;
use quoin_data::script;
use quoin_lua::{Caller, Libraries, Run};
use quoin_resp::reply::Reply;

/// The longest DEBUG SLEEP, in seconds. The clock cannot hold much longer times.
const SLEEP_MAX_S: f64 = 1e9;

/// `DEBUG <subcommand> …`.
pub(super) async fn debug(arguments: &[Bytes], state: &ServerState) -> Result<Reply, CommandError> {
    let subcommand = argument(arguments, 1)?;
    match rest(arguments, 2) {
        [] if is_word(subcommand, "help") => Ok(help(HELP_TITLE, HELP)),
        [seconds] if is_word(subcommand, "sleep") => {
            // In Redis the whole server sleeps. Here only the client waits.
            let seconds = parse_double(seconds).unwrap_or(0.0).clamp(0.0, SLEEP_MAX_S);
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            Ok(Reply::OK)
        }
        [message] if is_word(subcommand, "error") => {
            let message = String::from_utf8_lossy(message);
            Ok(Reply::Error(message.replace(['\r', '\n'], " ")))
        }
        [flag] if is_word(subcommand, "set-active-expire") => {
            // Like C's `atoi`, which reads anything that is not a number as 0.
            state.set_active_expire(parse_i64(flag).is_some_and(|flag| flag != 0));
            Ok(Reply::OK)
        }
        _ => Err(unknown_or_wrong_number(arguments)),
    }
}

const HELP_TITLE: &str = "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:";

#[rustfmt::skip]
const HELP: &[&str] = &[
    "ERROR <string>",
    "    Return a Redis protocol error with <string> as message. Useful for clients",
    "    unit tests to simulate Redis errors.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Setting it to 0 disables expiring keys in background when they are not",
    "    accessed (otherwise the Redis behavior). Setting it to 1 reenables back the",
    "    default.",
    "SLEEP <seconds>",
    "    Stop this client for <seconds>. Decimals allowed.",
];

/// `FUNCTION STATS`. While a function keeps the lanes busy, it answers without them.
pub(super) async fn function_stats(state: &ServerState) -> Result<Reply, CommandError> {
    let scripts = &state.executor.environment().scripts;
    let running = scripts.busy(|| state.config.live.busy_reply_threshold_ms());
    let script = match running.as_deref() {
        None => Reply::Null,
        Some(run) => describe_run(run)?,
    };
    let libraries = libraries(state, running.is_some()).await?;
    let lua = Reply::Map(vec![
        (
            Reply::bulk("libraries_count"),
            Reply::count(libraries.len()),
        ),
        (
            Reply::bulk("functions_count"),
            Reply::count(libraries.function_count()),
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

fn describe_run(run: &Run) -> Result<Reply, CommandError> {
    let Caller::Function(name, command) = &run.caller else {
        return Err(script::busy(false));
    };
    let command = command.iter().cloned().map(Reply::Bulk).collect();
    let milliseconds = i64::try_from(run.elapsed().as_millis()).unwrap_or(i64::MAX);
    Ok(Reply::Map(vec![
        (Reply::bulk("name"), Reply::bulk(name.clone())),
        (Reply::bulk("command"), Reply::Array(command)),
        (Reply::bulk("duration_ms"), Reply::Integer(milliseconds)),
    ]))
}

/// The libraries. While a script keeps the lanes busy, the libraries that this server saw last.
async fn libraries(state: &ServerState, is_busy: bool) -> Result<Arc<Libraries>, CommandError> {
    if is_busy {
        return Ok(state.executor.environment().scripts.libraries());
    }
    let read = state.executor.read(0, |context| {
        Box::pin(async move { Ok(context.libraries().await?) })
    });
    Ok(read.await?)
}

/// `LOLWUT`: only the line with the version, without a drawing.
pub(super) fn lolwut(state: &ServerState) -> Reply {
    let version = env!("CARGO_PKG_VERSION");
    let redis_version = state.reported_version().text();
    let text = format!("Quoin ver. {version} (Redis ver. {redis_version})\n");
    Reply::Verbatim("txt", text.into())
}

/// `MONITOR`: starts showing the commands of all clients to the client.
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

/// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]`. Acknowledged writes are already in the store,
/// so the options make no difference, with one exception: as in Redis, only NOSAVE stops a server
/// that a script keeps busy, and ends the script. Scripts that have run for a shorter time may
/// finish, and clients are served until they do. A shutdown cannot be aborted.
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
            return Err(script::busy(run.caller.is_function()));
        }
        scripts.end_all();
        state.shutdown.begin();
    }
    log_change(arguments, session);
    state.shutdown.ask();
    session.is_closing = true;
    Ok(Reply::Silence)
}

/// `WAIT numreplicas timeout`. There are no replicas, so waiting for one always times out.
pub(super) async fn wait(
    arguments: &[Bytes],
    session: &mut Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let replicas = integer(argument(arguments, 1)?)?;
    let timeout = timeout(argument(arguments, 2)?, state)?;
    if replicas > 0 && !session.is_in_exec {
        wait_for_timeout(session, state, timeout).await?;
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
        wait_for_timeout(session, state, timeout).await?;
    }
    Ok(Reply::Array(vec![Reply::Integer(1), Reply::Integer(0)]))
}

async fn wait_for_timeout(
    session: &mut Session,
    state: &ServerState,
    timeout: Option<Duration>,
) -> Result<(), CommandError> {
    let started = Instant::now();
    let client = Arc::clone(&session.client);
    let blocked = client.enter_block(WaitsFor::keys(&[], state.clock.now_ms()));
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
