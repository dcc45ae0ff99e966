//! Reading a backup file.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::error::{BackupError, Damage};
use super::format::{Decoder, Header, Totals};

const BUFFER_BYTES: usize = 256 * 1024;

/// A backup that is read from its beginning to its end.
pub struct BackupFile {
    path: PathBuf,
    decoder: Decoder<BufReader<File>>,
    file_bytes: u64,
}

impl BackupFile {
    /// Opens a backup and checks its header. The rest is checked while it is read.
    ///
    /// # Errors
    /// If it cannot be opened, or is no backup.
    pub fn open(path: &Path) -> Result<Self, BackupError> {
        let failed = || BackupError::io("read", path);
        let file = File::open(path).map_err(failed())?;
        let metadata = file.metadata().map_err(failed())?;
        if metadata.is_dir() {
            let folder = std::io::Error::from(std::io::ErrorKind::IsADirectory);
            return Err(failed()(folder));
        }
        let input = BufReader::with_capacity(BUFFER_BYTES, file);
        let decoder = Decoder::begin(input).map_err(|damage| damaged(path, damage))?;
        Ok(Self {
            path: path.to_owned(),
            decoder,
            file_bytes: metadata.len(),
        })
    }

    /// What it is of.
    pub fn header(&self) -> Header {
        self.decoder.header()
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The error for a file that has changed.
    pub(super) fn changed(&self) -> BackupError {
        let what = "it is not the file that was verified";
        damaged(&self.path, Damage::Wrong { at: 0, what })
    }

    /// Reads and checks all of it. `progress` gets the bytes so far.
    ///
    /// # Errors
    /// If it is damaged, or cannot be read.
    pub fn verify(
        mut self,
        mut progress: impl FnMut(u64),
    ) -> Result<(Header, Totals), BackupError> {
        while self.next_block()?.is_some() {
            progress(self.decoder.totals().file_bytes);
        }
        Ok((self.header(), self.decoder.totals()))
    }

    /// The rows of the next block, which share one buffer; `None` at the end of a complete file.
    pub(super) fn next_rows(&mut self) -> Result<Option<Vec<(Bytes, Bytes)>>, BackupError> {
        let Some(block) = self.next_block()? else {
            return Ok(None);
        };
        let shared = Bytes::copy_from_slice(block);
        let rows = super::format::Rows::of(&shared);
        Ok(Some(
            rows.map(|(key, value)| (shared.slice_ref(key), shared.slice_ref(value)))
                .collect(),
        ))
    }

    fn next_block(&mut self) -> Result<Option<&[u8]>, BackupError> {
        match self.decoder.next_block() {
            Ok(rows) => Ok(rows.map(|rows| rows.bytes())),
            Err(damage) => Err(damaged(&self.path, damage)),
        }
    }
}

fn damaged(path: &Path, damage: Damage) -> BackupError {
    BackupError::Damaged {
        path: path.to_owned(),
        damage,
    }
}
