//! The metrics: what INFO shows and is known without asking the store. Read at each request.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::layout::LAYOUT_VERSION;
use crate::server::procfs;
use crate::server::state::{REDIS_VERSION, ServerState};
use crate::server::statistics::CommandStatistics;
use crate::types::signals::ChannelKind;

/// The beginning of every name.
const PREFIX: &str = "quoin";

/// A registry with the metrics of a server.
pub(super) fn registry(state: Arc<ServerState>) -> Registry {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(StateCollector(state)));
    registry
}

struct StateCollector(Arc<ServerState>);

impl fmt::Debug for StateCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateCollector")
    }
}

impl Collector for StateCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = Writer(encoder);
        server(&self.0, &mut writer)?;
        clients(&self.0, &mut writer)?;
        commands(&self.0, &mut writer)?;
        store(&self.0, &mut writer)
    }
}

fn server(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
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

fn clients(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let statistics = &state.statistics;
    let clients = state.clients.all();
    let blocked = clients.iter().filter(|client| client.is_blocked()).count();
    let channels = state.pubsub.channel_count(ChannelKind::Global) + state.pubsub.pattern_count();
    for (name, help, value) in [
        ("connected_clients", "Clients", clients.len()),
        (
            "blocked_clients",
            "Clients that wait in a blocking command",
            blocked,
        ),
        (
            "blocking_keys",
            "Keys for which clients wait",
            state.executor.waiters().key_count(),
        ),
        (
            "subscribed_channels",
            "Channels and patterns with subscribers",
            channels,
        ),
        (
            "client_buffers_bytes",
            "Memory that the buffers of all clients take",
            state.clients.memory().bytes(),
        ),
    ] {
        writer.gauge(name, help, value as f64)?;
    }
    for (name, help, counter) in [
        (
            "connections_received",
            "Connections that were accepted",
            &statistics.connections_received,
        ),
        (
            "connections_rejected",
            "Connections that were refused because of maxclients or protected mode, or without a TLS handshake",
            &statistics.connections_rejected,
        ),
        (
            "tls_handshakes_failed",
            "TLS handshakes of clients that failed or took too long",
            &statistics.failed_handshakes,
        ),
        (
            "clients_evicted",
            "Clients that were disconnected because of maxmemory-clients",
            &state.disconnections.evicted,
        ),
        (
            "query_buffer_disconnections",
            "Clients that were disconnected because of client-query-buffer-limit",
            &state.disconnections.query_buffer,
        ),
        (
            "output_buffer_disconnections",
            "Clients that were disconnected because of client-output-buffer-limit",
            &state.disconnections.output_buffer,
        ),
        ("input_bytes", "Bytes from clients", &statistics.input_bytes),
        ("output_bytes", "Bytes to clients", &statistics.output_bytes),
    ] {
        writer.counter(name, help, counter.get())?;
    }
    Ok(())
}

fn commands(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let statistics = &state.statistics;
    writer.counter(
        "commands_processed",
        "Commands that were carried out",
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
        "How often each command was carried out",
        "command",
        of_each(|command| command.calls.get()),
    )?;
    writer.counters(
        "command_seconds",
        "Time that each command took altogether, commits included",
        "command",
        used.iter()
            .map(|&(name, command)| (name, command.duration_us.get() as f64 / 1e6)),
    )?;
    writer.counters(
        "command_failures",
        "How often each command was carried out and answered with an error",
        "command",
        of_each(|command| command.failed_calls.get()),
    )?;
    writer.counters(
        "command_rejections",
        "How often each command was refused before it was carried out",
        "command",
        of_each(|command| command.rejected_calls.get()),
    )?;
    // A copy: commands that fail want the same lock.
    let errors = statistics.errors().clone();
    writer.counters(
        "error_replies",
        "Replies that were errors, by their code",
        "code",
        errors.iter().map(|(code, count)| (code.as_str(), *count)),
    )
}

fn store(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let executor = state.executor.statistics();
    for (name, help, counter) in [
        (
            "batches",
            "Write batches that were finished",
            &executor.batches,
        ),
        (
            "batched_commands",
            "Commands in those batches",
            &executor.batched_commands,
        ),
        (
            "commits",
            "Transactions that were committed with writes in them",
            &executor.commits,
        ),
        (
            "conflicts",
            "Transactions that conflicted with another server's",
            &executor.conflicts,
        ),
        (
            "retries",
            "Batches and reads that were run again, for whatever reason",
            &executor.retries,
        ),
        (
            "unknown_results",
            "Commits whose result was not known at first",
            &executor.unknown_results,
        ),
        (
            "unknown_results_applied",
            "Of these, commits that had been applied",
            &executor.unknown_results_applied,
        ),
        (
            "unknown_results_not_applied",
            "Of these, commits that had not been applied",
            &executor.unknown_results_not_applied,
        ),
        (
            "unknown_results_unresolved",
            "Of these, commits whose result could not be learned: clients got UNKNOWN",
            &executor.unknown_results_unresolved,
        ),
        (
            "too_old_transactions",
            "Transactions that took too long for the store",
            &executor.too_old,
        ),
        (
            "store_errors",
            "Batches and runs of reads that were answered with an error of the store",
            &executor.store_errors,
        ),
        (
            "delegation_requests",
            "Requests that were made of other servers to pop for this one",
            &executor.delegation_requests,
        ),
        (
            "delegation_requests_granted",
            "Of these, requests that were granted",
            &executor.delegation_requests_granted,
        ),
        (
            "delegation_grants",
            "Requests of other servers that this one has granted",
            &executor.delegation_grants,
        ),
        (
            "commands_rolled_back",
            "Times that a command's writes were undone",
            &executor.commands_rolled_back,
        ),
        (
            "expired_keys",
            "Keys that were removed because their time had come",
            &executor.expired_keys,
        ),
    ] {
        writer.counter(name, help, counter.get())?;
    }
    writer.counter(
        "batch_seconds",
        "Time that write batches took, all together",
        executor.batches_duration_us.get() as f64 / 1e6,
    )?;
    writer.gauge(
        "store_reachable",
        "Whether the store answered when it was asked last",
        f64::from(u8::from(state.store.is_reachable())),
    )?;
    writer.gauge(
        "open_watches",
        "Rows of the store that are watched for clients that wait",
        state.executor.open_watches() as f64,
    )?;
    backups(state, writer)?;
    match state.store.disk_bytes() {
        Some(bytes) => writer.gauge(
            "store_disk_bytes",
            "Bytes of the embedded store's files",
            bytes as f64,
        )?,
        None => return Ok(()),
    }
    writer.gauge(
        "store_takes_growth",
        "Whether there is room on the disk for commands that add data",
        f64::from(u8::from(state.store.takes_growth())),
    )?;
    match state.store.disk_free_bytes() {
        Some(bytes) => writer.gauge(
            "store_disk_free_bytes",
            "Bytes that are free on the disk of the embedded store",
            bytes as f64,
        ),
        None => Ok(()),
    }
}

fn backups(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let Some(backups) = &state.backups else {
        return Ok(());
    };
    let status = backups.status();
    writer.counter("backups", "Backups that were made", status.saves)?;
    writer.counter(
        "backup_failures",
        "Backups that have failed",
        status.failures,
    )?;
    let Some(last) = status.last else {
        return Ok(());
    };
    let age_ms = (state.clock.now_ms() - last.time_ms).max(0);
    writer.gauge(
        "backup_age_seconds",
        "Time since the moment that the last good backup is of",
        age_ms as f64 / 1e3,
    )?;
    writer.gauge(
        "backup_bytes",
        "Bytes of the last good backup",
        last.bytes as f64,
    )
}

struct Writer<'e>(DescriptorEncoder<'e>);

impl Writer<'_> {
    /// `_info` is appended to the name. The value is 1.
    fn info(&mut self, name: &str, help: &str, labels: &[(&str, &str)]) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Info)?;
        metric.encode_info(&labels)
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }

    /// `_total` is appended to the name.
    fn counter<N>(&mut self, name: &str, help: &str, value: N) -> fmt::Result
    where
        ConstCounter<N>: EncodeMetric,
    {
        let metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)
    }

    /// One counter for each value of a label.
    fn counters<'v, N>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl Iterator<Item = (&'v str, N)>,
    ) -> fmt::Result
    where
        ConstCounter<N>: EncodeMetric,
    {
        let mut metrics = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        for (of, value) in values {
            let labels = [(label, of)];
            let metric = metrics.encode_family(&labels)?;
            ConstCounter::new(value).encode(metric)?;
        }
        Ok(())
    }
}
