//! Checks specific to an embedded store: its folder, its files, and who has it open.

use std::path::Path;

use super::examine::{Access, Options, check_store};
use super::report::{Level, Line};
use super::running;
use crate::embedded_options;
use crate::progress::ProgressLine;
use quoin_base::size::{counted, size};
use quoin_client::Beside;
use quoin_config::{Fsync, LoadedSettings};
use quoin_store::Store;
use quoin_store_embedded::{
    CheckpointState, EmbeddedStore, Inspection, OpenError, Refusal, StoreId, followed_store,
    has_store, inspect, is_in_use,
};

pub(super) async fn check(
    loaded: &LoadedSettings,
    options: Options,
    beside: &Beside,
    show: &mut dyn FnMut(&Line),
) {
    let settings = &loaded.settings;
    let folder: &Path = &settings.data_dir;
    let origin = loaded.origin("data-dir");
    let has_store = match has_store(folder) {
        Ok(has_store) => has_store,
        Err(error) => return show(&refused(&error)),
    };
    let inspection = match inspect(folder) {
        Ok(Some(inspection)) if has_store => inspection,
        Ok(_) => {
            let text = format!(
                "there is no store in {} ({origin}): a server creates one when it first starts - \
                 is data-dir right?",
                folder.display()
            );
            return show(&Line::new(Level::Warn, "folder", text));
        }
        Err(error) => {
            let text = format!("{} ({origin}) cannot be read: {error}", folder.display());
            return show(&Line::new(Level::Fail, "folder", text));
        }
    };
    let text = format!(
        "{} ({origin}), data file {}",
        folder.display(),
        size(inspection.data_bytes)
    );
    show(&Line::ok("folder", text));
    let access = match followed_store(folder) {
        Ok(None) => Access::Alone,
        Ok(Some(followed)) => {
            show(&standby(followed, options));
            Access::Standby
        }
        Err(error) => {
            let text = format!("{error}: restore the standby from a backup again");
            return show(&Line::new(Level::Fail, STANDBY, text));
        }
    };
    match (access, is_in_use(folder)) {
        // `quoin restore --follow` has it open, and answers nobody.
        (Access::Standby, true) => return,
        (Access::Standby, false) if options.repairs => return,
        (_, true) => return beside_server(loaded, options, beside, show),
        (_, false) => {}
    }
    show(&journal(&inspection));
    show(&checkpoint(&inspection));
    if inspection.journal_damage.is_some() {
        let text = "not checked: opening the store would go on without the lost commits";
        return show(&Line::new(Level::Warn, "store", text));
    }
    let archive = settings.journal_archive_dir.as_deref();
    let store = match EmbeddedStore::open_archived(folder, embedded_options(settings), archive) {
        Ok(store) => store,
        Err(error) => return show(&refused(&error)),
    };
    let text = format!(
        "no server has it open; commits are synced {}",
        match settings.fsync {
            Fsync::Always => "before they are acknowledged",
            Fsync::EverySec => "once a second",
        }
    );
    show(&Line::ok("lock", text));
    if options.is_deep && !rows(&store, show) {
        return;
    }
    // No server can start during the check, because of the lock.
    check_store(&store as &dyn Store, loaded, options, access, show).await;
}

const STANDBY: &str = "standby";

/// Which archive the folder follows.
fn standby(followed: StoreId, options: Options) -> Line {
    if options.repairs {
        let text = "a repair would end this standby: start a server on the folder, then repair";
        return Line::new(Level::Fail, STANDBY, text);
    }
    let text = format!("it follows the archive of store {followed}");
    Line::ok(STANDBY, text)
}

/// A server has the folder open, so only that server can say how it does.
fn beside_server(
    loaded: &LoadedSettings,
    options: Options,
    beside: &Beside,
    show: &mut dyn FnMut(&Line),
) {
    running::check(loaded, beside, show);
    if options.is_deep || options.repairs {
        let text = "--deep and --repair need the folder, which the server has open: stop it first";
        show(&Line::new(Level::Warn, "lock", text));
    }
}

