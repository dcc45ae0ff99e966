//! The bytes of an RDB file: reads them, keeps them if wanted, and skips values without reading their elements.

use std::io::{self, Read};

use super::Checksum;
use super::payload::{OwnType, VERSION_OF_VALKEY, VERSION_READ_MAX};

/// Bytes of the id of a stream's entry.
const STREAM_ID_BYTES: u64 = 16;

/// Bytes of a time in milliseconds.
const TIME_BYTES: u64 = 8;

/// What was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// A value of a type of Redis's or Quoin's own.
    Value,
    /// A module's value.
    Module,
}

/// Passes over a value of this type.
pub(super) fn pass_value<R: Read>(
    input: &mut Input<R>,
    rdb_type: u8,
    is_of_valkey: bool,
) -> Result<Extent, RdbError> {
    match rdb_type {
        // A string, or a value packed into one.
        0 | 9..=13 | 16 | 17 | 20 => input.pass_string()?,
        // Lists and sets, and lists of packed nodes.
        1 | 2 | 14 => pass_strings(input, 1)?,
        4 => pass_strings(input, 2)?,
        3 => {
            for _ in 0..input.length()? {
                input.pass_string()?;
                pass_text_score(input)?;
            }
        }
        5 => {
            for _ in 0..input.length()? {
                input.pass_string()?;
                input.pass(8)?;
            }
        }
        18 => {
            for _ in 0..input.length()? {
                // How the node is packed.
                input.length()?;
                input.pass_string()?;
            }
        }
        15 | 19 | 21 | 26 => pass_stream(input, rdb_type)?,
        22 if is_of_valkey => {
            for _ in 0..input.length()? {
                input.pass_string()?;
                input.pass_string()?;
                input.pass(TIME_BYTES)?;
            }
        }
        22 => pass_expiring_hash(input)?,
        23 => input.pass_string()?,
        24 => {
            input.pass(TIME_BYTES)?;
            pass_expiring_hash(input)?;
        }
        25 => {
            input.pass(TIME_BYTES)?;
            input.pass_string()?;
        }
        6 => {
            return Err(
                input.damaged("a module's value of Redis before 4.0, whose end is not told")
            );
        }
        7 => {
            // The module's id, or that of a type of Quoin's.
            if OwnType::of(input.length()?).is_some() {
                pass_module_parts(input)?;
                return Ok(Extent::Value);
            }
            input.stop_keeping();
            pass_module_parts(input)?;
            return Ok(Extent::Module);
        }
        _ => return Err(input.damaged("an unknown type")),
    }
    Ok(Extent::Value)
}

/// Skips data of a module that belongs to no key.
pub(super) fn pass_module_data<R: Read>(input: &mut Input<R>) -> Result<(), RdbError> {
    // The module's id, and when the data should be loaded.
    input.length()?;
    input.length()?;
    input.length()?;
    pass_module_parts(input)
}

fn pass_module_parts<R: Read>(input: &mut Input<R>) -> Result<(), RdbError> {
    loop {
        match input.length()? {
            0 => return Ok(()),
            // Integers, a float, a double, a string.
            1 | 2 => drop(input.length()?),
            3 => input.pass(4)?,
            4 => input.pass(8)?,
            5 => input.pass_string()?,
            _ => return Err(input.damaged("a module's value")),
        }
    }
}

/// A count, followed by `each` strings for each item.
fn pass_strings<R: Read>(input: &mut Input<R>, each: u64) -> Result<(), RdbError> {
    for _ in 0..input.length()? {
        for _ in 0..each {
            input.pass_string()?;
        }
    }
    Ok(())
}

/// Each field's expiry, the field, its value.
fn pass_expiring_hash<R: Read>(input: &mut Input<R>) -> Result<(), RdbError> {
    for _ in 0..input.length()? {
        input.length()?;
        input.pass_string()?;
        input.pass_string()?;
    }
    Ok(())
}

