//! Lengths and strings as they stand in RDB files.

use bytes::{Buf, Bytes};

use super::{DumpError, lzf};

/// Reads from the front of bytes. What it hands out shares their memory.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    bytes: Bytes,
}

/// A length, or the number of a special encoding of strings.
enum Length {
    Plain(u64),
    Special(u8),
}

impl Reader {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { bytes }
    }

    /// What was not read yet.
    pub(super) fn rest(&self) -> Bytes {
        self.bytes.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that are left.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The next `length` bytes.
    pub(super) fn take(&mut self, length: u64) -> Result<Bytes, DumpError> {
        match usize::try_from(length) {
            Ok(length) if length <= self.bytes.len() => Ok(self.bytes.split_to(length)),
            _ => Err(DumpError::Format),
        }
    }

    /// The next bytes, so many as the array holds.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DumpError> {
        let array = *self.bytes.first_chunk().ok_or(DumpError::Format)?;
        self.bytes.advance(N);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, DumpError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn length_or_special(&mut self) -> Result<Length, DumpError> {
        let first = self.byte()?;
        let low = first & 0x3f;
        Ok(match (first >> 6, first) {
            (0, _) => Length::Plain(low.into()),
            (1, _) => Length::Plain(u16::from_be_bytes([low, self.byte()?]).into()),
            (3, _) => Length::Special(low),
            (_, 0x80) => Length::Plain(u32::from_be_bytes(self.array()?).into()),
            (_, 0x81) => Length::Plain(u64::from_be_bytes(self.array()?)),
            _ => return Err(DumpError::Format),
        })
    }

    /// A length or a count.
    pub(super) fn length(&mut self) -> Result<u64, DumpError> {
        match self.length_or_special()? {
            Length::Plain(length) => Ok(length),
            Length::Special(_) => Err(DumpError::Format),
        }
    }

    /// A string, whichever way it is encoded.
    pub(super) fn string(&mut self) -> Result<Bytes, DumpError> {
        Ok(match self.length_or_special()? {
            Length::Plain(length) => self.take(length)?,
            Length::Special(0) => decimal(i8::from_le_bytes(self.array()?).into()),
            Length::Special(1) => decimal(i16::from_le_bytes(self.array()?).into()),
            Length::Special(2) => decimal(i32::from_le_bytes(self.array()?).into()),
            Length::Special(3) => {
                let compressed_length = self.length()?;
                let length = self.length()?;
                let compressed = self.take(compressed_length)?;
                lzf::decompress(&compressed, length)?.into()
            }
            Length::Special(_) => return Err(DumpError::Format),
        })
    }
}

/// An integer as the string that it stands for.
pub(super) fn decimal(integer: i64) -> Bytes {
    integer.to_string().into()
}
