//! Redis's compact encodings of small values: listpack, ziplist, intset and zipmap.

use bytes::Bytes;

use super::DumpError;
use super::payload::{Reader, decimal};
use quoin_base::number::parse_i64;

/// One of the compact encodings.
#[derive(Debug, Clone)]
pub(super) enum Packed {
    Ziplist(Ziplist),
    Listpack(Listpack),
    Intset(Intset),
    Zipmap(Zipmap),
}

impl Packed {
    pub(super) fn ziplist(blob: &Bytes) -> Result<Self, DumpError> {
        Ziplist::new(blob).map(Packed::Ziplist)
    }

    pub(super) fn listpack(blob: &Bytes) -> Result<Self, DumpError> {
        Listpack::new(blob).map(Packed::Listpack)
    }

    pub(super) fn intset(blob: &Bytes) -> Result<Self, DumpError> {
        Intset::new(blob).map(Packed::Intset)
    }

    pub(super) fn zipmap(blob: &Bytes) -> Result<Self, DumpError> {
        Zipmap::new(blob).map(Packed::Zipmap)
    }

    /// The next entry; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, DumpError> {
        match self {
            Packed::Ziplist(ziplist) => ziplist.next(),
            Packed::Listpack(listpack) => listpack.next(),
            Packed::Intset(intset) => intset.next(),
            Packed::Zipmap(zipmap) => zipmap.next(),
        }
    }
}

/// Bytes in front of the first entry: length in bytes and count.
const HEADER_BYTES: usize = 6;
const END: u8 = 0xff;

/// The value of the count field if there are too many entries for it.
const COUNT_UNKNOWN: u16 = u16::MAX;

/// Returns the entries of a listpack, checking each one.
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
                // Shifted up to the sign bit and back, to extend the sign.
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

/// The length of an entry as stored after it, to be read backwards, and the number of bytes that
/// this takes.
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

    /// Its length if it were finished now.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() + 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a string, as an integer if it is one.
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

/// Bytes in front of the first entry: length in bytes, offset of the last entry, count.
const ZIPLIST_HEADER_BYTES: usize = 10;

/// The first byte of a previous entry's length that takes four more.
const LONG_PREVIOUS: u8 = 0xfe;

/// Returns the entries of a ziplist, checking each one.
#[derive(Debug, Clone)]
pub(super) struct Ziplist {
    entries: Reader,
    /// From the header.
    last_offset: u64,
    declared_count: u16,
    /// As read so far.
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
        if declared_bytes as usize != blob.len()
            || end < ZIPLIST_HEADER_BYTES
            || blob.last() != Some(&END)
        {
            return Err(DumpError::Format);
        }
        Ok(Self {
            entries: Reader::new(blob.slice(ZIPLIST_HEADER_BYTES..end)),
            last_offset: last_offset.into(),
            declared_count,
            offset: ZIPLIST_HEADER_BYTES as u64,
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

/// Hands out the numbers of an intset, checking that they ascend.
#[derive(Debug, Clone)]
pub(super) struct Intset {
    numbers: Reader,
    number_bytes: u32,
    last: Option<i64>,
}

impl Intset {
    pub(super) fn new(blob: &Bytes) -> Result<Self, DumpError> {
        let mut numbers = Reader::new(blob.clone());
        let number_bytes = u32::from_le_bytes(numbers.array()?);
        let count = u32::from_le_bytes(numbers.array()?);
        let is_sound = matches!(number_bytes, 2 | 4 | 8)
            && u64::from(count) * u64::from(number_bytes) == numbers.len() as u64;
        match is_sound {
            true => Ok(Self {
                numbers,
                number_bytes,
                last: None,
            }),
            false => Err(DumpError::Format),
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<Bytes>, DumpError> {
        if self.numbers.is_empty() {
            return Ok(None);
        }
        let number = match self.number_bytes {
            2 => i16::from_le_bytes(self.numbers.array()?).into(),
            4 => i32::from_le_bytes(self.numbers.array()?).into(),
            _ => i64::from_le_bytes(self.numbers.array()?),
        };
        if self.last.is_some_and(|last| last >= number) {
            return Err(DumpError::Format);
        }
        self.last = Some(number);
        Ok(Some(decimal(number)))
    }
}

/// An intset of these numbers, which must ascend.
pub(super) fn write_intset(numbers: &[i64]) -> Vec<u8> {
    let fits = |number_bits: u32| {
        let ends = [numbers.first(), numbers.last()].into_iter().flatten();
        ends.copied()
            .all(|end| end >> (number_bits - 1) == end >> 63)
    };
    let number_bytes: u32 = match () {
        () if fits(16) => 2,
        () if fits(32) => 4,
        () => 8,
    };
    let count = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(8 + numbers.len() * number_bytes as usize);
    bytes.extend(number_bytes.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    for number in numbers {
        let little = number.to_le_bytes();
        bytes.extend(little.iter().take(number_bytes as usize));
    }
    bytes
}

/// The first byte of a length that takes four more.
const LONG: u8 = 0xfe;

/// Returns fields and values of a zipmap alternately, and checks each.
#[derive(Debug, Clone)]
pub(super) struct Zipmap {
    entries: Reader,
    /// From the header. Lengths from [`LONG`] on are unknown.
    declared_count: u8,
    /// Fields and values so far.
    count: u64,
}

impl Zipmap {
    pub(super) fn new(blob: &Bytes) -> Result<Self, DumpError> {
        let [declared_count, .., END] = blob.as_ref() else {
            return Err(DumpError::Format);
        };
        Ok(Self {
            entries: Reader::new(blob.slice(1..blob.len() - 1)),
            declared_count: *declared_count,
            count: 0,
        })
    }

    pub(super) fn next(&mut self) -> Result<Option<Bytes>, DumpError> {
        let is_value = self.count % 2 == 1;
        if self.entries.is_empty() && !is_value {
            let is_counted =
                self.declared_count >= LONG || u64::from(self.declared_count) * 2 == self.count;
            return match is_counted {
                true => Ok(None),
                false => Err(DumpError::Format),
            };
        }
        let length = match self.entries.byte()? {
            END => return Err(DumpError::Format),
            LONG => u32::from_le_bytes(self.entries.array()?),
            short => short.into(),
        };
        let free_bytes = match is_value {
            true => self.entries.byte()?,
            false => 0,
        };
        let string = self.entries.take(length.into())?;
        self.entries.take(free_bytes.into())?;
        self.count += 1;
        Ok(Some(string))
    }
}
