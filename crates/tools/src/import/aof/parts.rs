//! The files of which an append-only file consists.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use crate::import::error::{ImportError, no_file};
use quoin_base::limits::{IMPORT_VALUE_BYTES_MAX, SETTINGS_FILE_BYTES_MAX};
use quoin_rdb::{AofRole, RdbReader};
use quoin_resp::wire::inline::split_arguments;

/// Where Redis keeps its append-only file, within its folder.
const FOLDER_DEFAULT: &str = "appendonlydir";
const MANIFEST_SUFFIX: &str = ".manifest";
const INCREMENT_SUFFIX: &str = ".incr.aof";
const BASE_SUFFIX: &str = ".base.aof";

/// The files, in the order in which they were written.
#[derive(Debug)]
pub(in crate::import) struct Parts {
    pub(super) files: Vec<Part>,
    /// Whether it is a base alone, without what was written after it.
    is_lone_base: bool,
}

/// One file.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::import) struct Part {
    pub(super) path: PathBuf,
    pub(super) kind: PartKind,
}

/// How a file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::import) enum PartKind {
    /// As an RDB file; commands may follow.
    Rdb,
    /// With commands.
    Commands,
}

/// Something that a file lacks.
pub(in crate::import) struct Incomplete {
    pub(in crate::import) name: String,
    pub(in crate::import) why: String,
}

impl Parts {
    /// What is not there, as far as the files tell.
    pub(super) fn incomplete(&self) -> Option<Incomplete> {
        let part = self.files.first().filter(|_| self.is_lone_base)?;
        Some(Incomplete {
            name: format!("the end of {}", part.path.display()),
            why: "the file is the base of an append-only file: what was written after it is in \
                  *.incr.aof files next to it; import their folder"
                .to_owned(),
        })
    }
}

/// The files of an append-only file, of which `path` is the folder, the manifest or the only file;
/// `None` where it is something else.
pub(in crate::import) fn parts(path: &Path) -> Result<Option<Parts>, ImportError> {
    let is_folder = std::fs::metadata(path).map_err(no_file(path))?.is_dir();
    if is_folder {
        return listed(&manifest_in(path)?).map(Some);
    }
    if has_suffix(path, MANIFEST_SUFFIX) {
        return listed(path).map(Some);
    }
    let Some(kind) = kind_of(path)? else {
        return Ok(None);
    };
    if has_suffix(path, INCREMENT_SUFFIX) {
        return Err(ImportError::LoneIncrement(path.to_owned()));
    }
    if kind == PartKind::Rdb && !is_followed(path)? {
        return Ok(None);
    }
    Ok(Some(Parts {
        is_lone_base: has_suffix(path, BASE_SUFFIX),
        files: vec![Part {
            path: path.to_owned(),
            kind,
        }],
    }))
}

fn has_suffix(path: &Path, suffix: &str) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.ends_with(suffix.as_bytes())
}

/// How a file begins; `None` where it is neither.
fn kind_of(path: &Path) -> Result<Option<PartKind>, ImportError> {
    let mut first = Vec::new();
    let file = File::open(path).map_err(no_file(path))?;
    file.take(6)
        .read_to_end(&mut first)
        .map_err(no_file(path))?;
    Ok(match first.as_slice() {
        [b'*' | b'#', ..] => Some(PartKind::Commands),
        first if first.starts_with(b"REDIS") || first == b"VALKEY" => Some(PartKind::Rdb),
        _ => None,
    })
}

/// Whether an RDB file says that it begins an append-only file, and commands follow in it.
fn is_followed(path: &Path) -> Result<bool, ImportError> {
    let damaged = |source| ImportError::Rdb {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(no_file(path))?;
    let bytes = file.metadata().map_err(no_file(path))?.len();
    let mut reader =
        RdbReader::begin(BufReader::new(file), IMPORT_VALUE_BYTES_MAX).map_err(damaged)?;
    // It says so before its first key.
    let mut next = reader.next_item().map_err(damaged)?;
    if reader.aof_role() == AofRole::None {
        return Ok(false);
    }
    while next.is_some() {
        next = reader.next_item().map_err(damaged)?;
    }
    Ok(reader.position() < bytes)
}

/// The manifest in a folder, or in the folder within it that Redis makes.
fn manifest_in(folder: &Path) -> Result<PathBuf, ImportError> {
    for folder in [folder, &folder.join(FOLDER_DEFAULT)] {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(no_file(folder))?.path();
            if has_suffix(&path, MANIFEST_SUFFIX) {
                found.push(path);
            }
        }
        match found.len() {
            0 => {}
            1 => return found.pop().ok_or_else(|| manifest(folder, "it is gone")),
            _ => return Err(manifest(folder, "there are several; name one of them")),
        }
    }
    Err(manifest(
        folder,
        "the folder has none, so it is not the folder of an append-only file (appendonlydir)",
    ))
}

