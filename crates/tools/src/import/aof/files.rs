//! The files of an append-only file: its manifest and parts, and the commands in them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::import::report::{ImportError, no_file, no_rdb};
use quoin_base::limits::{
    IMPORT_VALUE_BYTES_MAX, REQUEST_ARGUMENTS_MAX, REQUEST_BULK_BYTES_MAX, SETTINGS_FILE_BYTES_MAX,
};
use quoin_rdb::{AofRole, RdbReader};
use quoin_resp::wire::inline::split_arguments;

/// Redis's folder for its append-only file.
const FOLDER_DEFAULT: &str = "appendonlydir";
const MANIFEST_SUFFIX: &str = ".manifest";
const INCREMENT_SUFFIX: &str = ".incr.aof";
const BASE_SUFFIX: &str = ".base.aof";

/// The files, in the order they were written.
#[derive(Debug)]
pub(in crate::import) struct Parts {
    pub(super) files: Vec<Part>,
    /// Whether it is only a base, without what was written after it.
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
    /// As an RDB file. Commands may follow.
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
    /// What is missing, as far as the files show.
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

/// The files of an append-only file. `path` is its folder, its manifest or its only file. `None` if it is
/// something else.
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

/// How a file begins. `None` if it is neither.
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
    let file = File::open(path).map_err(no_file(path))?;
    let bytes = file.metadata().map_err(no_file(path))?.len();
    let mut reader =
        RdbReader::begin(BufReader::new(file), IMPORT_VALUE_BYTES_MAX).map_err(no_rdb(path))?;
    // It says so before its first key.
    let mut next = reader.next_item().map_err(no_rdb(path))?;
    if reader.aof_role() == AofRole::None {
        return Ok(false);
    }
    while next.is_some() {
        next = reader.next_item().map_err(no_rdb(path))?;
    }
    Ok(reader.position() < bytes)
}

/// The manifest in a folder, or in Redis's folder within it.
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
        return Err(manifest(path, "it is too long for a manifest"));
    }
    let mut base = None;
    let mut increments = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let wrong = || manifest(path, "it has a line that Redis does not write");
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
        return Err(manifest(path, "it lists no files"));
    }
    Ok(Parts {
        files,
        is_lone_base: false,
    })
}

/// A line of a manifest: pairs of name and value.
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

/// The longest line: `#` and what follows (Redis: `AOF_ANNOTATION_LINE_MAX_LEN`).
const LINE_BYTES_MAX: u64 = 1024;

/// Places that an announced number of arguments reserves.
const RESERVED_MAX: usize = 1024;

/// The next command, or the end.
pub(super) enum Next {
    Command(Vec<Bytes>),
    End,
    /// The file ends within a command.
    CutOff,
}

/// Reads commands from an offset on.
pub(super) struct Commands<R> {
    path: PathBuf,
    source: R,
    position: u64,
}

impl Commands<BufReader<File>> {
    pub(super) fn open(path: &Path, begin: u64) -> Result<Self, ImportError> {
        let mut file = File::open(path).map_err(no_file(path))?;
        file.seek(SeekFrom::Start(begin)).map_err(no_file(path))?;
        Ok(Self {
            path: path.to_owned(),
            source: BufReader::new(file),
            position: begin,
        })
    }
}

impl<R: BufRead> Commands<R> {
    /// Offset of the next command.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn next(&mut self) -> Result<Next, ImportError> {
        let count = loop {
            let line = match self.line()? {
                Line::Whole(line) => line,
                Line::None => return Ok(Next::End),
                Line::CutOff => return Ok(Next::CutOff),
            };
            match line.split_first() {
                Some((b'#', _)) => {}
                Some((b'*', digits)) => break number(digits),
                _ => return Err(self.damaged(NO_COMMAND)),
            }
        };
        let count = count.filter(|count| (1..=REQUEST_ARGUMENTS_MAX).contains(count));
        let count = count.ok_or_else(|| self.damaged("the number of arguments of a command"))?;
        let mut words = Vec::with_capacity(count.min(RESERVED_MAX));
        for _ in 0..count {
            match self.word()? {
                Some(word) => words.push(word),
                None => return Ok(Next::CutOff),
            }
        }
        Ok(Next::Command(words))
    }

    /// An argument. `None` if the file ends within it.
    fn word(&mut self) -> Result<Option<Bytes>, ImportError> {
        let Line::Whole(line) = self.line()? else {
            return Ok(None);
        };
        let length = line.strip_prefix(b"$").and_then(number);
        let length = length.filter(|length| *length <= REQUEST_BULK_BYTES_MAX);
        let length = length.ok_or_else(|| self.damaged("the length of an argument"))?;
        let mut word = Vec::new();
        // Includes the line end. Reserves no memory for a length that exceeds the file.
        let whole = length as u64 + 2;
        let taken = (&mut self.source).take(whole).read_to_end(&mut word);
        let taken = taken.map_err(no_file(&self.path))?;
        self.position += taken as u64;
        if (taken as u64) < whole {
            return Ok(None);
        }
        match word.strip_suffix(b"\r\n") {
            Some(_) => word.truncate(length),
            None => return Err(self.damaged("an argument that is longer than its stated length")),
        }
        Ok(Some(word.into()))
    }

    fn line(&mut self) -> Result<Line, ImportError> {
        let mut line = Vec::new();
        let taken = (&mut self.source)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line);
        let taken = taken.map_err(no_file(&self.path))? as u64;
        self.position += taken;
        if line.pop_if(|byte| *byte == b'\n').is_some() {
            line.pop_if(|byte| *byte == b'\r');
            return Ok(Line::Whole(line));
        }
        match taken {
            0 => Ok(Line::None),
            LINE_BYTES_MAX.. => Err(self.damaged("a line that is too long")),
            _ => Ok(Line::CutOff),
        }
    }

    fn damaged(&self, what: &'static str) -> ImportError {
        ImportError::Aof {
            path: self.path.clone(),
            at: self.position,
            what,
        }
    }
}

