//! What all other crates use: clocks, randomness, numbers as text, glob patterns, sizes, limits,
//! threads, the allocator, and log throttling.
//!
//! It knows nothing of Redis's protocol, of stores or of commands. Every limit that a user can meet
//! is in [`limits`]. Time and randomness are traits. The feature `testing` has a clock that a test
//! advances, random numbers from a seed, and threads that cannot be started.

pub mod allocator;
pub mod clock;
pub mod counter;
pub mod decode_error;
pub mod events;
pub mod fatal_panic;
pub mod glob;
pub mod key_after;
pub mod limits;
pub mod log_throttle;
pub mod number;
pub mod random;
pub mod redis_version;
pub mod secret;
pub mod size;
pub mod sparse;
pub mod stopwatch;
pub mod threads;
