//! Listening: accepts connections until the server stops.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::addresses::{Addresses, Face, Listener};
use crate::admission::Admission;
use crate::error::ServerError;
use crate::sentinel::Announcer;
use crate::state::ServerState;
use crate::{cron, signals, systemd, version};
use quoin_base::fatal_panic::vital;
use quoin_config::{Settings, StoreKind, note_server, remove_note};
use quoin_lua::{Run, Scripts};

/// Interval at which a shutdown checks whether scripts have ended.
const SCRIPTS_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Time for connections to send the replies of scripts that a shutdown has ended.
const ENDED_SCRIPTS_ANSWER_MAX: Duration = Duration::from_secs(1);

/// Serves until SIGTERM, SIGINT or SHUTDOWN. Then scripts and connections have `shutdown-timeout`
/// to finish. A second signal ends the process at once.
pub(super) async fn serve(
    state: Arc<ServerState>,
    addresses: Addresses,
    browsers: Option<Listener>,
) -> Result<(), ServerError> {
    let listeners = addresses.listen()?;
    let _note = Note::write(&state);
    // Before the announcement: its reader may stop the server at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    signals::exit_at_second()?;
    state.membership.begin();
    announce(&state, &listeners);
    systemd::note_ready();
    let mut accepting = JoinSet::new();
    for listener in listeners.into_iter().chain(browsers) {
        accepting.spawn(vital("a listener", accept(listener, Arc::clone(&state))));
    }
    let sampling = cron::run(&state);
    tokio::pin!(sampling);
    let mut announcer = Announcer::new(state.membership.watch());
    tokio::select! {
        () = &mut sampling => {}
        () = announcer.run(&state.sentinel) => {}
        () = systemd::keep_informed() => {}
        _ = terminate.recv() => tracing::info!("SIGTERM: shutting down"),
        _ = interrupt.recv() => tracing::info!("SIGINT: shutting down"),
        () = state.shutdown.asked() => tracing::info!("SHUTDOWN: shutting down"),
    }
    systemd::note_stopping();
    // First, so that clients that look for a server find another one.
    state.membership.leave().await;
    announcer.catch_up(&state.sentinel);
    let limit = Duration::from_secs(state.config.live.shutdown_timeout_s().into());
    let deadline = Instant::now() + limit;
    let scripts = &state.executor.environment().scripts;
    // Clients are served meanwhile: they may end a script by SCRIPT KILL or SHUTDOWN NOSAVE.
    tokio::select! {
        biased;
        () = state.shutdown.begun() => {}
        () = end_of(scripts) => {}
        () = tokio::time::sleep_until(deadline) => end(scripts, limit),
    }
    state.shutdown.begin();
    let mut all_done = pin!(async { while accepting.join_next().await.is_some() {} });
    if tokio::time::timeout_at(deadline, &mut all_done)
        .await
        .is_ok()
    {
        return Ok(());
    }
    end(scripts, limit);
    let deadline = Instant::now() + ENDED_SCRIPTS_ANSWER_MAX;
    if tokio::time::timeout_at(deadline, all_done).await.is_err() {
        tracing::warn!("connections were still busy after {} s", limit.as_secs());
    }
    Ok(())
}

/// The file in the data folder that names the addresses on which the server listens. It is removed
/// when this value is dropped.
struct Note(Settings);

impl Note {
    /// On a cluster there is no folder, and tools do not need a server. A failure does not stop the
    /// server.
    fn write(state: &ServerState) -> Option<Self> {
        let settings = state.config.settings();
        if settings.store != StoreKind::Embedded {
            return None;
        }
        let ports = state.ports();
        if let Err(error) = note_server(&settings, ports.plain, ports.tls) {
            tracing::warn!(%error, "tools will not find this server by its data folder");
        }
        Some(Self(settings))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        remove_note(&self.0);
    }
}

/// Waits until the scripts that run now have ended.
async fn end_of(scripts: &Scripts) {
    let mut awaited = scripts.under_way();
    // A script that is being handed to a lane is running by the second check.
    tokio::time::sleep(SCRIPTS_CHECK_INTERVAL).await;
    awaited.extend(scripts.under_way());
    let is_awaited = |run: &Arc<Run>| awaited.iter().any(|one| Arc::ptr_eq(one, run));
    while scripts.under_way().iter().any(is_awaited) {
        tokio::time::sleep(SCRIPTS_CHECK_INTERVAL).await;
    }
}

/// Ends the scripts that are still running when a shutdown's time is up.
fn end(scripts: &Scripts, limit: Duration) {
    if !scripts.under_way().is_empty() {
        let seconds = limit.as_secs();
        tracing::warn!(
            "scripts were still running after {seconds} s: they were stopped, and their writes \
             were discarded"
        );
    }
    scripts.end_all();
}

/// Logs the addresses, the location of the data, and how to stop the server.
fn announce(state: &ServerState, listeners: &[Listener]) {
    let settings = state.config.settings();
    let store = state.store.capabilities().name;
    let addresses: Vec<String> = listeners.iter().map(ToString::to_string).collect();
    let place = match settings.store {
        StoreKind::Embedded => format!(
            "{store} store in {} (fsync {})",
            settings.data_dir.display(),
            settings.fsync.name()
        ),
        StoreKind::Fdb => format!("{store} store"),
    };
    tracing::info!(
        "quoin {} ({}) listens on {} with the {place}; stop it with Ctrl-C or SIGTERM (process {})",
        version::VERSION,
        version::SHORT_COMMIT,
        addresses.join(", "),
        std::process::id()
    );
}

/// Serves the clients of a listener until the server stops.
pub(super) async fn accept(listener: Listener, state: Arc<ServerState>) {
    if listener.face() != Face::Data {
        // Clients wait until the other servers are known. Otherwise the first ones would see only
        // this server.
        tokio::select! {
            () = state.membership.settled() => {}
            () = state.shutdown.begun() => return,
        }
    }
    let mut admission = Admission::new(Arc::clone(&state), &listener);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = state.shutdown.begun() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    if let Some(client) = admission.admit(stream, address) {
                        connections.spawn(client.serve());
                    }
                }
                Err(error) => admission.recover(&listener, error).await,
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}
