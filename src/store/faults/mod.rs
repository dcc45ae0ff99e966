//! Stores that misbehave on purpose, for tests: [`FaultyStore`] fails any store by rate or by
//! script, [`OptimisticStore`] lets the embedded store behave like a cluster (many writers,
//! conflicts, answers that come later, small transactions). Both may be put on each other.

mod inject;
mod optimistic;

#[cfg(test)]
mod tests;

pub use self::inject::{Fault, FaultCounts, FaultPoint, FaultRates, FaultyStore, Injected};
pub use self::optimistic::OptimisticStore;
