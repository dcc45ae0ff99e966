//! The journal. With it, a commit costs one sync, or none with `fsync = everysec`.
//!
//! LMDB alone needs two syncs (one for the pages, one for the meta page that names them) and writes
//! whole pages. Here, a commit appends its writes to a file as one record, and syncs that file.
//! LMDB gets the writes later, from [memory](super::memory), without a sync. Now and then a
//! [checkpoint](super::checkpoint) syncs LMDB's file.
//!
//! After a crash the data file goes back to the checkpoint (or stays as it is, if there are no
//! checkpoints), and the records that it may lack are applied again. A record contains the values
//! of rows, not changes to them, so applying all of them is correct even if LMDB already has some.
//!
//! Two files are used in turn. A checkpoint switches to the other file. Once the checkpoint is on
//! the disk, the records before the switch are no longer needed. Each record has a sequence number.
//! LMDB stores the number up to which it has all records ([`APPLIED_KEY`]). These are not applied
//! again.
//!
//! ```text
//! file:   magic (12) | reserved blocks (4) | epoch (8) | checksum (8) | record …
//! record: length of the body (4) | reserved blocks (4) | sequence (8) | synced (8) | time in ms (8)
//!         | checksum of the header (8) | checksum of the body (8) | body
//! body:   write …
//! write:  1 | key | value      set
//!         2 | key              clear
//!         3 | begin | end      clear range
//! key, value, begin, end: length (4) | bytes
//! ```
//! Integers are little-endian. Checksums (SipHash-1-3) also cover the file's epoch, so that records
//! of an earlier turn of the file are not mistaken for newer ones. All records up to `synced` were
//! on the disk when the record was appended. If one of these cannot be read, the journal is
//! damaged. Any other unreadable record is an incomplete end ([`read`]). An open store always has
//! both files, and a row of the data file says so. A missing file is therefore damage too
//! ([`damage`], [`in_use`](super::in_use)).
//!
//! Files grow in steps, ahead of their records. A step is on the disk before a record says that it
//! is reserved. So a file that is shorter than its header or one of its records says was cut, which
//! is damage. Before the store itself cuts a file, it writes the new length into the file's header.
//!
//! [`APPLIED_KEY`]: super::table::APPLIED_KEY

mod damage;
mod files;
mod format;
mod part;
mod read;

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::files::paths;
use self::format::{BLOCK_BYTES, FILE_HEADER_BYTES, file_header};
use super::create::{private_file, sync_folder};
use super::error::may_pass;
use quoin_base::clock::{Clock, SystemClock};
use quoin_base::counter::Durations;
use quoin_base::limits;

pub use self::damage::JournalDamage;
pub(super) use self::damage::{JournalRefusal, Known, lost};
pub(super) use self::files::{exists, make_file, remove, set_aside, sync_files};
pub(super) use self::format::{RECORD_BYTES_MAX, Record, RecordHeader, Write, writes};
pub(super) use self::part::Part;
pub(super) use self::read::Survey;

/// The initial length of a journal file, in bytes. If the disk is full, commits that remove rows
/// use it.
const INITIAL_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes by which a journal file grows further. Clients wait while a step is written and synced, so
/// a large one takes too long.
const STEP_BYTES: u64 = 256 * 1024;

/// Bytes allocated at a time if there is no room for a whole step.
const SMALL_PIECE_BYTES: usize = 64 * 1024;

/// A file of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalFile {
    /// Its length in bytes.
    pub bytes: u64,
    /// Number of complete records of its current turn.
    pub records: u64,
    /// Number of the last complete record.
    pub last: Option<u64>,
}

/// Counts the complete records of each file, and finds acknowledged commits that are missing.
pub(super) fn inspect(
    folder: &Path,
    known: Known,
) -> io::Result<(Vec<JournalFile>, Option<JournalDamage>)> {
    let survey = Survey::after(folder, known.applied)?;
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
    let lost = lost(folder, known)?.map(JournalDamage::Files);
    let found = || JournalDamage::within(&survey, None);
    Ok((files, lost.or_else(found)))
}

