//! An RDB file, as `redis-server` writes it with SAVE, item by item.
//!
//! Reads every version up to those of Redis 8.6 and Valkey 9. A value is not parsed: only its end
//! is found. It becomes a DUMP payload, which is checked when it is read. Memory is bounded by the
//! longest value that is kept. The format is that of `rdb.c`.

use super::functions::LIBRARY;
use super::input::{Extent, Input, RdbError, pass_key_data, pass_module_data, pass_value};
use super::payload::{Reader, VERSION_WRITTEN, is_read, seal_as};
use bytes::Bytes;
use std::io::{self, Read};

/// The beginning of a file. The version follows in four digits.
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

/// A name and a value that say how the file was created.
pub(super) const OPCODE_FACT: u8 = 0xfa;

/// The number of keys in the database, and how many of them expire.
pub(super) const OPCODE_SIZES: u8 = 0xfb;

/// Before the expiry of a key, in seconds.
pub(super) const OPCODE_EXPIRE_AT_S: u8 = 0xfd;

/// The greatest number of a type in Redis 7.2.
const TYPE_OF_REDIS_7_2_MAX: u8 = 21;

/// Since this version a file ends with a checksum.
pub(super) const VERSION_WITH_CHECKSUM: u16 = 5;

/// Bytes of the header and the version.
const HEADER_BYTES: usize = 9;

/// The facts that show that a file is the beginning of an append-only file: those of Redis 7.0 and
/// later, and of earlier versions.
const FACT_BASE: &[u8] = b"aof-base";
const FACT_PREAMBLE: &[u8] = b"aof-preamble";

/// The role of a file in an append-only file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AofRole {
    /// None: it is complete.
    None,
    /// Its base, which other files continue (Redis 7.0 and later).
    Base,
    /// Its beginning, which commands in the same file continue (Redis before 7.0).
    Preamble,
}

/// An item of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RdbItem {
    /// The code of a library of functions.
    Library(Bytes),
    /// A key.
    Key(RdbKey),
    /// Data of a module that belongs to no key. It was skipped.
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

    /// The role in an append-only file that the file claims. It does so before its first key.
    pub fn aof_role(&self) -> AofRole {
        self.aof_role
    }

    /// Bytes that were read so far.
    pub fn position(&self) -> u64 {
        self.input.position()
    }

    /// The next item. `None` at the end, after the checksum was verified. An error is also the end.
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
                // In Valkey: slots that were being migrated to this server. Their keys follow like
                // all others.
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
