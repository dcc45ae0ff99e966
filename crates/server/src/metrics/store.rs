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
            "forwarded_commands",
            "Commands of this server's clients that other servers have run",
            &executor.forwarded_commands,
        ),
        (
            "forwarded_commands_served",
            "Commands that this server has run for clients of others",
            &state.statistics.forwarded_here,
        ),
        (
            "forwarded_unknown",
            "Submissions that another server was lost with",
            &executor.forwarded_unknown,
        ),
        (
            "commands_rolled_back",
            "Times that a command's writes were undone",
            &executor.commands_rolled_back,
        ),
        (
            "task_retries",
            "Tasks whose lease ended or was given back, and that are to be tried again",
            &executor.task_retries,
        ),
        (
            "task_deaths",
            "Tasks whose last try has failed",
            &executor.task_deaths,
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
    writer.histogram(
        "commit_duration_seconds",
        "How long commits of write batches took",
        &executor.commit_durations,
    )?;
    writer.gauge(
        "store_reachable",
        "Whether the store answered when it was asked last",
        f64::from(u8::from(state.store.is_reachable())),
    )?;
    let roster = state.membership.roster();
    writer.gauge(
        "living_servers",
        "Servers that share the store and live, this one included; 0 while this one does not know",
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
            "Bytes of the embedded store's data file",
            Some(disk_bytes),
        ),
        (
            "store_disk_used_bytes",
            "Bytes of that file that are in use; the rest is free pages",
            store.disk_used_bytes(),
        ),
        (
            "store_disk_free_bytes",
            "Bytes that are free on the disk of the embedded store",
            store.disk_free_bytes(),
        ),
        (
            "store_disk_nearly_full_bytes",
            "Free bytes below which the disk counts as nearly full",
            store.disk_nearly_full_bytes(),
        ),
        (
            "store_data_bytes",
            "Bytes of data, which maxmemory bounds",
            store.data_bytes(),
        ),
        (
            "store_takes_growth",
            "Whether commands that add data are taken: the disk has room, and maxmemory is not reached",
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
            "How long syncs of the journal took",
            durations,
        ),
        None => Ok(()),
    }
}

fn archive_command(status: &CommandStatus, writer: &mut Writer<'_>) -> fmt::Result {
    writer.counter(
        "journal_archive_command_files",
        "Files of the archive that journal-archive-command has taken",
        status.files,
    )?;
    writer.counter(
        "journal_archive_command_failures",
        "How often journal-archive-command has failed",
        status.failures,
    )?;
    writer.gauge(
        "journal_archive_command_waiting",
        "Files of the archive that wait for journal-archive-command",
        status.waiting as f64,
    )
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
    if let Some(command) = backups.archive_status().and_then(|archive| archive.command) {
        archive_command(&command, writer)?;
    }
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
