//! The journal: what makes a commit cost one sync, or none with `fsync = everysec`.
//!
//! LMDB alone needs two, one for the pages and one for the meta page that names them, and writes
//! whole pages. Here a commit appends its writes to a file as one record and syncs that; LMDB
//! gets them later, from the [overlay](super::overlay), without a sync; every second a
//! [checkpoint](super::checkpoint) syncs it. After a crash the data file goes back to the
//! checkpoint (or is as LMDB has it, where there are none), and the records that may be missing
//! there are applied again. A record says what rows are, not how they change, so it does no harm
//! that LMDB has some of what later records say: when the last was applied all is as it was.
//!
//! There are two files, written in turn: a checkpoint switches to the other, and when it is on
//! the disk the records before the switch are of no more use. Each record has a sequence number;
//! LMDB stores up to which it has everything ([`APPLIED_KEY`]), and none before is applied again.
//!
//! ```text
//! file:   magic (16) | epoch (8) | checksum (8) | record …
//! record: length of the body (8) | sequence (8) | synced (8) | time in ms (8)
//!         | checksum of the header (8) | checksum of the body (8) | body
//! body:   write …
//! write:  1 | key | value      set
//!         2 | key              clear
//!         3 | begin | end      clear range
//! key, value, begin, end: length (4) | bytes
//! ```
//! Integers are little-endian. Checksums (SipHash-1-3) cover the file's epoch too, so that what a
//! file held in an earlier turn is not taken for more of it. All records up to `synced` were on the
//! disk when the record was appended, so one of those that cannot be read is damage, and not an end
//! that was never finished ([`read`]).
//!
//! [`APPLIED_KEY`]: super::table::APPLIED_KEY

mod files;
mod format;
mod part;
mod read;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::files::paths;
use self::format::{FILE_HEADER_BYTES, file_header};
use super::create::private_file;
use super::error::may_pass;
use crate::clock::{Clock, SystemClock};
use crate::limits;

pub(super) use self::files::{exists, make_file, remove, set_aside, sync_files};
pub(super) use self::format::{RECORD_BYTES_MAX, Record, RecordHeader, Write, writes};
pub(super) use self::part::Part;
pub use self::read::Gap;
pub(super) use self::read::{JournalDamage, Survey};

/// Bytes by which a journal file grows.
const STEP_BYTES: u64 = 4 * 1024 * 1024;

/// What file systems give to a file at a time, or a multiple of it.
const BLOCK_BYTES: u64 = 4096;
/// What is asked for at a time where a file finds no room for a whole step.
const SMALL_PIECE_BYTES: usize = 64 * 1024;

/// A file of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalFile {
    /// Its length.
    pub bytes: u64,
    /// Whole records of its present turn.
    pub records: u64,
    /// Number of the last of those.
    pub last: Option<u64>,
}

