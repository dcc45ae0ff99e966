//! The server: connections, clients, and the commands that concern them rather than data.
//!
//! A file imports only files of later lines:
//!
//! ```text
//! mod (starts and stops all)
//! listener                    metrics
//! signals
//! admission
//! connection                  sampler
//! connection_commands         eviction       dispatch
//! user_store                  user_file      audit
//! state                       session
//! access
//! pubsub                      slowlog
//! clients                     transaction
//! single_flight
//! statistics  samples  latency  disconnections  warnings  pause  shutdown  procfs
//! descriptors  exposure  opening  addresses  handshake
//! stream  unix_socket  endpoint  supervisor  handshake_places
//! error
//! ```
//!
//! The folders `clients`, `connection` and `connection_commands` have such orders of their own.

pub mod version;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use quoin_base::allocator;
use quoin_base::clock::{Clock, SystemClock};
use quoin_config::logging::Log;
use quoin_config::{LoadedSettings, RuntimeConfig};
use quoin_engine::{Reaper, Standstill};
use quoin_tools::backup::Backups;

mod access;
mod addresses;
mod admission;
mod audit;
mod clients;
mod connection;
mod connection_commands;
mod delivery;
mod descriptors;
mod disconnections;
mod dispatch;
mod endpoint;
mod error;
mod eviction;
mod exposure;
mod handshake;
mod handshake_places;
mod latency;
mod listener;
mod metrics;
mod monitors;
mod opening;
mod pause;
mod procfs;
mod pubsub;
mod sampler;
mod samples;
mod script_calls;
mod secrets;
mod session;
mod shutdown;
mod signals;
mod single_flight;
mod slowlog;
mod state;
mod statistics;
mod stream;
mod supervisor;
mod tracking;
mod transaction;
mod unix_socket;
mod user_file;
mod user_store;
mod warnings;

pub use error::ServerError;

use addresses::Addresses;
use handshake::Handshakes;
use opening::Opened;
use state::ServerState;
use user_store::UserWatch;

/// Runs a server until it is told to stop by SIGTERM, SIGINT or SHUTDOWN.
///
/// # Errors
/// If it cannot start.
pub fn run(loaded: LoadedSettings, log: &Log) -> Result<(), ServerError> {
    let settings = loaded.settings.clone();
    warn_of_services(&loaded.of_services);
    let config = Arc::new(RuntimeConfig::new(loaded));
    let level = log.clone();
    config.on_log_level(move |changed| level.set_level(changed));
    descriptors::fit(&config)?;
    // Before the store is opened: a server that cannot listen should not create one.
    let addresses = Addresses::take(&settings)?;
    config.set_bound_port(addresses.ports.plain);
    let handshakes = Handshakes::prepare(&config)?;
    signals::ignore_hangup();
    // Before there are other threads: opening it may fork, to try the TLS files.
    let Opened { store, embedded } = opening::open(&config)?;
    allocator::start_background_thread();
    let runtime = build_runtime(settings.io_threads)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let environment = opening::prepare(&runtime, &*store, &settings, &clock)?;
    let backups = embedded.map(|store| Arc::new(Backups::new(store, Arc::clone(&clock))));
    let state = Arc::new(ServerState::start(
        config,
        environment,
        store,
        backups,
        clock,
        handshakes,
        addresses.ports,
    )?);
    let executor = Arc::clone(&state.executor);
    load_users(&state)?;
    let user_watch = runtime.block_on(UserWatch::start(&state))?;
    exposure::warn(&settings, &state.access.users);
    signals::reload_at_hangup(&runtime, &state, log)?;
    let metrics = metrics::start(&state)?;
    let served = runtime.block_on(async {
        let standstill = Arc::clone(&state.pause) as Arc<dyn Standstill>;
        state.set_reaper(Reaper::spawn(Arc::clone(&executor), Some(standstill)));
        let served = listener::serve(Arc::clone(&state), addresses).await;
        if let Some(reaper) = state.take_reaper() {
            reaper.stop().await;
        }
        served
    });
    if let Some(backups) = &state.backups {
        backups.stop();
    }
    if let Some(user_watch) = user_watch {
        user_watch.stop();
    }
    // Connections have had their time. The remaining ones end with the runtime.
    runtime.shutdown_timeout(Duration::from_millis(100));
    if let Some(metrics) = metrics {
        state.shutdown.begin();
        metrics.join();
    }
    served?;
    drop(state);
    match Arc::try_unwrap(executor) {
        Ok(executor) => executor.stop(),
        Err(_) => tracing::warn!("a connection outlived the time for shutting down"),
    }
    tracing::info!("stopped");
    Ok(())
}

/// Names variables that look like settings and that Kubernetes has made.
fn warn_of_services(variables: &[String]) {
    if !variables.is_empty() {
        tracing::warn!(
            variables = variables.join(", "),
            "these variables are of a service called quoin, not settings, and are ignored"
        );
    }
}

/// Takes the users of the settings file, or reads the file of users, if there are any. With a store of
/// users, only ACL LOAD reads that file.
fn load_users(state: &ServerState) -> Result<(), ServerError> {
    if let Some(users) = state.config.file_users() {
        state.access.load_users(users.definitions);
        return Ok(());
    }
    let Some(path) = state.config.aclfile() else {
        return Ok(());
    };
    if user_store::is_used(state) {
        return Ok(());
    }
    let users = user_file::read(&path, state.access.defaults()).map_err(ServerError::Users)?;
    state.access.load_users(users);
    Ok(())
}

/// The runtime that serves connections.
fn build_runtime(io_threads: usize) -> io::Result<Runtime> {
    let mut builder = match io_threads {
        // Serves connections in the order in which their requests arrive, as Redis does. The
        // multi-threaded runtime prefers the latest.
        0 | 1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    builder
        .worker_threads(io_threads.max(1))
        .thread_name("quoin-io")
        .enable_all();
    // It panics where the system refuses it a thread.
    catch_unwind(AssertUnwindSafe(|| builder.build())).unwrap_or_else(|_| {
        Err(io::Error::other(format!(
            "the system refuses the {io_threads} threads of io-threads"
        )))
    })
}
