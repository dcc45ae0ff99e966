//! Opening the store.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Runtime;

use super::error::ServerError;
use quoin_base::clock::Clock;
use quoin_base::random::SystemRandom;
use quoin_config::{Fsync, RuntimeConfig, Settings, StoreKind};
use quoin_data::unit::context::Environment;
use quoin_data::unit::startup;
use quoin_layout::{LAYOUT_VERSION, Layout};
use quoin_store::Store;
use quoin_store_embedded::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};

/// The store that the settings name.
pub(super) struct Opened {
    pub(super) store: Arc<dyn Store>,
    /// The same store, if it is the embedded one.
    pub(super) embedded: Option<Arc<EmbeddedStore>>,
}

/// Opens the store that the settings name.
pub(super) fn open(config: &RuntimeConfig) -> Result<Opened, ServerError> {
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

/// Reads what the executor needs from the store, and marks the store with this layout's version.
pub(super) fn prepare(
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
