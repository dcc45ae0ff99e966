//! Finds commits that the journal should have but lacks: within its files, or because whole files
//! are missing.
//!
//! A running store always has both files, and each has the header of one of its turns. Nothing in
//! one file says whether the other had later commits. So a missing or empty file is damage.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::files::{FILE_NAMES, paths};
use super::format::FILE_HEADER_BYTES;
use super::read::{CutFile, Gap, Survey};

/// The journal lacks acknowledged commits, or may lack them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalDamage {
    /// There is a gap between other commits.
    Gap(Gap),
    /// Whole files are missing or empty.
    Files(LostFiles),
    /// The end of a file is missing.
    Cut(CutFile),
}

impl JournalDamage {
    /// Acknowledged commits that the files lack or may lack. `applied` is as in [`Survey::gap`].
    pub(in super::super) fn within(survey: &Survey, applied: Option<u64>) -> Option<Self> {
        let gap = survey.gap(applied).filter(Gap::is_damage);
        let cut = || survey.cut().cloned().map(Self::Cut);
        gap.map(Self::Gap).or_else(cut)
    }
}

impl fmt::Display for JournalDamage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap(gap) => gap.fmt(formatter),
            Self::Files(lost) => lost.fmt(formatter),
            Self::Cut(cut) => cut.fmt(formatter),
        }
    }
}

/// A store is refused because of its journal.
#[derive(Debug, thiserror::Error)]
#[error(
    "the journal is damaged: {0}. Nothing was changed. Restore a backup; or start once with \
     --accept-journal-loss yes to go on without these commits (the files are kept as \
     JOURNAL.*.damaged-1)"
)]
pub(in super::super) struct JournalRefusal(pub(in super::super) JournalDamage);

/// What is known about a store apart from its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Known {
    /// The data file says that the store has a journal.
    pub(in super::super) is_in_use: bool,
    /// There is a checkpoint.
    pub(in super::super) has_checkpoint: bool,
    /// Number of the last commit in the data file.
    pub(in super::super) applied: u64,
}

/// Files that are missing or empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostFiles {
    names: Vec<&'static str>,
    /// Number of the last commit that is still there.
    last: Option<u64>,
}

impl fmt::Display for LostFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is = if self.names.len() == 1 { "is" } else { "are" };
        write!(
            formatter,
            "{} {is} missing or empty, and commits ",
            self.names.join(" and ")
        )?;
        if let Some(last) = self.last {
            write!(formatter, "after number {last} ")?;
        }
        write!(formatter, "may have been there")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Missing,
    /// It has no header.
    Empty,
    Present,
}

/// Finds the files that should exist but are missing or empty.
pub(in super::super) fn lost(folder: &Path, known: Known) -> io::Result<Option<LostFiles>> {
    let mut found = Vec::new();
    for (name, path) in FILE_NAMES.into_iter().zip(paths(folder)) {
        found.push((name, presence(&path)?));
    }
    if found.iter().all(|(_, found)| *found == Presence::Present) {
        return Ok(None);
    }
    let survey = Survey::after(folder, known.applied)?;
    let is_lost = |found: Presence| match found {
        Presence::Missing => true,
        // In earlier versions of Quoin, a file had no header before its first turn.
        Presence::Empty => known.is_in_use,
        Presence::Present => false,
    };
    // If the row is missing (`is_in_use`), the first start was interrupted, or the store is from an
    // earlier version of Quoin. The first file is created before the first checkpoint, and the
    // second one before the first record.
    let lacks_first = found.first().is_some_and(|(_, found)| is_lost(*found));
    let are_made = known.has_checkpoint && (lacks_first || survey.first().is_some());
    if !known.is_in_use && !are_made {
        return Ok(None);
    }
    let lost = found.into_iter().filter(|(_, found)| is_lost(*found));
    let names: Vec<_> = lost.map(|(name, _)| name).collect();
    let last = survey
        .last()
        .max(Some(known.applied).filter(|applied| *applied > 0));
    Ok((!names.is_empty()).then_some(LostFiles { names, last }))
}

fn presence(path: &Path) -> io::Result<Presence> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Presence::Missing),
        Err(error) => return Err(error),
    };
    let mut header = Vec::new();
    file.take(FILE_HEADER_BYTES as u64)
        .read_to_end(&mut header)?;
    let is_written = header.len() == FILE_HEADER_BYTES && header.iter().any(|byte| *byte != 0);
    Ok(if is_written {
        Presence::Present
    } else {
        Presence::Empty
    })
}