/// The journal of an open store.
#[derive(Debug)]
pub(super) struct Journal {
    state: Mutex<State>,
    /// Whether an append syncs.
    syncs_appends: bool,
    /// Locked during a sync, if appends do not sync.
    syncs: Mutex<Syncs>,
    /// How long syncs took.
    sync_durations: Durations,
    /// Bytes of records since the last switch, readable without waiting for a sync.
    bytes: AtomicU64,
}

#[derive(Debug)]
struct Syncs {
    /// Number of the first record that may not be on the disk.
    next: u64,
    /// Whether a sync failed. The next one might report success for the same bytes.
    has_failed: bool,
}

#[derive(Debug)]
struct State {
    paths: [PathBuf; 2],
    files: [Arc<File>; 2],
    /// The index of the current file.
    turn: usize,
    /// Increased whenever a file is begun.
    epoch: u64,
    /// The offset of the next record.
    offset: u64,
    /// The length up to which each file has blocks of zeros on the disk. Because of these, most
    /// syncs need not change the file's length.
    allocated: [u64; 2],
    /// Whether the sync of a step failed. The next one might report success for the same bytes.
    has_failed: bool,
    /// Number of the next record.
    sequence: u64,
    /// Number of the last record that is on the disk together with all records before it.
    synced: u64,
    /// Bytes by which a file grows next. Smaller after there was no room for more.
    step_bytes: u64,
    /// Since when a record may have been waiting for a sync, if appends do not sync.
    unsynced_since: Option<Instant>,
    /// The other file as of the last switch, while the archive may still need it.
    closed: Option<Part>,
}

