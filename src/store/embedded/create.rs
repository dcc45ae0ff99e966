//! Making the data folder and the files in it, so that a power failure meanwhile does no harm and
//! nobody else can read them.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::data_file::DATA_FILE;

/// The data file until all of it is on the disk.
pub(super) const NEW_DATA_FILE: &str = "data.mdb.new";
/// Of the folder: its owner alone may look into it.
const FOLDER_MODE: u32 = 0o700;
/// Of all files in it: what clients push may be secret.
const FILE_MODE: u32 = 0o600;
/// What users other than the owner may do.
const OTHERS_MODE: u32 = 0o077;

/// How a file of the data folder is opened to be written.
pub(super) fn private_file() -> OpenOptions {
    let mut options = File::options();
    options.write(true).mode(FILE_MODE);
    options
}

/// Makes the folder where it is missing, and its name as durable as what will be in it.
///
/// # Errors
/// What the operating system says.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    let missing = folder.ancestors().take_while(|path| !path.exists()).count();
    DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(folder)?;
    for made in folder.ancestors().take(missing.max(1)) {
        let parent = match made.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => break,
        };
        match File::open(parent).and_then(|parent| parent.sync_all()) {
            // A process that may not look into it did not make the folder in it either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

/// Takes from all others what they may do with the folder and the files in it: earlier versions left
/// that to the umask. A folder of another owner, which this process may only use, is left as it is.
///
/// # Errors
/// What the operating system says.
pub(super) fn tighten(folder: &Path) -> io::Result<()> {
    tighten_one(folder)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            tighten_one(&entry.path())?;
        }
    }
    Ok(())
}

fn tighten_one(path: &Path) -> io::Result<()> {
    let mode = path.metadata()?.permissions().mode();
    if mode & OTHERS_MODE == 0 {
        return Ok(());
    }
    match std::fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS_MODE)) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
            ) =>
        {
            tracing::warn!(
                path = %path.display(),
                "other users may read this, and it is not this user's to change"
            );
            Ok(())
        }
        changed => changed,
    }
}

/// Puts the file that was written into the data file's place.
///
/// # Errors
/// What the operating system says.
pub(super) fn install(folder: &Path) -> io::Result<()> {
    std::fs::rename(folder.join(NEW_DATA_FILE), folder.join(DATA_FILE))?;
    File::open(folder)?.sync_all()
}

/// Removes a file, where it is there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
