//! INFO's section about durability and backups.

use super::lines::lines;
use crate::connection_commands::backup::last_save_s;
use crate::state::ServerState;
use quoin_config::Fsync;
use quoin_tools::backup::{Current, Status};

/// Redis's fields; a backup corresponds to Redis's dump. Everything that was acknowledged is in the
/// store, but with `fsync = everysec` the last second may not be on the disk yet.
pub(super) fn persistence(state: &ServerState, text: &mut String) {
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
        backup(&status, current.as_ref(), text);
        lines! { text; "last_commit": backups.last_commit(), }
        if let Some(archive) = backups.archive_status() {
            lines! { text;
                "journal_archive_last_commit": archive.last.unwrap_or(0),
                "journal_archive_error": one_line(archive.error.as_deref().unwrap_or_default()),
            }
        }
    }
}

/// Fields that Redis does not have: the last file and the last error.
fn backup(status: &Status, current: Option<&Current>, text: &mut String) {
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
