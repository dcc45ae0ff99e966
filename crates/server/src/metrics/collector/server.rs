//! Metrics of the program.

use std::fmt;

use crate::metrics::writer::Writer;
use crate::procfs;
use crate::state::{REDIS_VERSION, ServerState};
use quoin_layout::LAYOUT_VERSION;

/// Writes the metrics of the program.
pub(super) fn write(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let uptime_ms = (state.clock.now_ms() - state.started_ms).max(0);
    let memory = procfs::memory();
    let processor = procfs::processor_time();
    let store = state.store.capabilities().name;
    let layout_version = LAYOUT_VERSION.to_string();
    writer.info(
        "server",
        "What runs",
        &[
            ("version", env!("CARGO_PKG_VERSION")),
            ("redis_version", REDIS_VERSION),
            ("store", store),
            ("layout_version", &layout_version),
            ("run_id", &state.run_id),
        ],
    )?;
    writer.info(
        "build",
        "Which build it is",
        &[
            ("version", env!("CARGO_PKG_VERSION")),
            ("commit", env!("BUILD_SHORT_COMMIT")),
        ],
    )?;
    writer.gauge(
        "uptime_seconds",
        "Time since the start",
        uptime_ms as f64 / 1e3,
    )?;
    writer.gauge(
        "memory_used_bytes",
        "Memory that the process has allocated and touched",
        memory.allocated_bytes as f64,
    )?;
    writer.gauge(
        "memory_resident_bytes",
        "Memory that the process has in use, pages of the store's file included",
        memory.resident_bytes as f64,
    )?;
    writer.counter(
        "processor_seconds",
        "Time of a processor that the process has used",
        (processor.user_us + processor.system_us) as f64 / 1e6,
    )
}
