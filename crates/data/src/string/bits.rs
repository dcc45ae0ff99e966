//! Counting and finding bits, a page at a time. The first bit of a byte is its highest.

use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::keyspace::key::OpenKey;
use crate::unit::context::ReadContext;
use quoin_store::StoreError;

/// Bits of a byte.
const BITS: u64 = 8;

impl ReadContext<'_> {
    /// How many of some bits are set. The string must not end before them.
    pub async fn string_count_bits(
        &self,
        key: &OpenKey,
        bits: RangeInclusive<u64>,
    ) -> Result<u64, StoreError> {
        let mut parts = self.string_parts(key, bits.start() / BITS, bits.end() / BITS + 1);
        let mut count = 0;
        while let Some(page) = parts.next().await? {
            for (at, part) in page {
                count += count_set(&part) - count_outside(at, &part, &bits);
            }
        }
        Ok(count)
    }

    /// The first of some bits that is `bit`. The string must not end before them.
    pub async fn string_find_bit(
        &self,
        key: &OpenKey,
        bit: bool,
        bits: RangeInclusive<u64>,
    ) -> Result<Option<u64>, StoreError> {
        let end = bits.end() / BITS + 1;
        let mut next = bits.start() / BITS;
        let mut parts = self.string_parts(key, next, end);
        while let Some(page) = parts.next().await? {
            for (at, part) in page {
                // What no piece holds is zeros.
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

/// The bits of the byte at `at` that are in the range.
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

/// The first bit in the range that is set in a byte.
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

/// Set bits of a part's bytes at the ends of the range that are outside of it.
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
