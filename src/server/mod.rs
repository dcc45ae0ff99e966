//! The server: connections, clients, and the commands that concern them rather than data.
//!
//! A file imports only files of later lines:
//!
//! ```text
//! mod (starts and stops all)
//! listener                    metrics
//! admission
//! connection                  sampler
//! connection_commands         eviction       dispatch
//! state                       session
//! pubsub                      slowlog
//! clients                     transaction
//! statistics  samples  latency  disconnections  warnings  pause  shutdown  procfs
//! descriptors  exposure  signals
//! error
//! ```
//!
//! The folders `clients`, `connection` and `connection_commands` have such orders of their own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::allocator;
use crate::backup::Backups;
use crate::clock::{Clock, SystemClock};
use crate::config::{Fsync, LoadedSettings, RuntimeConfig, StoreKind};
use crate::executor::{Executor, ExecutorOptions, Reaper};
use crate::layout::{LAYOUT_VERSION, Layout};
use crate::random::{Random, SystemRandom};
use crate::store::Store;
use crate::store::embedded::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};
use crate::types::startup;

mod admission;
mod clients;
mod connection;
mod connection_commands;
mod descriptors;
mod disconnections;
mod dispatch;
mod error;
mod eviction;
mod exposure;
mod latency;
mod listener;
mod metrics;
mod pause;
mod procfs;
mod pubsub;
mod sampler;
mod samples;
mod session;
mod shutdown;
mod signals;
mod slowlog;
mod state;
mod statistics;
mod transaction;
mod warnings;

pub use error::ServerError;

use listener::Addresses;
use state::ServerState;

/// Runs a server until it is told to stop by SIGTERM, SIGINT or SHUTDOWN.
///
/// # Errors
/// If it cannot start.
pub fn run(
    loaded: LoadedSettings,
    on_config: impl FnOnce(&RuntimeConfig),
) -> Result<(), ServerError> {
    let settings = loaded.settings.clone();
    let config = Arc::new(RuntimeConfig::new(loaded));
    on_config(&config);
    descriptors::fit(&config)?;
    exposure::warn(&settings);
    // Before the store is opened: a server that cannot listen should not create one.
    let addresses = Addresses::take(&settings)?;
    signals::ignore_hangup();
    // Before there are other threads: opening it may fork, to try the TLS files.
    let Opened { store, embedded } = open_store(&config)?;
    allocator::start_background_thread();
    let mut builder = match settings.io_threads {
        // Serves connections in the order in which their requests arrive, as Redis does. The
        // multi-threaded runtime prefers the latest.
        0 | 1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder
        .worker_threads(settings.io_threads.max(1))
        .thread_name("quoin-io")
        .enable_all()
        .build()?;
    signals::outlive_hangup(&runtime)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let random: Arc<dyn Random> = Arc::new(SystemRandom);
    let layout = Layout::new(&settings.root_prefix);
    let failed = |source| ServerError::Start {
        store: match settings.store {
            StoreKind::Embedded => format!("data folder {}", settings.data_dir.display()),
            StoreKind::Fdb => "FoundationDB".to_owned(),
        },
        source,
    };
    let environment = runtime
        .block_on(startup::prepare(
            &*store,
            layout,
            Arc::clone(&clock),
            random,
        ))
        .map_err(failed)?;
    runtime
        .block_on(startup::raise_version(&*store, &environment.layout))
        .map_err(failed)?;
    let executor = Arc::new(Executor::start(
        Arc::clone(&store),
        Arc::new(environment),
        ExecutorOptions::default(),
    )?);
    let backups = embedded.map(|store| Arc::new(Backups::new(store, Arc::clone(&clock))));
    let state = Arc::new(ServerState::new(
        config,
        Arc::clone(&executor),
        store,
        backups,
        clock,
    ));
    state.set_port(addresses.port);
    let metrics = metrics::start(&state)?;
    let served = runtime.block_on(async {
        state.set_reaper(Reaper::spawn(Arc::clone(&executor)));
        let served = listener::serve(Arc::clone(&state), addresses).await;
        if let Some(reaper) = state.take_reaper() {
            reaper.stop().await;
        }
        served
    });
    if let Some(backups) = &state.backups {
        backups.stop();
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

/// The store that the settings name.
struct Opened {
    store: Arc<dyn Store>,
    /// The same store, if it is the embedded one.
    embedded: Option<Arc<EmbeddedStore>>,
}

fn open_store(config: &RuntimeConfig) -> Result<Opened, ServerError> {
    let settings = config.settings();
    match settings.store {
        StoreKind::Embedded => {
            let options = EmbeddedOptions {
                fsync: match settings.fsync {
                    Fsync::Always => FsyncPolicy::Always,
                    Fsync::EverySec => FsyncPolicy::EverySecond,
                },
                accepts_copy: settings.accept_copied_data_dir,
                accepts_journal_loss: settings.accepts_journal_loss,
                ..EmbeddedOptions::default()
            };
            let folder: PathBuf = settings.data_dir.clone();
            let archive = settings.journal_archive_dir.as_deref();
            let store = EmbeddedStore::open_archived(&folder, options, archive)?;
            log_opened(&store);
            let store = Arc::new(store);
            Ok(Opened {
                store: Arc::clone(&store) as Arc<dyn Store>,
                embedded: Some(store),
            })
        }
        StoreKind::Fdb => Ok(Opened {
            store: open_fdb(&settings)?,
            embedded: None,
        }),
    }
}

/// Logs whether the store is new, so that a volume that is not mounted is noticed.
fn log_opened(store: &EmbeddedStore) {
    let summary = store.summary();
    let what = if summary.is_new {
        "made a new store"
    } else {
        "opened an existing store"
    };
    tracing::info!(
        folder = %store.folder().display(),
        id = %summary.id,
        format = summary.format,
        layout = LAYOUT_VERSION,
        rows = summary.rows,
        data_bytes = summary.data_bytes,
        "{what}"
    );
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