impl Journal {
    /// Begins a journal in `folder`. `sequence` is the number of the next record. Existing records
    /// are lost. The files keep their blocks, which helps if the disk is full.
    ///
    /// `first_epoch` is a random number. It keeps clients from guessing a record of this journal
    /// and putting it into a value, where it might be read after the last record.
    pub(super) fn create(
        folder: &Path,
        sequence: u64,
        first_epoch: u64,
        syncs_appends: bool,
    ) -> io::Result<Self> {
        let first_epoch = first_epoch / 2;
        let open = |path: &PathBuf| -> io::Result<(Arc<File>, u64)> {
            let file = make_file_at(path)?;
            let bytes = file.metadata()?.len();
            if bytes > INITIAL_BYTES {
                cut(&file, first_epoch)?;
            }
            Ok((Arc::new(file), bytes.min(INITIAL_BYTES)))
        };
        let paths = paths(folder);
        let [first, second] = &paths;
        let (first, second) = (open(first)?, open(second)?);
        let mut state = State {
            paths,
            files: [first.0, second.0],
            turn: 0,
            epoch: first_epoch,
            offset: 0,
            allocated: [first.1, second.1],
            has_failed: false,
            sequence,
            synced: sequence.saturating_sub(1),
            step_bytes: STEP_BYTES,
            unsynced_since: None,
            closed: None,
        };
        // What a header says is reserved must be on the disk before the header. If the disk is
        // full, the blocks that the journal already has are enough.
        for turn in [0, 1] {
            state.reserve(turn)?;
            state.file(turn)?.sync_all()?;
        }
        // The other file's records must not be mistaken for part of this journal. A file without a
        // header would be mistaken for a lost one.
        let other_header = file_header(state.epoch, state.allocated(1));
        state.file(1)?.write_all_at(&other_header, 0)?;
        state.begin_file(0)?;
        for turn in [0, 1] {
            state.file(turn)?.sync_all()?;
        }
        sync_folder(folder)?;
        Ok(Self {
            state: Mutex::new(state),
            syncs_appends,
            syncs: Mutex::new(Syncs {
                next: sequence,
                has_failed: false,
            }),
            sync_durations: Durations::default(),
            bytes: AtomicU64::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of records since the last switch.
    pub(super) fn bytes(&self) -> u64 {
        self.lock().offset
    }

    /// Bytes of records since the last switch, as of a moment ago. Never waits.
    pub(super) fn recent_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn sync_durations(&self) -> &Durations {
        &self.sync_durations
    }

    /// Makes sure that the file has blocks for a record of this size.
    ///
    /// # Errors
    /// If there is no room on the disk.
    pub(super) fn make_room(&self, record_bytes: u64) -> io::Result<()> {
        let mut state = self.lock();
        let end = state.offset.saturating_add(record_bytes);
        state.allocate(end)
    }

    /// Appends a record, and syncs it if appends sync. Returns its number. If appends do not sync
    /// and older records have waited too long for a sync, this waits for the sync, as Redis does.
    /// After an error the journal does not contain the record, unless writing or syncing failed
    /// ([`AppendError::Unknown`]).
    pub(super) fn append(&self, record: &mut Record) -> Result<u64, AppendError> {
        let mut state = self.lock();
        let (offset, sequence, turn) = (state.offset, state.sequence, state.turn);
        let time_ms = u64::try_from(SystemClock.now_ms()).unwrap_or(0);
        let end = offset + record.len() as u64;
        state.allocate(end).map_err(AppendError::of_allocation)?;
        let (epoch, synced) = (state.epoch, state.synced);
        record.seal(epoch, sequence, synced, time_ms, state.allocated(turn));
        let file = state.file(turn).map_err(AppendError::NotApplied)?;
        let mut at = offset;
        for part in record.parts() {
            file.write_all_at(part, at).map_err(AppendError::of_write)?;
            at += part.len() as u64;
        }
        if self.syncs_appends {
            let begun = Instant::now();
            file.sync_data().map_err(AppendError::of_sync)?;
            self.sync_durations.record(begun.elapsed());
            state.synced = sequence;
        }
        state.offset = end;
        self.bytes.store(end, Ordering::Relaxed);
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

    /// Syncs what was appended before the call, if appends do not sync. Other threads may append
    /// meanwhile. After a failure every later call fails too.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.sync_where(|_| true)
    }

    /// Syncs, if `is_due` still holds after other syncs have ended.
    fn sync_where(&self, is_due: impl Fn(&State) -> bool) -> io::Result<()> {
        if self.syncs_appends {
            return Ok(());
        }
        let mut syncs = self.syncs.lock().unwrap_or_else(PoisonError::into_inner);
        if syncs.has_failed {
            return Err(io::Error::other("an earlier sync of the journal failed"));
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
            return Err(JournalFailure::Sync(error).into());
        }
        self.sync_durations.record(begun.elapsed());
        syncs.next = next;
        let mut state = self.lock();
        state.synced = next.saturating_sub(1);
        state.unsynced_since = (state.sequence != next).then_some(begun);
        Ok(())
    }

    /// Whether [`Self::sync`] must be called.
    pub(super) fn needs_syncs(&self) -> bool {
        !self.syncs_appends
    }

    /// Appends to another file from now on.
    #[cfg(test)]
    pub(super) fn use_file(&self, path: &Path) {
        let mut state = self.lock();
        let turn = state.turn;
        let file = File::options().write(true).open(path).unwrap();
        state.files[turn] = Arc::new(file);
    }

    /// Whether everything is on the disk.
    #[cfg(test)]
    pub(super) fn is_synced(&self) -> bool {
        let syncs = self.syncs.lock().unwrap_or_else(PoisonError::into_inner);
        syncs.next == self.lock().sequence
    }

    /// Switches to the other file. Call this when a checkpoint begins, while nothing is being
    /// committed and everything is synced, and not again until that checkpoint is on the disk. If
    /// room is short (`is_short`), the file is cut to its initial length.
    pub(super) fn switch(&self, is_short: bool) -> io::Result<()> {
        let mut state = self.lock();
        let turn = 1 - state.turn;
        state.keep_name(turn);
        if is_short {
            state.shrink(turn)?;
        }
        state.reserve(turn)?;
        let closed = state.part()?;
        state.begin_file(turn)?;
        state.closed = Some(closed);
        self.bytes.store(state.offset, Ordering::Relaxed);
        Ok(())
    }

    /// The file that was current before the last switch, until it is forgotten.
    pub(super) fn closed(&self) -> Option<Part> {
        self.lock().closed.clone()
    }

    /// Forgets a closed file. The next switch may then overwrite it.
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

    /// The current file, up to its last record.
    pub(super) fn current(&self) -> io::Result<Part> {
        self.lock().part()
    }
}

/// Creates a journal file under a temporary name. It gets its own name, replacing any file there,
/// once it is on the disk with a header. So it is never mistaken for a lost one.
fn make_again(path: &Path, epoch: u64) -> io::Result<File> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let made = private_file()
        .create(true)
        .truncate(true)
        .read(true)
        .open(&beside)?;
    made.write_all_at(&file_header(epoch, 0), 0)?;
    made.sync_all()?;
    std::fs::rename(&beside, path)?;
    if let Some(folder) = path.parent() {
        sync_folder(folder)?;
    }
    Ok(made)
}

fn is_late(since: Instant) -> bool {
    since.elapsed() > Duration::from_millis(limits::EMBEDDED_SYNC_LAG_MS_MAX)
}

/// It is unknown what an append left on the disk.
#[derive(Debug, thiserror::Error)]
pub(super) enum JournalFailure {
    #[error("cannot write the journal: {0}")]
    Write(io::Error),
    #[error("cannot sync the journal: {0}")]
    Sync(io::Error),
}

impl JournalFailure {
    /// Whether an error is one of these.
    pub(super) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }
}

impl From<JournalFailure> for io::Error {
    fn from(failure: JournalFailure) -> Self {
        Self::other(failure)
    }
}

/// Why a record was not appended.
#[derive(Debug)]
pub(super) enum AppendError {
    /// The record will not be found.
    NotApplied(io::Error),
    /// The record may be found after a crash.
    Unknown(io::Error),
}

impl AppendError {
    /// If the sync of a step failed, earlier records may not be on the disk either.
    fn of_allocation(error: io::Error) -> Self {
        match JournalFailure::is(&error) {
            true => Self::Unknown(error),
            false => Self::NotApplied(error),
        }
    }

