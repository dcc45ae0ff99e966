//! Finds the records of the journal, and damage in it.
//!
//! A crash of the process or a power failure leaves at most an incomplete end: no later record says
//! that it was on the disk ([`RecordHeader::synced`]). If a later record does say so, an unreadable
//! record is damage. Treating it as the end would lose acknowledged commits.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::files::paths;
use super::format::{
    FILE_HEADER_BYTES, FileHeader, RecordHeader, Version, claimed_epoch, read_file_header,
};
use quoin_base::size::counted;

/// Bytes read at a time.
const WINDOW_BYTES: u64 = 1 << 20;
/// Limits a search for records of the first version: total body bytes checked, as a multiple of the
/// file's bytes. A value's content may look like many headers.
const SEARCH_FACTOR: u64 = 8;

/// Consecutive records of a file.
#[derive(Debug, Clone)]
pub(in super::super) struct Run {
    path: PathBuf,
    version: Version,
    epoch: u64,
    /// The offset of the first record.
    begin: u64,
    /// The offset of the last record's end.
    end: u64,
    first: u64,
    last: u64,
    /// All records up to this one were on the disk when the last record was appended.
    synced: u64,
    /// The file was at least this long when the last record was appended.
    reserved_bytes: u64,
}

/// What the files of a journal contain.
#[derive(Debug, Default)]
pub(in super::super) struct Survey {
    /// In record order.
    runs: Vec<Run>,
    cut: Option<CutFile>,
}

/// A file that is shorter than it was while it was in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutFile {
    path: PathBuf,
    bytes: u64,
    reserved_bytes: u64,
    /// Number of the last complete record of the journal.
    last: Option<u64>,
}

impl fmt::Display for CutFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            bytes,
            reserved_bytes,
            last,
        } = self;
        write!(
            formatter,
            "{} was cut from at least {reserved_bytes} bytes to {bytes}, and commits {}may have been cut off",
            path.display(),
            last.map(|last| format!("after number {last} "))
                .unwrap_or_default()
        )
    }
}

/// A gap in the journal, with complete records after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The file, and the offset of the unreadable bytes. `None` if a file is missing.
    at: Option<(PathBuf, u64)>,
    /// Number of the first missing record.
    missing: u64,
    /// Number of complete records after the gap.
    after: u64,
    /// Number of the last record after the gap.
    last: u64,
    /// Whether the missing record was on the disk. If it was not, the gap may come from a power
    /// failure.
    was_synced: bool,
}

impl Gap {
    /// Whether continuing without the missing commits would lose acknowledged ones.
    pub fn is_damage(&self) -> bool {
        self.was_synced
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            missing,
            after,
            last,
            ..
        } = self;
        match &self.at {
            Some((path, offset)) => write!(
                formatter,
                "commit {missing} cannot be read ({} at byte {offset})",
                path.display()
            )?,
            None => write!(formatter, "commit {missing} is missing")?,
        }
        write!(
            formatter,
            ", and {} up to number {last} {} after it",
            counted(*after, "commit", "commits"),
            if *after == 1 { "comes" } else { "come" }
        )
    }
}

impl Survey {
    /// Reads all files of a folder's journal.
    pub(in super::super) fn of(folder: &Path) -> io::Result<Self> {
        Self::after(folder, 0)
    }

    /// Reads all files of a folder's journal. Records up to `applied` are not needed, and some of
    /// them may be missing from the result.
    pub(in super::super) fn after(folder: &Path, applied: u64) -> io::Result<Self> {
        let mut files = Vec::new();
        for path in paths(folder) {
            files.extend(Window::open(&path)?);
        }
        let mut headers = Vec::new();
        for file in &mut files {
            let header = file.bytes(0, FILE_HEADER_BYTES as u64)?;
            headers.push(header.map(<[u8]>::to_vec).unwrap_or_default());
        }
        let known: Vec<_> = headers
            .iter()
            .map(|header| read_file_header(header))
            .collect();
        let mut runs = Vec::new();
        for (file, header) in files.iter_mut().zip(&headers) {
            for (version, epoch) in epochs(header, known.iter().flatten()) {
                file.survey(version, epoch, applied + 1, &mut runs)?;
            }
        }
        runs.sort_by_key(|run| (run.first, run.last));
        let mut survey = Self { runs, cut: None };
        for (file, header) in files.iter().zip(known) {
            if survey.cut.is_none() {
                survey.cut = survey.cut_of(file, header)?;
            }
        }
        Ok(survey)
    }

