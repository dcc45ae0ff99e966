//! An RDB file: what `redis-server` writes by SAVE, item by item.
//!
//! Every version up to those of Redis 8.6 and Valkey 9 is read. A value is not parsed, only its end is found.
//! It becomes a payload of DUMP, which is checked when it is read. Memory is bounded by the longest value
//! that is kept. The format is that of `rdb.c`.

use std::io::{self, Read};

use bytes::Bytes;

use super::Checksum;
use super::extent::{Extent, pass_key_data, pass_module_data, pass_value};
use super::functions::LIBRARY;
use super::payload::{
    Reader, VERSION_OF_VALKEY, VERSION_READ_MAX, VERSION_WRITTEN, is_read, seal_as,
};

/// What a file begins with; the version follows in four digits.
pub const HEADER: &[u8; 5] = b"REDIS";

/// The same of Valkey 9 and later; the version follows in three digits.
const HEADER_OF_VALKEY: &[u8; 6] = b"VALKEY";

/// Before the expiry of a key, in milliseconds.
pub const OPCODE_EXPIRE_AT_MS: u8 = 0xfc;

/// Before the number of a database.
pub const OPCODE_SELECT: u8 = 0xfe;

/// At the end, before the checksum.
pub const OPCODE_END: u8 = 0xff;

/// Data of modules about the key that follows, from Redis 8.6 on. Valkey has another meaning for it.
const OPCODE_KEY_DATA: u8 = 0xf3;

/// How many keys a slot of a cluster has.
const OPCODE_SLOT: u8 = 0xf4;

/// A library of a release candidate of Redis 7.0.
const OPCODE_EARLY_LIBRARY: u8 = 0xf6;

/// Data of a module that belongs to no key.
pub(super) const OPCODE_MODULE_DATA: u8 = 0xf7;

/// Seconds since a key was used.
pub(super) const OPCODE_IDLE: u8 = 0xf8;

/// How often a key was used.
pub(super) const OPCODE_FREQUENCY: u8 = 0xf9;

/// A name and a value that say how the file came to be.
pub(super) const OPCODE_FACT: u8 = 0xfa;

/// How many keys the database has, and how many of them expire.
pub(super) const OPCODE_SIZES: u8 = 0xfb;

/// Before the expiry of a key, in seconds.
pub(super) const OPCODE_EXPIRE_AT_S: u8 = 0xfd;

/// The greatest number of a type in Redis 7.2.
const TYPE_OF_REDIS_7_2_MAX: u8 = 21;

/// Since this version a file ends with a checksum.
pub(super) const VERSION_WITH_CHECKSUM: u16 = 5;

/// Bytes of the header and the version.
const HEADER_BYTES: usize = 9;

/// The facts that say whether a file begins an append-only file: those of Redis 7.0 and later, and of
/// Redis before.
const FACT_BASE: &[u8] = b"aof-base";

const FACT_PREAMBLE: &[u8] = b"aof-preamble";

/// What a file is in an append-only file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AofRole {
    /// Nothing: it is whole.
    None,
    /// Its base, after which come other files (Redis 7.0 and later).
    Base,
    /// Its beginning, after which come commands in the same file (Redis before 7.0).
    Preamble,
}

/// One thing that a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RdbItem {
    /// The code of a library of functions.
    Library(Bytes),
    /// A key.
    Key(RdbKey),
    /// Data of a module that belongs to no key. It was passed over.
    ModuleData,
}

/// A key of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdbKey {
    /// Its database.
    pub database: u32,
    /// Its name.
    pub name: Bytes,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expire_at_ms: Option<i64>,
    /// Its value.
    pub value: RdbValue,
}

/// A value of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RdbValue {
    /// A payload as in DUMP.
    Payload(Bytes),
    /// The value of a module, or one that a module keeps data about. It was skipped.
    Module,
    /// It has more bytes than are kept. It was passed over.
    TooLarge(u64),
}

/// Reads a file.
#[derive(Debug)]
pub struct RdbReader<R> {
    input: Input<R>,
    version: u16,
    is_of_valkey: bool,
    aof_role: AofRole,
    database: u32,
    is_done: bool,
}