    /// A partly written record is not found, because its checksum does not match.
    fn of_write(error: io::Error) -> Self {
        if may_pass(&error) {
            Self::NotApplied(error)
        } else {
            Self::Unknown(JournalFailure::Write(error).into())
        }
    }

    fn of_sync(error: io::Error) -> Self {
        Self::Unknown(JournalFailure::Sync(error).into())
    }
}

impl State {
    fn file(&self, turn: usize) -> io::Result<&Arc<File>> {
        self.files
            .get(turn)
            .ok_or_else(|| io::Error::other("there are two journal files"))
    }

    /// The records appended since the last switch.
    fn part(&self) -> io::Result<Part> {
        Ok(Part {
            file: Arc::clone(self.file(self.turn)?),
            epoch: self.epoch,
            end: self.offset,
        })
    }

    /// The length up to which a file has blocks.
    fn allocated(&self, turn: usize) -> u64 {
        self.allocated.get(turn).copied().unwrap_or(0)
    }

    fn set_allocated(&mut self, turn: usize, bytes: u64) {
        if let Some(allocated) = self.allocated.get_mut(turn) {
            *allocated = bytes;
        }
    }

    /// Writes the header of a new epoch. The sync of the first record covers it.
    fn begin_file(&mut self, turn: usize) -> io::Result<()> {
        let epoch = self.epoch + 1;
        let file = self.file(turn)?;
        file.write_all_at(&file_header(epoch, self.allocated(turn)), 0)?;
        self.epoch = epoch;
        self.turn = turn;
        self.offset = FILE_HEADER_BYTES as u64;
        Ok(())
    }

