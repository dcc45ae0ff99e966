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
//! record: length of the body (8) | sequence (8) | checksum (8) | body
//! body:   write …
//! write:  1 | key | value      set
//!         2 | key              clear
//!         3 | begin | end      clear range
//! key, value, begin, end: length (4) | bytes
//! ```
//! Integers are little-endian. A checksum (SipHash-1-3) covers what is before and behind it in
//! its record, and the file's epoch, so that what a file held in an earlier turn is not taken for
//! more of it.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use siphasher::sip::SipHasher13;

use super::create::private_file;
use super::error::is_out_of_room;
use super::inspect::JournalFile;
use crate::limits;

/// Where LMDB has a sequence number up to which all records are in it; of later ones it may have
/// parts. Outside of what FoundationDB, and so this store, gives to its users.
pub(super) const APPLIED_KEY: &[u8] = b"\xff\xffquoin/journal-applied";

const FILE_NAMES: [&str; 2] = ["JOURNAL.0", "JOURNAL.1"];
const MAGIC: &[u8; 16] = b"quoin-journal-01";
const FILE_HEADER_BYTES: usize = 32;
const RECORD_HEADER_BYTES: usize = 24;
/// What file systems give to a file at a time, or a multiple of it.
const BLOCK_BYTES: u64 = 4096;

const SET: u8 = 1;
const CLEAR: u8 = 2;
const CLEAR_RANGE: u8 = 3;

/// One write of a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Write<'r> {
    Set(&'r [u8], &'r [u8]),
    Clear(&'r [u8]),
    ClearRange(&'r [u8], &'r [u8]),
}

/// A record under construction.
#[derive(Debug)]
pub(super) struct Record {
    bytes: Vec<u8>,
}

impl Record {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; RECORD_HEADER_BYTES],
        }
    }

    pub(super) fn push(&mut self, write: &Write<'_>) {
        let (kind, first, second) = match *write {
            Write::Set(key, value) => (SET, key, Some(value)),
            Write::Clear(key) => (CLEAR, key, None),
            Write::ClearRange(begin, end) => (CLEAR_RANGE, begin, Some(end)),
        };
        self.bytes.push(kind);
        for part in std::iter::once(first).chain(second) {
            // A transaction is smaller than 4 GiB, so its parts are.
            let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
            self.bytes.extend_from_slice(&length.to_le_bytes());
            self.bytes.extend_from_slice(part);
        }
    }

    /// Whether there is no write in it; such a record is not to be appended.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.len() <= RECORD_HEADER_BYTES
    }

    fn seal(&mut self, epoch: u64, sequence: u64) {
        let Some((header, body)) = self.bytes.split_first_chunk_mut::<RECORD_HEADER_BYTES>() else {
            return;
        };
        let checksum = record_checksum(epoch, sequence, body);
        let fields = [body.len() as u64, sequence, checksum];
        for (to, field) in header.chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&field.to_le_bytes());
        }
    }
}

fn record_checksum(epoch: u64, sequence: u64, body: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write_u64(epoch);
    hasher.write_u64(sequence);
    hasher.write_u64(body.len() as u64);
    hasher.write(body);
    hasher.finish()
}

fn file_checksum(epoch: u64) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(MAGIC);
    hasher.write_u64(epoch);
    hasher.finish()
}

/// The writes of a record's body, in order. `None` for one that is no write.
pub(super) fn writes(mut body: &[u8]) -> impl Iterator<Item = Option<Write<'_>>> {
    std::iter::from_fn(move || {
        if body.is_empty() {
            return None;
        }
        let write = take_write(&mut body);
        if write.is_none() {
            body = &[];
        }
        Some(write)
    })
}

fn take_write<'r>(body: &mut &'r [u8]) -> Option<Write<'r>> {
    let (kind, rest) = body.split_first()?;
    *body = rest;
    let first = take_part(body)?;
    match *kind {
        SET => Some(Write::Set(first, take_part(body)?)),
        CLEAR => Some(Write::Clear(first)),
        CLEAR_RANGE => Some(Write::ClearRange(first, take_part(body)?)),
        _ => None,
    }
}

