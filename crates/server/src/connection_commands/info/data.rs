//! INFO's sections about stored data, and about how Quoin stores it.

use super::lines::lines;
use crate::connection_commands::keyspace_count;
use crate::state::ServerState;
use quoin_layout::LAYOUT_VERSION;
use quoin_store::Growth;

/// The number of keys of each database that has any.
pub(super) async fn keyspace(state: &ServerState, text: &mut String) {
    text.push_str("# Keyspace\r\n");
    for counted in keyspace_count::databases(state).await {
        let (database, keys, expiring) = (counted.database, counted.keys, counted.expiring);
        text.push_str(&format!(
            "db{database}:keys={keys},expires={expiring},avg_ttl=0\r\n"
        ));
    }
}

/// The fields that only Quoin has.
pub(super) fn quoin(state: &ServerState, text: &mut String) {
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
        "delegation_requests": executor.delegation_requests.get(),
        "delegation_requests_granted": executor.delegation_requests_granted.get(),
        "delegation_grants": executor.delegation_grants.get(),
        "commands_rolled_back": executor.commands_rolled_back.get(),
        "task_retries": executor.task_retries.get(),
        "task_deaths": executor.task_deaths.get(),
        "open_watches": state.executor.open_watches(),
    }
}
