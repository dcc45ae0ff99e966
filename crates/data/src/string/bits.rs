//! BITCOUNT, BITPOS, BITOP: counts, searches and combinations of bits, a page of pieces at a time. The first
//! bit of a byte is its highest.

use std::ops::RangeInclusive;

use bytes::{Bytes, BytesMut};

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::INLINE_BYTES_MAX;
use crate::unit::context::WriteContext;
use quoin_store::StoreError;

use super::write::{set, set_pieces, write_new_pieces};
use super::{PAGE_PIECES, PIECE, StringValue, padded};

/// Bits of a byte.
const BITS: u64 = 8;
/// Bytes that BITOP combines at a time.
const CHUNK: u64 = PAGE_PIECES as u64 * PIECE;

impl StringValue<'_, '_> {
    /// The number of set bits in a range. The string must have all bits of the range.
    pub async fn count_bits(&self, bits: RangeInclusive<u64>) -> Result<u64, StoreError> {
        let mut parts = self.parts(bits.start() / BITS, bits.end() / BITS + 1);
        let mut count = 0;
        while let Some(page) = parts.next().await? {
            for (at, part) in page {
                count += count_set(&part) - count_outside(at, &part, &bits);
            }
        }
        Ok(count)
    }

    /// The first bit in a range that is `bit`. The string must have all bits of the range.
    pub async fn find_bit(
        &self,
        bit: bool,
        bits: RangeInclusive<u64>,
    ) -> Result<Option<u64>, StoreError> {
        let end = bits.end() / BITS + 1;
        let mut next = bits.start() / BITS;
        let mut parts = self.parts(next, end);
        while let Some(page) = parts.next().await? {
            for (at, part) in page {
                // Bytes outside of the pieces are zeros.
                if !bit && at > next {
                    return Ok(first_of(next, 0xff, &bits));
                }
                next = at + part.len() as u64;
                let flip = if bit { 0 } else { 0xff };
                for (at, byte) in (at..).zip(&part) {
                    let sought = byte ^ flip;
                    if sought != 0
                        && let Some(found) = first_of(at, sought, &bits)
                    {
                        return Ok(Some(found));
                    }
                }
            }
        }
        Ok(match bit {
            false if next < end => first_of(next, 0xff, &bits),
            _ => None,
        })
    }
}

/// A mask of the bits of the byte at `at` that are in the range.
fn mask(at: u64, bits: &RangeInclusive<u64>) -> u8 {
    let (first, last) = (*bits.start(), *bits.end());
    let mut mask = 0xff_u8;
    if at == first / BITS {
        mask &= 0xff >> (first % BITS);
    }
    if at == last / BITS {
        mask &= 0xff << (BITS - 1 - last % BITS);
    }
    mask
}

/// The first set bit of a byte that is in the range.
fn first_of(at: u64, byte: u8, bits: &RangeInclusive<u64>) -> Option<u64> {
    let inside = byte & mask(at, bits);
    (inside != 0).then(|| at * BITS + u64::from(inside.leading_zeros()))
}

fn count_set(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words
        .iter()
        .map(|word| u64::from_ne_bytes(*word).count_ones());
    let rest = rest.iter().map(|byte| byte.count_ones());
    words.chain(rest).map(u64::from).sum()
}

/// The number of set bits outside of the range, in the bytes that the range covers partially.
fn count_outside(at: u64, part: &Bytes, bits: &RangeInclusive<u64>) -> u64 {
    let (first, last) = (bits.start() / BITS, bits.end() / BITS);
    let ends = std::iter::once(first).chain((last != first).then_some(last));
    let outside = ends.filter_map(|end| {
        let index = usize::try_from(end.checked_sub(at)?).ok()?;
        let byte = part.get(index)? & !mask(end, bits);
        Some(u64::from(byte.count_ones()))
    });
    outside.sum()
}

/// How BITOP combines bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combination {
    /// Set if all are set.
    And,
    /// Set if any is set.
    Or,
    /// Set if an odd number is set.
    Xor,
    /// Set if the bit of the single string is not set.
    Not,
}

/// Combines strings, and replaces any value at `name` with the result. Each string is padded with
/// zeros to the length of the longest. Returns the length of the result. If that is 0, changes
/// nothing.
///
/// If the result becomes larger than a transaction may be, this stops early. The executor then
/// refuses the command for its size and discards all its changes.
///
/// # Errors
/// `KeyNameTooLong`.
pub(crate) async fn combine(
    context: &WriteContext<'_>,
    combination: Combination,
    sources: &[Option<OpenKey>],
    name: &Bytes,
) -> Result<u64, CommandError> {
    let mut strings = Vec::with_capacity(sources.len());
    for source in sources {
        let string = source.as_ref().map(|key| StringValue::open(context, key));
        let length = match &string {
            Some(string) => string.length().await?,
            None => 0,
        };
        strings.push((string, length));
    }
    let length = strings.iter().map(|(_, length)| *length).max();
    let length = length.unwrap_or(0);
    if length == 0 {
        return Ok(0);
    }
    if length <= INLINE_BYTES_MAX as u64 {
        let value = combined(combination, &strings, 0, length).await?;
        set(context, name, &value.freeze(), None).await?;
        return Ok(length);
    }
    let data = context.environment.ids.allocate();
    let mut begin = 0;
    while begin < length {
        let end = length.min(begin + CHUNK);
        let value = combined(combination, &strings, begin, end).await?;
        write_new_pieces(context, data, begin, &value);
        if context.transaction.size_bytes() > context.environment.capabilities.transaction_bytes_max
        {
            return Ok(length);
        }
        begin = end;
    }
    set_pieces(context, name, data, length, None).await?;
    Ok(length)
}

/// The bytes `begin..end` of the result.
async fn combined(
    combination: Combination,
    strings: &[(Option<StringValue<'_, '_>>, u64)],
    begin: u64,
    end: u64,
) -> Result<BytesMut, StoreError> {
    let mut result = None;
    for (string, length) in strings {
        let part = match string {
            Some(string) if *length > begin => string.range(begin, end.min(*length)).await?,
            _ => Bytes::new(),
        };
        result = Some(match result {
            Some(result) => combine_part(combination, result, &part),
            None => padded(&part, end - begin),
        });
    }
    let mut result = result.unwrap_or_default();
    if combination == Combination::Not {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    Ok(result)
}

fn combine_part(combination: Combination, mut result: BytesMut, part: &[u8]) -> BytesMut {
    let common = part.len().min(result.len());
    let (both, beyond) = result.split_at_mut(common);
    let pairs = both.iter_mut().zip(part);
    match combination {
        Combination::And => {
            pairs.for_each(|(byte, other)| *byte &= other);
            beyond.fill(0);
        }
        Combination::Or => pairs.for_each(|(byte, other)| *byte |= other),
        Combination::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
        Combination::Not => {}
    }
    result
}