impl<R: Read> RdbReader<R> {
    /// Begins to read. Up to `value_bytes_max` bytes of each value are kept.
    ///
    /// # Errors
    /// If it is not an RDB file, or one of a later version.
    pub fn begin(source: R, value_bytes_max: usize) -> Result<Self, RdbError> {
        let mut input = Input::new(source, value_bytes_max);
        let header: [u8; HEADER_BYTES] = match input.array() {
            Ok(header) => header,
            Err(RdbError::Io { source, .. }) if is_end(&source) => return Err(RdbError::NoRdb),
            Err(error) => return Err(error),
        };
        let of_valkey = header.strip_prefix(HEADER_OF_VALKEY);
        let digits = of_valkey.or(header.strip_prefix(HEADER));
        let digits = std::str::from_utf8(digits.ok_or(RdbError::NoRdb)?).ok();
        let version = digits.and_then(|digits| digits.parse().ok());
        match version.ok_or(RdbError::NoRdb)? {
            0 => Err(RdbError::NoRdb),
            version if !is_read(version) => Err(RdbError::Version(version)),
            version => Ok(Self {
                input,
                version,
                is_of_valkey: of_valkey.is_some(),
                aof_role: AofRole::None,
                database: 0,
                is_done: false,
            }),
        }
    }

    /// What the file says that it is in an append-only file. It says so before its first key.
    pub fn aof_role(&self) -> AofRole {
        self.aof_role
    }

    /// Bytes that were read so far.
    pub fn position(&self) -> u64 {
        self.input.position()
    }

    /// The next thing; `None` at the end, when the checksum has been compared. The last error is the
    /// end too.
    ///
    /// # Errors
    /// If the file is damaged or cannot be read.
    pub fn next_item(&mut self) -> Result<Option<RdbItem>, RdbError> {
        if self.is_done {
            return Ok(None);
        }
        let item = self.read_item();
        self.is_done = !matches!(item, Ok(Some(_)));
        item
    }

    fn read_item(&mut self) -> Result<Option<RdbItem>, RdbError> {
        let mut expire_at_ms = None;
        let mut has_module_data = false;
        loop {
            match self.input.byte()? {
                OPCODE_EXPIRE_AT_MS => expire_at_ms = Some(i64::from_le_bytes(self.input.array()?)),
                OPCODE_EXPIRE_AT_S => {
                    let seconds = i64::from(i32::from_le_bytes(self.input.array()?));
                    expire_at_ms = Some(seconds * 1000);
                }
                OPCODE_IDLE => drop(self.input.length()?),
                OPCODE_FREQUENCY => drop(self.input.byte()?),
                OPCODE_FACT => {
                    let (name, value) = (self.string()?, self.string()?);
                    self.note_fact(&name, &value);
                }
                // In Valkey: slots that were on their way to this server. Their keys come as all others.
                OPCODE_KEY_DATA if self.is_of_valkey => {
                    self.input.pass_string()?;
                    for _ in 0..self.input.length()?.saturating_mul(2) {
                        self.input.length()?;
                    }
                }
                OPCODE_KEY_DATA => {
                    pass_key_data(&mut self.input)?;
                    has_module_data = true;
                }
                OPCODE_SLOT => {
                    for _ in 0..3 {
                        self.input.length()?;
                    }
                }
                OPCODE_SIZES => {
                    self.input.length()?;
                    self.input.length()?;
                }
                OPCODE_SELECT => {
                    let database = self.input.length()?;
                    let database = u32::try_from(database);
                    self.database =
                        database.map_err(|_| self.input.damaged("the number of a database"))?;
                }
                LIBRARY => return Ok(Some(RdbItem::Library(self.string()?))),
                OPCODE_EARLY_LIBRARY => {
                    return Err(self
                        .input
                        .damaged("a function of a release candidate of Redis 7.0"));
                }
                OPCODE_MODULE_DATA => {
                    pass_module_data(&mut self.input)?;
                    return Ok(Some(RdbItem::ModuleData));
                }
                OPCODE_END => {
                    self.compare_checksum()?;
                    return Ok(None);
                }
                rdb_type => {
                    let name = self.string()?;
                    let value = match (self.value(rdb_type)?, has_module_data) {
                        (RdbValue::Payload(_), true) => RdbValue::Module,
                        (value, _) => value,
                    };
                    return Ok(Some(RdbItem::Key(RdbKey {
                        database: self.database,
                        name,
                        expire_at_ms,
                        value,
                    })));
                }
            }
        }
    }

