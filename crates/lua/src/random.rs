//! Redis's `math.random`: after `math.randomseed` the same numbers everywhere, from 48 bits as
//! `lrand48` of POSIX makes them (Redis: `rand.c`).

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;
/// Redis: `REDIS_LRAND48_MAX`.
const LARGEST: u64 = i32::MAX as u64;

/// The state of the generator of a machine.
#[derive(Debug)]
pub(super) struct Random(Cell<u64>);

impl Default for Random {
    /// Begins anywhere, so that machines differ.
    fn default() -> Self {
        Self(Cell::new(RandomState::new().hash_one(0) & MASK))
    }
}

impl Random {
    /// `math.randomseed`.
    pub(super) fn seed(&self, seed: i32) {
        let high = u64::from(seed.cast_unsigned());
        self.0.set(((high << 16) | 0x330E) & MASK);
    }

    /// From 0 to 1, without 1.
    pub(super) fn next(&self) -> f64 {
        let state = self
            .0
            .get()
            .wrapping_mul(MULTIPLIER)
            .wrapping_add(INCREMENT)
            & MASK;
        self.0.set(state);
        ((state >> 17) % LARGEST) as f64 / LARGEST as f64
    }
}
