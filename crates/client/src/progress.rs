//! How far a tool is: a bar on a terminal, a line now and then elsewhere.

use std::fmt;
use std::io::{IsTerminal, Write};

use quoin_base::clock::{Clock, SystemClock};
use quoin_base::size::counted;

const BAR_CELLS: usize = 24;
/// Interval at which the bar is updated.
const BAR_INTERVAL_MS: i64 = 100;
/// Time between two lines.
const LINE_INTERVAL_MS: i64 = 10_000;

/// Writes to the standard error. Errors are ignored.
pub struct Progress {
    clock: SystemClock,
    is_terminal: bool,
    started_ms: i64,
    shown_ms: i64,
    /// When the phase began.
    phase_ms: i64,
    /// What is being done.
    pub phase: &'static str,
    /// Keys of this phase so far.
    pub keys: u64,
    /// Total number of keys, if known.
    pub keys_total: Option<u64>,
}

impl Progress {
    /// Nothing has been done yet. Time counts from here.
    pub fn start() -> Self {
        let clock = SystemClock;
        let now_ms = clock.now_ms();
        Self {
            clock,
            is_terminal: std::io::stderr().is_terminal(),
            started_ms: now_ms,
            shown_ms: now_ms,
            phase_ms: now_ms,
            phase: "",
            keys: 0,
            keys_total: None,
        }
    }

    /// Prints a line that should be read before the end.
    pub fn say(&self, line: &str) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    /// Begins a phase.
    pub fn begin(&mut self, phase: &'static str) {
        self.phase = phase;
        self.phase_ms = self.clock.now_ms();
        self.keys = 0;
    }

    /// Shows the progress and `what`, unless it was shown recently.
    pub fn show(&mut self, done: fmt::Arguments<'_>) {
        let now_ms = self.clock.now_ms();
        let interval_ms = if self.is_terminal {
            BAR_INTERVAL_MS
        } else {
            LINE_INTERVAL_MS
        };
        if now_ms.abs_diff(self.shown_ms) < interval_ms.unsigned_abs() {
            return;
        }
        self.shown_ms = now_ms;
        let elapsed_s = (now_ms - self.started_ms) / 1_000;
        let line = self.line(done, elapsed_s, now_ms - self.phase_ms);
        let mut out = std::io::stderr().lock();
        let _ = if self.is_terminal {
            write!(out, "\r{line}\x1b[K").and_then(|()| out.flush())
        } else {
            writeln!(out, "{line}")
        };
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    fn line(&self, done: fmt::Arguments<'_>, elapsed_s: i64, phase_ms: i64) -> String {
        let bar = match self.keys_total {
            Some(total) if self.is_terminal => bar(self.keys, total),
            _ => String::new(),
        };
        let keys = match self.keys_total {
            Some(total) => {
                let total = counted(total.max(self.keys), "key", "keys");
                format!("{} of {total}", self.keys)
            }
            None => counted(self.keys, "key", "keys"),
        };
        format!(
            "{} {bar}{keys}, {done}, {elapsed_s} s{}",
            self.phase,
            self.pace(phase_ms)
        )
    }

    /// Keys per second, and the time that the rest of the phase takes at that rate, if its size is known.
    fn pace(&self, phase_ms: i64) -> String {
        let phase_ms = phase_ms.unsigned_abs().max(1);
        let rate = self.keys.saturating_mul(1_000) / phase_ms;
        let left = self.keys_total.map(|total| total.saturating_sub(self.keys));
        match (rate, left) {
            (0, _) => String::new(),
            (rate, None) => format!(", {rate} keys/s"),
            (rate, Some(left)) => format!(", {rate} keys/s, about {} s left", left / rate),
        }
    }
}

fn bar(done: u64, total: u64) -> String {
    let cells = done.saturating_mul(BAR_CELLS as u64) / total.max(1);
    let full = usize::try_from(cells).unwrap_or(BAR_CELLS).min(BAR_CELLS);
    format!("[{}{}] ", "#".repeat(full), ".".repeat(BAR_CELLS - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_up_and_does_not_overflow() {
        assert_eq!(bar(0, 10), format!("[{}] ", ".".repeat(24)));
        assert_eq!(
            bar(5, 10),
            format!("[{}{}] ", "#".repeat(12), ".".repeat(12))
        );
        assert_eq!(bar(11, 10), format!("[{}] ", "#".repeat(24)));
        assert_eq!(bar(0, 0), bar(0, 1));
    }

    #[test]
    fn a_line_tells_what_is_known() {
        let mut progress = Progress::start();
        progress.is_terminal = false;
        progress.begin("copying:");
        progress.keys = 7;
        assert_eq!(
            progress.line(format_args!("90 elements copied"), 3, 1_000),
            "copying: 7 keys, 90 elements copied, 3 s, 7 keys/s"
        );
        progress.keys_total = Some(10);
        assert_eq!(
            progress.line(format_args!("90 elements copied"), 3, 1_000),
            "copying: 7 of 10 keys, 90 elements copied, 3 s, 7 keys/s, about 0 s left"
        );
    }
}
