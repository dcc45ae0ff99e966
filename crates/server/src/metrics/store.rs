//! Metrics of the store, of batches and of backups.

use std::fmt;

use crate::metrics::writer::Writer;
use crate::state::ServerState;
use quoin_store::Growth;
use quoin_store_embedded::CommandStatus;

/// Writes the metrics of the store.
pub(super) fn write(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let executor = state.executor.statistics();
    for (name, help, counter) in [
        ("batches", "Write batches finished", &executor.batches),
        (
            "batched_commands",
            "Commands in those batches",
            &executor.batched_commands,
        ),
        (
            "commits",
            "Transactions with writes that were committed",
            &executor.commits,
        ),
        (
            "conflicts",
            "Transactions that conflicted with another server's",
            &executor.conflicts,
        ),
        (
            "retries",
            "Batches and reads that were retried, for any reason",
            &executor.retries,
        ),
        (
            "unknown_results",
            "Commits whose result was initially unknown",
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
            "Of these, commits whose result stayed unknown: clients got UNKNOWN",
            &executor.unknown_results_unresolved,
        ),
        (
            "too_old_transactions",
            "Transactions that took too long for the store",
            &executor.too_old,
        ),
        (
            "store_errors",
            "Batches and runs of reads that got an error from the store",
            &executor.store_errors,
        ),
        (
            "forwarded_commands",
            "Commands of this server's clients that other servers ran",
            &executor.forwarded_commands,
        ),
        (
            "forwarded_commands_served",
            "Commands that this server ran for clients of other servers",
            &state.statistics.forwarded_here,
        ),
        (
            "forwarded_unknown",
            "Submissions lost together with another server",
            &executor.forwarded_unknown,
        ),
        (
            "commands_rolled_back",
            "Times that a command's writes were undone",
            &executor.commands_rolled_back,
        ),
        (
            "task_retries",
            "Tasks whose lease ended or was given back, and that will be retried",
            &executor.task_retries,
        ),
        (
            "task_deaths",
            "Tasks whose last try failed",
            &executor.task_deaths,
        ),
        (
            "expired_keys",
            "Keys removed because they expired",
            &executor.expired_keys,
        ),
    ] {
        writer.counter(name, help, counter.get())?;
    }
    writer.counter(
        "batch_seconds",
        "Total time of write batches",
        executor.batches_duration_us.get() as f64 / 1e6,
    )?;
    writer.histogram(
        "commit_duration_seconds",
        "Duration of commits of write batches",
        &executor.commit_durations,
    )?;
    writer.gauge(
        "store_reachable",
        "Whether the store answered the last time it was asked",
        f64::from(u8::from(state.store.is_reachable())),
    )?;
    let roster = state.membership.roster();
    writer.gauge(
        "living_servers",
        "Live servers that share the store, including this one; 0 while this one does not know",
        roster.map_or(0, |roster| roster.servers().len()) as f64,
    )?;
    backups(state, writer)?;
    disk(state, writer)
}

/// Metrics that only the embedded store has.
fn disk(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let store = &state.store;
    let Some(disk_bytes) = store.disk_bytes() else {
        return Ok(());
    };
    let takes_growth = u64::from(store.growth() == Growth::Free);
    for (name, help, value) in [
        (
            "store_disk_bytes",
            "Size of the embedded store's data file in bytes",
            Some(disk_bytes),
        ),
        (
            "store_disk_used_bytes",
            "Bytes of that file that are in use; the rest is free pages",
            store.disk_used_bytes(),
        ),
        (
            "store_disk_free_bytes",
            "Free bytes on the disk of the embedded store",
            store.disk_free_bytes(),
        ),
        (
            "store_disk_nearly_full_bytes",
            "Free bytes below which the disk counts as nearly full",
            store.disk_nearly_full_bytes(),
        ),
        (
            "store_data_bytes",
            "Bytes of data, which maxmemory limits",
            store.data_bytes(),
        ),
        (
            "store_takes_growth",
            "Whether commands that add data are accepted: the disk has room, and maxmemory is not \
             reached",
            Some(takes_growth),
        ),
        (
            "journal_backlog_bytes",
            "Bytes of commits in the journal since the last checkpoint began",
            store.journal_bytes(),
        ),
    ] {
        if let Some(value) = value {
            writer.gauge(name, help, value as f64)?;
        }
    }
    match store.sync_durations() {
        Some(durations) => writer.histogram(
            "sync_duration_seconds",
            "Duration of journal syncs",
            durations,
        ),
        None => Ok(()),
    }
}

fn archive_command(status: &CommandStatus, writer: &mut Writer<'_>) -> fmt::Result {
    writer.counter(
        "journal_archive_command_files",
        "Files of the archive for which journal-archive-command succeeded",
        status.files,
    )?;
    writer.counter(
        "journal_archive_command_failures",
        "Failures of journal-archive-command",
        status.failures,
    )?;
    writer.gauge(
        "journal_archive_command_waiting",
        "Files of the archive waiting for journal-archive-command",
        status.waiting as f64,
    )
}

fn backups(state: &ServerState, writer: &mut Writer<'_>) -> fmt::Result {
    let Some(backups) = &state.backups else {
        return Ok(());
    };
    let status = backups.status();
    writer.counter("backups", "Backups made", status.saves)?;
    writer.counter("backup_failures", "Backups that failed", status.failures)?;
    if let Some(command) = backups.archive_status().and_then(|archive| archive.command) {
        archive_command(&command, writer)?;
    }
    let Some(last) = status.last else {
        return Ok(());
    };
    let age_ms = (state.clock.now_ms() - last.time_ms).max(0);
    writer.gauge(
        "backup_age_seconds",
        "Age of the data in the last good backup",
        age_ms as f64 / 1e3,
    )?;
    writer.gauge(
        "backup_bytes",
        "Size of the last good backup in bytes",
        last.bytes as f64,
    )
}
