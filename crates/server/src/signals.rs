//! Signals. SIGHUP reloads settings and certificates and reopens the log file, and never ends the
//! server. A second SIGTERM or SIGINT ends the process at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::state::ServerState;
use crate::{systemd, users};
use quoin_base::threads;
use quoin_config::RuntimeConfig;
use quoin_config::logging::Log;

/// Ignores SIGHUP until [`reload_at_hangup`], while there is no runtime yet.
pub(super) fn ignore_hangup() {
    // SAFETY: an ignored signal runs no code.
    #[allow(unsafe_code)]
    unsafe {
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
    }
}

/// Signals that are closer together count as one, in milliseconds: `timeout` and terminals may send
/// one twice.
const SIGNALS_APART_MS: u64 = 100;
/// The exit code after a second signal, as in Redis.
const SECOND_SIGNAL_EXIT_CODE: i32 = 1;

/// After this call, a second SIGTERM or SIGINT ends the process at once. Acknowledged writes are in the
/// store.
pub(super) fn exit_at_second() -> io::Result<()> {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: the handler uses only an atomic, the clock, `write` and `_exit`.
        #[allow(unsafe_code)]
        unsafe {
            signal_hook_registry::register(signal, note_end_signal)?;
        }
    }
    Ok(())
}

/// Runs in a signal handler.
fn note_end_signal() {
    /// Time of the first signal, in milliseconds of the monotonic clock. 0 before it.
    static FIRST_MS: AtomicU64 = AtomicU64::new(0);
    const LINE: &[u8] =
        b"second signal to stop: the process ends at once. Acknowledged writes are \
                          in the store\n";
    let now = clock_gettime(ClockId::Monotonic);
    let now_ms = now.tv_sec.cast_unsigned() * 1_000 + now.tv_nsec.cast_unsigned() / 1_000_000;
    let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
    let first = FIRST_MS.compare_exchange(0, now_ms, success, failure);
    if first.is_err_and(|first_ms| now_ms >= first_ms + SIGNALS_APART_MS) {
        // SAFETY: both may be called in a handler, and the line outlives the call.
        #[allow(unsafe_code)]
        unsafe {
            libc::write(libc::STDERR_FILENO, LINE.as_ptr().cast(), LINE.len());
            libc::_exit(SECOND_SIGNAL_EXIT_CODE);
        }
    }
}

/// At each SIGHUP, reopens the log file, and reloads settings and TLS certificates. Terminals send
/// the signal when they are closed, and tools send it after they rotate logs. (SIGPIPE, the other
/// signal that Redis ignores, is ignored in every Rust program.)
pub(super) fn reload_at_hangup(
    runtime: &Runtime,
    state: &Arc<ServerState>,
    log: &Log,
) -> io::Result<()> {
    let mut hangup = {
        let _context = runtime.enter();
        signal(SignalKind::hangup())?
    };
    let (state, log) = (Arc::clone(state), log.clone());
    runtime.spawn(async move {
        while hangup.recv().await.is_some() {
            systemd::note_reloading();
            let (config, log) = (Arc::clone(&state.config), log.clone());
            let before = config.requirepass();
            // It reads files.
            let reloaded = threads::run("quoin-reload", move || reload(&config, &log)).await;
            match reloaded {
                Ok(changed) if changed.contains(&"requirepass") => {
                    let given = state.config.requirepass();
                    if let Err(error) = users::take_requirepass(&state).await {
                        // So that the next SIGHUP tries again.
                        let config = &state.config;
                        config.undo_reloaded_requirepass(given.as_deref(), before);
                        tracing::error!(
                            "SIGHUP: the new requirepass is not in effect, send the signal again: \
                             {error}"
                        );
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(
                        "SIGHUP: cannot read the settings, send the signal again: \
                                     {error}"
                    );
                }
            }
            systemd::note_ready();
        }
    });
    Ok(())
}

/// Returns the settings that have changed.
fn reload(config: &RuntimeConfig, log: &Log) -> Vec<&'static str> {
    match log.reopen() {
        Ok(true) => tracing::info!("SIGHUP: reopened the log file"),
        Ok(false) => {}
        Err(error) => tracing::error!("SIGHUP: cannot reopen the log file: {error}"),
    }
    let reloaded = match config.reload() {
        Ok(reloaded) => reloaded,
        Err(error) => {
            tracing::error!("SIGHUP: no setting was changed: {error}");
            return Vec::new();
        }
    };
    for line in &reloaded.refused {
        tracing::error!("SIGHUP: {line}");
    }
    if !reloaded.needs_restart.is_empty() {
        let names = reloaded.needs_restart.join(", ");
        tracing::warn!("SIGHUP: the changes of {names} need a restart");
    }
    let changed = match reloaded.changed.is_empty() {
        true => "no setting".to_owned(),
        false => reloaded.changed.join(", "),
    };
    tracing::info!("SIGHUP: reloaded the settings, changed {changed}");
    reloaded.changed
}
