//! The hash that turns elements into registers, and the estimate from the registers.
//!
//! The hash is MurmurHash64A (Austin Appleby, public domain) with Redis's seed. The estimator is that of
//! Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (arXiv:1702.01284), in
//! Redis's order of operations, so that it rounds as Redis does.

use super::dense::{REGISTER_BITS, REGISTERS};

const SEED: u64 = 0xadc8_3b19;
const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// The greatest value of a register that a hash makes.
const VALUE_MAX: usize = (u64::BITS - REGISTER_BITS) as usize + 1;
/// The number of values of six bits.
pub(super) const VALUES: usize = 64;
/// 0.5 / ln 2.
#[allow(clippy::excessive_precision)]
const ALPHA: f64 = 0.721_347_520_444_481_703_680;

/// The register of an element, and the value for it: the number of zeros in the rest of its hash before the
/// first one, plus one, so 1 to 51.
pub(super) fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur(element, SEED);
    let index = hash & ((1 << REGISTER_BITS) - 1);
    // The added bit ends the count.
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

/// The estimate, from the number of registers with each value.
pub(super) fn estimate(histogram: &[u32; VALUES]) -> u64 {
    #[allow(clippy::cast_precision_loss)]
    let registers = REGISTERS as f64;
    let count = |value: usize| f64::from(histogram.get(value).copied().unwrap_or(0));
    let mut z = registers * tau((registers - count(VALUE_MAX)) / registers);
    for value in (1..VALUE_MAX).rev() {
        z += count(value);
        z *= 0.5;
    }
    z += registers * sigma(count(0) / registers);
    round(ALPHA * registers * registers / z)
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let mut y = 1.0;
    let mut z = x;
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if before == z {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let mut y = 1.0;
    let mut z = 1.0 - x;
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if before == z {
            return z / 3.0;
        }
    }
}

/// Rounds as x86 does: a number that does not fit any integer becomes the least integer. Only
/// registers that were not made by a hash lead to such a number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn round(number: f64) -> u64 {
    const LEAST: u64 = 1 << 63;
    let rounded = number.round();
    if (0.0..9_223_372_036_854_775_808.0).contains(&rounded) {
        rounded as u64
    } else {
        LEAST
    }
}
