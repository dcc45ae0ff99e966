//! CONFIG REWRITE: writes the settings in effect to the settings file. Comments and order stay.

use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::ConfigError;
use crate::load::{Entry, FileEntry, file_entries, read_file};
use crate::table::{SETTINGS, Settings};
use crate::users;
use quoin_store_embedded::sync_folder;

/// The comment above settings that were added to the file.
const HEADING: &str = "# Written by CONFIG REWRITE.";

/// Writes `settings`, and `users` if given, to the settings file at `path`. After a failure the file is
/// unchanged. It waits for the disk.
pub(super) fn rewrite(
    path: &Path,
    settings: &Settings,
    users: Option<&[String]>,
) -> Result<(), ConfigError> {
    let fail = |source| ConfigError::File {
        path: path.to_owned(),
        source,
    };
    let text = match path.exists() {
        true => read_file(path)?,
        false => String::new(),
    };
    let text = rewritten(path, &text, settings, users)?;
    replace_file(path, &text).map_err(fail)
}

/// The text of the file with the values of `settings`. An unchanged value keeps its spelling. A setting
/// that the file lacks is added unless it has its default.
fn rewritten(
    path: &Path,
    text: &str,
    settings: &Settings,
    users: Option<&[String]>,
) -> Result<String, ConfigError> {
    let entries = file_entries(path, text)?;
    let mut out = text.to_owned();
    let mut added = Vec::new();
    for row in SETTINGS {
        let value = (row.render)(settings);
        let is_this =
            |entry: &Entry| matches!(entry, Entry::Setting(entry) if entry.row.name == row.name);
        if value != row.default && !entries.iter().any(is_this) {
            added.push(format!("{} = {}\n", row.name, row.kind.to_toml(&value)));
        }
    }
    if let Some(users) = users
        && !entries.iter().any(|entry| matches!(entry, Entry::Users(_)))
    {
        added.push(format!("{} = {}\n", users::NAME, users::to_toml(users)));
    }
    // From the end, so that the places of earlier entries stay valid.
    for entry in entries.iter().rev() {
        match (entry, users) {
            (Entry::Setting(entry), _) => rewrite_setting(&mut out, entry, settings),
            (Entry::Users(entry), Some(users)) if entry.lines != users => {
                out.replace_range(entry.value_span.clone(), &users::to_toml(users));
            }
            (Entry::Users(_), _) => {}
        }
    }
    let mut has_heading = out.contains(HEADING);
    for line in added {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        if !has_heading {
            out.push_str(&format!("\n{HEADING}\n"));
            has_heading = true;
        }
        out.push_str(&line);
    }
    Ok(out)
}

fn rewrite_setting(out: &mut String, entry: &FileEntry, settings: &Settings) {
    let value = (entry.row.render)(settings);
    let written = entry.row.kind.normalise(&entry.given, &value);
    if written.as_ref() != Ok(&value) {
        out.replace_range(entry.value_span.clone(), &entry.row.kind.to_toml(&value));
    }
}

/// Replaces a file atomically: a reader finds the old text or the new one, even after a crash.
/// Keeps its permissions. Only the owner may read a new file, because it may contain a password.
fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    // Replaces the target of a symbolic link, not the link.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = folder.join(name);
    let result = write_then_rename(&temporary, &path, &folder, text);
    if result.is_err() {
        // Removal may fail. The first error counts.
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

fn write_then_rename(temporary: &Path, path: &Path, folder: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(temporary)?;
    if let Ok(metadata) = std::fs::metadata(path) {
        file.set_permissions(metadata.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(temporary, path)?;
    sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite_text(text: &str, change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = Settings::default();
        change(&mut settings);
        rewritten(Path::new("x"), text, &settings, None).unwrap()
    }

    #[test]
    fn users_take_the_place_of_those_in_the_file() {
        let users = ["alice off -@all".to_owned(), "bob on \"q\"".to_owned()];
        let write = |text| {
            let settings = Settings::default();
            rewritten(Path::new("x"), text, &settings, Some(&users)).unwrap()
        };
        let list = "user = [\n  \"alice off -@all\",\n  'bob on \"q\"',\n]";
        let added = write("port = 6379\n");
        assert_eq!(added, format!("port = 6379\n\n{HEADING}\n{list}\n"));
        assert_eq!(write(&added), added);
        let before = "# ours\nuser = ['carol on'] # all of them\ntimeout = 0\n";
        let after = format!("# ours\n{list} # all of them\ntimeout = 0\n");
        assert_eq!(write(before), after);
        assert_eq!(rewrite_text(before, |_| {}), before);
    }

    #[test]
    fn a_changed_value_is_replaced_in_place_and_comments_stay() {
        let text = "# ours\ntimeout = 0 # never\nport = 0x18EB\n";
        assert_eq!(
            rewrite_text(text, |settings| settings.timeout_s = 5),
            "# ours\ntimeout = 5 # never\nport = 0x18EB\n"
        );
    }

    #[test]
    fn what_the_file_does_not_say_is_added_once_under_a_heading() {
        let change = |settings: &mut Settings| {
            settings.timeout_s = 5;
            settings.requirepass = Some("a\"b".into());
        };
        let text = rewrite_text("port = 6379", change);
        assert_eq!(
            text,
            "port = 6379\n\n# Written by CONFIG REWRITE.\nrequirepass = 'a\"b'\ntimeout = 5\n"
        );
        assert_eq!(rewrite_text(&text, change), text);
    }

    #[test]
    fn the_file_keeps_its_permissions_and_no_temporary_file_stays() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quoin.toml");
        std::fs::write(&path, "timeout = 1\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        rewrite(&path, &Settings::default(), None).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "timeout = 0\n");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
