//! HyperLogLogs: strings that estimate the number of different elements that were added to them.
//!
//! The bytes are Redis's, so that GET, SETRANGE, DUMP and Redis itself can read and write them: a
//! header of 16 bytes, then 16,384 registers in one of two encodings. A new one is sparse. It
//! becomes dense when it outgrows a limit.

mod dense;
mod estimate;
mod self_test;
mod sparse;

pub use self_test::self_test;

use bytes::Bytes;

use crate::error::CommandError;
use dense::{DENSE_BYTES, HEADER_BYTES, REGISTERS};
use estimate::{VALUES, estimate, place};
use sparse::Raised;

const MAGIC: &[u8; 4] = b"HYLL";
const ENCODING_AT: usize = 4;
const ESTIMATE_AT: usize = 8;
/// Set in the last byte of the estimate if the registers changed after it.
const IS_STALE: u8 = 0x80;

const CORRUPT: CommandError = CommandError::text("INVALIDOBJ Corrupted HLL object detected");

/// The encoding of the registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Six bits each.
    Dense,
    /// Runs of equal registers.
    Sparse,
}

/// A HyperLogLog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HyperLogLog {
    bytes: Vec<u8>,
    encoding: Encoding,
}

impl HyperLogLog {
    /// A HyperLogLog without elements.
    pub fn empty() -> Self {
        let mut bytes = [MAGIC.as_slice(), &[1], &[0; 11]].concat();
        sparse::write_empty(&mut bytes);
        Self {
            bytes,
            encoding: Encoding::Sparse,
        }
    }

    /// Reads a string. Does not check the registers of the sparse encoding yet.
    ///
    /// # Errors
    /// `Text` if the string is not a HyperLogLog.
    pub fn parse(bytes: &[u8]) -> Result<Self, CommandError> {
        const NONE: CommandError =
            CommandError::text("WRONGTYPE Key is not a valid HyperLogLog string value.");
        if bytes.len() < HEADER_BYTES || !bytes.starts_with(MAGIC) {
            return Err(NONE);
        }
        let encoding = match bytes.get(ENCODING_AT) {
            Some(0) if bytes.len() == DENSE_BYTES => Encoding::Dense,
            Some(1) => Encoding::Sparse,
            _ => return Err(NONE),
        };
        Ok(Self {
            bytes: bytes.to_vec(),
            encoding,
        })
    }

    /// The encoding of the registers.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The string.
    pub fn into_bytes(self) -> Bytes {
        self.bytes.into()
    }

    /// Adds an element. Returns whether a register changed. A sparse string longer than
    /// `sparse_bytes_max` becomes dense.
    ///
    /// # Errors
    /// `Text` if registers are missing.
    pub fn add(&mut self, element: &[u8], sparse_bytes_max: usize) -> Result<bool, CommandError> {
        let (index, value) = place(element);
        self.raise(index, value, sparse_bytes_max)
    }

    fn raise(&mut self, index: usize, value: u8, bytes_max: usize) -> Result<bool, CommandError> {
        if self.encoding == Encoding::Sparse {
            match sparse::raise(&mut self.bytes, index, value, bytes_max) {
                Raised::Not => return Ok(false),
                Raised::Yes => return Ok(true),
                Raised::NoRoom => {
                    self.make_dense()?;
                }
                Raised::Corrupt => return Err(CORRUPT),
            }
        }
        Ok(dense::raise(&mut self.bytes, index, value))
    }

    /// Converts the sparse encoding to the dense one. Returns false if it is already dense.
    ///
    /// # Errors
    /// `Text` if registers are missing.
    pub fn make_dense(&mut self) -> Result<bool, CommandError> {
        if self.encoding == Encoding::Dense {
            return Ok(false);
        }
        let runs = sparse::values(&self.bytes).ok_or(CORRUPT)?;
        self.bytes.truncate(HEADER_BYTES);
        self.bytes.resize(DENSE_BYTES, 0);
        self.encoding = Encoding::Dense;
        if let Some(encoding) = self.bytes.get_mut(ENCODING_AT) {
            *encoding = 0;
        }
        for (indexes, value) in runs {
            for index in indexes {
                dense::raise(&mut self.bytes, index, value);
            }
        }
        Ok(true)
    }

    /// The estimate in the string. `None` if registers changed after it.
    pub fn cached_count(&self) -> Option<u64> {
        let field = self.bytes.get(ESTIMATE_AT..HEADER_BYTES)?;
        let count = u64::from_le_bytes(field.try_into().ok()?);
        (count >> 63 == 0).then_some(count)
    }

    /// Estimates the number of different elements, and keeps the estimate in the string.
    ///
    /// # Errors
    /// `Text` if registers are missing.
    pub fn count(&mut self) -> Result<u64, CommandError> {
        let mut registers = Registers::default();
        registers.merge(self)?;
        let count = registers.count();
        if let Some(field) = self.bytes.get_mut(ESTIMATE_AT..HEADER_BYTES) {
            field.copy_from_slice(&count.to_le_bytes());
        }
        Ok(count)
    }

    /// Marks the estimate in the string as outdated.
    pub fn mark_stale(&mut self) {
        if let Some(last) = self.bytes.get_mut(HEADER_BYTES - 1) {
            *last |= IS_STALE;
        }
    }

    /// Raises each register to that of `others`. Ignores registers that are missing.
    pub fn raise_to(&mut self, others: &Registers, sparse_bytes_max: usize) {
        for (index, value) in others.values.iter().enumerate() {
            if *value > 0 {
                // As in Redis.
                let _ = self.raise(index, *value, sparse_bytes_max);
            }
        }
    }

    /// The runs of the sparse encoding as PFDEBUG DECODE shows them. `None` if the encoding is dense.
    pub fn describe_runs(&self) -> Option<String> {
        match self.encoding {
            Encoding::Dense => None,
            Encoding::Sparse => Some(sparse::describe(&self.bytes)),
        }
    }
}

/// The merged registers of several HyperLogLogs: each has the greatest value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registers {
    values: Vec<u8>,
}

impl Default for Registers {
    fn default() -> Self {
        Self {
            values: vec![0; REGISTERS],
        }
    }
}

impl Registers {
    /// Raises each register to that of another HyperLogLog.
    ///
    /// # Errors
    /// `Text` if the other one lacks registers.
    pub fn merge(&mut self, other: &HyperLogLog) -> Result<(), CommandError> {
        match other.encoding {
            Encoding::Dense => {
                for (ours, theirs) in self.values.iter_mut().zip(dense::values(&other.bytes)) {
                    *ours = theirs.max(*ours);
                }
            }
            Encoding::Sparse => {
                for (indexes, value) in sparse::values(&other.bytes).ok_or(CORRUPT)? {
                    for ours in self.values.get_mut(indexes).unwrap_or_default() {
                        *ours = value.max(*ours);
                    }
                }
            }
        }
        Ok(())
    }

    /// Estimates the number of different elements.
    pub fn count(&self) -> u64 {
        let mut histogram = [0_u32; VALUES];
        for value in &self.values {
            if let Some(count) = histogram.get_mut(usize::from(*value)) {
                *count += 1;
            }
        }
        estimate(&histogram)
    }

    /// The value of each register.
    pub fn values(&self) -> &[u8] {
        &self.values
    }
}
