//! Verifies every row of the data file.

use super::EmbeddedStore;
use super::checksum::{shown_key, verified};
use super::data_file::{DATA_FILE, DataFile, DataFileError};

/// Maximum number of damaged rows that are named.
const EXAMPLES_MAX: usize = 5;
/// Rows between two progress reports.
const PROGRESS_ROWS: u64 = 1000;

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Rows of the data file.
    pub rows: u64,
    /// Rows whose bytes differ from what was written.
    pub damaged: u64,
    /// Keys of some damaged rows, escaped.
    pub examples: Vec<String>,
}

impl EmbeddedStore {
    /// Reads all pages of the data file without LMDB, and compares each row with its checksums.
    /// Call this while nothing is written. `progress` is called periodically with the number of
    /// rows.
    ///
    /// # Errors
    /// If a page is damaged in a way that might crash LMDB.
    pub fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<Verified, DataFileError> {
        let mut found = Verified::default();
        DataFile::open(&self.folder.join(DATA_FILE))?.check_pages(|key, stored| {
            found.rows += 1;
            if found.rows % PROGRESS_ROWS == 0 {
                progress(found.rows);
            }
            if verified(key, stored).is_none() {
                found.damaged += 1;
                if found.examples.len() < EXAMPLES_MAX {
                    found.examples.push(shown_key(key));
                }
            }
        })?;
        Ok(found)
    }
}
