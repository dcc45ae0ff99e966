//! Estimates the run time of commands. Long pipelines go to the write lane.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A submission with a longer expected run time goes to the write lane, so that the connections' thread can serve
/// other requests meanwhile. That requires waking two threads, which takes about half of this time.
const RUN_MAX_NS: u64 = 20_000;
/// A command that takes longer counts as this. One slow command says little about the next.
const COMMAND_MAX_NS: u64 = 100_000;
/// The latest batch has a weight of one in this many.
const SHARES: u64 = 8;

/// An estimate from the batches of rounds and of the write lane.
#[derive(Default)]
pub(crate) struct Load {
    /// How long a command runs, in nanoseconds.
    command_ns: AtomicU64,
    /// Whether the latest batch had several clients.
    is_shared: AtomicBool,
}

impl Load {
    /// Records a batch: its clients, its commands, and how long they ran without the commit.
    pub(crate) fn note(&self, clients: usize, commands: usize, run: Duration) {
        let Some(sample) = run.as_nanos().checked_div(commands as u128) else {
            return;
        };
        let sample = u64::try_from(sample).unwrap_or(u64::MAX);
        let sample = sample.min(COMMAND_MAX_NS) / SHARES;
        let before = self.command_ns.load(Ordering::Relaxed);
        let after = (before - before / SHARES).saturating_add(sample);
        self.command_ns.store(after, Ordering::Relaxed);
        self.is_shared.store(clients > 1, Ordering::Relaxed);
    }

    /// Whether a submission of this many commands is long enough for the write lane. If a client is alone, nothing is
    /// gained, because it waits for its replies anyway.
    pub(crate) fn is_long(&self, commands: usize) -> bool {
        let run_ns = self.command_ns.load(Ordering::Relaxed);
        let run_ns = run_ns.saturating_mul(commands as u64);
        commands > 1 && run_ns > RUN_MAX_NS && self.is_shared.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state after many batches of commands with this run time.
    fn after(clients: usize, command: Duration) -> Load {
        let load = Load::default();
        for _ in 0..100 {
            load.note(clients, 100, command * 100);
        }
        load
    }

    #[test]
    fn pipelines_of_slow_commands_are_long() {
        let load = after(2, Duration::from_micros(5));
        assert!(load.is_long(16));
        assert!(!load.is_long(3));
    }

    #[test]
    fn pipelines_of_fast_commands_are_not() {
        assert!(!after(2, Duration::from_micros(1)).is_long(16));
    }

    #[test]
    fn a_single_command_is_not() {
        assert!(!after(2, Duration::from_millis(1)).is_long(1));
    }

    #[test]
    fn those_of_a_client_that_is_alone_are_not() {
        assert!(!after(1, Duration::from_micros(5)).is_long(16));
    }

    #[test]
    fn the_latest_batches_count_most() {
        let load = after(2, Duration::from_micros(5));
        for _ in 0..100 {
            load.note(2, 10, Duration::from_micros(10));
        }
        assert!(!load.is_long(16));
    }

    #[test]
    fn one_slow_command_is_soon_forgotten() {
        let load = after(2, Duration::from_micros(1));
        load.note(2, 1, Duration::from_secs(10));
        for _ in 0..30 {
            load.note(2, 100, Duration::from_micros(100));
        }
        assert!(!load.is_long(16));
    }

    #[test]
    fn a_batch_without_commands_changes_nothing() {
        let load = after(2, Duration::from_micros(5));
        load.note(1, 0, Duration::from_secs(1));
        assert!(load.is_long(16) && !load.is_long(3));
    }
}