fn take_part<'r>(body: &mut &'r [u8]) -> Option<&'r [u8]> {
    let (length, rest) = body.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (part, rest) = rest.split_at_checked(length)?;
    *body = rest;
    Some(part)
}

/// Calls `apply` with sequence and body of every whole record in the folder, in their order.
///
/// # Errors
/// What reading the files, or `apply`, failed with.
pub(super) fn read_all(
    folder: &Path,
    mut apply: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut files = Vec::new();
    for path in paths(folder) {
        if let Some(found) = open_file(&path)? {
            files.push(found);
        }
    }
    files.sort_by_key(|(epoch, _)| *epoch);
    for (epoch, mut file) in files {
        while let Some((sequence, body)) = read_record(&mut file, epoch)? {
            apply(sequence, &body)?;
        }
    }
    Ok(())
}

/// Counts the whole records of each file.
pub(super) fn inspect(folder: &Path) -> io::Result<Vec<JournalFile>> {
    let mut files = Vec::new();
    for path in paths(folder) {
        let Some((epoch, mut file)) = open_file(&path)? else {
            continue;
        };
        let mut found = JournalFile {
            bytes: file.get_ref().metadata()?.len(),
            records: 0,
            last: None,
        };
        while let Some((sequence, _)) = read_record(&mut file, epoch)? {
            found.records += 1;
            found.last = Some(sequence);
        }
        files.push(found);
    }
    Ok(files)
}

fn paths(folder: &Path) -> [PathBuf; 2] {
    FILE_NAMES.map(|name| folder.join(name))
}

/// A journal file and its epoch; `None` where there is none, or one that was never used.
fn open_file(path: &Path) -> io::Result<Option<(u64, BufReader<File>)>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut file = BufReader::new(file);
    let mut header = [0; FILE_HEADER_BYTES];
    if !read_whole(&mut file, &mut header)? {
        return Ok(None);
    }
    let Some((magic, fields)) = header.split_first_chunk::<16>() else {
        return Ok(None);
    };
    let [epoch, checksum] = words(fields);
    let is_valid = magic == MAGIC && checksum == file_checksum(epoch);
    Ok(is_valid.then_some((epoch, file)))
}

/// The next record, unless what follows is none: the end, or one that was never finished.
fn read_record(file: &mut impl Read, epoch: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut header = [0; RECORD_HEADER_BYTES];
    if !read_whole(file, &mut header)? {
        return Ok(None);
    }
    let [length, sequence, checksum] = words(&header);
    if length == 0 || length > limits::EMBEDDED_JOURNAL_RECORD_BYTES_MAX {
        return Ok(None);
    }
    let mut body = Vec::new();
    file.by_ref().take(length).read_to_end(&mut body)?;
    let is_whole = body.len() as u64 == length;
    if is_whole && checksum == record_checksum(epoch, sequence, &body) {
        Ok(Some((sequence, body)))
    } else {
        Ok(None)
    }
}

fn words<const COUNT: usize>(bytes: &[u8]) -> [u64; COUNT] {
    let mut words = [0; COUNT];
    let chunks = bytes.chunks_exact(8);
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
    }
    words
}

