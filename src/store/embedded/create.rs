//! Making the data folder and the data file, so that a power failure meanwhile does no harm.

use std::fs::File;
use std::io;
use std::path::Path;

use heed::{EnvFlags, EnvOpenOptions};

use super::checkpoint::{CHECKPOINT_FILE, DATA_FILE};

/// The data file until all of it is on the disk, and what LMDB puts beside it.
const NEW_DATA_FILE: &str = "data.mdb.new";
const NEW_LOCK_FILE: &str = "data.mdb.new-lock";

/// Makes the folder where it is missing, and its name as durable as what will be in it.
///
/// # Errors
/// What the operating system says.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    let missing = folder.ancestors().take_while(|path| !path.exists()).count();
    std::fs::create_dir_all(folder)?;
    for made in folder.ancestors().take(missing.max(1)) {
        let parent = match made.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => break,
        };
        match File::open(parent).and_then(|parent| parent.sync_all()) {
            // Whoever may not look into it did not make the folder in it either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

/// Makes an empty data file where there is none. LMDB would do so without a sync, and after a
/// power failure refuse what of it is there; so it does it elsewhere, and the file gets its name
/// when it is on the disk. An empty file has been left by that.
///
/// # Errors
/// What LMDB or the operating system says; and where a file is missing that there has been.
pub(super) fn create_data_file(folder: &Path, map_bytes: usize) -> Result<(), heed::Error> {
    let data = folder.join(DATA_FILE);
    match data.metadata() {
        Ok(found) if found.len() > 0 => return Ok(()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    if folder.join(CHECKPOINT_FILE).exists() {
        let text = format!("there is a {CHECKPOINT_FILE}, but its {DATA_FILE} is missing");
        return Err(io::Error::new(io::ErrorKind::NotFound, text).into());
    }
    let new = folder.join(NEW_DATA_FILE);
    let new_lock = folder.join(NEW_LOCK_FILE);
    remove(&new)?;
    remove(&new_lock)?;
    let mut opening = EnvOpenOptions::new();
    opening.map_size(map_bytes);
    // SAFETY: the flag only says that the path is that of a file; the folder's lock keeps others
    // away.
    #[allow(unsafe_code)]
    let environment = unsafe {
        opening.flags(EnvFlags::NO_SUB_DIR);
        opening.open(&new)?
    };
    environment.force_sync()?;
    environment.prepare_for_closing().wait();
    std::fs::rename(&new, &data)?;
    remove(&new_lock)?;
    File::open(folder)?.sync_all()?;
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
