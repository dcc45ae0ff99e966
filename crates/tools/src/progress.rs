//! The progress of a tool, on standard error: a line that changes on a terminal, otherwise a line
//! every ten seconds. Errors of writing it are ignored.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use quoin_base::size::size;

const TERMINAL_INTERVAL: Duration = Duration::from_millis(100);
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Cells of the bar.
const CELLS: usize = 24;

/// A line that changes. It is cleared when this is dropped.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    is_terminal: bool,
    shown: Cell<Instant>,
    has_line: Cell<bool>,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            shown: Cell::new(Instant::now()),
            has_line: Cell::new(false),
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Shows a text, unless one was shown recently.
    pub(crate) fn show(&self, text: impl FnOnce() -> String) {
        let interval = match self.is_terminal {
            true => TERMINAL_INTERVAL,
            false => LINE_INTERVAL,
        };
        if self.shown.get().elapsed() < interval {
            return;
        }
        self.shown.set(Instant::now());
        let text = text();
        let mut out = std::io::stderr().lock();
        let _ = if self.is_terminal {
            self.has_line.set(true);
            write!(out, "\r{text}\x1b[K").and_then(|()| out.flush())
        } else {
            writeln!(out, "{text}")
        };
    }

    /// Shows a count, unless it is 0 or something was shown recently.
    pub(crate) fn count(&self, what: &str, count: u64) {
        if count > 0 {
            self.show(|| format!("{what}: {count}"));
        }
    }

    /// Clears the line, before other output.
    pub(crate) fn clear(&self) {
        if self.has_line.take() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A progress bar.
pub(crate) struct Bar {
    line: ProgressLine,
    begun: Instant,
    phase: &'static str,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self {
            line: ProgressLine::new(),
            begun: Instant::now(),
            phase: "",
        }
    }

    /// Begins the next phase.
    pub(crate) fn begin(&mut self, phase: &'static str) {
        self.phase = phase;
        self.begun = Instant::now();
    }

    /// Shows how many bytes are done, unless it was updated recently.
    pub(crate) fn bytes(&mut self, done: u64, total: u64) {
        self.show(done, total, |done, total| {
            format!("{} of {}", size(done), size(total))
        });
    }

    /// The same for a number of things.
    pub(crate) fn count(&mut self, what: &str, done: u64, total: u64) {
        self.show(done, total, |done, total| {
            format!("{done} of {total} {what}")
        });
    }

    fn show(&self, done: u64, total: u64, describe: impl FnOnce(u64, u64) -> String) {
        self.line.show(|| {
            let total = total.max(done);
            let cells = match self.line.is_terminal() {
                true => cells(done, total),
                false => String::new(),
            };
            let left = time_left(self.begun.elapsed(), done, total);
            format!("{}: {cells}{}{left}", self.phase, describe(done, total))
        });
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
