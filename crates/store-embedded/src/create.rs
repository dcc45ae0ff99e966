//! Creates the data folder and its files. A power failure on the way does no harm. Other users
//! cannot read them.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::data_file::DATA_FILE;

/// Name of the data file until it is complete and synced.
pub(super) const NEW_DATA_FILE: &str = "data.mdb.new";
/// Mode of the folder: only its owner may use it.
const FOLDER_MODE: u32 = 0o700;
/// Mode of the files: clients' data may be secret.
const FILE_MODE: u32 = 0o600;
/// The bits of a mode for users other than the owner.
const OTHERS_MODE: u32 = 0o077;

/// Options for opening a file of the data folder to write.
pub(super) fn private_file() -> OpenOptions {
    let mut options = File::options();
    options.write(true).mode(FILE_MODE);
    options
}

/// Creates the folder if it is missing, and syncs its name.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    let missing = folder.ancestors().take_while(|path| !path.exists()).count();
    DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(folder)?;
    for made in folder.ancestors().take(missing.max(1)) {
        sync_parent(made)?;
    }
    Ok(())
}

/// Syncs the name of a folder in its parent.
pub(super) fn sync_parent(folder: &Path) -> io::Result<()> {
    let parent = match folder.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    match sync_folder(parent) {
        // A process that may not read the parent did not create the folder either.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Syncs a folder, which makes the names in it durable.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    sync_open_folder(&File::open(folder)?)
}

/// Syncs an open folder. Some network and user-space file systems cannot do this, and keep the
/// names anyway. Redis ignores the same errors.
pub(super) fn sync_open_folder(folder: &File) -> io::Result<()> {
    match folder.sync_all() {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EBADF)) => Ok(()),
        synced => synced,
    }
}

/// Removes other users' permissions for the folder and its files. (Earlier versions left them to
/// the umask.) A folder of another owner is not changed.
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
                "other users may read this; only its owner can change that"
            );
            Ok(())
        }
        changed => changed,
    }
}

/// Replaces the data file with the new file.
pub(super) fn install(folder: &Path) -> io::Result<()> {
    std::fs::rename(folder.join(NEW_DATA_FILE), folder.join(DATA_FILE))?;
    sync_folder(folder)
}

/// Replaces a small file atomically. The content is first written to a file named `new`. After an
/// error the previous file is still there, unless the sync of the folder failed.
pub(super) fn replace_file(folder: &Path, name: &str, new: &str, bytes: &[u8]) -> io::Result<()> {
    let new = folder.join(new);
    let mut file = private_file().create(true).truncate(true).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&new, folder.join(name))?;
    sync_folder(folder)
}

/// Removes a file, if it exists.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a folder and everything in it, if it exists.
pub(super) fn remove_folder(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_synced_does_no_harm() {
        // The /proc file system cannot sync.
        let folder = Path::new("/proc/self");
        let refused = File::open(folder).unwrap().sync_all().unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EINVAL));
        sync_folder(folder).unwrap();
        sync_parent(&folder.join("fd")).unwrap();
        let missing = sync_folder(Path::new("/proc/none")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