/// Passes over data of modules about the key that follows.
pub(super) fn pass_key_data<R: Read>(input: &mut Input<R>) -> Result<(), RdbError> {
    for _ in 0..input.length()? {
        // The module and its version.
        input.pass(4)?;
        pass_module_parts(input)?;
    }
    Ok(())
}

/// A score as a short text. The three greatest lengths mean special numbers without digits.
fn pass_text_score<R: Read>(input: &mut Input<R>) -> Result<(), RdbError> {
    match input.byte()? {
        253..=255 => Ok(()),
        bytes => input.pass(bytes.into()),
    }
}

fn pass_stream<R: Read>(input: &mut Input<R>, rdb_type: u8) -> Result<(), RdbError> {
    let knows_first_id = rdb_type >= 19;
    let knows_activity = rdb_type >= 21;
    // Nodes: the id at the beginning of each, and its entries.
    pass_strings(input, 2)?;
    // The number of entries and the last id, then the first id, the greatest deleted one, and the
    // number of entries ever added.
    let numbers = if knows_first_id { 8 } else { 3 };
    pass_lengths(input, numbers)?;
    for _ in 0..input.length()? {
        // A group: its name, its last id, and how many entries it has read.
        input.pass_string()?;
        pass_lengths(input, if knows_first_id { 3 } else { 2 })?;
        for _ in 0..input.length()? {
            input.pass(STREAM_ID_BYTES + TIME_BYTES)?;
            input.length()?;
        }
        for _ in 0..input.length()? {
            // A consumer: its name, when it was seen, when it was active, and its pending entries.
            input.pass_string()?;
            input.pass(if knows_activity {
                2 * TIME_BYTES
            } else {
                TIME_BYTES
            })?;
            let pending = input.length()?;
            input.pass(pending.saturating_mul(STREAM_ID_BYTES))?;
        }
    }
    if rdb_type >= 26 {
        // Producers, and the recently added messages of each.
        pass_lengths(input, 2)?;
        for _ in 0..input.length()? {
            input.pass_string()?;
            for _ in 0..input.length()? {
                input.pass_string()?;
                pass_lengths(input, 2)?;
            }
        }
        pass_lengths(input, 2)?;
    }
    Ok(())
}

fn pass_lengths<R: Read>(input: &mut Input<R>, count: u64) -> Result<(), RdbError> {
    for _ in 0..count {
        input.length()?;
    }
    Ok(())
}

/// Why a file was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum RdbError {
    /// The system cannot read it, or it ends too early.
    #[error("it cannot be read at byte {at}: {source}")]
    Io {
        /// Byte offset.
        at: u64,
        /// Why.
        source: io::Error,
    },
    /// It does not begin like an RDB file.
    #[error(
        "it is no RDB file: it does not begin with REDIS or VALKEY and a version; \
         nor does it begin as an append-only file"
    )]
    NoRdb,
    /// A later server has written it.
    #[error(
        "it has version {0}, and versions up to {VERSION_READ_MAX} are read, which Redis 8.6 \
         writes, and {VERSION_OF_VALKEY}, which Valkey 9 writes; start the server that wrote it, and \
         import from that (--from redis://…), which reads what it has by commands"
    )]
    Version(u16),
    /// Bytes follow that do not belong to an RDB file.
    #[error(
        "{bytes} bytes follow after the end of the RDB file at byte {at}, and nothing in it says that \
         it begins an append-only file; nothing was written"
    )]
    Trailing {
        /// Offset of the end of the RDB file.
        at: u64,
        /// How many.
        bytes: u64,
    },
    /// Bytes have changed since it was written.
    #[error("its checksum is wrong: it was damaged, or cut off, after it was written")]
    Checksum,
    /// Unexpected content.
    #[error("it is damaged at byte {at}: {what}")]
    Format {
        /// Byte offset.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
}

/// Bytes that are read at a time if the content is not kept.
const PIECE_BYTES: usize = 64 * 1024;

