//! The progress of a backup or restore, on the standard error: a bar on a terminal, otherwise a line
//! from time to time.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use quoin_base::size::size;

const CELLS: usize = 24;
/// Time between two updates of the bar.
const BAR_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// A progress bar. Errors of writing it are ignored.
pub(super) struct Bar {
    is_terminal: bool,
    begun: Instant,
    shown: Instant,
    phase: &'static str,
    has_line: bool,
}

impl Bar {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            begun: now,
            shown: now,
            phase: "",
            has_line: false,
        }
    }

    /// Begins the next phase.
    pub(super) fn begin(&mut self, phase: &'static str) {
        self.phase = phase;
        self.begun = Instant::now();
    }

    /// Shows how many bytes are done, unless it was updated recently.
    pub(super) fn bytes(&mut self, done: u64, total: u64) {
        self.show(done, total, |done, total| {
            format!("{} of {}", size(done), size(total))
        });
    }

    /// The same for a number of things.
    pub(super) fn count(&mut self, what: &str, done: u64, total: u64) {
        self.show(done, total, |done, total| {
            format!("{done} of {total} {what}")
        });
    }

    fn show(&mut self, done: u64, total: u64, describe: impl FnOnce(u64, u64) -> String) {
        let interval = if self.is_terminal {
            BAR_INTERVAL
        } else {
            LINE_INTERVAL
        };
        if self.shown.elapsed() < interval {
            return;
        }
        self.shown = Instant::now();
        let total = total.max(done);
        let line = format!(
            "{}: {}{}{}",
            self.phase,
            if self.is_terminal {
                cells(done, total)
            } else {
                String::new()
            },
            describe(done, total),
            time_left(self.begun.elapsed(), done, total)
        );
        let mut out = std::io::stderr().lock();
        let _ = if self.is_terminal {
            self.has_line = true;
            write!(out, "\r{line}\x1b[K").and_then(|()| out.flush())
        } else {
            writeln!(out, "{line}")
        };
    }
}

impl Drop for Bar {
    /// Clears the bar, before other output.
    fn drop(&mut self) {
        if self.has_line {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn cells(done: u64, total: u64) -> String {
    let full = u128::from(done) * CELLS as u128 / u128::from(total.max(1));
    let full = usize::try_from(full).unwrap_or(CELLS).min(CELLS);
    format!("[{}{}] ", "#".repeat(full), ".".repeat(CELLS - full))
}

fn time_left(elapsed: Duration, done: u64, total: u64) -> String {
    if done == 0 || elapsed < Duration::from_secs(1) {
        return String::new();
    }
    let left = elapsed.as_secs_f64() * (total - done) as f64 / done as f64;
    format!(", about {left:.0} s left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_up_and_does_not_overflow() {
        assert_eq!(cells(0, 10), format!("[{}] ", ".".repeat(24)));
        assert_eq!(
            cells(5, 10),
            format!("[{}{}] ", "#".repeat(12), ".".repeat(12))
        );
        assert_eq!(cells(u64::MAX, u64::MAX), format!("[{}] ", "#".repeat(24)));
        assert_eq!(cells(0, 0), cells(0, 1));
    }

    #[test]
    fn the_time_left_follows_from_the_time_so_far() {
        let elapsed = Duration::from_secs(10);
        assert_eq!(time_left(elapsed, 1, 4), ", about 30 s left");
        assert_eq!(time_left(elapsed, 0, 4), "");
        assert_eq!(time_left(Duration::ZERO, 1, 4), "");
    }
}
