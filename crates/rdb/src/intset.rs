//! Intsets, in which Redis keeps small sets of whole numbers.

use bytes::Bytes;

use super::DumpError;
use super::reader::{Reader, decimal};

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

/// An intset of these numbers, which ascend.
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
