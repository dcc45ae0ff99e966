//! The hash of HyperLogLogs: MurmurHash64A (Austin Appleby, public domain) with Redis's seed.

use super::form::REGISTER_BITS;

const SEED: u64 = 0xadc8_3b19;
const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// Which register an element is about, and how many zeros its hash has before the next one, plus
/// one: from 1 to 51.
pub(super) fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur(element, SEED);
    let index = hash & ((1 << REGISTER_BITS) - 1);
    // A one after the last bit ends the count.
    let rest = hash >> REGISTER_BITS | 1 << (u64::BITS - REGISTER_BITS);
    let zeros = u8::try_from(rest.trailing_zeros()).unwrap_or(0);
    (usize::try_from(index).unwrap_or(0), zeros + 1)
}

fn murmur(bytes: &[u8], seed: u64) -> u64 {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut hash = seed ^ length.wrapping_mul(FACTOR);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let mut mixed = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        mixed ^= mixed >> SHIFT;
        hash = (hash ^ mixed.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !tail.is_empty() {
        let last = tail
            .iter()
            .rev()
            .fold(0, |last, byte| last << 8 | u64::from(*byte));
        hash = (hash ^ last).wrapping_mul(FACTOR);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}