/// The input of a file.
pub(super) struct Input<R> {
    source: R,
    checksum: Checksum,
    position: u64,
    keeping: Keeping,
    kept_bytes_max: usize,
}

/// What happens with the bytes that are read.
#[derive(Debug)]
enum Keeping {
    Nothing,
    All(Vec<u8>),
    /// They were too many.
    Overflown,
}

impl<R> std::fmt::Debug for Input<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl<R: Read> Input<R> {
    pub(super) fn new(source: R, kept_bytes_max: usize) -> Self {
        Self {
            source,
            checksum: Checksum::begin(),
            position: 0,
            keeping: Keeping::Nothing,
            kept_bytes_max,
        }
    }

    /// Bytes that were read.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The checksum of what was read. The next one starts over.
    pub(super) fn checksum(&mut self) -> u64 {
        std::mem::replace(&mut self.checksum, Checksum::begin()).value()
    }

    /// The error for the content at this position.
    pub(super) fn damaged(&self, what: &'static str) -> RdbError {
        RdbError::Format {
            at: self.position,
            what,
        }
    }

    /// Keeps what is read from now on, after these bytes.
    pub(super) fn keep(&mut self, bytes: Vec<u8>) {
        self.keeping = Keeping::All(bytes);
    }

    /// The kept bytes. `None` if there were too many.
    pub(super) fn end_keeping(&mut self) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.keeping, Keeping::Nothing) {
            Keeping::All(bytes) => Some(bytes),
            Keeping::Nothing | Keeping::Overflown => None,
        }
    }

    /// Stops keeping bytes.
    pub(super) fn stop_keeping(&mut self) {
        self.keeping = Keeping::Nothing;
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), RdbError> {
        self.source
            .read_exact(bytes)
            .map_err(|source| RdbError::Io {
                at: self.position,
                source,
            })?;
        self.position += bytes.len() as u64;
        self.checksum.add(bytes);
        if let Keeping::All(kept) = &mut self.keeping {
            if kept.len() + bytes.len() <= self.kept_bytes_max {
                kept.extend_from_slice(bytes);
            } else {
                self.keeping = Keeping::Overflown;
            }
        }
        Ok(())
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], RdbError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, RdbError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// Skips bytes. Reserves no memory for a length that exceeds the file.
    pub(super) fn pass(&mut self, bytes: u64) -> Result<(), RdbError> {
        let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(bytes).unwrap_or(PIECE_BYTES))];
        let mut left = bytes;
        while left > 0 {
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            if let Some(piece) = piece.get_mut(..now) {
                self.fill(piece)?;
            }
            left -= now as u64;
        }
        Ok(())
    }

    /// A length, or the number of a special encoding of strings.
    fn length_or_special(&mut self) -> Result<Result<u64, u8>, RdbError> {
        let first = self.byte()?;
        let low = first & 0x3f;
        Ok(match (first >> 6, first) {
            (0, _) => Ok(low.into()),
            (1, _) => Ok(u16::from_be_bytes([low, self.byte()?]).into()),
            (3, _) => Err(low),
            (_, 0x80) => Ok(u32::from_be_bytes(self.array()?).into()),
            (_, 0x81) => Ok(u64::from_be_bytes(self.array()?)),
            _ => return Err(self.damaged("a length")),
        })
    }

    /// A length or a count.
    pub(super) fn length(&mut self) -> Result<u64, RdbError> {
        let length = self.length_or_special()?;
        length.map_err(|_| self.damaged("a length"))
    }

    /// Skips a string in any encoding.
    pub(super) fn pass_string(&mut self) -> Result<(), RdbError> {
        match self.length_or_special()? {
            Ok(length) => self.pass(length),
            Err(0) => self.pass(1),
            Err(1) => self.pass(2),
            Err(2) => self.pass(4),
            Err(3) => {
                let compressed_bytes = self.length()?;
                self.length()?;
                self.pass(compressed_bytes)
            }
            Err(_) => Err(self.damaged("the encoding of a string")),
        }
    }
}
