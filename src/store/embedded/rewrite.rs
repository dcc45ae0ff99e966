//! Another data file in the old one's place, with the same rows: to give room back to the disk, and
//! to bring a store of an older format to this one.
//!
//! The store is first brought to where an orderly end leaves it: everything is in the old data file,
//! on the disk, and neither checkpoint nor journal is there that would change it. Only then the new
//! file, which is whole and on the disk, takes the old one's name. Whenever that ends early, the next
//! start finds the old file or the new one; each says itself which format it has.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use super::bulk::{Written, write_data_file};
use super::create::{self, NEW_DATA_FILE};
use super::data_file::{DATA_FILE, DataFile};
use super::error::{BulkError, OpenError, Refusal};
use super::folder::{self, Found, of_data};
use super::marker::{Marker, StoreId};
use super::opening::{Files, map_bytes};
use super::{EmbeddedOptions, identity, journal};
use crate::random::{Random, SystemRandom};

/// How often the log tells how far a change of format is.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// What compacting has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Rows of the store.
    pub rows: u64,
    /// Length of the data file before.
    pub bytes_before: u64,
    /// And now.
    pub bytes_after: u64,
}

/// Writes the data file of a stopped store anew, without the space in it that is free. `progress` is
/// told how many rows there are, and now and then how far it is.
///
/// # Errors
/// See [`OpenError`]. The store is as it was then.
pub fn compact(
    folder: &Path,
    options: &EmbeddedOptions,
    progress: &mut dyn FnMut(u64, Written),
) -> Result<Compacted, OpenError> {
    if folder::look(folder)? == Found::Nothing {
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

/// Brings a store whose rows have no checksums to this format.
pub(super) fn upgrade(
    folder: &Path,
    files: Files,
    options: &EmbeddedOptions,
) -> Result<Files, OpenError> {
    tracing::info!(
        folder = %folder.display(),
        "the store has an older format: it is written anew, with checksums. No older Quoin can open it \
         then"
    );
    // Without checksums only the form of pages tells damage, of some of which LMDB would die.
    DataFile::open(&folder.join(DATA_FILE))
        .and_then(|data| data.check_pages(|_, _| {}))
        .map_err(|error| of_data(folder, error))?;
    let mut told_at = Instant::now();
    let mut progress = |written: Written| {
        if told_at.elapsed() >= LOG_INTERVAL {
            told_at = Instant::now();
            tracing::info!(
                rows = written.rows,
                bytes = written.bytes,
                "writing the store anew"
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
) -> Result<(File, Marker, Written), OpenError> {
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
        write_data_file(&new, map_bytes(options), applied, all, progress)
            .map_err(|error| of_writing(folder, error))?
    };
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

/// A damaged row is the old file's, and nothing is wrong with writing the new one.
fn of_writing(folder: &Path, error: BulkError) -> OpenError {
    match error {
        BulkError::Source(source) => match source.downcast::<heed::Error>() {
            Ok(error) => OpenError::of_engine(folder, *error),
            Err(source) => OpenError::of_bulk(folder, BulkError::Source(source)),
        },
        error => OpenError::of_bulk(folder, error),
    }
}

/// Makes a store of rows in a folder where none is, which is made where it is missing: for what
/// restores a backup. `rows` come in the order of their keys; `applied` is the number of the last
/// journal record that they have. When this returns everything is on the disk. The store has an id
/// of its own.
///
/// # Errors
/// Where the folder has a store or anything else, and what `rows` and the disk say. No store is
/// there then.
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
    if folder::look(folder)? != Found::Nothing {
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
