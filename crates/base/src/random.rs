//! Randomness as a trait, so that tests are deterministic.

use std::cell::RefCell;
#[cfg(feature = "testing")]
use std::sync::Mutex;

use rand::RngExt;
#[cfg(feature = "testing")]
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// A source of random numbers. Not for secrets.
pub trait Random: Send + Sync + 'static {
    /// A number spread evenly over all 64 bits.
    fn next_u64(&self) -> u64;

    /// A number in `0..bound`; 0 if `bound` is 0.
    fn below(&self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // Multiply-shift: the bias is below bound / 2^64.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

thread_local! {
    static THREAD_GENERATOR: RefCell<SmallRng> = RefCell::new(rand::make_rng());
}

/// A generator of its own for each thread, seeded by the operating system.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn next_u64(&self) -> u64 {
        THREAD_GENERATOR.with_borrow_mut(|generator| generator.random())
    }
}

/// A generator whose sequence is determined by its seed.
#[cfg(feature = "testing")]
#[derive(Debug)]
pub struct SeededRandom {
    generator: Mutex<SmallRng>,
}

#[cfg(feature = "testing")]
impl SeededRandom {
    /// The sequence that `seed` names.
    pub fn new(seed: u64) -> Self {
        Self {
            generator: Mutex::new(SmallRng::seed_from_u64(seed)),
        }
    }
}

#[cfg(feature = "testing")]
impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        let mut generator = self
            .generator
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        generator.random()
    }
}
