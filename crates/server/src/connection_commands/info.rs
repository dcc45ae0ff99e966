//! INFO.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::addresses::Face;
use crate::connection_commands::backup::last_save_s;
use crate::connection_commands::memory::{Figures, count_keys};
use crate::connection_commands::sentinel;
use crate::session::Session;
use crate::state::ServerState;
use crate::statistics::CommandStatistics;
use crate::{procfs, systemd, version};
use quoin_base::redis_version::RedisVersion;
use quoin_config::Fsync;
use quoin_data::command::arguments::{is_word, rest};
use quoin_data::error::CommandError;
use quoin_data::unit::signals::ChannelKind;
use quoin_layout::LAYOUT_VERSION;
use quoin_resp::reply::Reply;
use quoin_store::Growth;
use quoin_tools::backup::{Current, Status};

/// Appends `name:value` lines.
macro_rules! lines {
    ($text:expr; $($name:literal: $value:expr,)*) => {
        $(
            $text.push_str(concat!($name, ":"));
            $text.push_str(&$value.to_string());
            $text.push_str("\r\n");
        )*
    };
}

/// Sections in the order of the reply, each with whether it is shown by default.
#[rustfmt::skip]
const SECTIONS: &[(&str, bool)] = &[
    ("server", true),
    ("clients", true),
    ("memory", true),
    ("persistence", true),
    ("stats", true),
    ("replication", true),
    ("cpu", true),
    ("modules", true),
    ("commandstats", false),
    ("errorstats", true),
    ("latencystats", false),
    ("cluster", true),
    ("keyspace", true),
    ("quoin", true),
    // Redis shows it only if it is requested by name.
    ("debug", false),
];

/// The sections of a Sentinel, in its order.
const SENTINEL_SECTIONS: &[(&str, bool)] = &[
    ("server", true),
    ("clients", true),
    ("stats", true),
    ("cpu", true),
    ("sentinel", true),
];

