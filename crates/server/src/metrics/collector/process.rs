//! Metrics of the process, under the names that Prometheus's own client libraries give them.

use std::fmt;

use crate::metrics::writer::Writer;
use crate::procfs;
use crate::state::ServerState;

/// Writes the metrics of the process.
pub(super) fn write(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let memory = procfs::memory();
    let processor = procfs::processor_time();
    writer.counter(
        "process_cpu_seconds",
        "Time of a processor that the process has used",
        (processor.user_us + processor.system_us) as f64 / 1e6,
    )?;
    for (name, help, value) in [
        (
            "process_resident_memory_bytes",
            "Memory that the process has in use",
            Some(memory.resident_bytes as f64),
        ),
        (
            "process_virtual_memory_bytes",
            "Addresses that the process has mapped, the store's file among them",
            Some(memory.virtual_bytes as f64),
        ),
        (
            "process_open_fds",
            "Open files, connections included",
            Some(procfs::open_files() as f64),
        ),
        (
            "process_max_fds",
            "How many files may be open",
            procfs::open_files_max().map(|max| max as f64),
        ),
        (
            "process_start_time_seconds",
            "When the server started, in seconds since the Unix epoch",
            Some(state.started_ms as f64 / 1e3),
        ),
    ] {
        if let Some(value) = value {
            writer.gauge(name, help, value)?;
        }
    }
    Ok(())
}
