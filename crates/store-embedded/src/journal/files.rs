//! The two files of the journal.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::super::create::{private_file, sync_folder};

pub(super) const FILE_NAMES: [&str; 2] = ["JOURNAL.0", "JOURNAL.1"];

pub(super) fn paths(folder: &Path) -> [PathBuf; 2] {
    FILE_NAMES.map(|name| folder.join(name))
}

/// Renames the files of a damaged journal, so that they are kept but not used, and creates an empty
/// file in their place.
pub(in super::super) fn set_aside(folder: &Path) -> io::Result<()> {
    for path in paths(folder) {
        let named = |number: u32| {
            let mut name = path.clone().into_os_string();
            name.push(format!(".damaged-{number}"));
            PathBuf::from(name)
        };
        let Some(name) = (1..).map(named).find(|name| !name.exists()) else {
            continue;
        };
        match std::fs::rename(&path, name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    // A folder with a checkpoint but no journal would be refused.
    make_file(folder)
}

/// Syncs what a crashed process appended.
pub(in super::super) fn sync_files(folder: &Path) -> io::Result<()> {
    for path in paths(folder) {
        match File::open(path) {
            Ok(file) => file.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether the folder has any journal file.
pub(in super::super) fn exists(folder: &Path) -> io::Result<bool> {
    let [first, second] = paths(folder);
    Ok(first.try_exists()? || second.try_exists()?)
}

/// Creates an empty file if the file is missing. This way every checkpoint has a journal, and a journal
/// that is missing later was lost.
pub(in super::super) fn make_file(folder: &Path) -> io::Result<()> {
    let [first, _] = paths(folder);
    private_file().create(true).append(true).open(first)?;
    sync_folder(folder)
}

/// Removes the journal. Call this once the data file has everything and is synced.
pub(in super::super) fn remove(folder: &Path) -> io::Result<()> {
    for path in paths(folder) {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    sync_folder(folder)
}