/// Counts the whole records of each file, and looks for gaps between them.
///
/// # Errors
/// Where a file cannot be read.
pub(super) fn inspect(folder: &Path) -> io::Result<(Vec<JournalFile>, Option<Gap>)> {
    let survey = Survey::of(folder)?;
    let mut files = Vec::new();
    for path in paths(folder) {
        let bytes = match path.metadata() {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let (records, last) = survey.records_of(&path);
        files.push(JournalFile {
            bytes,
            records,
            last,
        });
    }
    Ok((files, survey.gap(None)))
}

/// The journal of an open store.
#[derive(Debug)]
pub(super) struct Journal {
    state: Mutex<State>,
    /// Whether a record is on the disk when it was appended.
    syncs_appends: bool,
    /// Held by who syncs, where appending does not.
    syncs: Mutex<Syncs>,
}

#[derive(Debug)]
struct Syncs {
    /// Number of the first record that may not be on the disk.
    next: u64,
    /// A sync has failed. The next might not say so, of the same bytes.
    has_failed: bool,
}

#[derive(Debug)]
struct State {
    files: [Arc<File>; 2],
    /// Which of the files is written to.
    turn: usize,
    /// Grows whenever a file is begun.
    epoch: u64,
    /// Where the next record goes.
    offset: u64,
    /// Up to where each file has blocks of zeros, so that most syncs need not change its length.
    allocated: [u64; 2],
    /// Number of the next record.
    sequence: u64,
    /// All records up to this one are on the disk.
    synced: u64,
    /// By how much a file grows the next time: little where there was no room for more.
    step_bytes: u64,
    /// Since when, at most, something has waited to be synced, where appending does not.
    unsynced_since: Option<Instant>,
    /// The other file as it was at the last switch, while something may still want to read it.
    closed: Option<Part>,
}

impl Journal {
    /// Begins a journal in `folder` with the number of the next record. The records that are there
    /// are lost. The files keep their blocks, which serve where the disk is full.
    ///
    /// `first_epoch` is a random number: no client can then guess what a record of this journal
    /// looks like, and plant one in a value where reading might go on after the last record.
    ///
    /// # Errors
    /// When the files cannot be made, or be written to.
    pub(super) fn create(
        folder: &Path,
        sequence: u64,
        first_epoch: u64,
        syncs_appends: bool,
    ) -> io::Result<Self> {
        let open = |path: &PathBuf| -> io::Result<(Arc<File>, u64)> {
            let mut options = private_file();
            options.create(true).truncate(false).read(true);
            let file = options.open(path)?;
            let bytes = file.metadata()?.len();
            let step = STEP_BYTES;
            if bytes > step {
                file.set_len(step)?;
            }
            Ok((Arc::new(file), bytes.min(step)))
        };
        let [first, second] = paths(folder);
        let (first, second) = (open(&first)?, open(&second)?);
        let mut state = State {
            files: [first.0, second.0],
            turn: 0,
            epoch: first_epoch / 2,
            offset: 0,
            allocated: [first.1, second.1],
            sequence,
            synced: sequence.saturating_sub(1),
            step_bytes: STEP_BYTES,
            unsynced_since: None,
            closed: None,
        };
        // Nobody may take what the other file holds for a part of this journal.
        state.file(1)?.write_all_at(&[0; FILE_HEADER_BYTES], 0)?;
        state.begin_file(0)?;
        // Blocks that the journal has will do when the disk is full.
        let header_bytes = FILE_HEADER_BYTES as u64;
        for turn in [0, 1] {
            match state.grow(turn, header_bytes, header_bytes + 1, File::write_all_at) {
                Err(error) if !may_pass(&error) => return Err(error),
                _ => {}
            }
            state.file(turn)?.sync_all()?;
        }
        File::open(folder)?.sync_all()?;
        Ok(Self {
            state: Mutex::new(state),
            syncs_appends,
            syncs: Mutex::new(Syncs {
                next: sequence,
                has_failed: false,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of records since the last switch.
    pub(super) fn bytes(&self) -> u64 {
        self.lock().offset
    }

    /// Makes sure that the file has blocks for a record of so many bytes.
    ///
    /// # Errors
    /// Where there is no room on the disk for that.
    pub(super) fn make_room(&self, record_bytes: u64) -> io::Result<()> {
        let mut state = self.lock();
        let end = state.offset.saturating_add(record_bytes);
        state.allocate(end)
    }

    /// Puts a record into the file, and on the disk where that is what appending does here;
    /// answers its number. Where appending does not sync, and what was appended long ago is not on
    /// the disk, it waits for that, as Redis does. After an error the record is not there, unless
    /// the error came from writing or syncing it ([`AppendError::Unknown`]).
    pub(super) fn append(&self, record: &mut Record) -> Result<u64, AppendError> {
        let mut state = self.lock();
        let (offset, sequence, turn) = (state.offset, state.sequence, state.turn);
        let time_ms = u64::try_from(SystemClock.now_ms()).unwrap_or(0);
        record.seal(state.epoch, sequence, state.synced, time_ms);
        let end = offset + record.bytes().len() as u64;
        state.allocate(end).map_err(AppendError::NotApplied)?;
        let file = state.file(turn).map_err(AppendError::NotApplied)?;
        file.write_all_at(record.bytes(), offset)
            .map_err(AppendError::of_write)?;
        if self.syncs_appends {
            file.sync_data().map_err(AppendError::Unknown)?;
            state.synced = sequence;
        }
        state.offset = end;
        state.sequence = sequence + 1;
        if self.syncs_appends {
            return Ok(sequence);
        }
        let since = *state.unsynced_since.get_or_insert_with(Instant::now);
        drop(state);
        if is_late(since) {
            self.sync_where(|state| state.unsynced_since.is_some_and(is_late))
                .map_err(AppendError::Unknown)?;
        }
        Ok(sequence)
    }

    /// Puts on the disk what was appended before the call, where appending does not. Others may
    /// append meanwhile. After a failure every later call fails too.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.sync_where(|_| true)
    }

    /// The same where that is still due when nobody else syncs any more.
    fn sync_where(&self, is_due: impl Fn(&State) -> bool) -> io::Result<()> {
        if self.syncs_appends {
            return Ok(());
        }
        let mut syncs = self.syncs.lock().unwrap_or_else(PoisonError::into_inner);
        if syncs.has_failed {
            return Err(io::Error::other("a sync of the journal has failed before"));
        }
        let (file, next) = {
            let state = self.lock();
            if state.sequence == syncs.next || !is_due(&state) {
                return Ok(());
            }
            // The other file was synced before the switch.
            (Arc::clone(state.file(state.turn)?), state.sequence)
        };
        let begun = Instant::now();
        if let Err(error) = file.sync_data() {
            syncs.has_failed = true;
            return Err(error);
        }
        syncs.next = next;
        let mut state = self.lock();
        state.synced = next.saturating_sub(1);
        state.unsynced_since = (state.sequence != next).then_some(begun);
        Ok(())
    }

    /// Whether somebody has to call [`Self::sync`].
    pub(super) fn needs_syncs(&self) -> bool {
        !self.syncs_appends
    }

    /// Whether everything is on the disk.
    #[cfg(test)]
    pub(super) fn is_synced(&self) -> bool {
        let syncs = self.syncs.lock().unwrap_or_else(PoisonError::into_inner);
        syncs.next == self.lock().sequence
    }

    /// Goes on in the other file. To be called while nobody commits and everything is synced,
    /// when a checkpoint begins; and not again before that checkpoint is on the disk. Where room is
    /// short (`is_short`) the file gives back what it has grown by.
    pub(super) fn switch(&self, is_short: bool) -> io::Result<()> {
        let mut state = self.lock();
        let turn = 1 - state.turn;
        if is_short {
            state.shrink(turn)?;
        }
        let closed = state.part()?;
        state.begin_file(turn)?;
        state.closed = Some(closed);
        Ok(())
    }

    /// The file before the last switch, until it is forgotten.
    pub(super) fn closed(&self) -> Option<Part> {
        self.lock().closed.clone()
    }

    /// Lets a file go that was closed: the next switch may write over it.
    pub(super) fn forget_closed(&self, part: &Part) {
        let mut state = self.lock();
        if state
            .closed
            .as_ref()
            .is_some_and(|closed| closed.epoch == part.epoch)
        {
            state.closed = None;
        }
    }

    /// The file that is appended to, as far as it is now.
    pub(super) fn current(&self) -> io::Result<Part> {
        self.lock().part()
    }
}

fn is_late(since: Instant) -> bool {
    since.elapsed() > Duration::from_millis(limits::EMBEDDED_SYNC_LAG_MS_MAX)
}

/// Why a record was not appended.
#[derive(Debug)]
pub(super) enum AppendError {
    /// Nothing of it will be found.
    NotApplied(io::Error),
    /// It may be found after a crash.
    Unknown(io::Error),
}

impl AppendError {
    /// A record of which only a part could be written is none: its checksum does not fit.
    fn of_write(error: io::Error) -> Self {
        if may_pass(&error) {
            Self::NotApplied(error)
        } else {
            Self::Unknown(error)
        }
    }
}

impl State {
    fn file(&self, turn: usize) -> io::Result<&Arc<File>> {
        self.files
            .get(turn)
            .ok_or_else(|| io::Error::other("there are two journal files"))
    }

    /// What was appended since the last switch.
    fn part(&self) -> io::Result<Part> {
        Ok(Part {
            file: Arc::clone(self.file(self.turn)?),
            epoch: self.epoch,
            end: self.offset,
        })
    }

    /// Writes the header of a new epoch; the sync of its first record covers it.
    fn begin_file(&mut self, turn: usize) -> io::Result<()> {
        let epoch = self.epoch + 1;
        let file = self.file(turn)?;
        file.write_all_at(&file_header(epoch), 0)?;
        self.epoch = epoch;
        self.turn = turn;
        self.offset = FILE_HEADER_BYTES as u64;
        Ok(())
    }

    /// Cuts a file that is not in use to the length that it had at first.
    fn shrink(&mut self, turn: usize) -> io::Result<()> {
        let step = STEP_BYTES;
        if self.allocated.get(turn).is_none_or(|bytes| *bytes <= step) {
            return Ok(());
        }
        self.file(turn)?.set_len(step)?;
        if let Some(allocated) = self.allocated.get_mut(turn) {
            *allocated = step;
        }
        Ok(())
    }

    /// Makes sure that the current file has blocks up to `end`.
    fn allocate(&mut self, end: u64) -> io::Result<()> {
        self.grow(self.turn, self.offset, end, File::write_all_at)
    }

    /// Makes sure that a file, which is used up to `used`, has blocks up to `end`; where there is
    /// room, up to the end of a step.
    fn grow(
        &mut self,
        turn: usize,
        used: u64,
        end: u64,
        write: impl Fn(&File, &[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(allocated) = self.allocated.get(turn).copied() else {
            return Ok(());
        };
        if end <= allocated {
            return Ok(());
        }
        let file = self.file(turn)?;
        // What lies between the last record and `allocated` belongs to an earlier epoch.
        let from = allocated.max(used);
        let rounded = |step: u64| end.div_ceil(step) * step;
        let (whole, least) = (rounded(self.step_bytes), rounded(BLOCK_BYTES));
        let (reached, step_bytes) = match write_zeros(file, from..whole, &write) {
            Ok(()) => {
                let next = (2 * self.step_bytes).min(STEP_BYTES);
                (whole, next)
            }
            Err(error) if may_pass(&error) && least < whole => {
                // What it got of the step is left to the data file.
                if file.metadata()?.len() > least {
                    file.set_len(least)?;
                }
                // In small pieces: what is left may be scattered.
                for begin in (from..least).step_by(SMALL_PIECE_BYTES) {
                    let end = least.min(begin + SMALL_PIECE_BYTES as u64);
                    write_zeros(file, begin..end, &write)?;
                }
                (least, BLOCK_BYTES)
            }
            Err(error) => return Err(error),
        };
        if let Some(allocated) = self.allocated.get_mut(turn) {
            *allocated = reached;
        }
        self.step_bytes = step_bytes;
        Ok(())
    }
}

fn write_zeros(
    file: &File,
    range: Range<u64>,
    write: impl Fn(&File, &[u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    let length = range.end.saturating_sub(range.start);
    let length = length.min(STEP_BYTES);
    let zeros = vec![0; usize::try_from(length).unwrap_or(0)];
    let mut at = range.start;
    while at < range.end {
        let left = usize::try_from(range.end - at).unwrap_or(usize::MAX);
        let part = zeros.get(..left).unwrap_or(&zeros);
        write(file, part, at)?;
        at += part.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests;
