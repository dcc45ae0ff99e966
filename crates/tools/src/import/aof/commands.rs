//! The commands of an append-only file, as Redis writes them: arrays of bulk strings, and lines with
//! `#` in front that say when.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::import::error::{ImportError, no_file};
use quoin_base::limits::{REQUEST_ARGUMENTS_MAX, REQUEST_BULK_BYTES_MAX};

/// The longest line: `#` and what follows (Redis: `AOF_ANNOTATION_LINE_MAX_LEN`).
const LINE_BYTES_MAX: u64 = 1024;
/// Places that an announced number of arguments reserves.
const RESERVED_MAX: usize = 1024;

/// What comes next.
pub(super) enum Next {
    Command(Vec<Bytes>),
    End,
    /// The file ends within a command.
    CutOff,
}

/// Reads commands from a place on.
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
    /// Where the next command begins.
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

    /// An argument; `None` where the file ends within it.
    fn word(&mut self) -> Result<Option<Bytes>, ImportError> {
        let Line::Whole(line) = self.line()? else {
            return Ok(None);
        };
        let length = line.strip_prefix(b"$").and_then(number);
        let length = length.filter(|length| *length <= REQUEST_BULK_BYTES_MAX);
        let length = length.ok_or_else(|| self.damaged("the length of an argument"))?;
        let mut word = Vec::new();
        // The end of the line belongs to it. A length that the file does not bear out reserves nothing.
        let whole = length as u64 + 2;
        let taken = (&mut self.source).take(whole).read_to_end(&mut word);
        let taken = taken.map_err(no_file(&self.path))?;
        self.position += taken as u64;
        if (taken as u64) < whole {
            return Ok(None);
        }
        match word.strip_suffix(b"\r\n") {
            Some(_) => word.truncate(length),
            None => return Err(self.damaged("an argument that is longer than it says")),
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

/// What is said where no command begins.
const NO_COMMAND: &str = "something that is no command";

enum Line {
    /// Without its end.
    Whole(Vec<u8>),
    None,
    CutOff,
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What a file of commands has.
pub(super) struct Checked {
    /// Where the last whole command ends that is in no transaction which is cut off.
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

/// Whether no command begins after this place.
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
            ("PING\r\n", "no command"),
            ("*0\r\n", "number of arguments"),
            ("*x\r\n", "number of arguments"),
            ("*1\r\n+OK\r\n", "length of an argument"),
            ("*1\r\n$-1\r\n", "length of an argument"),
            ("*1\r\n$99999999999\r\n", "length of an argument"),
            ("*1\r\n$1\r\nab\r\n", "longer than it says"),
        ] {
            let error = checked(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        let long = format!("#{}", "x".repeat(2000));
        assert!(checked(&long).unwrap_err().contains("too long"));
    }
}