/// Checks every page and every row's checksums without the engine, which some damage would crash.
/// Returns whether the engine can read the rest.
fn rows(store: &EmbeddedStore, show: &mut dyn FnMut(&Line)) -> bool {
    const NAME: &str = "data file";
    let progress = ProgressLine::new();
    let verified = store.verify(&mut |rows| progress.count("rows of the data file", rows));
    progress.clear();
    let verified = match verified {
        Ok(verified) => verified,
        Err(error) => {
            let text = format!(
                "{error}; nothing else was checked, because it could crash the engine: restore a \
                 backup"
            );
            show(&Line::new(Level::Fail, NAME, text));
            return false;
        }
    };
    if verified.damaged == 0 {
        let text = format!("{}, all intact", counted(verified.rows, "row", "rows"));
        show(&Line::ok(NAME, text));
        return true;
    }
    let text = format!(
        "{} of {} damaged: {}; commands that need them get an error, and the checks below may not \
         finish: restore a backup",
        verified.damaged,
        counted(verified.rows, "row", "rows"),
        verified.examples.join(", ")
    );
    show(&Line::new(Level::Fail, NAME, text));
    true
}

fn refused(error: &OpenError) -> Line {
    let check = match error {
        OpenError::Locked { .. } => {
            let process = match error {
                OpenError::Locked {
                    process: Some(process),
                    ..
                } => format!(", process {process},"),
                _ => String::new(),
            };
            let text = format!(
                "a server (or another doctor){process} has just opened the folder, so its contents \
                 were not checked: run this again"
            );
            return Line::new(Level::Warn, "lock", text);
        }
        OpenError::Create { .. } | OpenError::Access { .. } => "folder",
        OpenError::Refused { refusal, .. } => match refusal {
            Refusal::Data(_)
            | Refusal::Row(_)
            | Refusal::FormatDamaged
            | Refusal::ForeignData
            | Refusal::DataMissing => "data file",
            _ => "folder",
        },
        OpenError::NoRoom { .. } => "disk",
        OpenError::Archive { .. } => "archive",
        OpenError::Engine { .. } => "opening",
    };
    Line::new(Level::Fail, check, error.to_string())
}

fn journal(inspection: &Inspection) -> Line {
    if let Some(damage) = &inspection.journal_damage {
        let text = format!(
            "damaged: {damage}; a server refuses to start: restore a backup, or start one once with \
             --accept-journal-loss yes to go on without these commits"
        );
        return Line::new(Level::Fail, "journal", text);
    }
    let bytes: u64 = inspection.journal.iter().map(|file| file.bytes).sum();
    let records: u64 = inspection.journal.iter().map(|file| file.records).sum();
    let last = inspection.journal.iter().filter_map(|file| file.last).max();
    let text = match last {
        None => format!("empty, {}", size(bytes)),
        Some(last) => format!(
            "{} up to number {last}, {} in {}; those that the data file lacks are applied when the \
             store is opened",
            counted(records, "whole record", "whole records"),
            size(bytes),
            counted(inspection.journal.len() as u64, "file", "files")
        ),
    };
    Line::ok("journal", text)
}

fn checkpoint(inspection: &Inspection) -> Line {
    const NAME: &str = "checkpoint";
    match inspection.checkpoint {
        CheckpointState::Current => Line::ok(
            NAME,
            "made since the machine last started: when the store is opened, it goes back to this \
             checkpoint and then applies the journal",
        ),
        CheckpointState::Earlier => Line::ok(
            NAME,
            "made before the machine last started: when the store is opened, it goes back to this \
             checkpoint and then applies the journal",
        ),
        CheckpointState::Absent => Line::ok(NAME, "none: the store is new, or was closed cleanly"),
        CheckpointState::Damaged => Line::new(
            Level::Fail,
            NAME,
            "the file CHECKPOINT is damaged, and no server opens the store: restore the folder \
             from a backup",
        ),
    }
}