    fn note_fact(&mut self, name: &[u8], value: &[u8]) {
        let role = match name {
            FACT_BASE => AofRole::Base,
            FACT_PREAMBLE => AofRole::Preamble,
            _ => return,
        };
        if value == b"1" {
            self.aof_role = role;
        }
    }

    fn value(&mut self, rdb_type: u8) -> Result<RdbValue, RdbError> {
        let begin = self.input.position();
        self.input.keep(vec![rdb_type]);
        let extent = pass_value(&mut self.input, rdb_type, self.is_of_valkey)?;
        let kept = self.input.end_keeping();
        Ok(match (extent, kept) {
            (Extent::Module, _) => RdbValue::Module,
            (Extent::Value, Some(bytes)) => {
                // The meaning of later types depends on the version.
                let version = match rdb_type {
                    0..=TYPE_OF_REDIS_7_2_MAX => VERSION_WRITTEN,
                    _ => self.version,
                };
                RdbValue::Payload(seal_as(version, bytes, 0))
            }
            (Extent::Value, None) => RdbValue::TooLarge(self.input.position() - begin),
        })
    }

    /// A name or a library's code.
    fn string(&mut self) -> Result<Bytes, RdbError> {
        self.input.keep(Vec::new());
        self.input.pass_string()?;
        let kept = self.input.end_keeping();
        let kept = kept.ok_or_else(|| self.input.damaged("a name is too long"))?;
        let string = Reader::new(kept.into()).string();
        string.map_err(|_| self.input.damaged("a string is not packed as strings are"))
    }

    fn compare_checksum(&mut self) -> Result<(), RdbError> {
        if self.version < VERSION_WITH_CHECKSUM {
            return Ok(());
        }
        let found = self.input.checksum();
        let expected = u64::from_le_bytes(self.input.array()?);
        // 0 if Redis was configured to write none.
        if expected != 0 && expected != found {
            return Err(RdbError::Checksum);
        }
        Ok(())
    }
}

fn is_end(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}

/// Why a file is not read to its end.
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
    /// It does not begin as RDB files do.
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
    /// Bytes follow that belong to no RDB file.
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
pub(crate) struct Input<R> {
    source: R,
    checksum: Checksum,
    position: u64,
    keeping: Keeping,
    kept_bytes_max: usize,
}

/// What is done with the bytes that are read.
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
    pub(crate) fn new(source: R, kept_bytes_max: usize) -> Self {
        Self {
            source,
            checksum: Checksum::begin(),
            position: 0,
            keeping: Keeping::Nothing,
            kept_bytes_max,
        }
    }

    /// Bytes that were read.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The checksum of what was read. The next one begins with nothing.
    pub(crate) fn checksum(&mut self) -> u64 {
        std::mem::replace(&mut self.checksum, Checksum::begin()).value()
    }

    /// The error for the content at this position.
    pub(crate) fn damaged(&self, what: &'static str) -> RdbError {
        RdbError::Format {
            at: self.position,
            what,
        }
    }

    /// Keeps what is read from now on, after these bytes.
    pub(crate) fn keep(&mut self, bytes: Vec<u8>) {
        self.keeping = Keeping::All(bytes);
    }

    /// What was kept; `None` if it was too much.
    fn end_keeping(&mut self) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.keeping, Keeping::Nothing) {
            Keeping::All(bytes) => Some(bytes),
            Keeping::Nothing | Keeping::Overflown => None,
        }
    }

    /// Keeps nothing of what follows.
    pub(crate) fn stop_keeping(&mut self) {
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
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], RdbError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, RdbError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// Skips bytes. Nothing is reserved for a length that the file does not have.
    pub(crate) fn pass(&mut self, bytes: u64) -> Result<(), RdbError> {
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
    pub(crate) fn length(&mut self) -> Result<u64, RdbError> {
        let length = self.length_or_special()?;
        length.map_err(|_| self.damaged("a length"))
    }

    /// Skips a string in any encoding.
    pub(crate) fn pass_string(&mut self) -> Result<(), RdbError> {
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
