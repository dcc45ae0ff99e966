//! Writes sorted rows into a new data file, which is as small as possible and synced at the end.
//!
//! This creates the empty file of a new store, the file of a restored store, and the one that
//! replaces a file of an older format or with much free space.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};

use heed::types::Bytes as Raw;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags, WithoutTls};

use super::checksum::checksums;
use super::create::remove;
use super::error::lacks_disk_room;
use super::journal::APPLIED_KEY;
use super::opening::open_database;
use super::table::{FORMAT_KEY, OWN_KEYS, put_checked};

/// The format of the rows, which is stored under [`FORMAT_KEY`].
pub(super) const ROW_FORMAT: u32 = 2;
/// Bytes of rows that are written in one transaction, and are in memory until its commit.
const SLICE_BYTES: u64 = 8 * 1024 * 1024;

/// What has been written so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of rows.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// Why a data file was not written. The incomplete file has been removed.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// The rows could not be read.
    #[error("{0}")]
    Source(Box<dyn StdError + Send + Sync>),
    /// A row does not come after the one before.
    #[error("the rows to write are not in order")]
    Order,
    /// LMDB or the disk refused them.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn StdError + Send + Sync>,
        /// Whether there was no room on the disk.
        lacks_room: bool,
    },
}

impl BulkError {
    pub(super) fn write(path: &Path, error: heed::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            lacks_room: lacks_disk_room(&error),
            source: Box::new(error),
        }
    }

    /// Whether there was no room on the disk.
    pub fn lacks_room(&self) -> bool {
        matches!(
            self,
            Self::Write {
                lacks_room: true,
                ..
            }
        )
    }
}

/// Writes rows, in the order of their keys, into a new data file at `path`. An existing file is
/// removed first. The store's own rows, from [`OWN_KEYS`] on, are skipped. `applied` is the number of
/// the last journal record that the rows contain. `progress` is called at times. When this returns,
/// the file is synced, but not its name.
///
/// # Errors
/// Those of `rows` and of the disk. Then there is no file at `path`.
pub(crate) fn write_data_file<K, V, E>(
    path: &Path,
    map_bytes: usize,
    applied: u64,
    rows: impl IntoIterator<Item = Result<(K, V), E>>,
    progress: &mut dyn FnMut(Written),
) -> Result<Written, BulkError>
where
    K: AsRef<[u8]>,
    V: AsRef<[u8]>,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    let io_failed = |error: std::io::Error| BulkError::write(path, error.into());
    remove(path).map_err(io_failed)?;
    let written = open(path, map_bytes)
        .map_err(|error| BulkError::write(path, error))
        .and_then(|(environment, database)| {
            let written = fill(path, &environment, &database, applied, rows, progress);
            environment.prepare_for_closing().wait();
            written
        });
    if written.is_err() {
        // The first error matters more. The next try removes the file too.
        let _ = remove(path);
    }
    written
}

fn open(
    path: &Path,
    map_bytes: usize,
) -> Result<(Env<WithoutTls>, Database<'static, Raw, Raw>), heed::Error> {
    let mut opening = EnvOpenOptions::new().read_txn_without_tls();
    opening.map_size(map_bytes);
    // SAFETY: nothing else knows of the file at this path, and it is synced at the end.
    #[allow(unsafe_code)]
    let environment = unsafe {
        opening.flags(EnvFlags::NO_SUB_DIR | EnvFlags::NO_LOCK | EnvFlags::NO_SYNC);
        opening.open(path)?
    };
    let database = open_database(&environment)?;
    Ok((environment, database))
}

fn fill<K, V, E>(
    path: &Path,
    environment: &Env<WithoutTls>,
    database: &Database<'static, Raw, Raw>,
    applied: u64,
    rows: impl IntoIterator<Item = Result<(K, V), E>>,
    progress: &mut dyn FnMut(Written),
) -> Result<Written, BulkError>
where
    K: AsRef<[u8]>,
    V: AsRef<[u8]>,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    let failed = |error| BulkError::write(path, error);
    let mut written = Written::default();
    let mut slice_begin = 0;
    let (mut last, mut stored) = (Vec::new(), Vec::new());
    let mut transaction = environment.write_txn().map_err(failed)?;
    let own_rows = [
        (FORMAT_KEY, ROW_FORMAT.to_le_bytes().to_vec()),
        (APPLIED_KEY, applied.to_le_bytes().to_vec()),
    ];
    for row in rows {
        let (key, value) = row.map_err(|error| BulkError::Source(error.into()))?;
        let (key, value) = (key.as_ref(), value.as_ref());
        if key >= OWN_KEYS {
            continue;
        }
        if key <= last.as_slice() {
            return Err(BulkError::Order);
        }
        last.clear();
        last.extend_from_slice(key);
        stored.clear();
        stored.extend_from_slice(&checksums(key, value));
        stored.extend_from_slice(value);
        // Appending fills pages completely.
        database
            .put_with_flags(&mut transaction, PutFlags::APPEND, key, &stored)
            .map_err(failed)?;
        written.rows += 1;
        written.bytes += (key.len() + value.len()) as u64;
        if written.bytes - slice_begin >= SLICE_BYTES {
            transaction.commit().map_err(failed)?;
            transaction = environment.write_txn().map_err(failed)?;
            slice_begin = written.bytes;
            progress(written);
        }
    }
    for (key, value) in own_rows {
        put_checked(database, &mut transaction, key, &value).map_err(failed)?;
    }
    transaction.commit().map_err(failed)?;
    environment.force_sync().map_err(failed)?;
    progress(written);
    Ok(written)
}
