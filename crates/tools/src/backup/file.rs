//! The file of a backup: its format, how it is written and read, and what can be wrong with it. It has every row
//! of one moment, in the order of keys.
//!
//! ```text
//! file:    header | block … | trailer
//! header:  magic (16) | format (4) | format of the rows (4) | store (16) | commit (8)
//!          | time in ms (8) | checksum (8)
//! block:   length of its rows (4) | how many (4) | checksum (8) | row …
//! row:     length of the key (4) | length of the value (4) | key | value
//! trailer: 0 (4) | 0 (4) | rows (8) | bytes of keys and values (8) | bytes before it (8)
//!          | SHA-256 of all before (32)
//! ```
//! Integers are little-endian. The checksum of a block (SipHash-1-3) covers its number, its lengths and its
//! rows. So damage is found in its block, and blocks cannot change places. The digest at the end covers
//! everything, so a file that was cut, spliced or changed is found.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher13;

use quoin_store::StoreError;
use quoin_store_embedded::StoreId;

/// The version that is written.
const FORMAT: u32 = 1;

/// The format of rows: keys and values as transactions see them. Their layout version is among them.
const ROWS_FORMAT: u32 = 1;

/// A block ends once its rows have this many bytes.
const BLOCK_BYTES: usize = 256 * 1024;
const MAGIC: &[u8; 16] = b"quoin-backup\r\n\x1a\n";
const HEADER_BYTES: usize = 64;
const BLOCK_HEADER_BYTES: usize = 16;
const ROW_HEADER_BYTES: usize = 8;
const TRAILER_BYTES: usize = 64;
const DIGEST_BYTES: usize = 32;

/// Bytes of a block that are read at a time, so that a wrong length does not allocate too much.
const READ_STEP_BYTES: u64 = 1024 * 1024;

/// The identity of a backup: its store and moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The store.
    pub store: StoreId,
    /// The last commit in it.
    pub commit: u64,
    /// When that was, in milliseconds since the Unix epoch.
    pub time_ms: i64,
}

/// The size of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Rows.
    pub rows: u64,
    /// Bytes of keys and values.
    pub row_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let fields = [
            MAGIC.as_slice(),
            &FORMAT.to_le_bytes(),
            &ROWS_FORMAT.to_le_bytes(),
            &self.store.to_bytes(),
            &self.commit.to_le_bytes(),
            &self.time_ms.to_le_bytes(),
        ]
        .concat();
        let checksum = checksum(&[&fields]).to_le_bytes();
        for (to, from) in bytes.iter_mut().zip(fields.iter().chain(&checksum)) {
            *to = *from;
        }
        bytes
    }

    fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Damage> {
        let mut fields = Fields(bytes);
        if fields.take::<16>() != *MAGIC {
            return Err(Damage::NotABackup);
        }
        let formats = [fields.u32(), fields.u32()];
        for (found, known) in formats.into_iter().zip([FORMAT, ROWS_FORMAT]) {
            // A damaged number looks like a newer version's.
            if found > known {
                return Err(Damage::Newer { found, known });
            }
        }
        let header = Self {
            store: StoreId::from_bytes(fields.take()),
            commit: fields.u64(),
            time_ms: fields.u64().cast_signed(),
        };
        let (covered, _) = bytes.split_at(HEADER_BYTES - 8);
        if fields.u64() != checksum(&[covered]) {
            return Err(wrong(0, "the checksum of its header"));
        }
        Ok(header)
    }
}

/// Consecutive numbers. A missing one is 0.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn take<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        match self.0.split_first_chunk() {
            Some((field, rest)) => {
                self.0 = rest;
                *field
            }
            None => [0; COUNT],
        }
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

fn checksum(parts: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher13::new();
    for part in parts {
        hasher.write(part);
    }
    hasher.finish()
}

fn block_checksum(number: u64, lengths: &[u8], rows: &[u8]) -> u64 {
    checksum(&[&number.to_le_bytes(), lengths, rows])
}

fn wrong(at: u64, what: &'static str) -> Damage {
    Damage::Wrong { at, what }
}

/// Writes a backup. It is incomplete until [`Self::finish`].
pub(super) struct Encoder<W> {
    out: W,
    digest: Sha256,
    block: Vec<u8>,
    block_rows: u32,
    blocks: u64,
    totals: Totals,
}

