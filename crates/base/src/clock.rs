//! Time as a trait, so that tests decide what time it is.

use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(feature = "testing")]
mod manual;

#[cfg(feature = "testing")]
pub use manual::ManualClock;

/// Tells the wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;

    /// Microseconds since the Unix epoch (TIME, SLOWLOG).
    fn now_us(&self) -> i64 {
        self.now_ms().saturating_mul(1000)
    }
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        self.now_us() / 1000
    }

    fn now_us(&self) -> i64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |elapsed| {
                i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX)
            })
    }
}
