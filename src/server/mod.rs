//! The server: connections, clients, and the commands that concern them rather than data.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::{Clock, SystemClock};
use crate::config::{Fsync, LoadedSettings, RuntimeConfig, StoreKind};
use crate::executor::startup::{self, StartError};
use crate::executor::{Executor, ExecutorOptions, Reaper};
use crate::layout::Layout;
use crate::random::{Random, SystemRandom};
use crate::store::Store;
use crate::store::embedded::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};

pub mod buffers;
pub mod clients;
mod connection;
pub mod connection_commands;
pub mod disconnections;
mod dispatch;
pub mod latency;
mod listener;
mod machine;
mod metrics;
pub mod pause;
pub mod pubsub;
pub mod sampler;
pub mod session;
pub mod slowlog;
pub mod state;
pub mod statistics;
pub mod transaction;

pub use state::ServerState;

/// The version of Redis whose behaviour and texts clients can expect.
pub const REDIS_VERSION: &str = "7.2.6";

/// Why a server did not start or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The embedded store cannot be opened.
    #[error(transparent)]
    OpenEmbedded(#[from] crate::store::embedded::OpenError),
    /// The FoundationDB cluster cannot be opened.
    #[cfg(feature = "fdb")]
    #[error(transparent)]
    OpenFdb(#[from] crate::store::fdb::OpenError),
    /// The store holds what this server must not touch, or failed at once.
    #[error(transparent)]
    Start(#[from] StartError),
    /// This Quoin was built without the store that was asked for.
    #[error("{0}")]
    #[cfg_attr(feature = "fdb", allow(dead_code))]
    StoreMissing(&'static str),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The operating system refused threads, signals or sockets.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// Runs a server until it is told to stop by SIGTERM, SIGINT or SHUTDOWN.
///
/// # Errors
/// When it cannot start.
pub fn run(
    loaded: LoadedSettings,
    on_config: impl FnOnce(&RuntimeConfig),
) -> Result<(), ServerError> {
    let settings = loaded.settings.clone();
    let config = Arc::new(RuntimeConfig::new(loaded));
    on_config(&config);
    let store = open_store(&config)?;
    let mut builder = match settings.io_threads {
        // Serves connections in the order in which their requests arrive, as Redis does; threads
        // that take work from each other begin with the latest.
        0 | 1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder
        .worker_threads(settings.io_threads.max(1))
        .thread_name("quoin-io")
        .enable_all()
        .build()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let random: Arc<dyn Random> = Arc::new(SystemRandom);
    let layout = Layout::new(&settings.root_prefix);
    let environment = runtime.block_on(startup::prepare(
        &*store,
        layout,
        Arc::clone(&clock),
        random,
    ))?;
    runtime.block_on(startup::raise_version(&*store, &environment.layout))?;
    let executor = Arc::new(Executor::start(
        Arc::clone(&store),
        Arc::new(environment),
        ExecutorOptions::default(),
    )?);
    let (shutdown, shutdown_seen) = watch::channel(false);
    let state = Arc::new(ServerState::new(
        config,
        Arc::clone(&executor),
        store,
        clock,
        shutdown,
    ));
    let metrics = metrics::start(&state)?;
    let served = runtime.block_on(async {
        state.set_reaper(Reaper::spawn(Arc::clone(&executor)));
        let served = listener::serve(Arc::clone(&state), shutdown_seen).await;
        if let Some(reaper) = state.take_reaper() {
            reaper.stop().await;
        }
        served
    });
    // Connections have had their time; what is left of them goes with the runtime.
    runtime.shutdown_timeout(Duration::from_millis(100));
    if let Some(metrics) = metrics {
        state.begin_shutdown();
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

fn open_store(config: &RuntimeConfig) -> Result<Arc<dyn Store>, ServerError> {
    let settings = config.settings();
    match settings.store {
        StoreKind::Embedded => {
            let options = EmbeddedOptions {
                fsync: match settings.fsync {
                    Fsync::Always => FsyncPolicy::Always,
                    Fsync::EverySec => FsyncPolicy::EverySecond,
                },
                ..EmbeddedOptions::default()
            };
            let folder: PathBuf = settings.data_dir.clone();
            Ok(Arc::new(EmbeddedStore::open(&folder, options)?))
        }
        StoreKind::Fdb => open_fdb(&settings),
    }
}

#[cfg(feature = "fdb")]
fn open_fdb(settings: &crate::config::Settings) -> Result<Arc<dyn Store>, ServerError> {
    use crate::store::fdb::{FdbOptions, FdbStore};
    Ok(Arc::new(FdbStore::open(&FdbOptions::from(settings))?))
}

#[cfg(not(feature = "fdb"))]
fn open_fdb(_settings: &crate::config::Settings) -> Result<Arc<dyn Store>, ServerError> {
    Err(ServerError::StoreMissing(
        "this quoin was built without FoundationDB: build it with --features fdb",
    ))
}
