//! The bytes of the journal's files and records.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// Maximum size of a record in bytes: the largest transaction with its framing.
pub(in super::super) const RECORD_BYTES_MAX: u64 = 3 * 1024 * 1024 * 1024;

/// A multiple of the block sizes of file systems. Reserved space is counted in these.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// The first word of a record's header holds its length and, from this bit on, the reserved blocks.
const BLOCKS_SHIFT: u32 = 32;

/// Bytes before a file's records.
pub(super) const FILE_HEADER_BYTES: usize = 32;
/// Bytes before a record's writes.
pub(super) const RECORD_HEADER_BYTES: usize = 48;
/// The same for files of the first version, which have neither `synced` nor the time.
const OLD_RECORD_HEADER_BYTES: usize = 24;

/// A part of a record with this many bytes takes no more writes. So a large record is never copied
/// to grow.
const PART_BYTES: usize = 1024 * 1024;
/// Maximum memory that a record leaves to the next one, in bytes.
const KEPT_BYTES_MAX: usize = 2 * PART_BYTES;

/// The magic. It is followed by the number of reserved blocks.
const MAGIC: &[u8; 12] = b"quoin-wal-03";
/// The magic of files that do not say how much is reserved.
const SECOND_MAGIC: &[u8; 16] = b"quoin-journal-02";
const FIRST_MAGIC: &[u8; 16] = b"quoin-journal-01";

const SET: u8 = 1;
const CLEAR: u8 = 2;
const CLEAR_RANGE: u8 = 3;

/// One write of a record.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Write<'r> {
    Set(&'r [u8], &'r [u8]),
    Clear(&'r [u8]),
    ClearRange(&'r [u8], &'r [u8]),
}

/// A record that is being built.
#[derive(Debug)]
pub(in super::super) struct Record {
    /// The first part has the header and the first writes. Further parts have only writes. There is
    /// always one part.
    parts: Vec<Vec<u8>>,
    /// Bytes of all parts.
    bytes: usize,
}

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct RecordHeader {
    /// Bytes of the writes.
    pub(in super::super) length: u64,
    /// Number of the record. Numbers have no gaps.
    pub(in super::super) sequence: u64,
    /// All records up to this number were on the disk when this one was appended.
    pub(in super::super) synced: u64,
    /// When it was appended, in milliseconds since the Unix epoch. 0 if unknown.
    pub(in super::super) time_ms: u64,
    /// The file was at least this long, on the disk, when the record was appended. 0 if unknown.
    pub(super) reserved_bytes: u64,
    body_checksum: u64,
}

/// The header of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct FileHeader {
    pub(super) version: Version,
    /// The epoch of its records.
    pub(super) epoch: u64,
    /// The file was at least this long, on the disk, when its turn began. 0 if unknown.
    pub(super) reserved_bytes: u64,
}

/// The format of a file's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Version {
    /// Length, sequence, checksum.
    First,
    /// [`RecordHeader`]. Files with the second magic do not say how much is reserved.
    Second,
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}

impl Record {
    pub(in super::super) fn new() -> Self {
        Self::of(vec![0; RECORD_HEADER_BYTES])
    }

    /// A record with these bytes.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self {
            bytes: bytes.len(),
            parts: vec![bytes],
        }
    }

    /// Begins another record. It reuses the memory of this one, unless that is a lot.
    pub(in super::super) fn reset(&mut self) {
        self.truncate(RECORD_HEADER_BYTES);
        if self
            .parts
            .iter()
            .any(|part| part.capacity() > KEPT_BYTES_MAX)
        {
            *self = Self::new();
        }
    }

    pub(in super::super) fn push(&mut self, write: &Write<'_>) {
        let (kind, first, second) = match *write {
            Write::Set(key, value) => (SET, key, Some(value)),
            Write::Clear(key) => (CLEAR, key, None),
            Write::ClearRange(begin, end) => (CLEAR_RANGE, begin, Some(end)),
        };
        if self
            .parts
            .last()
            .is_none_or(|part| part.len() >= PART_BYTES)
        {
            self.parts.push(Vec::new());
        }
        let Some(part) = self.parts.last_mut() else {
            return;
        };
        let before = part.len();
        part.push(kind);
        for bytes in std::iter::once(first).chain(second) {
            // A transaction is smaller than 4 GiB, so each of its writes is too.
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            part.extend_from_slice(&length.to_le_bytes());
            part.extend_from_slice(bytes);
        }
        self.bytes += part.len() - before;
    }

    /// Its length in bytes.
    pub(in super::super) fn len(&self) -> usize {
        self.bytes
    }

    /// Removes the writes added since the record had this length.
    pub(in super::super) fn truncate(&mut self, length: usize) {
        while self.bytes > length
            && let Some(part) = self.parts.last_mut()
        {
            let surplus = self.bytes - length;
            if part.len() > surplus {
                part.truncate(part.len() - surplus);
                self.bytes = length;
            } else {
                self.bytes -= part.len();
                self.parts.pop();
            }
        }
    }

    /// Makes its first write invalid.
    #[cfg(test)]
    pub(super) fn spoil(&mut self) {
        self.parts[0][RECORD_HEADER_BYTES] = 0xff;
    }

    /// Whether it has no writes. Such a record must not be appended.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.bytes <= RECORD_HEADER_BYTES
    }

    /// Its bytes in file order. Call [`Self::seal`] first.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(Vec::as_slice)
    }

    /// Fills in the header. `reserved_bytes` of the file are on the disk.
    pub(super) fn seal(
        &mut self,
        epoch: u64,
        sequence: u64,
        synced: u64,
        time_ms: u64,
        reserved_bytes: u64,
    ) {
        let length = self.bytes.saturating_sub(RECORD_HEADER_BYTES) as u64;
        let sizes = length | u64::from(blocks(reserved_bytes)) << BLOCKS_SHIFT;
        let known = [sizes, sequence, synced, time_ms];
        let header_checksum = checksum(epoch, &known, []);
        let mut body = self.parts();
        let first = body.next().and_then(|part| part.get(RECORD_HEADER_BYTES..));
        let body_checksum = checksum(epoch, &[header_checksum], first.into_iter().chain(body));
        let fields = known.into_iter().chain([header_checksum, body_checksum]);
        let header = self.parts.first_mut().map(Vec::as_mut_slice);
        for (to, field) in header.unwrap_or_default().chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&field.to_le_bytes());
        }
    }
}

