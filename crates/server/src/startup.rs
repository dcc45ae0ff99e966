//! Starts a server and stops it: settings, store, users, listeners, in this order.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::addresses::Addresses;
use crate::error::ServerError;
use crate::state::ServerState;
use crate::tls::Handshakes;
use crate::users::UserWatch;
use crate::{dashboard, descriptors, listener, metrics, procfs, protected_mode, signals, users};
use quoin_base::allocator;
use quoin_base::clock::{Clock, SystemClock};
use quoin_base::random::SystemRandom;
use quoin_config::logging::Log;
use quoin_config::{Fsync, LoadedSettings, RuntimeConfig, Settings, StoreKind};
use quoin_data::unit::context::Environment;
use quoin_data::unit::startup;
use quoin_engine::{Reaper, Standstill};
use quoin_layout::{LAYOUT_VERSION, Layout};
use quoin_store::Store;
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};
use quoin_tools::backup::Backups;

/// Runs a server until SIGTERM, SIGINT or SHUTDOWN.
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
    // Before the store is opened, because a server that cannot listen should not create one.
    let addresses = Addresses::take(&settings)?;
    config.set_bound_port(addresses.ports.plain);
    let handshakes = Handshakes::prepare(&config)?;
    signals::ignore_hangup();
    // Before there are other threads, because opening may fork to try the TLS files.
    let Opened { store, embedded } = open_store(&config)?;
    allocator::start_background_thread();
    let runtime = build_runtime(settings.io_threads)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let environment = prepare_store(&runtime, &*store, &settings, &clock)?;
    let backups = embedded.map(|store| Arc::new(Backups::new(store, Arc::clone(&clock))));
    let within_runtime = runtime.enter();
    let state = Arc::new(ServerState::start(
        config,
        environment,
        store,
        backups,
        clock,
        handshakes,
        addresses.ports,
    )?);
    drop(within_runtime);
    let executor = Arc::clone(&state.executor);
    let traces = state.traces.clone();
    users::load_at_start(&state)?;
    let user_watch = runtime.block_on(UserWatch::start(&state))?;
    protected_mode::warn(&settings, &state.access.users);
    signals::reload_at_hangup(&runtime, &state, log)?;
    let metrics = metrics::start(&state)?;
    let (dashboard, browsers) = dashboard::start(&state)?.unzip();
    let served = runtime.block_on(async {
        let standstill = Arc::clone(&state.pause) as Arc<dyn Standstill>;
        state.set_reaper(Reaper::spawn(Arc::clone(&executor), Some(standstill)));
        let served = listener::serve(Arc::clone(&state), addresses, browsers).await;
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
    for thread in [metrics, dashboard].into_iter().flatten() {
        state.shutdown.begin();
        thread.join();
    }
    state.membership.join();
    served?;
    drop(state);
    match Arc::try_unwrap(executor) {
        Ok(executor) => executor.stop(),
        Err(_) => tracing::warn!("a connection was still open at the end of the shutdown"),
    }
    if let Some(traces) = traces {
        traces.stop();
    }
    tracing::info!("stopped");
    Ok(())
}

/// Warns about environment variables that look like settings but were set by Kubernetes.
fn warn_of_services(variables: &[String]) {
    if !variables.is_empty() {
        tracing::warn!(
            variables = variables.join(", "),
            "ignoring these variables: they belong to a service called quoin, and are not settings"
        );
    }
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
    // It panics if the system refuses a thread.
    catch_unwind(AssertUnwindSafe(|| builder.build())).unwrap_or_else(|_| {
        Err(io::Error::other(format!(
            "the system cannot start {io_threads} threads (io-threads)"
        )))
    })
}

/// The store that the settings name.
struct Opened {
    store: Arc<dyn Store>,
    /// The same store, if it is the embedded one.
    embedded: Option<Arc<EmbeddedStore>>,
}

/// Opens the store that the settings name.
fn open_store(config: &RuntimeConfig) -> Result<Opened, ServerError> {
    let settings = config.settings();
    match settings.store {
        StoreKind::Embedded => {
            let cache_bytes = settings.cache_memory.bytes(procfs::usable_memory_bytes());
            let options = EmbeddedOptions {
                memory_bytes_max: cache_bytes.map_or(usize::MAX, |bytes| bytes as usize),
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
            let mut store = EmbeddedStore::open_archived(&folder, options, archive)?;
            log_opened(&store);
            let command = &settings.journal_archive_command;
            if !command.is_empty() {
                store.ship_archive(command)?;
            }
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

/// Reads what the executor needs from the store, and marks the store with this layout's version.
fn prepare_store(
    runtime: &Runtime,
    store: &dyn Store,
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> Result<Environment, ServerError> {
    let prepared = runtime.block_on(async {
        let layout = Layout::new(&settings.root_prefix);
        let random = Arc::new(SystemRandom);
        let mut environment = startup::prepare(store, layout, Arc::clone(clock), random).await?;
        environment.databases = settings.databases;
        environment.reported_version = settings.compatible_version;
        startup::raise_version(store, &environment.layout).await?;
        environment.scripts.enable(settings.enable_scripts);
        Ok(environment)
    });
    prepared.map_err(|source| ServerError::Start {
        store: match settings.store {
            StoreKind::Embedded => format!("data folder {}", settings.data_dir.display()),
            StoreKind::Fdb => "FoundationDB".to_owned(),
        },
        source,
    })
}

/// Logs whether the store is new, so that an operator notices a volume that is not mounted.
fn log_opened(store: &EmbeddedStore) {
    let summary = store.summary();
    let what = if summary.is_new {
        "created a new store"
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
fn open_fdb(settings: &Settings) -> Result<Arc<dyn Store>, ServerError> {
    use quoin_store_fdb::{FdbOptions, FdbStore};
    Ok(Arc::new(FdbStore::open(&FdbOptions::from(settings))?))
}

#[cfg(not(feature = "fdb"))]
fn open_fdb(_settings: &Settings) -> Result<Arc<dyn Store>, ServerError> {
    Err(ServerError::StoreMissing(
        "this quoin was built without FoundationDB: build it with --features fdb",
    ))
}
