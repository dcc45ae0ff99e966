//! The metrics: the figures of INFO that need no access to the store. They are collected at each request.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use crate::metrics::active::ActiveQueues;
use crate::metrics::queues::WatchedKeys;
use crate::metrics::writer::{Histogram, Writer};
use crate::metrics::{active, queues, store};
use crate::procfs;
use crate::state::ServerState;
use crate::statistics::CommandStatistics;
use quoin_data::unit::signals::ChannelKind;
use quoin_layout::LAYOUT_VERSION;

/// The prefix of all names, except those that all programs have in common.
const PREFIX: &str = "quoin";

/// A registry with the metrics of a server.
pub(super) fn registry(state: Arc<ServerState>, keys: Arc<WatchedKeys>) -> Registry {
    let mut registry = Registry::default();
    let process = ProcessCollector(Arc::clone(&state));
    registry.register_collector(Box::new(process));
    let own = registry.sub_registry_with_prefix(PREFIX);
    own.register_collector(Box::new(StateCollector {
        state,
        keys,
        active: ActiveQueues::default(),
    }));
    registry
}

struct StateCollector {
    state: Arc<ServerState>,
    keys: Arc<WatchedKeys>,
    active: ActiveQueues,
}

impl fmt::Debug for StateCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateCollector")
    }
}

impl Collector for StateCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = Writer(encoder);
        write_server(&self.state, &mut writer)?;
        write_clients(&self.state, &mut writer)?;
        write_commands(&self.state, &mut writer)?;
        write_traces(&self.state, &mut writer)?;
        store::write(&self.state, &mut writer)?;
        active::write(&self.state, &self.active, &mut writer)?;
        queues::write(&self.state, &self.keys, &mut writer)
    }
}

struct ProcessCollector(Arc<ServerState>);

impl fmt::Debug for ProcessCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessCollector")
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        write_process(&self.0, &mut Writer(encoder))
    }
}

/// Writes the metrics of the program.
fn write_server(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
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
            ("redis_version", state.reported_version().text()),
            ("store", store),
            ("layout_version", &layout_version),
            ("run_id", &state.run_id),
        ],
    )?;
    writer.info(
        "build",
        "Build of the server",
        &[
            ("version", env!("CARGO_PKG_VERSION")),
            ("commit", env!("BUILD_SHORT_COMMIT")),
        ],
    )?;
    writer.gauge(
        "uptime_seconds",
        "Time since the server started",
        uptime_ms as f64 / 1e3,
    )?;
    writer.gauge(
        "memory_used_bytes",
        "Memory allocated and touched by the process",
        memory.allocated_bytes as f64,
    )?;
    writer.gauge(
        "memory_resident_bytes",
        "Memory used by the process, including pages of the store's file",
        memory.resident_bytes as f64,
    )?;
    writer.counter(
        "processor_seconds",
        "Processor time used by the process",
        (processor.user_us + processor.system_us) as f64 / 1e6,
    )
}

/// Writes the metrics of clients.
fn write_clients(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let statistics = &state.statistics;
    let clients = state.clients.all();
    let blocked = clients.iter().filter(|client| client.is_blocked()).count();
    let channels = state.pubsub.channel_count(ChannelKind::Global) + state.pubsub.pattern_count();
    for (name, help, value) in [
        ("connected_clients", "Clients", clients.len()),
        (
            "blocked_clients",
            "Clients waiting in a blocking command",
            blocked,
        ),
        (
            "blocking_keys",
            "Keys that clients are waiting for",
            state.executor.waiters().key_count(),
        ),
        (
            "subscribed_channels",
            "Channels and patterns with subscribers",
            channels,
        ),
        (
            "client_buffers_bytes",
            "Memory used by the buffers of all clients",
            state.clients.memory().bytes(),
        ),
    ] {
        writer.gauge(name, help, value as f64)?;
    }
    for (name, help, counter) in [
        (
            "connections_received",
            "Connections accepted",
            &statistics.connections_received,
        ),
        (
            "connections_rejected",
            "Connections refused because of maxclients or protected mode, or without a TLS \
             handshake",
            &statistics.connections_rejected,
        ),
        (
            "tls_handshakes_failed",
            "TLS handshakes of clients that failed or took too long",
            &statistics.failed_handshakes,
        ),
        (
            "wrong_passwords",
            "Authentication attempts with a wrong name or password",
            &state.access.log.denied_auth,
        ),
        (
            "clients_evicted",
            "Clients disconnected because of maxmemory-clients",
            &state.disconnections.evicted,
        ),
        (
            "query_buffer_disconnections",
            "Clients disconnected because of client-query-buffer-limit",
            &state.disconnections.query_buffer,
        ),
        (
            "output_buffer_disconnections",
            "Clients disconnected because of client-output-buffer-limit",
            &state.disconnections.output_buffer,
        ),
        ("input_bytes", "Bytes from clients", &statistics.input_bytes),
        ("output_bytes", "Bytes to clients", &statistics.output_bytes),
    ] {
        writer.counter(name, help, counter.get())?;
    }
    Ok(())
}

