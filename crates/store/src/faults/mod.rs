//! Stores for tests. [`FaultyStore`] makes any store fail, by rate or by script.
//! [`OptimisticStore`] makes the embedded store behave like a cluster: many writers, conflicts,
//! delayed results, small transactions. The two can be combined.

mod inject;
pub mod optimistic;

pub use inject::{Fault, FaultCounts, FaultPoint, FaultRates, FaultyStore, Injected};
pub use optimistic::OptimisticStore;
