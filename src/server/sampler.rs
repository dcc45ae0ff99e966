//! What INFO tells of the moment: rates and memory, measured in the background.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::machine;
use super::state::ServerState;
use crate::limits::{RATE_SAMPLES, SAMPLE_INTERVAL_MS};

/// What the sampler has measured.
#[derive(Debug, Default)]
pub struct Samples {
    /// Commands in a second.
    pub commands: Rate,
    /// Bytes from clients in a second.
    pub input_bytes: Rate,
    /// Bytes to clients in a second.
    pub output_bytes: Rate,
    /// The most memory that was in use at any sample.
    memory_peak_bytes: AtomicU64,
}

impl Samples {
    /// The most memory that was in use, `bytes` of now included.
    pub fn memory_peak_bytes(&self, bytes: u64) -> u64 {
        self.memory_peak_bytes
            .fetch_max(bytes, Ordering::Relaxed)
            .max(bytes)
    }
}

/// How fast a counter grows: the mean of the last [`RATE_SAMPLES`].
#[derive(Debug, Default)]
pub struct Rate {
    state: Mutex<RateState>,
}

#[derive(Debug, Default)]
struct RateState {
    last: Option<(Instant, u64)>,
    per_second: VecDeque<u64>,
}

impl Rate {
    fn sample(&self, count: u64, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, before)) = state.last {
            let elapsed_ms = now.duration_since(at).as_millis().max(1) as u64;
            let per_second = count.saturating_sub(before).saturating_mul(1000) / elapsed_ms;
            state.per_second.push_front(per_second);
            state.per_second.truncate(RATE_SAMPLES);
        }
        state.last = Some((now, count));
    }

    /// The mean of the last samples.
    pub fn per_second(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.per_second.iter().sum::<u64>() / RATE_SAMPLES as u64
    }
}

/// Memory is asked for at one of so many ticks, as the answer is a file to be read.
const MEMORY_TICKS: u64 = 10;

/// Measures until it is dropped.
pub(super) async fn run(state: &ServerState) {
    let mut ticks = tokio::time::interval(Duration::from_millis(SAMPLE_INTERVAL_MS));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    for tick in 0_u64.. {
        ticks.tick().await;
        if tick % MEMORY_TICKS == 0 {
            let memory = machine::memory();
            state.samples.memory_peak_bytes(memory.allocated_bytes);
            state.pubsub.close_overdue(&state.clients);
            let timeout_s = state.config.timeout_s();
            state.clients.close_idle(timeout_s, state.clock.now_ms());
        }
        if let Some(backups) = &state.backups {
            backups.start_scheduled(|| state.config.settings().backups_keep);
        }
        state.bound_buffers();
        let now = Instant::now();
        let (samples, statistics) = (&state.samples, &state.statistics);
        samples
            .commands
            .sample(statistics.commands_processed.get(), now);
        samples
            .input_bytes
            .sample(statistics.input_bytes.get(), now);
        samples
            .output_bytes
            .sample(statistics.output_bytes.get(), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_mean_of_the_last_samples() {
        let rate = Rate::default();
        let start = Instant::now();
        for tick in 0..=RATE_SAMPLES as u64 {
            rate.sample(tick * 10, start + Duration::from_millis(tick * 100));
        }
        assert_eq!(rate.per_second(), 100);
    }

    #[test]
    fn a_counter_that_was_reset_counts_nothing() {
        let rate = Rate::default();
        let start = Instant::now();
        rate.sample(1000, start);
        rate.sample(0, start + Duration::from_millis(100));
        assert_eq!(rate.per_second(), 0);
    }
}
