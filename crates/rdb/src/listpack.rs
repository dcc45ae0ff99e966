//! Listpacks, in which Redis since 7.0 keeps small values and the nodes of lists.

use bytes::Bytes;

use super::DumpError;
use super::reader::{Reader, decimal};
use quoin_base::number::parse_i64;

/// Bytes in front of the first entry: length in bytes and count.
const HEADER_BYTES: usize = 6;
const END: u8 = 0xff;
/// The count where there are too many entries to tell.
const COUNT_UNKNOWN: u16 = u16::MAX;

/// Hands out the entries of a listpack, checking each on the way.
#[derive(Debug, Clone)]
pub(super) struct Listpack {
    entries: Reader,
    declared_count: u16,
    count: u64,
}

impl Listpack {
    pub(super) fn new(blob: &Bytes) -> Result<Self, DumpError> {
        let mut header = Reader::new(blob.clone());
        let declared_bytes = u32::from_le_bytes(header.array()?);
        let declared_count = u16::from_le_bytes(header.array()?);
        let end = blob.len() - 1;
        if declared_bytes as usize != blob.len() || end < HEADER_BYTES || blob.last() != Some(&END)
        {
            return Err(DumpError::Format);
        }
        Ok(Self {
            entries: Reader::new(blob.slice(HEADER_BYTES..end)),
            declared_count,
            count: 0,
        })
    }

    pub(super) fn next(&mut self) -> Result<Option<Bytes>, DumpError> {
        if self.entries.is_empty() {
            let is_counted = self.declared_count == COUNT_UNKNOWN
                || u64::from(self.declared_count) == self.count;
            return if is_counted {
                Ok(None)
            } else {
                Err(DumpError::Format)
            };
        }
        let left = self.entries.len();
        let value = self.value()?;
        let (expected, count) = back_length((left - self.entries.len()) as u64);
        let found = self.entries.take(count as u64)?;
        if expected.get(..count) != Some(&found) {
            return Err(DumpError::Format);
        }
        self.count += 1;
        Ok(Some(value))
    }

    fn value(&mut self) -> Result<Bytes, DumpError> {
        let entries = &mut self.entries;
        let first = entries.byte()?;
        let integer = match first {
            0x00..=0x7f => first.into(),
            0x80..=0xbf => return entries.take((first & 0x3f).into()),
            0xc0..=0xdf => {
                let low = entries.byte()?;
                // Shifted up to where the sign is, and back with it.
                i64::from(i16::from_be_bytes([first << 3 | low >> 5, low << 3]) >> 3)
            }
            0xe0..=0xef => {
                let length = u16::from_be_bytes([first & 0x0f, entries.byte()?]);
                return entries.take(length.into());
            }
            0xf0 => {
                let length = u32::from_le_bytes(entries.array()?);
                return entries.take(length.into());
            }
            0xf1 => i16::from_le_bytes(entries.array()?).into(),
            0xf2 => {
                let [a, b, c] = entries.array()?;
                i64::from(i32::from_le_bytes([0, a, b, c]) >> 8)
            }
            0xf3 => i32::from_le_bytes(entries.array()?).into(),
            0xf4 => i64::from_le_bytes(entries.array()?),
            _ => return Err(DumpError::Format),
        };
        Ok(decimal(integer))
    }
}

/// An entry's length as it stands behind the entry, to be read backwards, and its own bytes.
fn back_length(entry_bytes: u64) -> ([u8; 5], usize) {
    let count = match entry_bytes {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    let mut bytes = [0; 5];
    for (place, byte) in bytes.iter_mut().take(count).enumerate() {
        let seven_bits = (entry_bytes >> (7 * (count - 1 - place))) & 0x7f;
        let is_continued = if place == 0 { 0 } else { 0x80 };
        *byte = seven_bits.to_le_bytes()[0] | is_continued;
    }
    (bytes, count)
}

/// Writes a listpack.
#[derive(Debug)]
pub(super) struct ListpackWriter {
    bytes: Vec<u8>,
    count: usize,
}

impl ListpackWriter {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; HEADER_BYTES],
            count: 0,
        }
    }

    /// Its length as it would be finished now.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a string, as an integer where it reads as one.
    pub(super) fn push(&mut self, value: &[u8]) {
        if let Some(integer) = parse_i64(value) {
            return self.push_integer(integer);
        }
        let start = self.bytes.len();
        let length = value.len();
        let [low, high, ..] = length.to_le_bytes();
        match length {
            0..64 => self.bytes.push(0x80 | low),
            64..4096 => self.bytes.extend([0xe0 | high, low]),
            _ => {
                self.bytes.push(0xf0);
                // Elements are at most as long as a request's argument.
                let length = u32::try_from(length).unwrap_or(u32::MAX);
                self.bytes.extend(length.to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(value);
        self.end_entry(start);
    }

    /// Adds an integer.
    pub(super) fn push_integer(&mut self, integer: i64) {
        let start = self.bytes.len();
        let little = integer.to_le_bytes();
        let [a, b, c, d, ..] = little;
        match integer {
            0..128 => self.bytes.push(a),
            -4096..4096 => self.bytes.extend([0xc0 | (b & 0x1f), a]),
            -32_768..32_768 => self.bytes.extend([0xf1, a, b]),
            -8_388_608..8_388_608 => self.bytes.extend([0xf2, a, b, c]),
            -2_147_483_648..2_147_483_648 => self.bytes.extend([0xf3, a, b, c, d]),
            _ => {
                self.bytes.push(0xf4);
                self.bytes.extend(little);
            }
        }
        self.end_entry(start);
    }

    fn end_entry(&mut self, start: usize) {
        let (back, count) = back_length((self.bytes.len() - start) as u64);
        self.bytes.extend(back.iter().take(count));
        self.count += 1;
    }

    /// The listpack, whole.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let total = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let count = u16::try_from(self.count).unwrap_or(COUNT_UNKNOWN);
        let header = total.to_le_bytes().into_iter().chain(count.to_le_bytes());
        for (place, byte) in self.bytes.iter_mut().zip(header) {
            *place = byte;
        }
        self.bytes
    }
}