fn manifest(path: &Path, what: &'static str) -> ImportError {
    ImportError::Manifest {
        path: path.to_owned(),
        what,
    }
}

/// The files that a manifest lists: the base, and then the increments by their numbers.
fn listed(path: &Path) -> Result<Parts, ImportError> {
    let mut text = Vec::new();
    let file = File::open(path).map_err(no_file(path))?;
    file.take(SETTINGS_FILE_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(no_file(path))?;
    if text.len() as u64 > SETTINGS_FILE_BYTES_MAX {
        return Err(manifest(path, "it is longer than a manifest may be"));
    }
    let mut base = None;
    let mut increments = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let wrong = || manifest(path, "it has a line that is not as Redis writes it");
        let listed = Listed::read(line).ok_or_else(wrong)?;
        match listed.kind.as_str() {
            "b" if base.is_none() => base = Some(listed.name),
            "i" => increments.push((listed.number, listed.name)),
            // Of before the last rewrite.
            "h" => {}
            _ => return Err(wrong()),
        }
    }
    increments.sort();
    let folder = path.parent().unwrap_or(Path::new(""));
    let names = base
        .into_iter()
        .chain(increments.into_iter().map(|(_, name)| name));
    let mut files = Vec::new();
    for name in names {
        let path = folder.join(name);
        // An empty file has no commands.
        let kind = kind_of(&path)?.unwrap_or(PartKind::Commands);
        files.push(Part { path, kind });
    }
    if files.is_empty() {
        return Err(manifest(path, "it lists no file"));
    }
    Ok(Parts {
        files,
        is_lone_base: false,
    })
}

/// A line of a manifest: names and values in turns.
struct Listed {
    name: String,
    number: u64,
    kind: String,
}

impl Listed {
    fn read(line: &[u8]) -> Option<Self> {
        let words = split_arguments(line)?;
        let value = |name: &str| {
            let mut pairs = words.chunks(2);
            let found = pairs.find_map(|pair| match pair {
                [key, value] if &key[..] == name.as_bytes() => Some(value.to_vec()),
                _ => None,
            });
            found.and_then(|value| String::from_utf8(value).ok())
        };
        // A path would lead out of the folder.
        let name = value("file").filter(|name| !name.is_empty() && !name.contains('/'))?;
        Some(Self {
            name,
            number: value("seq")?.parse().ok()?,
            kind: value("type")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files, of which `*` is in each.
    fn folder(manifest: &str, names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.aof.manifest"), manifest).unwrap();
        for name in names {
            std::fs::write(folder.path().join(name), "*").unwrap();
        }
        folder
    }

    fn names(parts: &Parts) -> Vec<String> {
        let names = parts.files.iter().map(|part| part.path.file_name());
        names
            .map(|name| name.unwrap().to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_manifest_lists_the_base_and_then_the_increments_by_number() {
        let manifest = "file \"a b\" seq 3 type b\nfile old seq 1 type h\n\
                        file i10 seq 10 type i startoffset 0\nfile i9 seq 9 type i\n";
        let folder = folder(manifest, &["a b", "i9", "i10"]);
        let found = parts(folder.path()).unwrap().unwrap();
        assert_eq!(names(&found), ["a b", "i9", "i10"]);
        assert!(found.incomplete().is_none());
        let by_name = parts(&folder.path().join("a.aof.manifest")).unwrap();
        assert_eq!(by_name.unwrap().files, found.files);
    }

    #[test]
    fn a_manifest_that_is_not_as_redis_writes_it_is_refused() {
        for (manifest, expected) in [
            ("", "lists no file"),
            ("file x seq 1 type b\nfile y seq 2 type b\n", "has a line"),
            ("file ../x seq 1 type b\n", "has a line"),
            ("file x seq 1 type z\n", "has a line"),
            ("file x type b\n", "has a line"),
            ("file x seq 1 type b\n", "x: "),
        ] {
            let folder = folder(manifest, &[]);
            let error = parts(folder.path()).unwrap_err().to_string();
            assert!(error.contains(expected), "{manifest:?}: {error}");
        }
        let empty = tempfile::tempdir().unwrap();
        let error = parts(empty.path()).unwrap_err().to_string();
        assert!(error.contains("appendonlydir"), "{error}");
    }

    #[test]
    fn a_part_alone_says_what_it_is() {
        let folder = folder("", &["x.1.incr.aof", "x.1.base.aof", "plain.aof"]);
        let of = |name: &str| parts(&folder.path().join(name));
        let error = of("x.1.incr.aof").unwrap_err().to_string();
        assert!(error.contains("import their folder"), "{error}");
        let base = of("x.1.base.aof").unwrap().unwrap();
        assert!(base.incomplete().is_some());
        let plain = of("plain.aof").unwrap().unwrap();
        assert!(plain.incomplete().is_none());
    }
}
