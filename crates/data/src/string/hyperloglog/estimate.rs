//! How many different elements registers stand for: the estimator of Otmar Ertl, "New cardinality
//! estimation algorithms for HyperLogLog sketches" (arXiv:1702.01284), in Redis's order of
//! operations, so that it rounds as Redis does.

use super::form::{REGISTER_BITS, REGISTERS};

/// The greatest value of a register that a hash gives.
const VALUE_MAX: usize = (u64::BITS - REGISTER_BITS) as usize + 1;
/// Values that six bits can have.
pub(super) const VALUES: usize = 64;
/// 0.5 / ln 2.
#[allow(clippy::excessive_precision)]
const ALPHA: f64 = 0.721_347_520_444_481_703_680;

/// The estimate, from how many registers have each value.
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

/// As x86 rounds it. What no integer can be, which only registers give that no hash has made,
/// becomes the least one.
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
