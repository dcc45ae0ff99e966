//! HyperLogLogs: strings that estimate how many different elements were added to them.
//!
//! The bytes are Redis's, so that GET, SETRANGE, DUMP and Redis itself can read and write them: a
//! header of 16 bytes, then 16,384 registers in one of two encodings. A new one is sparse, and
//! becomes dense when it outgrows a limit.

mod dense;
mod estimate;
mod form;
mod hash;
mod self_test;
mod sparse;
mod value;

pub use self_test::self_test;
pub use value::{Encoding, HyperLogLog, Registers};
