//! Writes sorted rows into a new data file, which is as small as possible and is synced at the end.
//!
//! This creates the empty file of a new store, the file of a restored store, and the replacement
//! for a file of an older format or with much free space.

use std::error::Error as StdError;
use std::io;
use std::path::Path;

use heed::types::Bytes as Raw;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags, WithoutTls};

use super::checksum::checksums;
use super::create::{NEW_DATA_FILE, install, remove};
use super::error::BulkError;
use super::table::{APPLIED_KEY, FORMAT_KEY, OWN_KEYS, open_database, put_checked};

/// The format of the rows, which is stored under [`FORMAT_KEY`].
pub(super) const ROW_FORMAT: u32 = 2;
/// Bytes of rows written in one transaction. They are in memory until it commits.
const SLICE_BYTES: u64 = 8 * 1024 * 1024;

/// What has been written so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of rows.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// Writes rows, sorted by key, into a new data file at `path`. An existing file is removed first.
/// The store's own rows, from [`OWN_KEYS`] on, are skipped. `applied` is the number of the last
/// journal record that the rows contain. `progress` is called periodically. When this returns, the
/// file is synced, but its name is not.
///
/// # Errors
/// If `rows` fails or is not sorted. After an error there is no file at `path`.
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
        // The first error matters more. The next attempt removes the file too.
        let _ = remove(path);
    }
    written
}

/// Creates a data file without rows. LMDB would create it without a sync, and refuse an incomplete
/// file after a power failure. So the file gets its name only once it is synced.
pub(super) fn create_data_file(folder: &Path, map_bytes: usize) -> Result<(), BulkError> {
    type Nothing = Result<(Vec<u8>, Vec<u8>), io::Error>;
    let new = folder.join(NEW_DATA_FILE);
    let nothing = std::iter::empty::<Nothing>();
    write_data_file(&new, map_bytes, 0, nothing, &mut |_: Written| {})?;
    install(folder).map_err(|error| BulkError::write(&new, error.into()))
}

fn open(
    path: &Path,
    map_bytes: usize,
) -> Result<(Env<WithoutTls>, Database<'static, Raw, Raw>), heed::Error> {
    let mut opening = EnvOpenOptions::new().read_txn_without_tls();
    opening.map_size(map_bytes);
    // SAFETY: nothing else knows the file at this path, and it is synced at the end.
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
