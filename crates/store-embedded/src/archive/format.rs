//! The bytes of a segment.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use siphasher::sip::SipHasher13;

use crate::StoreId;
use crate::journal::RECORD_BYTES_MAX;

pub(super) const SEGMENT_HEADER_BYTES: usize = 48;
pub(super) const RECORD_HEADER_BYTES: usize = 32;

const MAGIC: &[u8; 16] = b"quoin-archive-01";
const SUFFIX: &str = ".journal";
const BUFFER_BYTES: usize = 256 * 1024;
/// Bytes of a body that are read at a time, because its length may be damaged.
const READ_STEP_BYTES: u64 = 1024 * 1024;

/// The name of the segment that begins with a commit. Names sort in commit order.
pub(super) fn segment_name(first: u64) -> String {
    format!("{first:020}{SUFFIX}")
}

/// The first commit of the segment with this name.
pub(super) fn first_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(SUFFIX)?;
    let is_number = number.len() == 20 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| number.parse().ok())?
}

fn checksum(parts: &[&[u8]]) -> [u8; 8] {
    let mut hasher = SipHasher13::new();
    for part in parts {
        hasher.write(part);
    }
    hasher.finish().to_le_bytes()
}

/// The header of a segment.
pub(super) fn segment_header(store: &StoreId, first: u64) -> Vec<u8> {
    let fields = [MAGIC.as_slice(), &store.to_bytes(), &first.to_le_bytes()].concat();
    let sum = checksum(&[&fields]);
    [fields, sum.to_vec()].concat()
}

/// The header of a record.
pub(super) fn record_header(store: &StoreId, commit: u64, time_ms: u64, body: &[u8]) -> Vec<u8> {
    let fields = [body.len() as u64, commit, time_ms].map(u64::to_le_bytes);
    let fields = fields.concat();
    let sum = checksum(&[&store.to_bytes(), &fields, body]);
    [fields, sum.to_vec()].concat()
}

/// A record of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) commit: u64,
    pub(super) time_ms: u64,
}

/// What comes next in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A complete record.
    Record(Found),
    /// The end, after a complete record.
    End,
    /// The file ends within a record.
    Unfinished,
    /// Bytes that are not a record.
    Damaged,
}

/// A segment that is being read from its beginning.
pub(super) struct Segment {
    input: BufReader<File>,
    store: StoreId,
    /// The offset of the next record.
    at: u64,
    /// The number that the next record must have, if known.
    next: Option<u64>,
    body: Vec<u8>,
    has_header: bool,
}

impl Segment {
    pub(super) fn open(path: &Path, store: &StoreId, first: u64) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
        let mut header = Vec::new();
        input
            .by_ref()
            .take(SEGMENT_HEADER_BYTES as u64)
            .read_to_end(&mut header)?;
        Ok(Self {
            input,
            store: *store,
            at: header.len() as u64,
            next: Some(first),
            has_header: header == segment_header(store, first),
            body: Vec::new(),
        })
    }

    /// The offset of what [`Self::next`] returns next.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The body of the last returned record.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Continues after a record that was returned before. `next` is the number of the next one.
    pub(super) fn skip_to(&mut self, at: u64, next: u64) -> io::Result<()> {
        self.input.seek(SeekFrom::Start(at))?;
        self.at = at;
        self.next = Some(next);
        Ok(())
    }

    /// The next record. Record numbers have no gaps.
    pub(super) fn next(&mut self) -> io::Result<Next> {
        if !self.has_header {
            let is_short = self.at < SEGMENT_HEADER_BYTES as u64;
            return Ok(if is_short {
                Next::Unfinished
            } else {
                Next::Damaged
            });
        }
        let mut header = Vec::new();
        self.input
            .by_ref()
            .take(RECORD_HEADER_BYTES as u64)
            .read_to_end(&mut header)?;
        if header.is_empty() {
            return Ok(Next::End);
        }
        let Some((fields, sum)) = header.split_first_chunk::<24>() else {
            return Ok(Next::Unfinished);
        };
        if sum.len() < 8 {
            return Ok(Next::Unfinished);
        }
        let mut numbers = fields.chunks_exact(8).map(|field| {
            let field = field.try_into().unwrap_or_default();
            u64::from_le_bytes(field)
        });
        let mut number = || numbers.next().unwrap_or_default();
        let (length, commit, time_ms) = (number(), number(), number());
        let is_next = self.next.is_none_or(|next| next == commit);
        if !is_next || length == 0 || length > RECORD_BYTES_MAX {
            return Ok(Next::Damaged);
        }
        self.body.clear();
        while (self.body.len() as u64) < length {
            let step = READ_STEP_BYTES.min(length - self.body.len() as u64);
            let read = (&mut self.input).take(step).read_to_end(&mut self.body)?;
            if (read as u64) < step {
                return Ok(Next::Unfinished);
            }
        }
        if sum != checksum(&[&self.store.to_bytes(), fields, &self.body]) {
            return Ok(Next::Damaged);
        }
        self.at += RECORD_HEADER_BYTES as u64 + length;
        self.next = Some(commit + 1);
        Ok(Next::Record(Found { commit, time_ms }))
    }
}