/// Writes the metrics of commands.
fn write_commands(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let statistics = &state.statistics;
    writer.counter(
        "commands_processed",
        "Commands executed",
        statistics.commands_processed.get(),
    )?;
    let used: Vec<(&str, &CommandStatistics)> = statistics
        .commands()
        .map(|(row, command)| (row.name, command))
        .filter(|(_, one)| one.calls.get() + one.rejected_calls.get() + one.failed_calls.get() > 0)
        .collect();
    let of_each = |value: fn(&CommandStatistics) -> u64| {
        let used = used.iter();
        used.map(move |&(name, command)| (name, value(command)))
    };
    writer.counters(
        "command_calls",
        "Executions of each command",
        "command",
        of_each(|command| command.calls.get()),
    )?;
    writer.counters(
        "command_seconds",
        "Total time of each command, including commits",
        "command",
        used.iter()
            .map(|&(name, command)| (name, command.durations.sum_us() as f64 / 1e6)),
    )?;
    writer.counters(
        "command_failures",
        "Executions of each command that returned an error",
        "command",
        of_each(|command| command.failed_calls.get()),
    )?;
    writer.counters(
        "command_rejections",
        "Calls of each command that were refused before execution",
        "command",
        of_each(|command| command.rejected_calls.get()),
    )?;
    writer.histograms(
        "command_duration_seconds",
        "Duration of commands, including commits, by command group",
        "group",
        by_group(state).into_iter(),
    )?;
    // A copy: commands that fail want the same lock.
    let errors = statistics.errors().clone();
    writer.counters(
        "error_replies",
        "Error replies, by code",
        "code",
        errors.iter().map(|(code, count)| (code.as_str(), *count)),
    )
}

/// Writes the metrics of traces.
fn write_traces(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let counts = state.traces.as_ref().map(|traces| traces.counts());
    writer.counter(
        "trace_spans_sent",
        "Spans of tasks and slow commands accepted by the collector of trace-endpoint",
        counts.map_or(0, |counts| counts.sent.get()),
    )?;
    writer.counter(
        "trace_spans_dropped",
        "Spans not delivered to it, because it did not accept them in time or there were too many",
        counts.map_or(0, |counts| counts.dropped.get()),
    )
}

/// Durations by command group, in the order in which groups first appear.
fn by_group(state: &ServerState) -> Vec<(&'static str, Histogram)> {
    let mut groups: Vec<(&'static str, Histogram)> = Vec::new();
    for (row, command) in state.statistics.commands() {
        let name = row.group.name();
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, histogram)) => histogram.add(&command.durations),
            None => {
                let mut histogram = Histogram::default();
                histogram.add(&command.durations);
                groups.push((name, histogram));
            }
        }
    }
    groups.retain(|(_, histogram)| histogram.count() > 0);
    groups
}

/// Writes the metrics of the process.
fn write_process(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let memory = procfs::memory();
    let processor = procfs::processor_time();
    writer.counter(
        "process_cpu_seconds",
        "Processor time used by the process",
        (processor.user_us + processor.system_us) as f64 / 1e6,
    )?;
    for (name, help, value) in [
        (
            "process_resident_memory_bytes",
            "Memory used by the process",
            Some(memory.resident_bytes as f64),
        ),
        (
            "process_virtual_memory_bytes",
            "Address space mapped by the process, including the store's file",
            Some(memory.virtual_bytes as f64),
        ),
        (
            "process_open_fds",
            "Open files, including connections",
            Some(procfs::open_files() as f64),
        ),
        (
            "process_max_fds",
            "Maximum number of open files",
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