impl<W: Write> Encoder<W> {
    pub(super) fn begin(out: W, header: &Header) -> io::Result<Self> {
        let mut encoder = Self {
            out,
            digest: Sha256::new(),
            block: Vec::with_capacity(BLOCK_BYTES),
            block_rows: 0,
            blocks: 0,
            totals: Totals::default(),
        };
        encoder.write(&header.encode())?;
        Ok(encoder)
    }

    /// How much has been written so far.
    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    pub(super) fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Adds a row. Its key must be greater than the last one. Returns whether it ended a block.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> io::Result<bool> {
        for part in [key, value] {
            let length = u32::try_from(part.len())
                .map_err(|_| io::Error::other("a row is larger than 4 GiB"))?;
            self.block.extend_from_slice(&length.to_le_bytes());
        }
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(value);
        self.block_rows += 1;
        self.totals.rows += 1;
        self.totals.row_bytes += (key.len() + value.len()) as u64;
        if self.block.len() < BLOCK_BYTES {
            return Ok(false);
        }
        self.end_block()?;
        Ok(true)
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.block_rows == 0 {
            return Ok(());
        }
        let block = std::mem::take(&mut self.block);
        let length = u32::try_from(block.len())
            .map_err(|_| io::Error::other("a row is larger than 4 GiB"))?;
        let lengths = [length.to_le_bytes(), self.block_rows.to_le_bytes()].concat();
        let checksum = block_checksum(self.blocks, &lengths, &block);
        self.write(&lengths)?;
        self.write(&checksum.to_le_bytes())?;
        self.write(&block)?;
        self.blocks += 1;
        self.block_rows = 0;
        self.block = block;
        self.block.clear();
        self.block.shrink_to(2 * BLOCK_BYTES);
        Ok(())
    }

    /// Writes the trailer.
    pub(super) fn finish(mut self) -> io::Result<(W, Totals)> {
        self.end_block()?;
        let fields = [
            0,
            self.totals.rows,
            self.totals.row_bytes,
            self.totals.file_bytes,
        ];
        for field in fields {
            self.write(&field.to_le_bytes())?;
        }
        let digest = self.digest.finalize();
        self.out.write_all(&digest)?;
        self.totals.file_bytes += DIGEST_BYTES as u64;
        Ok((self.out, self.totals))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.digest.update(bytes);
        self.totals.file_bytes += bytes.len() as u64;
        Ok(())
    }
}

/// Reads a backup block by block and checks it. The check is complete when [`Self::next_block`] returns
/// `None`.
pub(super) struct Decoder<R> {
    input: R,
    header: Header,
    digest: Sha256,
    block: Vec<u8>,
    blocks: u64,
    last_key: Vec<u8>,
    totals: Totals,
}

impl<R: Read> Decoder<R> {
    pub(super) fn begin(mut input: R) -> Result<Self, Damage> {
        let mut bytes = [0; HEADER_BYTES];
        read_whole(&mut input, &mut bytes, 0).map_err(|damage| match damage {
            // It does not begin like a backup.
            Damage::Short { at } if !is_beginning(bytes.get(..at as usize)) => Damage::NotABackup,
            damage => damage,
        })?;
        let mut digest = Sha256::new();
        digest.update(bytes);
        Ok(Self {
            header: Header::decode(&bytes)?,
            input,
            digest,
            block: Vec::new(),
            blocks: 0,
            last_key: Vec::new(),
            totals: Totals {
                file_bytes: HEADER_BYTES as u64,
                ..Totals::default()
            },
        })
    }

    pub(super) fn header(&self) -> Header {
        self.header
    }

