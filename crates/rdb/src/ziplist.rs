//! Ziplists, in which Redis before 7.0 keeps small values.

use bytes::Bytes;

use super::DumpError;
use super::reader::{Reader, decimal};

/// Bytes in front of the first entry: length in bytes, offset of the last entry, count.
const HEADER_BYTES: usize = 10;
const END: u8 = 0xff;
/// The count where there are too many entries to tell.
const COUNT_UNKNOWN: u16 = u16::MAX;
/// The first byte of a previous entry's length that takes four more.
const LONG_PREVIOUS: u8 = 0xfe;

/// Hands out the entries of a ziplist, checking each on the way.
#[derive(Debug, Clone)]
pub(super) struct Ziplist {
    entries: Reader,
    /// What the header says.
    last_offset: u64,
    declared_count: u16,
    /// What has been seen.
    offset: u64,
    previous_bytes: u64,
    count: u64,
}

impl Ziplist {
    pub(super) fn new(blob: &Bytes) -> Result<Self, DumpError> {
        let mut header = Reader::new(blob.clone());
        let declared_bytes = u32::from_le_bytes(header.array()?);
        let last_offset = u32::from_le_bytes(header.array()?);
        let declared_count = u16::from_le_bytes(header.array()?);
        let end = blob.len() - 1;
        if declared_bytes as usize != blob.len() || end < HEADER_BYTES || blob.last() != Some(&END)
        {
            return Err(DumpError::Format);
        }
        Ok(Self {
            entries: Reader::new(blob.slice(HEADER_BYTES..end)),
            last_offset: last_offset.into(),
            declared_count,
            offset: HEADER_BYTES as u64,
            previous_bytes: 0,
            count: 0,
        })
    }

    pub(super) fn next(&mut self) -> Result<Option<Bytes>, DumpError> {
        if self.entries.is_empty() {
            return self.check_end().map(|()| None);
        }
        let left = self.entries.len();
        let previous_bytes: u64 = match self.entries.byte()? {
            END => return Err(DumpError::Format),
            LONG_PREVIOUS => u32::from_le_bytes(self.entries.array()?).into(),
            short => short.into(),
        };
        if previous_bytes != self.previous_bytes {
            return Err(DumpError::Format);
        }
        let value = self.value()?;
        self.offset += self.previous_bytes;
        self.previous_bytes = (left - self.entries.len()) as u64;
        self.count += 1;
        Ok(Some(value))
    }

    fn value(&mut self) -> Result<Bytes, DumpError> {
        let entries = &mut self.entries;
        let first = entries.byte()?;
        let low = first & 0x3f;
        let integer = match first {
            0x00..=0x3f => return entries.take(low.into()),
            0x40..=0x7f => {
                let length = u16::from_be_bytes([low, entries.byte()?]);
                return entries.take(length.into());
            }
            0x80..=0xbf => {
                let length = u32::from_be_bytes(entries.array()?);
                return entries.take(length.into());
            }
            0xc0 => i16::from_le_bytes(entries.array()?).into(),
            0xd0 => i32::from_le_bytes(entries.array()?).into(),
            0xe0 => i64::from_le_bytes(entries.array()?),
            0xf0 => {
                let [a, b, c] = entries.array()?;
                // The shift back fills up with the sign.
                i64::from(i32::from_le_bytes([0, a, b, c]) >> 8)
            }
            0xf1..=0xfd => i64::from(first & 0x0f) - 1,
            0xfe => i8::from_le_bytes(entries.array()?).into(),
            _ => return Err(DumpError::Format),
        };
        Ok(decimal(integer))
    }

    fn check_end(&self) -> Result<(), DumpError> {
        let is_counted =
            self.declared_count == COUNT_UNKNOWN || u64::from(self.declared_count) == self.count;
        let is_last_found = self.count == 0 || self.offset == self.last_offset;
        if is_counted && is_last_found {
            Ok(())
        } else {
            Err(DumpError::Format)
        }
    }
}
