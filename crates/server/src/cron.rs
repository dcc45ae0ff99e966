//! Periodic work, ten times a second (Redis: `serverCron`): samples rates and memory, evicts clients,
//! disconnects idle ones, forgets tracked keys, takes samples for charts, and starts scheduled backups.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::state::ServerState;
use crate::{dashboard, eviction, procfs};
use quoin_base::limits::HISTORY_INTERVAL;
use quoin_data::unit::host::Trackers;
use quoin_data::unit::signals::Subscribers;
use quoin_tools::backup::Retention;

/// Time between two samples (Redis: 100 ms).
const INTERVAL: Duration = Duration::from_millis(100);
/// Ticks in a second: between two samples of memory and of queue activity, and between two searches
/// for idle clients.
const SLOW_TICKS: u64 = 10;
/// Ticks between two samples of the charts.
const HISTORY_TICKS: u64 = (HISTORY_INTERVAL.as_millis() / INTERVAL.as_millis()) as u64;
/// Ticks between two lookups of the memory that this process may use.
const MEMORY_LIMIT_TICKS: u64 = 100;

/// Runs until it is dropped.
pub(super) async fn run(state: &ServerState) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    for tick in 0_u64.. {
        ticks.tick().await;
        if tick % MEMORY_LIMIT_TICKS == 0 {
            let bytes = procfs::usable_memory_bytes();
            state.memory_bytes.store(bytes, Ordering::Relaxed);
        }
        if tick % SLOW_TICKS == 0 {
            state.executor.activity().tick(Instant::now());
            let memory = procfs::memory();
            state.samples.memory_peak_bytes(memory.allocated_bytes);
            let has_listeners = !state.pubsub.is_empty() || !state.monitors.is_empty();
            if has_listeners || state.tracking.is_any() || state.sentinel.has_subscribers() {
                state.delivery.close_overdue(&state.clients);
            }
            let timeout_s = state.config.live.timeout_s();
            state.clients.close_idle(timeout_s, state.clock.now_ms());
        }
        if tick % HISTORY_TICKS == 0 {
            state.history.add(dashboard::sample(state));
        }
        if let Some(backups) = &state.backups {
            backups.start_scheduled(|| Retention::of(&state.config.settings()));
        }
        state.tracking.forget_surplus();
        eviction::evict_if_needed(state);
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