fn read_whole(file: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Puts on the disk what a process that died had appended.
pub(super) fn sync_files(folder: &Path) -> io::Result<()> {
    for path in paths(folder) {
        match File::open(path) {
            Ok(file) => file.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether there is a file of a journal.
pub(super) fn exists(folder: &Path) -> io::Result<bool> {
    let [first, second] = paths(folder);
    Ok(first.try_exists()? || second.try_exists()?)
}

/// Makes an empty file where there is none, before the first checkpoint: so none is without a
/// journal, and one that is missing later was lost.
pub(super) fn make_file(folder: &Path) -> io::Result<()> {
    let [first, _] = paths(folder);
    private_file().create(true).append(true).open(first)?;
    File::open(folder)?.sync_all()
}

/// Removes the journal, when everything in it is in the synced data file.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    for path in paths(folder) {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    File::open(folder)?.sync_all()
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
    /// By how much a file grows the next time: little where there was no room for more.
    step_bytes: u64,
    /// Since when, at most, something has waited to be synced, where appending does not.
    unsynced_since: Option<Instant>,
}

impl Journal {
    /// Begins anew in `folder` with the number of the next record. What was there is lost.
    ///
    /// `first_epoch` is a random number: no client can then guess what a record of this journal
    /// looks like, and plant one in a value where reading might go on behind the last record.
    pub(super) fn create(
        folder: &Path,
        sequence: u64,
        first_epoch: u64,
        syncs_appends: bool,
    ) -> io::Result<Self> {
        let create = |path: &PathBuf| {
            let mut options = private_file();
            options.create(true).truncate(true).read(true);
            options.open(path).map(Arc::new)
        };
        let [first, second] = paths(folder);
        let mut state = State {
            files: [create(&first)?, create(&second)?],
            turn: 0,
            epoch: first_epoch / 2,
            offset: 0,
            allocated: [0; 2],
            sequence,
            step_bytes: limits::EMBEDDED_JOURNAL_STEP_BYTES,
            unsynced_since: None,
        };
        state.begin_file(0)?;
        // Blocks that the journal has will do when the disk is full.
        let header_bytes = FILE_HEADER_BYTES as u64;
        for (turn, from) in [(0, header_bytes), (1, 0)] {
            match state.grow(turn, from, header_bytes, File::write_all_at) {
                Err(error) if !is_out_of_room(&error) => return Err(error),
                _ => {}
            }
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

    /// Puts a record into the file, and on the disk where that is what appending does here;
    /// answers its number. Where appending does not sync, and what was appended long ago is not on
    /// the disk, it waits for that, as Redis does. After an error the record is not there, unless
    /// the error came from writing or syncing it ([`AppendError::Unknown`]).
    pub(super) fn append(&self, record: &mut Record) -> Result<u64, AppendError> {
        let mut state = self.lock();
        let (offset, sequence, turn) = (state.offset, state.sequence, state.turn);
        record.seal(state.epoch, sequence);
        let end = offset + record.bytes.len() as u64;
        state.allocate(end).map_err(AppendError::NotApplied)?;
        let file = state.file(turn).map_err(AppendError::NotApplied)?;
        file.write_all_at(&record.bytes, offset)
            .and_then(|()| {
                if self.syncs_appends {
                    file.sync_data()
                } else {
                    Ok(())
                }
            })
            .map_err(AppendError::Unknown)?;
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
    /// when a checkpoint begins;
    /// and not again before that checkpoint is on the disk.
    pub(super) fn switch(&self) -> io::Result<()> {
        let mut state = self.lock();
        let turn = 1 - state.turn;
        state.begin_file(turn)
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

impl State {
    fn file(&self, turn: usize) -> io::Result<&Arc<File>> {
        self.files
            .get(turn)
            .ok_or_else(|| io::Error::other("there are two journal files"))
    }

    /// Writes the header of a new epoch; the sync of its first record covers it.
    fn begin_file(&mut self, turn: usize) -> io::Result<()> {
        let epoch = self.epoch + 1;
        let header = [
            MAGIC.as_slice(),
            &epoch.to_le_bytes(),
            &file_checksum(epoch).to_le_bytes(),
        ]
        .concat();
        let file = self.file(turn)?;
        file.write_all_at(&header, 0)?;
        self.epoch = epoch;
        self.turn = turn;
        self.offset = FILE_HEADER_BYTES as u64;
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
                let next = (2 * self.step_bytes).min(limits::EMBEDDED_JOURNAL_STEP_BYTES);
                (whole, next)
            }
            Err(error) if is_out_of_room(&error) && least < whole => {
                // What it got of the step is left to the data file.
                if file.metadata()?.len() > least {
                    file.set_len(least)?;
                }
                write_zeros(file, from..least, &write)?;
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
    let length = length.min(limits::EMBEDDED_JOURNAL_STEP_BYTES);
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
mod tests;
