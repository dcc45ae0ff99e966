//! Replaces the data file with a new one that has the same rows, to free disk space or to upgrade
//! the format.
//!
//! First the store is closed cleanly: the old data file has everything and is synced, and there is
//! no checkpoint or journal. Only then does the new file, which is complete and synced, get the
//! name of the old one. After an interruption the next start finds either the old file or the new
//! one. Each says which format it has.

use std::path::Path;
use std::time::{Duration, Instant};

use super::bulk::{Written, write_data_file};
use super::create::{self, NEW_DATA_FILE};
use super::data_file::{DATA_FILE, DataFile};
use super::error::{BulkError, OpenError, Refusal};
use super::folder::{self, Found, of_data};
use super::lock::FolderLock;
use super::marker::{Marker, StoreId};
use super::opening::{Files, map_bytes};
use super::{EmbeddedOptions, identity, in_use, journal};
use quoin_base::random::{Random, SystemRandom};

/// Time between two log messages about the progress of an upgrade.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The result of compacting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Rows of the store.
    pub rows: u64,
    /// Length of the data file before, in bytes.
    pub bytes_before: u64,
    /// Length of the data file after, in bytes.
    pub bytes_after: u64,
}

/// Rewrites the data file of a stopped store without its free space. `progress` is called
/// periodically with the total number of rows and the progress.
///
/// After an error the store is unchanged.
pub fn compact(
    folder: &Path,
    options: &EmbeddedOptions,
    progress: &mut dyn FnMut(u64, Written),
) -> Result<Compacted, OpenError> {
    if folder::identify(folder)? == Found::Nothing {
        return Err(OpenError::refused(folder, Refusal::NoStore));
    }
    let files = Files::open(folder, options)?;
    let failed = |error: heed::Error| OpenError::of_engine(folder, error);
    let rows = {
        let transaction = files.environment.read_txn().map_err(failed)?;
        files.rows.count(&transaction).map_err(failed)?
    };
    let bytes = || {
        let metadata = folder.join(DATA_FILE).metadata();
        metadata
            .map(|data| data.len())
            .map_err(|error| failed(error.into()))
    };
    let bytes_before = bytes()?;
    let (_lock, _, written) = rewrite(folder, files, options, &mut |written| {
        progress(rows, written)
    })?;
    Ok(Compacted {
        rows: written.rows,
        bytes_before,
        bytes_after: bytes()?,
    })
}

/// Upgrades a store whose rows have no checksums to this format.
pub(super) fn upgrade(
    folder: &Path,
    files: Files,
    options: &EmbeddedOptions,
) -> Result<Files, OpenError> {
    tracing::info!(
        folder = %folder.display(),
        "the store has an older format: it is rewritten with checksums. Older versions of Quoin cannot \
         open it then"
    );
    // Without checksums, only the structure of the pages shows damage. Some damage would crash
    // LMDB.
    DataFile::open(&folder.join(DATA_FILE))
        .and_then(|data| data.check_pages(|_, _| {}))
        .map_err(|error| of_data(folder, error))?;
    let mut logged_at = Instant::now();
    let mut progress = |written: Written| {
        if logged_at.elapsed() >= LOG_INTERVAL {
            logged_at = Instant::now();
            tracing::info!(
                rows = written.rows,
                bytes = written.bytes,
                "rewriting the store"
            );
        }
    };
    let (lock, marker, _) = rewrite(folder, files, options, &mut progress)?;
    Files::open_locked(folder, options, lock, Found::Marked(marker))
}

fn rewrite(
    folder: &Path,
    files: Files,
    options: &EmbeddedOptions,
    progress: &mut dyn FnMut(Written),
) -> Result<(FolderLock, Marker, Written), OpenError> {
    let failed = |error: heed::Error| OpenError::of_engine(folder, error);
    let io_failed = |error: std::io::Error| failed(error.into());
    let Files {
        lock,
        environment,
        rows,
        checkpoints,
        applied,
        guard,
        marker,
        ..
    } = files;
    let written = {
        let transaction = environment.read_txn().map_err(failed)?;
        let all = rows.all(&transaction).map_err(failed)?;
        let new = folder.join(NEW_DATA_FILE);
        write_data_file(&new, map_bytes(options.map_bytes), applied, all, progress)
            .map_err(|error| of_writing(folder, error))?
    };
    in_use::forget(&environment, &rows).map_err(failed)?;
    environment.force_sync().map_err(failed)?;
    checkpoints.remove().map_err(io_failed)?;
    journal::remove(folder).map_err(io_failed)?;
    identity::forget(folder).map_err(io_failed)?;
    drop((guard, rows));
    environment.prepare_for_closing().wait();
    create::install(folder).map_err(io_failed)?;
    let marker = match marker {
        Some(marker) => marker,
        None => {
            let marker = Marker::new(&SystemRandom);
            marker.write(folder).map_err(io_failed)?;
            marker
        }
    };
    Ok((lock, marker, written))
}

/// The error of a rewrite. A damaged row is in the old file.
fn of_writing(folder: &Path, error: BulkError) -> OpenError {
    match error {
        BulkError::Source(source) => match source.downcast::<heed::Error>() {
            Ok(error) => OpenError::of_engine(folder, *error),
            Err(source) => OpenError::of_bulk(folder, BulkError::Source(source)),
        },
        error => OpenError::of_bulk(folder, error),
    }
}

/// Creates a store with rows, for a restore. The folder must be empty, and is created if it is
/// missing. `rows` are sorted by key. `applied` is the number of the last journal record that they
/// contain. Everything is on the disk when this returns. The store gets a new id.
///
/// # Errors
/// If the folder is not empty, or `rows` fails. After an error there is no store.
pub fn make_store<K, V, E>(
    folder: &Path,
    map_size: usize,
    applied: u64,
    rows: impl IntoIterator<Item = Result<(K, V), E>>,
    random: &dyn Random,
    progress: &mut dyn FnMut(Written),
) -> Result<(StoreId, Written), OpenError>
where
    K: AsRef<[u8]>,
    V: AsRef<[u8]>,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if folder::identify(folder)? != Found::Nothing {
        return Err(OpenError::refused(folder, Refusal::HasStore));
    }
    let (_lock, found) = folder::take(folder)?;
    if found != Found::Nothing {
        return Err(OpenError::refused(folder, Refusal::HasStore));
    }
    let failed = |error: std::io::Error| OpenError::of_engine(folder, error.into());
    create::tighten(folder).map_err(failed)?;
    folder::clean(folder).map_err(failed)?;
    let new = folder.join(NEW_DATA_FILE);
    let written = write_data_file(&new, map_size, applied, rows, progress)
        .map_err(|error| OpenError::of_bulk(folder, error))?;
    create::install(folder).map_err(failed)?;
    let marker = Marker::new(random);
    marker.write(folder).map_err(failed)?;
    Ok((marker.id, written))
}

#[cfg(test)]
mod tests;