/// The error if no command begins here.
const NO_COMMAND: &str = "something that is not a command";

enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    None,
    CutOff,
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The result of checking a file of commands.
pub(super) struct Checked {
    /// End of the last complete command outside of an incomplete transaction.
    pub(super) end: u64,
    /// Bytes after that.
    pub(super) cut_off_bytes: u64,
    /// The greatest number of a database.
    pub(super) database_max: u32,
}

/// Reads all commands of a file.
pub(super) fn check(path: &Path, begin: u64) -> Result<Checked, ImportError> {
    let mut commands = Commands::open(path, begin)?;
    let mut end = begin;
    let mut is_in_transaction = false;
    let mut database_max = 0;
    while let Next::Command(words) = commands.next()? {
        match words.as_slice() {
            [name] if is(name, "multi") => is_in_transaction = true,
            [name] if is(name, "exec") => is_in_transaction = false,
            [name, database] if is(name, "select") => {
                let database = number(database).and_then(|one| u32::try_from(one).ok());
                database_max = database_max.max(database.unwrap_or(0));
            }
            _ => {}
        }
        if !is_in_transaction {
            end = commands.position();
        }
    }
    // Lines with # after the last command are no loss.
    let is_cut_off = is_in_transaction || !is_over(path, end)?;
    Ok(Checked {
        end,
        cut_off_bytes: match is_cut_off {
            true => length(path)?.saturating_sub(end),
            false => 0,
        },
        database_max,
    })
}

/// Whether no command begins after this offset.
fn is_over(path: &Path, at: u64) -> Result<bool, ImportError> {
    Ok(matches!(Commands::open(path, at)?.next()?, Next::End))
}

fn length(path: &Path) -> Result<u64, ImportError> {
    let length = || -> io::Result<u64> { Ok(std::fs::metadata(path)?.len()) };
    length().map_err(no_file(path))
}

/// Whether a word is this one, in any case.
pub(super) fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a manifest and these files; each file contains `*`.
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

    fn checked(text: &str) -> Result<(u64, u64, u32), String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let checked = check(file.path(), 0).map_err(|error| error.to_string())?;
        Ok((checked.end, checked.cut_off_bytes, checked.database_max))
    }

    const SELECT: &str = "*2\r\n$6\r\nSELECT\r\n$2\r\n17\r\n";

    const MULTI: &str = "*1\r\n$5\r\nMULTI\r\n";

    const EXEC: &str = "*1\r\n$4\r\nEXEC\r\n";

    #[test]
    fn a_file_ends_with_its_last_whole_command() {
        let whole = SELECT.len() as u64;
        assert_eq!(checked(SELECT), Ok((whole, 0, 17)));
        assert_eq!(checked(""), Ok((0, 0, 0)));
        let annotated = format!("#TS:1\r\n{SELECT}#TS:2\r\n");
        assert_eq!(checked(&annotated), Ok((whole + 7, 0, 17)));
        for cut in 1..SELECT.len() {
            let text = format!("{SELECT}{}", &SELECT[..cut]);
            assert_eq!(checked(&text), Ok((whole, cut as u64, 17)), "{cut}");
        }
    }

    #[test]
    fn a_transaction_that_is_cut_off_is_none() {
        let whole = format!("{SELECT}{MULTI}{SELECT}{EXEC}");
        assert_eq!(checked(&whole), Ok((whole.len() as u64, 0, 17)));
        let text = format!("{SELECT}{MULTI}{SELECT}");
        let rest = (text.len() - SELECT.len()) as u64;
        assert_eq!(checked(&text), Ok((SELECT.len() as u64, rest, 17)));
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for (text, expected) in [
            ("PING\r\n", "not a command"),
            ("*0\r\n", "number of arguments"),
            ("*x\r\n", "number of arguments"),
            ("*1\r\n+OK\r\n", "length of an argument"),
            ("*1\r\n$-1\r\n", "length of an argument"),
            ("*1\r\n$99999999999\r\n", "length of an argument"),
            ("*1\r\n$1\r\nab\r\n", "longer than its stated length"),
        ] {
            let error = checked(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        let long = format!("#{}", "x".repeat(2000));
        assert!(checked(&long).unwrap_err().contains("too long"));
    }
}
