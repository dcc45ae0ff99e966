//! Reads a folder's files without opening the store, for `quoin doctor`. Changes nothing. A running
//! server may change the files meanwhile.

use std::io;
use std::path::Path;

use super::checkpoint::{self, CheckpointState};
use super::data_file::{DATA_FILE, DataFile};
use super::journal::{self, JournalDamage, JournalFile, Known};
use super::table::JOURNAL_KEY;

/// What a folder contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Length of the data file in bytes.
    pub data_bytes: u64,
    /// The journal's files.
    pub journal: Vec<JournalFile>,
    /// Acknowledged commits that the journal lacks. If a running server writes to the files, they
    /// may only seem to lack some.
    pub journal_damage: Option<JournalDamage>,
    /// The checkpoint.
    pub checkpoint: CheckpointState,
}

/// Inspects a folder. `None` if it has no store.
pub fn inspect(folder: &Path) -> io::Result<Option<Inspection>> {
    let data_bytes = match std::fs::metadata(folder.join(DATA_FILE)) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let checkpoint = checkpoint::Checkpoints::new(folder, checkpoint::boot_id()).inspect()?;
    // If the data file is damaged, opening it will report that.
    let last_key = DataFile::open(&folder.join(DATA_FILE)).and_then(|data| data.last_key());
    let known = Known {
        is_in_use: last_key.is_ok_and(|key| key.as_deref() == Some(JOURNAL_KEY)),
        has_checkpoint: checkpoint != CheckpointState::Absent,
        applied: 0,
    };
    let (journal, journal_damage) = journal::inspect(folder, known)?;
    Ok(Some(Inspection {
        data_bytes,
        journal,
        journal_damage,
        checkpoint,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EmbeddedOptions, EmbeddedStore};
    use quoin_store::Store;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn a_folder_without_a_store_is_reported_and_not_created() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(inspect(folder.path()).unwrap(), None);
        let missing = folder.path().join("missing");
        assert_eq!(inspect(&missing).unwrap(), None);
        assert!(!missing.exists());
    }

    #[test]
    fn the_files_of_an_open_store_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
        for number in 0..3_u8 {
            let transaction = store.begin_write().unwrap();
            transaction.set(&[number], b"value");
            let commit = pin!(transaction.commit());
            assert!(
                commit
                    .poll(&mut Context::from_waker(Waker::noop()))
                    .is_ready()
            );
        }
        let found = inspect(folder.path()).unwrap().unwrap();
        assert!(found.data_bytes > 0);
        assert!(!found.journal.is_empty());
        assert_eq!(
            found.journal.iter().filter_map(|file| file.last).max(),
            Some(3)
        );
        assert_eq!(found.checkpoint, CheckpointState::Current);
    }

    #[test]
    fn a_damaged_checkpoint_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        drop(EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap());
        std::fs::write(folder.path().join("CHECKPOINT"), b"damaged").unwrap();
        let found = inspect(folder.path()).unwrap().unwrap();
        assert_eq!(found.checkpoint, CheckpointState::Damaged);
    }
}
