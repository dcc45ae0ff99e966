//! Random numbers for tests.

use std::sync::Mutex;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::Random;

/// A generator whose sequence follows from its seed.
#[derive(Debug)]
pub struct SeededRandom {
    generator: Mutex<SmallRng>,
}

impl SeededRandom {
    /// The sequence that `seed` names.
    pub fn new(seed: u64) -> Self {
        Self {
            generator: Mutex::new(SmallRng::seed_from_u64(seed)),
        }
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        let mut generator = self
            .generator
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        generator.random()
    }
}