/// `INFO [section [section …]]`. Unknown sections are empty, as in Redis.
pub(super) async fn info(
    arguments: &[Bytes],
    session: &Session,
    state: &ServerState,
) -> Result<Reply, CommandError> {
    let wanted = rest(arguments, 1);
    let asks_for = |name: &str| wanted.iter().any(|word| is_word(word, name));
    let shows_all = asks_for("all") || asks_for("everything");
    let shows_default = wanted.is_empty() || asks_for("default");
    let mut text = String::new();
    let sections = match session.face {
        Face::Data | Face::Cluster { .. } => SECTIONS,
        Face::Sentinel { .. } => SENTINEL_SECTIONS,
    };
    for (name, is_default) in sections {
        let is_named = asks_for(name) || (*name == "modules" && asks_for("module_list"));
        let is_hidden = *name == "debug";
        if !((shows_all && !is_hidden) || (shows_default && *is_default) || is_named) {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        match *name {
            "server" => server(session.face, state, &mut text),
            "clients" => clients(state, &mut text),
            "memory" => memory(state, &mut text),
            "persistence" => persistence(state, &mut text),
            "stats" => stats(state, &mut text),
            "replication" => replication(state, &mut text),
            "cpu" => cpu(&mut text),
            "modules" => text.push_str("# Modules\r\n"),
            "commandstats" => command_statistics(state, &mut text),
            "errorstats" => error_statistics(state, &mut text),
            "latencystats" => latency_statistics(state, &mut text),
            "cluster" => {
                let is_enabled = u8::from(session.is_on_cluster());
                text.push_str(&format!("# Cluster\r\ncluster_enabled:{is_enabled}\r\n"));
            }
            "keyspace" => keyspace(state, &mut text).await,
            "debug" => debug(&mut text),
            "sentinel" => sentinel::info(session, state, &mut text),
            _ => quoin(state, &mut text),
        }
    }
    Ok(match session.face {
        Face::Data | Face::Cluster { .. } => Reply::Verbatim("txt", text.into()),
        // As Redis Sentinel: in RESP3 too.
        Face::Sentinel { .. } => Reply::Bulk(text.into()),
    })
}

fn server(face: Face, state: &ServerState, text: &mut String) {
    let settings = state.config.settings();
    let uptime_s = (state.clock.now_ms() - state.started_ms).max(0) / 1000;
    let file = state.config.file().map(|file| file.display().to_string());
    let executable = std::env::current_exe().map(|path| path.display().to_string());
    let mode = match face {
        Face::Data => "standalone",
        Face::Cluster { .. } => "cluster",
        Face::Sentinel { .. } => "sentinel",
    };
    text.push_str("# Server\r\n");
    lines! { text;
        "redis_version": state.reported_version().text(),
        "quoin_version": version::VERSION,
        "quoin_commit": version::COMMIT,
        "redis_git_sha1": version::COMMIT.get(..8).unwrap_or("00000000"),
        "redis_git_dirty": 0,
        "redis_build_id": "0",
        "redis_mode": mode,
        "os": procfs::system(),
        "arch_bits": usize::BITS,
        "monotonic_clock": "POSIX clock_gettime",
        "multiplexing_api": "epoll",
        "atomicvar_api": "c11-builtin",
        // The value of a Redis that was not built with GCC.
        "gcc_version": "0.0.0",
        "process_id": std::process::id(),
        "process_supervised": if systemd::is_supervising() { "systemd" } else { "no" },
        "run_id": state.run_id,
        "tcp_port": state.ports().of_face(face),
        "server_time_usec": state.clock.now_us(),
        "uptime_in_seconds": uptime_s,
        "uptime_in_days": uptime_s / 86_400,
        "hz": 10,
        "configured_hz": 10,
        "lru_clock": (state.clock.now_ms() / 1000) & 0xff_ffff,
        "executable": executable.unwrap_or_default(),
        "config_file": file.unwrap_or_default(),
        "io_threads_active": u8::from(settings.io_threads > 1),
    }
    if matches!(face, Face::Sentinel { .. }) {
        return;
    }
    let ports = state.ports();
    let ips: String = settings
        .bind
        .iter()
        .map(|ip| format!(",bind={ip}"))
        .collect();
    if ports.plain != 0 {
        text.push_str(&format!("listener0:name=tcp{ips},port={}\r\n", ports.plain));
    }
    if let Some(path) = &settings.unixsocket {
        text.push_str(&format!("listener1:name=unix,bind={}\r\n", path.display()));
    }
    if ports.tls != 0 {
        text.push_str(&format!("listener2:name=tls{ips},port={}\r\n", ports.tls));
    }
}

fn clients(state: &ServerState, text: &mut String) {
    use std::sync::atomic::Ordering::Relaxed;
    let clients = state.clients.all();
    let input_max = clients
        .iter()
        .map(|one| one.input_bytes.load(Relaxed))
        .max();
    let output_max = clients
        .iter()
        .map(|one| one.output_bytes.load(Relaxed))
        .max();
    let blocked = clients.iter().filter(|client| client.is_blocked()).count();
    text.push_str("# Clients\r\n");
    lines! { text;
        "connected_clients": clients.len(),
        "cluster_connections": 0,
        "maxclients": state.config.live.maxclients(),
        "client_recent_max_input_buffer": input_max.unwrap_or(0),
        "client_recent_max_output_buffer": output_max.unwrap_or(0),
        "blocked_clients": blocked,
        "tracking_clients": state.tracking.counts().clients,
        "clients_in_timeout_table": 0,
        "total_blocking_keys": state.executor.waiters().key_count(),
        "total_blocking_keys_on_nokey": state.executor.waiters().needed_key_count(),
    }
}

/// Redis's fields. Data is in the store, so all memory is overhead.
fn memory(state: &ServerState, text: &mut String) {
    let libraries = state.executor.environment().scripts.libraries();
    let maxmemory_bytes = state.config.live.maxmemory_bytes().load(Ordering::Relaxed);
    let figures = Figures::of(state);
    let used = figures.used_bytes;
    let total = procfs::total_memory_bytes();
    let ratio = format!("{:.2}", figures.resident_ratio());
    text.push_str("# Memory\r\n");
    lines! { text;
        "used_memory": used,
        "used_memory_human": human(used),
        "used_memory_rss": figures.resident_bytes,
        "used_memory_rss_human": human(figures.resident_bytes),
        "used_memory_peak": figures.peak_bytes,
        "used_memory_peak_human": human(figures.peak_bytes),
        "used_memory_peak_perc": format!("{:.2}%", figures.peak_percent()),
        "used_memory_overhead": used,
        "used_memory_startup": figures.startup_bytes,
        "used_memory_dataset": 0,
        "used_memory_dataset_perc": "0.00%",
        "allocator_allocated": used,
        "allocator_active": used,
        "allocator_resident": used,
        "total_system_memory": total,
        "total_system_memory_human": human(total),
        "used_memory_lua": 0,
        "used_memory_vm_eval": 0,
        "used_memory_lua_human": "0B",
        "used_memory_scripts_eval": 0,
        "number_of_cached_scripts": state.executor.environment().scripts.met_count(),
        "number_of_functions": libraries.function_count(),
        "number_of_libraries": libraries.len(),
        "used_memory_vm_functions": 0,
        "used_memory_vm_total": 0,
        "used_memory_vm_total_human": "0B",
        "used_memory_functions": 0,
        "used_memory_scripts": 0,
        "used_memory_scripts_human": "0B",
        "maxmemory": maxmemory_bytes,
        "maxmemory_human": human(maxmemory_bytes),
        "maxmemory_policy": "noeviction",
        "allocator_frag_ratio": "1.00",
        "allocator_frag_bytes": 0,
        "allocator_rss_ratio": "1.00",
        "allocator_rss_bytes": 0,
        "rss_overhead_ratio": ratio,
        "rss_overhead_bytes": figures.other_bytes(),
        "mem_fragmentation_ratio": ratio,
        "mem_fragmentation_bytes": figures.other_bytes(),
        "mem_not_counted_for_evict": 0,
        "mem_replication_backlog": 0,
        "mem_total_replication_buffers": 0,
        "mem_clients_slaves": 0,
        "mem_clients_normal": figures.clients_bytes,
        "mem_cluster_links": 0,
        "mem_aof_buffer": 0,
        "mem_allocator": quoin_base::allocator::NAME,
        "active_defrag_running": 0,
        "lazyfree_pending_objects": 0,
        "lazyfreed_objects": 0,
    }
}

/// A size in Redis's readable form.
fn human(bytes: u64) -> String {
    let units = [
        (1_u64 << 40, 'T'),
        (1 << 30, 'G'),
        (1 << 20, 'M'),
        (1 << 10, 'K'),
    ];
    let unit = units.iter().find(|(size, _)| bytes >= *size);
    match unit {
        Some((size, letter)) => format!("{:.2}{letter}", bytes as f64 / *size as f64),
        None => format!("{bytes}B"),
    }
}

fn replication(state: &ServerState, text: &mut String) {
    text.push_str("# Replication\r\n");
    lines! { text;
        "role": "master",
        "connected_slaves": 0,
        "master_failover_state": "no-failover",
        "master_replid": state.run_id,
        "master_replid2": "0".repeat(40),
        "master_repl_offset": 0,
        "second_repl_offset": -1,
        "repl_backlog_active": 0,
        "repl_backlog_size": 1_048_576,
        "repl_backlog_first_byte_offset": 0,
        "repl_backlog_histlen": 0,
    }
}

fn cpu(text: &mut String) {
    let time = procfs::processor_time();
    let main = procfs::processor_time_of_main_thread();
    let seconds = |time_us: u64| format!("{}.{:06}", time_us / 1_000_000, time_us % 1_000_000);
    text.push_str("# CPU\r\n");
    lines! { text;
        "used_cpu_sys": seconds(time.system_us),
        "used_cpu_user": seconds(time.user_us),
        "used_cpu_sys_children": seconds(time.children_system_us),
        "used_cpu_user_children": seconds(time.children_user_us),
        "used_cpu_sys_main_thread": seconds(main.system_us),
        "used_cpu_user_main_thread": seconds(main.user_us),
    }
}

/// Redis's fields; a backup corresponds to Redis's dump. Everything that was acknowledged is in the
/// store, but with `fsync = everysec` the last second may not be on the disk yet.
fn persistence(state: &ServerState, text: &mut String) {
    let is_waiting = state.config.settings().fsync == Fsync::EverySec;
    let backups = state.backups.as_deref();
    let status = backups.map(|backups| backups.status()).unwrap_or_default();
    let current = backups.and_then(|backups| backups.current());
    let (rows, rows_total) = current.map_or((0, 0), |one| (one.rows, one.rows_total));
    let percent = 100.0 * rows as f64 / rows_total.max(1) as f64;
    let seconds = |duration: Option<std::time::Duration>| match duration {
        Some(duration) => i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        None => -1,
    };
    text.push_str("# Persistence\r\n");
    lines! { text;
        "loading": 0,
        "async_loading": 0,
        "current_cow_peak": 0,
        "current_cow_size": 0,
        "current_cow_size_age": 0,
        "current_fork_perc": format!("{percent:.2}"),
        "current_save_keys_processed": rows,
        "current_save_keys_total": rows_total,
        "rdb_changes_since_last_save": backups.map_or(0, |backups| backups.commits_since()),
        "rdb_bgsave_in_progress": u8::from(current.is_some()),
        "rdb_last_save_time": last_save_s(state),
        "rdb_last_bgsave_status": if status.last_error.is_none() { "ok" } else { "err" },
        "rdb_last_bgsave_time_sec": seconds(status.last_duration),
        "rdb_current_bgsave_time_sec": seconds(current.map(|one| one.elapsed)),
        "rdb_saves": status.saves,
        "rdb_last_cow_size": 0,
        "rdb_last_load_keys_expired": 0,
        "rdb_last_load_keys_loaded": 0,
        "aof_enabled": 1,
        "aof_rewrite_in_progress": 0,
        "aof_rewrite_scheduled": 0,
        "aof_last_rewrite_time_sec": -1,
        "aof_current_rewrite_time_sec": -1,
        "aof_last_bgrewrite_status": "ok",
        "aof_rewrites": 0,
        "aof_rewrites_consecutive_failures": 0,
        "aof_last_write_status": "ok",
        "aof_last_cow_size": 0,
        "module_fork_in_progress": 0,
        "module_fork_last_cow_size": 0,
        "aof_current_size": state.store.disk_bytes().unwrap_or(0),
        "aof_base_size": 0,
        "aof_pending_rewrite": 0,
        "aof_buffer_length": 0,
        "aof_pending_bio_fsync": u8::from(is_waiting),
        "aof_delayed_fsync": 0,
    }
    if let Some(backups) = backups {
        last_backup(&status, current.as_ref(), text);
        lines! { text; "last_commit": backups.last_commit(), }
        if let Some(archive) = backups.archive_status() {
            lines! { text;
                "journal_archive_last_commit": archive.last.unwrap_or(0),
                "journal_archive_error": one_line(archive.error.as_deref().unwrap_or_default()),
            }
            if let Some(command) = archive.command {
                lines! { text;
                    "journal_archive_command_files": command.files,
                    "journal_archive_command_failures": command.failures,
                    "journal_archive_command_waiting": command.waiting,
                    "journal_archive_command_last_commit": command.last.unwrap_or(0),
                    "journal_archive_command_error": one_line(command.error.as_deref().unwrap_or_default()),
                }
            }
        }
    }
}

/// Fields that Redis does not have: the last file and the last error.
fn last_backup(status: &Status, current: Option<&Current>, text: &mut String) {
    let last = status.last.as_ref();
    let file = last.and_then(|last| last.path.file_name());
    lines! { text;
        "backup_current_bytes": current.map_or(0, |one| one.bytes),
        "backup_last_file": file.map(|name| name.to_string_lossy()).unwrap_or_default(),
        "backup_last_bytes": last.map_or(0, |last| last.bytes),
        "backup_last_commit": last.map_or(0, |last| last.commit),
        "backup_failures": status.failures,
        "backup_last_error": one_line(status.last_error.as_deref().unwrap_or_default()),
    }
}

/// A text without line breaks.
fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

fn stats(state: &ServerState, text: &mut String) {
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
    }
    if state.reported_version() >= RedisVersion::V8_4 {
        lines! { text; "expired_subkeys": executor.expired_fields.get(), }
    }
    lines! { text;
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

/// Redis's figures about its event loop, which Quoin does not have.
fn debug(text: &mut String) {
    text.push_str("# Debug\r\n");
    lines! { text;
        "eventloop_duration_aof_sum": 0,
        "eventloop_duration_cron_sum": 0,
        "eventloop_duration_max": 0,
        "eventloop_cmd_per_cycle_max": 0,
    }
}

fn command_statistics(state: &ServerState, text: &mut String) {
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

fn error_statistics(state: &ServerState, text: &mut String) {
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

/// The percentiles of `latency-tracking-info-percentiles`. Nothing without `latency-tracking`.
fn latency_statistics(state: &ServerState, text: &mut String) {
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

/// The upper bound of the bucket that contains this percentile of the durations.
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

/// The number of keys of each database that has any.
async fn keyspace(state: &ServerState, text: &mut String) {
    text.push_str("# Keyspace\r\n");
    for counted in count_keys(state).await {
        let (database, keys, expiring) = (counted.database, counted.keys, counted.expiring);
        text.push_str(&format!(
            "db{database}:keys={keys},expires={expiring},avg_ttl=0\r\n"
        ));
    }
}

/// The fields that only Quoin has.
fn quoin(state: &ServerState, text: &mut String) {
    let settings = state.config.settings();
    let executor = state.executor.statistics();
    let batches = executor.batches.get();
    let commands = executor.batched_commands.get();
    let per_batch = commands as f64 / batches.max(1) as f64;
    text.push_str("# Quoin\r\n");
    lines! { text;
        "store": state.store.capabilities().name,
        "store_id": state.executor.environment().store_id,
        "store_reachable": u8::from(state.store.is_reachable()),
        "fsync": settings.fsync.name(),
        "layout_version": LAYOUT_VERSION,
        "root_prefix": settings.root_prefix,
        "store_data_bytes": state.store.data_bytes().unwrap_or(0),
        "store_disk_bytes": state.store.disk_bytes().unwrap_or(0),
        "store_disk_used_bytes": state.store.disk_used_bytes().unwrap_or(0),
        "journal_backlog_bytes": state.store.journal_bytes().unwrap_or(0),
        "store_disk_free_bytes": state.store.disk_free_bytes().unwrap_or(0),
        "store_disk_nearly_full_bytes": state.store.disk_nearly_full_bytes().unwrap_or(0),
        "store_takes_growth": u8::from(state.store.growth() == Growth::Free),
        "batches": batches,
        "batches_usec": executor.batches_duration_us.get(),
        "batched_commands": commands,
        "commands_per_batch": format!("{per_batch:.2}"),
        "commits": executor.commits.get(),
        "conflicts": executor.conflicts.get(),
        "retries": executor.retries.get(),
        "unknown_results": executor.unknown_results.get(),
        "unknown_results_applied": executor.unknown_results_applied.get(),
        "unknown_results_not_applied": executor.unknown_results_not_applied.get(),
        "unknown_results_unresolved": executor.unknown_results_unresolved.get(),
        "too_old_transactions": executor.too_old.get(),
        "store_errors": executor.store_errors.get(),
        "forwarded_commands": executor.forwarded_commands.get(),
        "forwarded_commands_served": state.statistics.forwarded_here.get(),
        "forwarded_unknown": executor.forwarded_unknown.get(),
        "commands_rolled_back": executor.commands_rolled_back.get(),
        "task_retries": executor.task_retries.get(),
        "task_deaths": executor.task_deaths.get(),
    }
    servers(state, text);
}

/// The live servers that share the store, the oldest first. None while this server does not know them.
fn servers(state: &ServerState, text: &mut String) {
    let roster = state.membership.roster();
    let servers = roster.as_ref().map_or(&[][..], |roster| roster.servers());
    lines! { text; "living_servers": servers.len(), }
    for (number, server) in servers.iter().enumerate() {
        let is_own = roster.as_ref().is_some_and(|roster| roster.is_own(server));
        let row = &server.row;
        text.push_str(&format!(
            "server{number}:start={},ip={},port={},tls_port={},hostname={},version={},run_id={},\
             own={}\r\n",
            server.instance,
            row.ip,
            row.port,
            row.tls_port,
            row.hostname,
            row.version,
            row.run_id,
            u8::from(is_own)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_for_people_are_those_of_redis() {
        assert_eq!(human(0), "0B");
        assert_eq!(human(1023), "1023B");
        assert_eq!(human(1024), "1.00K");
        assert_eq!(human(1_572_864), "1.50M");
        assert_eq!(human(25_769_803_776), "24.00G");
    }
}
