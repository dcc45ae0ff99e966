//! What is special to an embedded store: its folder, its files, and who has it open.

use std::path::Path;

use crate::config::{DoctorOptions, Fsync, LoadedSettings};
use crate::store::Store;
use crate::store::embedded::{
    CheckpointState, EmbeddedOptions, EmbeddedStore, FsyncPolicy, Inspection, JournalGap,
    OpenError, inspect, is_in_use,
};

use super::report::{Level, Line, size};

pub(super) async fn look(
    loaded: &LoadedSettings,
    options: DoctorOptions,
    show: &mut dyn FnMut(&Line),
) {
    let settings = &loaded.settings;
    let folder: &Path = &settings.data_dir;
    let origin = loaded.origin("data-dir");
    let inspection = match inspect(folder) {
        Ok(Some(inspection)) => inspection,
        Ok(None) => {
            let text = format!(
                "there is no store in {} ({origin}): a server makes one at its first start - is \
                 data-dir right?",
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
    // A file that a server writes to meanwhile may seem to be damaged.
    let is_journal_damaged = is_damaged(&inspection) && !is_in_use(folder);
    show(&journal(&inspection, is_journal_damaged));
    show(&checkpoint(&inspection));
    if is_journal_damaged {
        let text = "not looked at: opening the store would go on without what is lost";
        return show(&Line::new(Level::Warn, "store", text));
    }
    let fsync = match settings.fsync {
        Fsync::Always => FsyncPolicy::Always,
        Fsync::EverySec => FsyncPolicy::EverySecond,
    };
    let options_of_store = EmbeddedOptions {
        fsync,
        accepts_copy: settings.accept_copied_data_dir,
        ..EmbeddedOptions::default()
    };
    let archive = settings.journal_archive_dir.as_deref();
    let store = match EmbeddedStore::open_archived(folder, options_of_store, archive) {
        Ok(store) => store,
        Err(error) => return show(&refused(&error)),
    };
    let text = format!(
        "no server has it open; commits are synced {}",
        match fsync {
            FsyncPolicy::Always => "before they are acknowledged",
            FsyncPolicy::EverySecond => "once a second",
        }
    );
    show(&Line::ok("lock", text));
    // The lock keeps servers away meanwhile.
    super::look_inside(&store as &dyn Store, loaded, options, true, show).await;
}

fn refused(error: &OpenError) -> Line {
    match error {
        OpenError::Locked { .. } => Line::new(
            Level::Warn,
            "lock",
            "a server (or another doctor) has the folder open, so what lies in it was not looked \
             at: INFO and the server's log tell how it does; stop it and run this again to look \
             inside",
        ),
        other => Line::new(Level::Fail, "lock", other.to_string()),
    }
}

fn is_damaged(inspection: &Inspection) -> bool {
    let gap = inspection.journal_gap.as_ref();
    gap.is_some_and(JournalGap::is_damage)
}

fn journal(inspection: &Inspection, is_damaged: bool) -> Line {
    if let Some(gap) = inspection.journal_gap.as_ref().filter(|_| is_damaged) {
        let text = format!(
            "damaged: {gap}; a server refuses to start: restore a backup, or start one once with \
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
            "{records} whole records up to number {last}, {} in {} files; what the data file \
             lacks of them is applied when the store is opened",
            size(bytes),
            inspection.journal.len()
        ),
    };
    Line::ok("journal", text)
}

fn checkpoint(inspection: &Inspection) -> Line {
    const NAME: &str = "checkpoint";
    match inspection.checkpoint {
        CheckpointState::Current => Line::ok(
            NAME,
            "of this start of the machine: the store goes back to it when it is opened, and on by \
             the journal",
        ),
        CheckpointState::Earlier => Line::ok(
            NAME,
            "of an earlier start of the machine: the store goes back to it when it is opened, and \
             on by the journal",
        ),
        CheckpointState::Absent => Line::ok(NAME, "none: the store is new, or was closed in order"),
        CheckpointState::Damaged => Line::new(
            Level::Fail,
            NAME,
            "the file CHECKPOINT is damaged, and no server opens the store: restore the folder \
             from a backup",
        ),
    }
}
