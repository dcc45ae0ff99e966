//! The bytes of a file, in order: counted, summed up, and kept as far as somebody wants them.

use std::io::Read;

use super::error::RdbError;
use crate::Checksum;

/// Bytes that are read at a time where they are not wanted as a whole.
const PIECE_BYTES: usize = 64 * 1024;

/// Where a file is read.
pub(super) struct Input<R> {
    source: R,
    checksum: Checksum,
    position: u64,
    keeping: Keeping,
    kept_bytes_max: usize,
}

/// What is done with the bytes that are read.
#[derive(Debug)]
enum Keeping {
    Nothing,
    All(Vec<u8>),
    /// They were too many.
    Overflown,
}

impl<R> std::fmt::Debug for Input<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl<R: Read> Input<R> {
    pub(super) fn new(source: R, kept_bytes_max: usize) -> Self {
        Self {
            source,
            checksum: Checksum::begin(),
            position: 0,
            keeping: Keeping::Nothing,
            kept_bytes_max,
        }
    }

    /// Bytes that were read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The checksum of what was read. The next one begins with nothing.
    pub(super) fn checksum(&mut self) -> u64 {
        std::mem::replace(&mut self.checksum, Checksum::begin()).value()
    }

    /// The error for what stands here.
    pub(super) fn damaged(&self, what: &'static str) -> RdbError {
        RdbError::Format {
            at: self.position,
            what,
        }
    }

    /// Keeps what is read from here on, behind these bytes.
    pub(super) fn keep(&mut self, bytes: Vec<u8>) {
        self.keeping = Keeping::All(bytes);
    }

    /// What was kept; `None` where it was too much.
    pub(super) fn end_keeping(&mut self) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.keeping, Keeping::Nothing) {
            Keeping::All(bytes) => Some(bytes),
            Keeping::Nothing | Keeping::Overflown => None,
        }
    }

    /// Keeps nothing of what follows.
    pub(super) fn stop_keeping(&mut self) {
        self.keeping = Keeping::Nothing;
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), RdbError> {
        self.source
            .read_exact(bytes)
            .map_err(|source| RdbError::Io {
                at: self.position,
                source,
            })?;
        self.position += bytes.len() as u64;
        self.checksum.add(bytes);
        if let Keeping::All(kept) = &mut self.keeping {
            if kept.len() + bytes.len() <= self.kept_bytes_max {
                kept.extend_from_slice(bytes);
            } else {
                self.keeping = Keeping::Overflown;
            }
        }
        Ok(())
    }

    /// The next bytes, so many as the array holds.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], RdbError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, RdbError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// Passes over bytes. A length that the file does not bear out reserves nothing.
    pub(super) fn pass(&mut self, bytes: u64) -> Result<(), RdbError> {
        let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(bytes).unwrap_or(PIECE_BYTES))];
        let mut left = bytes;
        while left > 0 {
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            if let Some(piece) = piece.get_mut(..now) {
                self.fill(piece)?;
            }
            left -= now as u64;
        }
        Ok(())
    }

    /// A length, or the number of a special encoding of strings.
    fn length_or_special(&mut self) -> Result<Result<u64, u8>, RdbError> {
        let first = self.byte()?;
        let low = first & 0x3f;
        Ok(match (first >> 6, first) {
            (0, _) => Ok(low.into()),
            (1, _) => Ok(u16::from_be_bytes([low, self.byte()?]).into()),
            (3, _) => Err(low),
            (_, 0x80) => Ok(u32::from_be_bytes(self.array()?).into()),
            (_, 0x81) => Ok(u64::from_be_bytes(self.array()?)),
            _ => return Err(self.damaged("a length")),
        })
    }

    /// A length or a count.
    pub(super) fn length(&mut self) -> Result<u64, RdbError> {
        let length = self.length_or_special()?;
        length.map_err(|_| self.damaged("a length"))
    }

    /// Passes over a string, whichever way it is encoded.
    pub(super) fn pass_string(&mut self) -> Result<(), RdbError> {
        match self.length_or_special()? {
            Ok(length) => self.pass(length),
            Err(0) => self.pass(1),
            Err(1) => self.pass(2),
            Err(2) => self.pass(4),
            Err(3) => {
                let compressed_bytes = self.length()?;
                self.length()?;
                self.pass(compressed_bytes)
            }
            Err(_) => Err(self.damaged("the encoding of a string")),
        }
    }
}