    /// `Some` if a file was cut, so that records may be missing.
    fn cut_of(&self, file: &Window, header: Option<FileHeader>) -> io::Result<Option<CutFile>> {
        let runs = || self.runs.iter().filter(|run| run.path == file.path);
        let of_records = runs().map(|run| run.reserved_bytes).max();
        let of_header = header.map(|header| header.reserved_bytes);
        let reserved_bytes = of_records.max(of_header).unwrap_or(0);
        // A server may have extended the file while its records were read.
        let bytes = file.file.metadata()?.len();
        let epoch = header
            .map(|header| header.epoch)
            .or_else(|| runs().map(|run| run.epoch).max());
        // If the next turn has records, a gap before them shows what is missing.
        let next_turn = epoch.map(|epoch| epoch.wrapping_add(1));
        let is_followed = self.runs.iter().any(|run| Some(run.epoch) == next_turn);
        let is_cut = bytes < reserved_bytes && !is_followed;
        Ok(is_cut.then(|| CutFile {
            path: file.path.clone(),
            bytes,
            reserved_bytes,
            last: self.last(),
        }))
    }

    /// A file that was cut, so that records may be missing.
    pub(super) fn cut(&self) -> Option<&CutFile> {
        self.cut.as_ref()
    }

    /// Number of the first record.
    pub(in super::super) fn first(&self) -> Option<u64> {
        self.runs.first().map(|run| run.first)
    }

    /// The first gap. Records after it cannot be applied. Records up to `applied` are not needed.
    /// If `applied` is `None`, only gaps between the files' records count.
    pub(in super::super) fn gap(&self, applied: Option<u64>) -> Option<Gap> {
        let mut runs = self.runs.iter();
        let mut before: Option<&Run> = None;
        let mut reached = match applied {
            Some(applied) => applied,
            None => {
                let first = self.runs.first()?;
                if first.begin == FILE_HEADER_BYTES as u64 {
                    first.first.saturating_sub(1)
                } else {
                    // There were other records before it.
                    first.first.saturating_sub(2)
                }
            }
        };
        let next = runs.by_ref().find(|run| {
            let is_gap = run.first > reached + 1;
            if !is_gap && run.last >= reached {
                reached = run.last;
            }
            if !is_gap {
                before = Some(run);
            }
            is_gap
        })?;
        let missing = reached + 1;
        let later = || std::iter::once(next).chain(runs.clone());
        let same_file =
            next.begin > FILE_HEADER_BYTES as u64 && before.is_none_or(|run| run.path == next.path);
        let at = match before {
            Some(run) => Some((run.path.clone(), run.end)),
            None if same_file => Some((next.path.clone(), FILE_HEADER_BYTES as u64)),
            None => None,
        };
        Some(Gap {
            at,
            missing,
            after: later().map(|run| run.last - run.first + 1).sum(),
            last: later().map(|run| run.last).max().unwrap_or(missing),
            was_synced: later().any(|run| run.synced >= missing),
        })
    }

    /// Number of the last record.
    pub(in super::super) fn last(&self) -> Option<u64> {
        self.runs.iter().map(|run| run.last).max()
    }

    /// The number of complete records in a file, and the number of the last one.
    pub(in super::super) fn records_of(&self, path: &Path) -> (u64, Option<u64>) {
        let runs = || self.runs.iter().filter(|run| run.path == path);
        let records = runs().map(|run| run.last - run.first + 1).sum();
        (records, runs().map(|run| run.last).max())
    }

    /// Calls `apply` with every record after `applied`, in order, up to the first gap.
    ///
    /// # Errors
    /// If `apply` fails.
    pub(in super::super) fn read(
        &self,
        applied: u64,
        mut apply: impl FnMut(&RecordHeader, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut reached = applied;
        for run in &self.runs {
            if run.first > reached + 1 {
                break;
            }
            if run.last <= reached {
                continue;
            }
            let Some(mut file) = Window::open(&run.path)? else {
                return Err(changed());
            };
            let mut offset = run.begin;
            while offset < run.end {
                let found = file.record(run.version, run.epoch, offset)?;
                let (header, body) = found.ok_or_else(changed)?;
                if header.sequence > reached {
                    apply(&header, body)?;
                    reached = header.sequence;
                }
                offset += run.version.header_bytes() as u64 + header.length;
            }
        }
        Ok(())
    }
}

fn changed() -> io::Error {
    io::Error::other("the journal changed while it was read")
}

/// The epochs that a file's records may have. If the header is damaged, these are the epoch that it
/// seems to have, and the epochs before and after the other file's.
fn epochs<'h>(header: &[u8], others: impl Iterator<Item = &'h FileHeader>) -> Vec<(Version, u64)> {
    if let Some(known) = read_file_header(header) {
        return vec![(known.version, known.epoch)];
    }
    let is_unused = header.iter().all(|byte| *byte == 0);
    if is_unused {
        return Vec::new();
    }
    let mut found: Vec<(Version, u64)> = others
        .flat_map(|FileHeader { version, epoch, .. }| {
            [epoch.wrapping_sub(1), epoch.wrapping_add(1)].map(|near| (*version, near))
        })
        .chain(claimed_epoch(header).map(|epoch| (Version::Second, epoch)))
        .collect();
    found.dedup();
    found
}

