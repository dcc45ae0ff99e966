//! Reads what this process has appended, for the archive.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::format::{FILE_HEADER_BYTES, RecordHeader, Version};

/// The records of one turn of a file. They are not overwritten until the part is forgotten.
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
    /// If `visit` fails.
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
