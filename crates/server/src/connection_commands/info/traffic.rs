//! INFO's sections about commands and connections.

use super::lines::lines;
use crate::state::ServerState;
use crate::statistics::CommandStatistics;
use quoin_data::unit::signals::ChannelKind;

pub(super) fn stats(state: &ServerState, text: &mut String) {
    let statistics = &state.statistics;
    let executor = state.executor.statistics();
    let samples = &state.samples;
    let tracking = state.tracking.counts();
    let denied = &state.access.log;
    let lookups = &state.executor.environment().lookups;
    let kibibytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1024.0);
    text.push_str("# Stats\r\n");
    lines! { text;
        "total_connections_received": statistics.connections_received.get(),
        "total_commands_processed": statistics.commands_processed.get(),
        "instantaneous_ops_per_sec": samples.commands.per_second(),
        "total_net_input_bytes": statistics.input_bytes.get(),
        "total_net_output_bytes": statistics.output_bytes.get(),
        "total_net_repl_input_bytes": 0,
        "total_net_repl_output_bytes": 0,
        "instantaneous_input_kbps": kibibytes(samples.input_bytes.per_second()),
        "instantaneous_output_kbps": kibibytes(samples.output_bytes.per_second()),
        "instantaneous_input_repl_kbps": "0.00",
        "instantaneous_output_repl_kbps": "0.00",
        "rejected_connections": statistics.connections_rejected.get(),
        "sync_full": 0,
        "sync_partial_ok": 0,
        "sync_partial_err": 0,
        "expired_keys": executor.expired_keys.get(),
        "expired_stale_perc": "0.00",
        "expired_time_cap_reached_count": 0,
        "expire_cycle_cpu_milliseconds": 0,
        "evicted_keys": 0,
        "evicted_clients": state.disconnections.evicted.get(),
        "total_eviction_exceeded_time": 0,
        "current_eviction_exceeded_time": 0,
        "keyspace_hits": lookups.hits.get(),
        "keyspace_misses": lookups.misses.get(),
        "pubsub_channels": state.pubsub.channel_count(ChannelKind::Global),
        "pubsub_patterns": state.pubsub.pattern_count(),
        "pubsubshard_channels": state.pubsub.channel_count(ChannelKind::Shard),
        "latest_fork_usec": 0,
        "total_forks": 0,
        "migrate_cached_sockets": 0,
        "slave_expires_tracked_keys": 0,
        "active_defrag_hits": 0,
        "active_defrag_misses": 0,
        "active_defrag_key_hits": 0,
        "active_defrag_key_misses": 0,
        "total_active_defrag_time": 0,
        "current_active_defrag_time": 0,
        "tracking_total_keys": tracking.keys,
        "tracking_total_items": tracking.items,
        "tracking_total_prefixes": tracking.prefixes,
        "unexpected_error_replies": 0,
        "total_error_replies": statistics.error_replies.get(),
        "dump_payload_sanitizations": 0,
        "total_reads_processed": statistics.reads_processed.get(),
        "total_writes_processed": statistics.writes_processed.get(),
        "io_threaded_reads_processed": 0,
        "io_threaded_writes_processed": 0,
        "client_query_buffer_limit_disconnections": state.disconnections.query_buffer.get(),
        "client_output_buffer_limit_disconnections": state.disconnections.output_buffer.get(),
        "reply_buffer_shrinks": 0,
        "reply_buffer_expands": 0,
        "eventloop_cycles": 0,
        "eventloop_duration_sum": 0,
        "eventloop_duration_cmd_sum": 0,
        "instantaneous_eventloop_cycles_per_sec": 0,
        "instantaneous_eventloop_duration_usec": 0,
        "acl_access_denied_auth": denied.denied_auth.get(),
        "acl_access_denied_cmd": denied.denied_commands.get(),
        "acl_access_denied_key": denied.denied_keys.get(),
        "acl_access_denied_channel": denied.denied_channels.get(),
    }
}

/// What Redis measures of its event loop, which Quoin does not have.
pub(super) fn debug(text: &mut String) {
    text.push_str("# Debug\r\n");
    lines! { text;
        "eventloop_duration_aof_sum": 0,
        "eventloop_duration_cron_sum": 0,
        "eventloop_duration_max": 0,
        "eventloop_cmd_per_cycle_max": 0,
    }
}

pub(super) fn command_statistics(state: &ServerState, text: &mut String) {
    text.push_str("# Commandstats\r\n");
    for (row, command) in state.statistics.commands() {
        let duration_us = command.durations.sum_us();
        let [calls, rejected, failed] = [
            &command.calls,
            &command.rejected_calls,
            &command.failed_calls,
        ]
        .map(|counter| counter.get());
        if calls == 0 && rejected == 0 && failed == 0 {
            continue;
        }
        let mean_us = if calls == 0 {
            0.0
        } else {
            duration_us as f64 / calls as f64
        };
        text.push_str(&format!(
            "cmdstat_{}:calls={calls},usec={duration_us},usec_per_call={mean_us:.2},\
             rejected_calls={rejected},failed_calls={failed}\r\n",
            row.name
        ));
    }
}

pub(super) fn error_statistics(state: &ServerState, text: &mut String) {
    text.push_str("# Errorstats\r\n");
    for (code, count) in state.statistics.errors().iter() {
        let code: String = code.chars().map(safe).collect();
        text.push_str(&format!("errorstat_{code}:count={count}\r\n"));
    }
}

/// Replaces characters that would break a line of INFO, as in Redis.
fn safe(letter: char) -> char {
    match letter {
        '#' | ':' | '\r' | '\n' => '_',
        other => other,
    }
}

/// The percentiles that `latency-tracking-info-percentiles` asks for; nothing without `latency-tracking`.
pub(super) fn latency_statistics(state: &ServerState, text: &mut String) {
    text.push_str("# Latencystats\r\n");
    let setting = |name: &[u8]| {
        let found = state.config.get(&[name]).into_iter().next();
        found.map(|(_, value)| value).unwrap_or_default()
    };
    let percentiles = setting(b"latency-tracking-info-percentiles");
    if setting(b"latency-tracking") == "no" || percentiles.is_empty() {
        return;
    }
    for (row, command) in state.statistics.commands() {
        if command.calls.get() == 0 {
            continue;
        }
        let values: Vec<String> = percentiles
            .split(' ')
            .filter_map(|percentile| {
                let value_us = percentile_us(command, percentile.parse().ok()?);
                Some(format!("p{percentile}={value_us}.000"))
            })
            .collect();
        text.push_str(&format!(
            "latency_percentiles_usec_{}:{}\r\n",
            row.name,
            values.join(",")
        ));
    }
}

/// The end of the bucket that contains this percentile of the durations.
fn percentile_us(command: &CommandStatistics, percentile: f64) -> u64 {
    let calls = command
        .durations
        .cumulative_us()
        .last()
        .map_or(0, |(_, calls)| calls);
    let wanted = ((calls as f64 * percentile / 100.0).ceil() as u64).max(1);
    command
        .durations
        .cumulative_us()
        .find(|(_, calls)| *calls >= wanted)
        .map_or(0, |(end_us, _)| end_us)
}
