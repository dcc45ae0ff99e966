//! Reads what this process has appended, for the archive.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::Journal;
use super::format::{FILE_HEADER_BYTES, RecordHeader, Version};

/// The records of a file in one of its turns. They are not overwritten until it is forgotten.
#[derive(Debug, Clone)]
pub(in super::super) struct Part {
    pub(super) file: Arc<File>,
    pub(super) epoch: u64,
    /// The offset of the last record's end.
    pub(super) end: u64,
}

impl Part {
    /// Calls `visit` with each record, in order.
    ///
    /// # Errors
    /// Those of reading and of `visit`.
    pub(in super::super) fn read<E: From<io::Error>>(
        &self,
        mut visit: impl FnMut(&RecordHeader, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        const VERSION: Version = Version::Second;
        let unreadable = || {
            let text = "the journal does not contain what was written to it";
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let mut header_bytes = vec![0; VERSION.header_bytes()];
        let mut body = Vec::new();
        let mut offset = FILE_HEADER_BYTES as u64;
        while offset < self.end {
            self.file.read_exact_at(&mut header_bytes, offset)?;
            let header = VERSION
                .record_header(self.epoch, &header_bytes)
                .ok_or_else(unreadable)?;
            offset += header_bytes.len() as u64;
            body.resize(usize::try_from(header.length).unwrap_or(0), 0);
            self.file.read_exact_at(&mut body, offset)?;
            if !VERSION.is_whole(&header, self.epoch, &body) {
                return Err(unreadable().into());
            }
            visit(&header, &body)?;
            offset += header.length;
        }
        Ok(())
    }
}

impl Journal {
    /// The file that was current before the last switch, until it is forgotten.
    pub(in super::super) fn closed(&self) -> Option<Part> {
        self.lock().closed.clone()
    }

    /// Forgets a file that was closed. The next switch may overwrite it.
    pub(in super::super) fn forget_closed(&self, part: &Part) {
        let mut state = self.lock();
        if state
            .closed
            .as_ref()
            .is_some_and(|closed| closed.epoch == part.epoch)
        {
            state.closed = None;
        }
    }

    /// The current file, as far as it is written.
    pub(in super::super) fn current(&self) -> io::Result<Part> {
        self.lock().part()
    }
}

impl super::State {
    /// The records that were appended since the last switch.
    pub(super) fn part(&self) -> io::Result<Part> {
        Ok(Part {
            file: Arc::clone(self.file(self.turn)?),
            epoch: self.epoch,
            end: self.offset,
        })
    }
}