/// A file, part of which is in memory.
struct Window {
    path: PathBuf,
    file: File,
    length: u64,
    begin: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        Ok(Some(Self {
            path: path.to_owned(),
            file,
            length,
            begin: 0,
            bytes: Vec::new(),
        }))
    }

    /// At least `least` bytes from `offset` on. `None` if the file has fewer.
    fn at_least(&mut self, offset: u64, least: u64) -> io::Result<Option<&[u8]>> {
        let end = offset.saturating_add(least);
        if end > self.length {
            return Ok(None);
        }
        if offset < self.begin || end > self.begin + self.bytes.len() as u64 {
            let wanted = least.max(WINDOW_BYTES).min(self.length - offset);
            let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
            self.bytes.resize(wanted, 0);
            self.file.read_exact_at(&mut self.bytes, offset)?;
            self.begin = offset;
        }
        let from = usize::try_from(offset - self.begin).unwrap_or(usize::MAX);
        Ok(self.bytes.get(from..))
    }

    /// `length` bytes from `offset` on. `None` if the file has fewer.
    fn bytes(&mut self, offset: u64, length: u64) -> io::Result<Option<&[u8]>> {
        let found = self.at_least(offset, length)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        Ok(found.and_then(|found| found.get(..length)))
    }

    /// The complete record at an offset, if there is one.
    fn record(
        &mut self,
        version: Version,
        epoch: u64,
        offset: u64,
    ) -> io::Result<Option<(RecordHeader, &[u8])>> {
        let header_bytes = version.header_bytes() as u64;
        let header = self
            .bytes(offset, header_bytes)?
            .and_then(|bytes| version.record_header(epoch, bytes));
        let Some(header) = header else {
            return Ok(None);
        };
        let body = self.bytes(offset + header_bytes, header.length)?;
        Ok(body
            .filter(|body| version.is_whole(&header, epoch, body))
            .map(|body| (header, body)))
    }

    /// Adds the runs of one epoch's records in this file. Searches damaged parts for records from
    /// number `wanted` on.
    fn survey(
        &mut self,
        version: Version,
        epoch: u64,
        wanted: u64,
        runs: &mut Vec<Run>,
    ) -> io::Result<()> {
        let mut run: Option<Run> = None;
        let mut offset = FILE_HEADER_BYTES as u64;
        let mut next = 0;
        loop {
            let found = self
                .record(version, epoch, offset)?
                .map(|(header, _)| header);
            // A number below `next` belongs to another turn of the file.
            let Some(header) = found.filter(|header| header.sequence >= next) else {
                match self.search(version, epoch, offset + 1, next.max(wanted))? {
                    Some(found) => offset = found,
                    None => break,
                }
                continue;
            };
            let end = offset + version.header_bytes() as u64 + header.length;
            let follows = |run: &Run| run.last + 1 == header.sequence && run.end == offset;
            match &mut run {
                Some(run) if follows(run) => {
                    run.last = header.sequence;
                    run.synced = run.synced.max(header.synced);
                    run.reserved_bytes = run.reserved_bytes.max(header.reserved_bytes);
                    run.end = end;
                }
                _ => runs.extend(run.replace(Run {
                    path: self.path.clone(),
                    version,
                    epoch,
                    begin: offset,
                    end,
                    first: header.sequence,
                    last: header.sequence,
                    synced: header.synced,
                    reserved_bytes: header.reserved_bytes,
                })),
            }
            next = header.sequence + 1;
            offset = end;
        }
        runs.extend(run);
        Ok(())
    }

    /// The offset of the next complete record at or after `from` whose number is at least `next`.
    fn search(
        &mut self,
        version: Version,
        epoch: u64,
        from: u64,
        next: u64,
    ) -> io::Result<Option<u64>> {
        let header_bytes = version.header_bytes();
        let is_header = |bytes: &[u8]| {
            is_numbered(bytes, next) && version.record_header(epoch, bytes).is_some()
        };
        let mut left = self.length.saturating_mul(SEARCH_FACTOR);
        let mut offset = from;
        while let Some(bytes) = self.at_least(offset, header_bytes as u64)? {
            let Some(at) = bytes.windows(header_bytes).position(is_header) else {
                offset += (bytes.len() + 1 - header_bytes) as u64;
                continue;
            };
            offset += at as u64;
            if self.record(version, epoch, offset)?.is_some() {
                return Ok(Some(offset));
            }
            let header = self.bytes(offset, header_bytes as u64)?;
            let header = header.and_then(|bytes| version.record_header(epoch, bytes));
            let body_bytes = header.map_or(0, |header| header.length.min(self.length));
            left = left.saturating_sub(body_bytes);
            if left == 0 {
                break;
            }
            offset += 1;
        }
        Ok(None)
    }
}

/// Whether a header's number can be that of a record from `next` on. Called for each byte of a
/// file.
fn is_numbered(header: &[u8], next: u64) -> bool {
    /// More records than the two files of a journal can have.
    const RECORDS_MAX: u64 = 1 << 40;
    let Some((_, number)) = header.split_first_chunk::<8>() else {
        return false;
    };
    let number = number
        .first_chunk()
        .map_or(0, |number| u64::from_le_bytes(*number));
    number >= next && number - next < RECORDS_MAX
}
