//! INFO's sections about the server itself.

use std::sync::atomic::Ordering;

use super::lines::lines;
use crate::connection_commands::memory::Figures;
use crate::procfs;
use crate::state::{REDIS_VERSION, ServerState};
use crate::supervisor;
use crate::version;

pub(super) fn server(state: &ServerState, text: &mut String) {
    let settings = state.config.settings();
    let uptime_s = (state.clock.now_ms() - state.started_ms).max(0) / 1000;
    let file = state.config.file().map(|file| file.display().to_string());
    let executable = std::env::current_exe().map(|path| path.display().to_string());
    text.push_str("# Server\r\n");
    lines! { text;
        "redis_version": REDIS_VERSION,
        "quoin_version": version::VERSION,
        "quoin_commit": version::COMMIT,
        "redis_git_sha1": version::COMMIT.get(..8).unwrap_or("00000000"),
        "redis_git_dirty": 0,
        "redis_build_id": "0",
        "redis_mode": "standalone",
        "os": procfs::system(),
        "arch_bits": usize::BITS,
        "monotonic_clock": "POSIX clock_gettime",
        "multiplexing_api": "epoll",
        "atomicvar_api": "c11-builtin",
        // As a Redis says that was not built with GCC.
        "gcc_version": "0.0.0",
        "process_id": std::process::id(),
        "process_supervised": if supervisor::is_there() { "systemd" } else { "no" },
        "run_id": state.run_id,
        "tcp_port": state.ports().shown(),
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

pub(super) fn clients(state: &ServerState, text: &mut String) {
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
pub(super) fn memory(state: &ServerState, text: &mut String) {
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
pub(super) fn human(bytes: u64) -> String {
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

pub(super) fn replication(state: &ServerState, text: &mut String) {
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

pub(super) fn cpu(text: &mut String) {
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