    /// How much has been read so far.
    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// The rows of the next block. `None` at the end of a complete file.
    pub(super) fn next_block(&mut self) -> Result<Option<Rows<'_>>, Damage> {
        let at = self.totals.file_bytes;
        let mut header = [0; BLOCK_HEADER_BYTES];
        read_whole(&mut self.input, &mut header, at)?;
        self.digest.update(header);
        let mut fields = Fields(&header);
        let (length, count, sum) = (fields.u32(), fields.u32(), fields.u64());
        if length == 0 {
            return self.end(at, count, sum).map(|()| None);
        }
        let body_at = at + BLOCK_HEADER_BYTES as u64;
        self.read_block(length.into(), body_at)?;
        let (lengths, _) = header.split_at(8);
        if sum != block_checksum(self.blocks, lengths, &self.block) {
            return Err(wrong(at, "the checksum of a block"));
        }
        self.digest.update(&self.block);
        self.blocks += 1;
        self.totals.file_bytes = body_at + u64::from(length);
        self.check_rows(at, count)?;
        Ok(Some(Rows { rest: &self.block }))
    }

    /// Reads a block whose length may be wrong.
    fn read_block(&mut self, length: u64, at: u64) -> Result<(), Damage> {
        self.block.clear();
        while (self.block.len() as u64) < length {
            let step = READ_STEP_BYTES.min(length - self.block.len() as u64);
            let read = (&mut self.input).take(step).read_to_end(&mut self.block)?;
            if (read as u64) < step {
                return Err(Damage::Short {
                    at: at + self.block.len() as u64,
                });
            }
        }
        Ok(())
    }

    fn check_rows(&mut self, at: u64, count: u32) -> Result<(), Damage> {
        let mut rows = Rows { rest: &self.block };
        let mut found = 0;
        let mut last: Option<&[u8]> = (self.totals.rows > 0).then_some(self.last_key.as_slice());
        for (key, value) in rows.by_ref() {
            if last.is_some_and(|last| key <= last) {
                return Err(wrong(at, "its rows are not in order"));
            }
            last = Some(key);
            found += 1;
            self.totals.rows += 1;
            self.totals.row_bytes += (key.len() + value.len()) as u64;
        }
        if !rows.rest.is_empty() || found != count {
            return Err(wrong(at, "the lengths in a block"));
        }
        self.last_key = last.unwrap_or_default().to_vec();
        Ok(())
    }

    /// Checks the trailer. Its first 16 bytes were read as a block's header.
    fn end(&mut self, at: u64, zero: u32, rows: u64) -> Result<(), Damage> {
        let mut rest = [0; TRAILER_BYTES - BLOCK_HEADER_BYTES];
        read_whole(&mut self.input, &mut rest, at + BLOCK_HEADER_BYTES as u64)?;
        let mut fields = Fields(&rest);
        let (covered, _) = rest.split_at(rest.len() - DIGEST_BYTES);
        self.digest.update(covered);
        let (row_bytes, file_bytes) = (fields.u64(), fields.u64());
        let expected = (0, self.totals.rows, self.totals.row_bytes, at);
        if (zero, rows, row_bytes, file_bytes) != expected {
            return Err(wrong(at, "the counts at its end"));
        }
        let digest: [u8; DIGEST_BYTES] = fields.take();
        if std::mem::take(&mut self.digest).finalize().as_slice() != digest {
            return Err(wrong(at, "the digest of the whole file"));
        }
        self.totals.file_bytes = at + TRAILER_BYTES as u64;
        if self.input.read(&mut [0])? > 0 {
            return Err(wrong(
                self.totals.file_bytes,
                "there is data after the backup",
            ));
        }
        Ok(())
    }
}

fn is_beginning(bytes: Option<&[u8]>) -> bool {
    let compared = bytes.unwrap_or_default();
    compared.iter().zip(MAGIC).all(|(one, other)| one == other)
}

fn read_whole(input: &mut impl Read, bytes: &mut [u8], at: u64) -> Result<(), Damage> {
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => {
                return Err(Damage::Short {
                    at: at + done as u64,
                });
            }
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The rows of a block: key and value.
#[derive(Debug, Clone)]
pub(super) struct Rows<'b> {
    rest: &'b [u8],
}

impl<'b> Rows<'b> {
    /// The rows in the bytes of a block.
    pub(super) fn of(block: &'b [u8]) -> Self {
        Self { rest: block }
    }

    /// The bytes of the remaining rows.
    pub(super) fn bytes(self) -> &'b [u8] {
        self.rest
    }
}

