//! How far a scan is, on the standard error: a line that changes on a terminal, and one now and
//! then elsewhere.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const TERMINAL_INTERVAL: Duration = Duration::from_millis(200);
const LINE_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Progress {
    is_terminal: bool,
    shown: Cell<Instant>,
    has_line: Cell<bool>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            shown: Cell::new(Instant::now()),
            has_line: Cell::new(false),
        }
    }

    /// Tells how much was looked at, where that was not told lately.
    pub(super) fn show(&self, what: &str, count: u64) {
        let interval = if self.is_terminal {
            TERMINAL_INTERVAL
        } else {
            LINE_INTERVAL
        };
        if count == 0 || self.shown.get().elapsed() < interval {
            return;
        }
        self.shown.set(Instant::now());
        let mut out = std::io::stderr().lock();
        // Nobody may be reading it.
        let _ = if self.is_terminal {
            self.has_line.set(true);
            write!(out, "\r{what}: {count}\x1b[K").and_then(|()| out.flush())
        } else {
            writeln!(out, "{what}: {count}")
        };
    }

    /// Takes the line away, before something else is said.
    pub(super) fn clear(&self) {
        if self.has_line.take() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