    /// Recreates the file that is not in use, if its name was removed or given to another file.
    /// Otherwise its records would not be found after a kill. If it cannot be recreated, the open
    /// file stays in use.
    fn keep_name(&mut self, turn: usize) {
        let (Some(path), Some(file)) = (self.paths.get(turn), self.files.get_mut(turn)) else {
            return;
        };
        let identity = |metadata: io::Result<Metadata>| {
            let metadata = metadata.ok()?;
            Some((metadata.dev(), metadata.ino()))
        };
        let own = identity(file.metadata());
        if own.is_some() && identity(path.metadata()) == own {
            return;
        }
        let made = make_again(path, self.epoch);
        let path = path.display();
        match made {
            Ok(made) => {
                tracing::warn!(
                    file = %path,
                    "a file of the journal was removed while the server was running, and is \
                     created again"
                );
                *file = Arc::new(made);
                self.set_allocated(turn, 0);
            }
            Err(error) => tracing::error!(
                file = %path,
                %error,
                "a file of the journal was removed while the server was running, and cannot be \
                 created: shut the server down cleanly"
            ),
        }
    }

    /// Cuts a file that is not in use to its initial length.
    fn shrink(&mut self, turn: usize) -> io::Result<()> {
        if self.allocated(turn) <= INITIAL_BYTES {
            return Ok(());
        }
        cut(self.file(turn)?, self.epoch + 1)?;
        self.set_allocated(turn, INITIAL_BYTES);
        Ok(())
    }

    /// Gives a file that is not in use its first blocks, if it has none and there is room.
    fn reserve(&mut self, turn: usize) -> io::Result<()> {
        let header_bytes = FILE_HEADER_BYTES as u64;
        match self.grow(turn, header_bytes, header_bytes + 1, File::write_all_at) {
            Err(error) if !may_pass(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes sure that the current file has blocks up to `end`.
    fn allocate(&mut self, end: u64) -> io::Result<()> {
        self.grow(self.turn, self.offset, end, File::write_all_at)
    }

    /// Makes sure that a file has blocks up to `end`, and up to the end of a step if there is room.
    /// The file is in use up to `used`.
    fn grow(
        &mut self,
        turn: usize,
        used: u64,
        end: u64,
        write: impl Fn(&File, &[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.has_failed {
            let failed = io::Error::other("an earlier sync of the journal failed");
            return Err(JournalFailure::Sync(failed).into());
        }
        let allocated = self.allocated(turn);
        if end <= allocated {
            return Ok(());
        }
        let file = self.file(turn)?;
        // The bytes between the last record and `allocated` are from an earlier epoch.
        let from = allocated.max(used);
        let rounded = |step: u64| end.div_ceil(step) * step;
        let least = rounded(BLOCK_BYTES);
        let whole = match rounded(self.step_bytes) {
            whole if self.step_bytes == STEP_BYTES => whole.max(INITIAL_BYTES),
            whole => whole,
        };
        let (reached, step_bytes) = match write_zeros(file, from..whole, &write) {
            Ok(()) => {
                let next = (2 * self.step_bytes).min(STEP_BYTES);
                (whole, next)
            }
            Err(error) if may_pass(&error) && least < whole => {
                // The part of the step that was written is given back, for the data file.
                if file.metadata()?.len() > least {
                    file.set_len(least)?;
                }
                // In small pieces, because the free blocks may be scattered.
                for begin in (from..least).step_by(SMALL_PIECE_BYTES) {
                    let end = least.min(begin + SMALL_PIECE_BYTES as u64);
                    write_zeros(file, begin..end, &write)?;
                }
                (least, BLOCK_BYTES)
            }
            Err(error) => return Err(error),
        };
        // The next record will say that the file has this length.
        if let Err(error) = file.sync_data() {
            self.has_failed = true;
            return Err(JournalFailure::Sync(error).into());
        }
        self.set_allocated(turn, reached);
        self.step_bytes = step_bytes;
        Ok(())
    }
}

/// Cuts a file whose records are no longer needed to its initial length. Its header on the disk
/// says so first. Because records of an earlier epoch do not count, the file does not look as if it
/// had lost records.
fn cut(file: &File, epoch: u64) -> io::Result<()> {
    file.write_all_at(&file_header(epoch, INITIAL_BYTES), 0)?;
    file.sync_data()?;
    file.set_len(INITIAL_BYTES)
}

/// Opens a file of the journal. Creates it if it is missing.
fn make_file_at(path: &Path) -> io::Result<File> {
    let mut options = private_file();
    options.create(true).truncate(false).read(true);
    options.open(path)
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