impl<'b> Iterator for Rows<'b> {
    type Item = (&'b [u8], &'b [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = self.rest.split_first_chunk::<ROW_HEADER_BYTES>()?;
        let mut fields = Fields(header);
        let (key_bytes, value_bytes) = (fields.u32() as usize, fields.u32() as usize);
        let (key, rest) = rest.split_at_checked(key_bytes)?;
        let (value, rest) = rest.split_at_checked(value_bytes)?;
        self.rest = rest;
        Some((key, value))
    }
}

/// Why a backup could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What failed.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is damaged, or no backup.
    #[error("{}: {damage}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        damage: Damage,
    },
    /// The store could not be read or synced.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The server stops.
    #[error("the server is stopping, and the backup was abandoned")]
    Stopped,
    /// The thread that made it panicked.
    #[error("the thread that made the backup panicked, see the log")]
    Panicked,
}

impl BackupError {
    /// Adds what failed to a system's error.
    pub(super) fn io<'p>(
        action: &'static str,
        path: &'p Path,
    ) -> impl FnOnce(io::Error) -> Self + 'p {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// What is wrong with a backup file.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// It does not begin like a backup.
    #[error("this is not a Quoin backup")]
    NotABackup,
    /// A newer version wrote it.
    #[error(
        "it has format {found}, but this Quoin supports formats up to {known}: use a newer \
             Quoin"
    )]
    Newer {
        /// Its format.
        found: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// It ends too early.
    #[error("it is cut off at byte {at}: the copy is incomplete")]
    Short {
        /// Its length.
        at: u64,
    },
    /// A checksum does not match.
    #[error("it is damaged at byte {at}: {what}")]
    Wrong {
        /// Where the damaged part begins.
        at: u64,
        /// What does not match.
        what: &'static str,
    },
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

const BUFFER_BYTES: usize = 256 * 1024;

/// A backup that is read from start to end.
pub struct BackupFile {
    path: PathBuf,
    decoder: Decoder<BufReader<File>>,
    file_bytes: u64,
}

impl BackupFile {
    /// Opens a backup and checks its header. The rest is checked while it is read.
    ///
    /// # Errors
    /// If it cannot be opened, or is no backup.
    pub fn open(path: &Path) -> Result<Self, BackupError> {
        let failed = || BackupError::io("read", path);
        let file = File::open(path).map_err(failed())?;
        let metadata = file.metadata().map_err(failed())?;
        if metadata.is_dir() {
            let folder = std::io::Error::from(std::io::ErrorKind::IsADirectory);
            return Err(failed()(folder));
        }
        let input = BufReader::with_capacity(BUFFER_BYTES, file);
        let decoder = Decoder::begin(input).map_err(|damage| damaged(path, damage))?;
        Ok(Self {
            path: path.to_owned(),
            decoder,
            file_bytes: metadata.len(),
        })
    }

    /// What it is a backup of.
    pub fn header(&self) -> Header {
        self.decoder.header()
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The error for a file that has changed.
    pub(super) fn changed(&self) -> BackupError {
        let what = "it is not the file that was verified";
        damaged(&self.path, Damage::Wrong { at: 0, what })
    }

    /// Reads and checks all of it. `progress` gets the number of bytes so far.
    ///
    /// # Errors
    /// If it is damaged, or cannot be read.
    pub fn verify(
        mut self,
        mut progress: impl FnMut(u64),
    ) -> Result<(Header, Totals), BackupError> {
        while self.next_block()?.is_some() {
            progress(self.decoder.totals().file_bytes);
        }
        Ok((self.header(), self.decoder.totals()))
    }

    /// The rows of the next block, which share one buffer. `None` at the end of a complete file.
    pub(super) fn next_rows(&mut self) -> Result<Option<Vec<(Bytes, Bytes)>>, BackupError> {
        let Some(block) = self.next_block()? else {
            return Ok(None);
        };
        let shared = Bytes::copy_from_slice(block);
        let rows = Rows::of(&shared);
        Ok(Some(
            rows.map(|(key, value)| (shared.slice_ref(key), shared.slice_ref(value)))
                .collect(),
        ))
    }

    fn next_block(&mut self) -> Result<Option<&[u8]>, BackupError> {
        match self.decoder.next_block() {
            Ok(rows) => Ok(rows.map(|rows| rows.bytes())),
            Err(damage) => Err(damaged(&self.path, damage)),
        }
    }
}

fn damaged(path: &Path, damage: Damage) -> BackupError {
    BackupError::Damaged {
        path: path.to_owned(),
        damage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            store: StoreId::from_bytes(*b"store of a test."),
            commit: 42,
            time_ms: 1_795_328_173_123,
        }
    }

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    /// Rows that fill several blocks, one of them a single large row.
    fn pairs() -> Pairs {
        let mut pairs: Pairs = (0..700_u32)
            .map(|number| {
                let value = vec![number.to_le_bytes()[0]; number as usize];
                (number.to_be_bytes().to_vec(), value)
            })
            .collect();
        pairs.push((b"large".to_vec(), vec![7; 3 * BLOCK_BYTES]));
        pairs.push((b"last".to_vec(), Vec::new()));
        pairs
    }

    fn encoded(pairs: &Pairs) -> (Vec<u8>, Totals) {
        let mut encoder = Encoder::begin(Vec::new(), &header()).unwrap();
        for (key, value) in pairs {
            encoder.push(key, value).unwrap();
        }
        encoder.finish().unwrap()
    }

    fn decoded(file: &[u8]) -> Result<(Header, Pairs, Totals), Damage> {
        let mut decoder = Decoder::begin(file)?;
        let mut pairs = Pairs::new();
        while let Some(rows) = decoder.next_block()? {
            pairs.extend(rows.map(|(key, value)| (key.to_vec(), value.to_vec())));
        }
        Ok((decoder.header(), pairs, decoder.totals()))
    }

    #[test]
    fn what_was_written_is_read() {
        for pairs in [pairs(), Pairs::new()] {
            let (file, totals) = encoded(&pairs);
            assert_eq!(totals.rows, pairs.len() as u64);
            assert_eq!(totals.file_bytes, file.len() as u64);
            assert_eq!(decoded(&file).unwrap(), (header(), pairs, totals));
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let pairs = vec![
            (b"a".to_vec(), b"one".to_vec()),
            (b"b".to_vec(), b"two".to_vec()),
        ];
        let (file, _) = encoded(&pairs);
        for at in 0..file.len() {
            for bit in 0..8 {
                let mut damaged = file.clone();
                damaged[at] ^= 1 << bit;
                assert!(decoded(&damaged).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn every_lost_end_is_found_and_so_is_more() {
        let pairs = vec![(b"a".to_vec(), b"one".to_vec())];
        let (mut file, _) = encoded(&pairs);
        for length in 0..file.len() {
            let error = decoded(&file[..length]).unwrap_err();
            assert!(
                matches!(error, Damage::Short { at } if at == length as u64),
                "{length}: {error}"
            );
        }
        file.push(0);
        assert!(decoded(&file).is_err());
    }

    #[test]
    fn blocks_that_changed_places_are_found() {
        let value = vec![0; BLOCK_BYTES];
        let pairs = vec![(b"a".to_vec(), value.clone()), (b"b".to_vec(), value)];
        let (file, _) = encoded(&pairs);
        let block_bytes = BLOCK_HEADER_BYTES + ROW_HEADER_BYTES + 1 + BLOCK_BYTES;
        let (header, rest) = file.split_at(HEADER_BYTES);
        let (first, rest) = rest.split_at(block_bytes);
        let (second, trailer) = rest.split_at(block_bytes);
        let swapped = [header, second, first, trailer].concat();
        assert!(matches!(
            decoded(&swapped),
            Err(Damage::Wrong { at, .. }) if at == HEADER_BYTES as u64
        ));
    }

    #[test]
    fn rows_out_of_order_are_found() {
        let pairs = vec![(b"b".to_vec(), Vec::new()), (b"a".to_vec(), Vec::new())];
        let (file, _) = encoded(&pairs);
        assert!(decoded(&file).unwrap_err().to_string().contains("order"));
    }

    #[test]
    fn what_is_no_backup_is_told_from_what_is_newer() {
        for other in [&b""[..], b"REDIS0011", &[0; 200]] {
            let error = decoded(other).unwrap_err();
            let is_empty = other.is_empty() && matches!(error, Damage::Short { at: 0 });
            assert!(is_empty || matches!(error, Damage::NotABackup), "{error}");
        }
        let (mut file, _) = encoded(&Pairs::new());
        file[16] = 9;
        let error = decoded(&file).unwrap_err().to_string();
        assert!(
            error.contains("format 9") && error.contains("newer Quoin"),
            "{error}"
        );
    }
}
