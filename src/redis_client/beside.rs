//! Whether a server is the one that has a data folder open: for tools that work beside it.

use std::path::Path;

use super::{Client, ClientError};

/// The folder that a server has open, if it is not this one.
pub(crate) fn other_folder(
    client: &mut Client,
    folder: &Path,
) -> Result<Option<String>, ClientError> {
    let reply = client.call(&["CONFIG", "GET", "dir"])?;
    let theirs = match reply.clone().into_strings().as_deref() {
        Some([_, folder]) => String::from_utf8_lossy(folder).into_owned(),
        _ => return Err(client.unexpected(&reply)),
    };
    Ok((!is_same(folder, Path::new(&theirs))).then_some(theirs))
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
