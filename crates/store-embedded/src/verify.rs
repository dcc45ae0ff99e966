//! Verifies every row of the data file.

use super::EmbeddedStore;
use super::checksum::{shown_key, verified};
use super::data_file::{DATA_FILE, DataFile, DataFileError};

/// Most damaged rows that are named.
const EXAMPLES_MAX: usize = 5;
/// Rows between two reports of the progress.
const PROGRESS_ROWS: u64 = 1000;

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Rows of the data file.
    pub rows: u64,
    /// Rows whose bytes are not as they were written.
    pub damaged: u64,
    /// Keys of some of these, with escapes.
    pub examples: Vec<String>,
}

impl EmbeddedStore {
    /// Reads all pages of the data file, without LMDB, and compares each row with its checksums. To
    /// be called while nothing is written. `progress` is called at times with the number of rows.
    ///
    /// # Errors
    /// If a page is damaged, with which LMDB might crash.
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
