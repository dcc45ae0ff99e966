//! The file of users (`aclfile`): read and written as a whole. What it says is in
//! [`quoin_acl::file`].

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use quoin_acl::{Defaults, Definition, file};
use quoin_store_embedded::sync_folder;

/// Hashes of passwords are for nobody else.
const FILE_MODE: u32 = 0o600;

/// Reads the users of a file. Waits for the disk.
///
/// # Errors
/// Redis's line of all that is wrong.
pub(super) fn read(path: &Path, defaults: Defaults) -> Result<BTreeMap<Bytes, Definition>, String> {
    let shown = path.display().to_string();
    let text = fs::read(path).map_err(|error| {
        let reason = reason(&error);
        format!("Error loading ACLs, opening file '{shown}': {reason}")
    })?;
    file::parse(&shown, &text, defaults)
}

/// Writes a file in place of the one that is there, all of it or nothing. Waits for the disk.
///
/// # Errors
/// Those of the operating system.
pub(super) fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    /// Two writers would share the temporary file.
    static WRITING: Mutex<()> = Mutex::new(());
    let _guard = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".tmp-{}", std::process::id()));
    let written = write_and_rename(Path::new(&temporary), path, text);
    if written.is_err() {
        // Only what was made here.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_and_rename(temporary: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    // What an ended process of this number has left, which others may be able to read.
    match fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = options.mode(FILE_MODE).open(temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(temporary, path)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    sync_folder(folder.unwrap_or(Path::new(".")))
}

/// As C's `strerror` says it.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text.get(..at).unwrap_or_default().to_owned(),
        None => text,
    }
}
