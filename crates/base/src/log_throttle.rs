//! Repeated lines of the log are written once a minute, and say how many were left out.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two lines of one kind.
pub const LOG_LINE_INTERVAL: Duration = Duration::from_secs(60);

/// Lets one line of a kind through in each [`LOG_LINE_INTERVAL`].
///
/// ```
/// use quoin_base::log_throttle::LogThrottle;
///
/// static TOO_LONG: LogThrottle = LogThrottle::new();
///
/// if let Some(more) = TOO_LONG.pass() {
///     tracing::warn!("a message was too long{more}");
/// }
/// ```
#[derive(Debug)]
pub struct LogThrottle {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    last: Option<Instant>,
    held_back: u64,
}

/// Number of lines of a kind that were suppressed since the last one. Shown as nothing if there
/// were none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBack(u64);

impl fmt::Display for HeldBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, " ({count} more since the last line like this)"),
        }
    }
}

impl LogThrottle {
    /// The first line is let through.
    pub const fn new() -> Self {
        Self {
            state: Mutex::new(State {
                last: None,
                held_back: 0,
            }),
        }
    }

    /// Whether a line may be written now. The returned value belongs at the end of the line.
    pub fn pass(&self) -> Option<HeldBack> {
        self.pass_at(Instant::now())
    }

    /// [`Self::pass`] at a given time.
    pub fn pass_at(&self, now: Instant) -> Option<HeldBack> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = state
            .last
            .is_none_or(|last| now.saturating_duration_since(last) >= LOG_LINE_INTERVAL);
        if !is_due {
            state.held_back += 1;
            return None;
        }
        state.last = Some(now);
        Some(HeldBack(std::mem::take(&mut state.held_back)))
    }
}

impl Default for LogThrottle {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_minute_comes_through() {
        let throttle = LogThrottle::new();
        let start = Instant::now();
        assert_eq!(throttle.pass_at(start), Some(HeldBack(0)));
        assert_eq!(throttle.pass_at(start + Duration::from_secs(1)), None);
        assert_eq!(throttle.pass_at(start + Duration::from_secs(59)), None);
        let next = start + LOG_LINE_INTERVAL;
        assert_eq!(throttle.pass_at(next), Some(HeldBack(2)));
        assert_eq!(
            throttle.pass_at(next + LOG_LINE_INTERVAL),
            Some(HeldBack(0))
        );
    }

    #[test]
    fn what_was_held_back_is_told_where_there_is_any() {
        assert_eq!(HeldBack(0).to_string(), "");
        assert_eq!(
            HeldBack(7).to_string(),
            " (7 more since the last line like this)"
        );
    }
}