impl Version {
    /// Bytes of a record's header.
    pub(in super::super) fn header_bytes(self) -> usize {
        match self {
            Self::First => OLD_RECORD_HEADER_BYTES,
            Self::Second => RECORD_HEADER_BYTES,
        }
    }

    /// Reads a record's header. `None` if the bytes are not a header of this epoch. Files of the
    /// first version have no header checksum, so any bytes may look like a header.
    pub(in super::super) fn record_header(self, epoch: u64, bytes: &[u8]) -> Option<RecordHeader> {
        let header = match self {
            Self::First => {
                let [length, sequence, body_checksum] = words(bytes)?;
                RecordHeader {
                    length,
                    sequence,
                    // These files do not say. With `always` this was true.
                    synced: sequence.checked_sub(1)?,
                    time_ms: 0,
                    reserved_bytes: 0,
                    body_checksum,
                }
            }
            Self::Second => {
                let [
                    sizes,
                    sequence,
                    synced,
                    time_ms,
                    header_checksum,
                    body_checksum,
                ] = words(bytes)?;
                let known = [sizes, sequence, synced, time_ms];
                if header_checksum != checksum(epoch, &known, []) {
                    return None;
                }
                RecordHeader {
                    length: sizes & ((1 << BLOCKS_SHIFT) - 1),
                    sequence,
                    synced,
                    time_ms,
                    reserved_bytes: (sizes >> BLOCKS_SHIFT) * BLOCK_BYTES,
                    body_checksum,
                }
            }
        };
        let is_possible = header.length > 0 && header.length <= RECORD_BYTES_MAX;
        is_possible.then_some(header)
    }

    /// Whether the body belongs to the header.
    pub(in super::super) fn is_whole(self, header: &RecordHeader, epoch: u64, body: &[u8]) -> bool {
        let (sequence, length) = (header.sequence, header.length);
        let made_for = match self {
            Self::First => checksum(epoch, &[sequence, length], [body]),
            Self::Second => {
                let sizes = length | u64::from(blocks(header.reserved_bytes)) << BLOCKS_SHIFT;
                let known = [sizes, sequence, header.synced, header.time_ms];
                checksum(epoch, &[checksum(epoch, &known, [])], [body])
            }
        };
        body.len() as u64 == length && made_for == header.body_checksum
    }
}

fn checksum<'b>(epoch: u64, fields: &[u64], body: impl IntoIterator<Item = &'b [u8]>) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write_u64(epoch);
    for field in fields {
        hasher.write_u64(*field);
    }
    for part in body {
        hasher.write(part);
    }
    hasher.finish()
}

/// The header of a file whose records have this epoch and which has `reserved_bytes` on the disk.
pub(in super::super) fn file_header(epoch: u64, reserved_bytes: u64) -> Vec<u8> {
    let blocks = blocks(reserved_bytes).to_le_bytes();
    let begin = [MAGIC.as_slice(), &blocks].concat();
    let checksum = file_checksum(&begin, epoch).to_le_bytes();
    [begin.as_slice(), &epoch.to_le_bytes(), &checksum].concat()
}

/// Reads the header of a file. `None` if the file was never used or its header is damaged.
pub(in super::super) fn read_file_header(bytes: &[u8]) -> Option<FileHeader> {
    let (begin, fields) = bytes.split_first_chunk::<16>()?;
    let (version, reserved_blocks) = match (begin, begin.strip_prefix(MAGIC)) {
        (FIRST_MAGIC, _) => (Version::First, 0),
        (SECOND_MAGIC, _) => (Version::Second, 0),
        (_, Some(blocks)) => (Version::Second, u32::from_le_bytes(blocks.try_into().ok()?)),
        _ => return None,
    };
    let [epoch, checksum] = words(fields)?;
    (checksum == file_checksum(begin, epoch)).then_some(FileHeader {
        version,
        epoch,
        reserved_bytes: u64::from(reserved_blocks) * BLOCK_BYTES,
    })
}

/// The number of whole blocks in these bytes.
fn blocks(bytes: u64) -> u32 {
    u32::try_from(bytes / BLOCK_BYTES).unwrap_or(u32::MAX)
}

/// The epoch that a damaged header may have had.
pub(super) fn claimed_epoch(bytes: &[u8]) -> Option<u64> {
    let [epoch] = words(bytes.get(16..)?)?;
    Some(epoch)
}

fn file_checksum(begin: &[u8], epoch: u64) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(begin);
    hasher.write_u64(epoch);
    hasher.finish()
}

/// The first integers in `bytes`, if there are enough.
fn words<const COUNT: usize>(bytes: &[u8]) -> Option<[u64; COUNT]> {
    let mut words = [0; COUNT];
    for (word, chunk) in words
        .iter_mut()
        .zip(bytes.get(..8 * COUNT)?.chunks_exact(8))
    {
        *word = u64::from_le_bytes(chunk.try_into().ok()?);
    }
    Some(words)
}

/// The writes of a record's body, in order. An invalid write yields `None` and is the last.
pub(in super::super) fn writes(mut body: &[u8]) -> impl Iterator<Item = Option<Write<'_>>> {
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
