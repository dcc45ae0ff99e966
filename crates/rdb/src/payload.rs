//! Payloads of DUMP: type, version and checksum, and the lengths and strings inside.

use bytes::{Buf, Bytes};

use super::{DumpError, checksum};
use quoin_base::limits::REQUEST_BULK_BYTES_MAX;
use quoin_base::number::parse_i64;

/// The newest RDB version of Redis that can be read: that of Redis 8.6. Redis 7.2 writes 11, 7.4 to
/// 8.4 write 12.
pub(super) const VERSION_READ_MAX: u16 = 13;

/// The RDB version of Valkey 9, which no longer follows Redis's numbers.
pub(super) const VERSION_OF_VALKEY: u16 = 80;

/// The RDB version to write: that of Redis 7.0, which refuses later ones. Nothing that is written
/// here has changed since, except hashes with fields that expire.
pub const VERSION_WRITTEN: u16 = 10;

/// The RDB version for hashes with fields that expire, the latest that is written: that of Redis
/// 7.4 to 8.4.
pub const VERSION_WRITTEN_MAX: u16 = 12;

/// Bytes after the value: version and checksum.
pub(super) const FOOTER_BYTES: usize = 10;

/// Bytes of the checksum.
const CHECKSUM_BYTES: usize = 8;

/// Longest string that may be written as an integer.
const INTEGER_TEXT_BYTES_MAX: usize = 11;

/// A payload whose version and checksum are correct. Its content is checked as it is read.
#[derive(Debug, Clone)]
pub struct Payload {
    version: u16,
    rdb_type: u8,
    pub(super) value: Reader,
}

impl Payload {
    /// The RDB version that the payload names.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The value, in the form of an RDB file. Must be called before anything is read.
    pub fn bytes(&self) -> Bytes {
        self.value.rest()
    }

    /// The type and encoding of the value, as RDB files number them.
    pub fn rdb_type(&self) -> u8 {
        self.rdb_type
    }

    /// The type of a value of Quoin's own; `None` of Redis's, of modules' and of later versions.
    pub fn own_type(&self) -> Option<OwnType> {
        OwnType::of(self.module_id()?)
    }

    /// The number at the beginning of a module's value.
    fn module_id(&self) -> Option<u64> {
        let mut value = self.value.clone();
        { value.length().ok() }.filter(|_| self.rdb_type == MODULE)
    }

    /// Whether Valkey 9 or later wrote it, where the numbers of later types have other meanings.
    pub(super) fn is_of_valkey(&self) -> bool {
        self.version == VERSION_OF_VALKEY
    }

    /// Why a value of this type is not read, if no reader takes it.
    pub fn refusal(&self) -> DumpError {
        if self
            .module_id()
            .is_some_and(|id| OwnType::of_other_version(id).is_some())
        {
            return DumpError::OtherVersion;
        }
        DumpError::OtherType(match self.rdb_type {
            6 | 7 => "module value",
            0xf3 => "value about which a module keeps data",
            _ => return DumpError::Format,
        })
    }
}

/// Opens a payload. Bytes after the value are ignored, as in Redis.
///
/// # Errors
/// If version or checksum are wrong.
pub fn open(payload: &Bytes) -> Result<Payload, DumpError> {
    let version = check(payload)?;
    let mut value = Reader::new(payload.slice(..payload.len() - FOOTER_BYTES));
    Ok(Payload {
        version,
        rdb_type: value.byte()?,
        value,
    })
}

/// Checks the bytes after the value, and returns the version.
pub(super) fn check(payload: &Bytes) -> Result<u16, DumpError> {
    let Some(value_bytes) = payload.len().checked_sub(FOOTER_BYTES) else {
        return Err(DumpError::VersionOrChecksum);
    };
    let mut footer = Reader::new(payload.slice(value_bytes..));
    let version = u16::from_le_bytes(footer.array()?);
    let expected = u64::from_le_bytes(footer.array()?);
    let checked = payload.slice(..payload.len() - CHECKSUM_BYTES);
    if !is_read(version) || checksum(&checked) != expected {
        return Err(DumpError::VersionOrChecksum);
    }
    Ok(version)
}

/// Whether values of this RDB version are read.
pub(super) fn is_read(version: u16) -> bool {
    version <= VERSION_READ_MAX || version == VERSION_OF_VALKEY
}

/// Adds version and checksum for the bytes from `start` on. Returns these without the bytes before.
pub(super) fn seal(bytes: Vec<u8>, start: usize) -> Bytes {
    seal_as(VERSION_WRITTEN, bytes, start)
}

/// The same with this version.
pub(super) fn seal_as(version: u16, mut bytes: Vec<u8>, start: usize) -> Bytes {
    bytes.extend(version.to_le_bytes());
    let sum = checksum(bytes.get(start..).unwrap_or_default());
    bytes.extend(sum.to_le_bytes());
    Bytes::from(bytes).slice(start..)
}

/// Writes a length as RDB files do.
pub fn put_length(bytes: &mut Vec<u8>, length: u64) {
    let [.., b, a] = length.to_be_bytes();
    if length < 1 << 6 {
        bytes.push(a);
    } else if length < 1 << 14 {
        bytes.extend([0x40 | b, a]);
    } else if let Ok(length) = u32::try_from(length) {
        bytes.push(0x80);
        bytes.extend(length.to_be_bytes());
    } else {
        bytes.push(0x81);
        bytes.extend(length.to_be_bytes());
    }
}

/// Writes a string as in RDB files: as a number if it is a short integer.
pub fn put_string(bytes: &mut Vec<u8>, string: &[u8]) {
    let integer = if string.len() <= INTEGER_TEXT_BYTES_MAX {
        parse_i64(string).and_then(|integer| i32::try_from(integer).ok())
    } else {
        None
    };
    let Some(integer) = integer else {
        put_length(bytes, string.len() as u64);
        bytes.extend_from_slice(string);
        return;
    };
    let [a, b, c, d] = integer.to_le_bytes();
    match integer {
        -128..128 => bytes.extend([0xc0, a]),
        -32_768..32_768 => bytes.extend([0xc1, a, b]),
        _ => bytes.extend([0xc2, a, b, c, d]),
    }
}

/// Reads from the front of bytes. The results share their memory.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    bytes: Bytes,
}

/// A length, or the number of a special encoding of strings.
enum Length {
    Plain(u64),
    Special(u8),
}

impl Reader {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self { bytes }
    }

    /// The unread rest.
    pub(super) fn rest(&self) -> Bytes {
        self.bytes.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that are left.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The next `length` bytes.
    pub(super) fn take(&mut self, length: u64) -> Result<Bytes, DumpError> {
        match usize::try_from(length) {
            Ok(length) if length <= self.bytes.len() => Ok(self.bytes.split_to(length)),
            _ => Err(DumpError::Format),
        }
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DumpError> {
        let array = *self.bytes.first_chunk().ok_or(DumpError::Format)?;
        self.bytes.advance(N);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, DumpError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn length_or_special(&mut self) -> Result<Length, DumpError> {
        let first = self.byte()?;
        let low = first & 0x3f;
        Ok(match (first >> 6, first) {
            (0, _) => Length::Plain(low.into()),
            (1, _) => Length::Plain(u16::from_be_bytes([low, self.byte()?]).into()),
            (3, _) => Length::Special(low),
            (_, 0x80) => Length::Plain(u32::from_be_bytes(self.array()?).into()),
            (_, 0x81) => Length::Plain(u64::from_be_bytes(self.array()?)),
            _ => return Err(DumpError::Format),
        })
    }

    /// A length or a count.
    pub(super) fn length(&mut self) -> Result<u64, DumpError> {
        match self.length_or_special()? {
            Length::Plain(length) => Ok(length),
            Length::Special(_) => Err(DumpError::Format),
        }
    }

    /// A string in any encoding.
    pub(super) fn string(&mut self) -> Result<Bytes, DumpError> {
        Ok(match self.length_or_special()? {
            Length::Plain(length) => self.take(length)?,
            Length::Special(0) => decimal(i8::from_le_bytes(self.array()?).into()),
            Length::Special(1) => decimal(i16::from_le_bytes(self.array()?).into()),
            Length::Special(2) => decimal(i32::from_le_bytes(self.array()?).into()),
            Length::Special(3) => {
                let compressed_length = self.length()?;
                let length = self.length()?;
                let compressed = self.take(compressed_length)?;
                decompress(&compressed, length)?.into()
            }
            Length::Special(_) => return Err(DumpError::Format),
        })
    }
}

/// The decimal text of an integer.
pub(super) fn decimal(integer: i64) -> Bytes {
    integer.to_string().into()
}

/// Maximum length of a string that RESTORE unpacks: the longest element, with its framing.
const STRING_BYTES_MAX: usize = REQUEST_BULK_BYTES_MAX + 1024;

/// Most bytes that RESTORE reserves for the claimed length of a compressed string before they exist.
const RESERVE_BYTES_MAX: usize = 64 * 1024;

/// Decompresses `compressed`, which must give `length` bytes.
///
/// Reserves little in advance: a few bytes can claim any length.
fn decompress(compressed: &[u8], length: u64) -> Result<Vec<u8>, DumpError> {
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= STRING_BYTES_MAX)
        .ok_or(DumpError::Format)?;
    let mut output = Vec::with_capacity(length.min(RESERVE_BYTES_MAX));
    let mut input = compressed;
    while let [control, rest @ ..] = input {
        let control = usize::from(*control);
        input = if control < 32 {
            // A run of literal bytes.
            let (run, rest) = rest
                .split_at_checked(control + 1)
                .ok_or(DumpError::Format)?;
            if run.len() > length - output.len() {
                return Err(DumpError::Format);
            }
            output.extend_from_slice(run);
            rest
        } else {
            // A copy of previous output.
            let (count, distance_low, rest) = match (control >> 5, rest) {
                (7, [more, low, rest @ ..]) => (9 + usize::from(*more), low, rest),
                (short, [low, rest @ ..]) if short < 7 => (2 + short, low, rest),
                _ => return Err(DumpError::Format),
            };
            let distance = ((control & 0x1f) << 8) + usize::from(*distance_low) + 1;
            if count > length - output.len() {
                return Err(DumpError::Format);
            }
            copy_back(&mut output, distance, count)?;
            rest
        };
    }
    if output.len() == length {
        Ok(output)
    } else {
        Err(DumpError::Format)
    }
}

/// Repeats `count` bytes that begin `distance` before the end. They may overlap with the bytes
/// being added.
fn copy_back(output: &mut Vec<u8>, distance: usize, count: usize) -> Result<(), DumpError> {
    let start = output
        .len()
        .checked_sub(distance)
        .ok_or(DumpError::Format)?;
    let mut left = count;
    while left > 0 {
        let step = left.min(output.len() - start);
        output.extend_from_within(start..start + step);
        left -= step;
    }
    Ok(())
}

/// The type of values of modules, as RDB files number it.
pub(super) const MODULE: u8 = 7;

/// Letters of the names of modules' types, each by its number.
const NAME_LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Bits of a letter.
const LETTER_BITS: u32 = 6;

/// Bits of the version, after the letters.
const VERSION_BITS: u32 = 10;

/// The version of the forms that are written.
const FORM_VERSION: u64 = 1;

/// A type that Redis does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnType {
    /// A priority queue.
    PriorityQueue,
    /// A task queue.
    TaskQueue,
}

impl OwnType {
    const ALL: [Self; 2] = [OwnType::PriorityQueue, OwnType::TaskQueue];

    /// The name that Redis shows when it refuses a file.
    pub fn module_name(self) -> &'static str {
        match self {
            OwnType::PriorityQueue => "quoinprio",
            OwnType::TaskQueue => "quointask",
        }
    }

    /// The number at the beginning of values of this type.
    pub(super) fn module_id(self) -> u64 {
        let name = self.module_name().bytes().fold(0, |id, letter| {
            let number = NAME_LETTERS.iter().position(|known| *known == letter);
            id << LETTER_BITS | number.unwrap_or(0) as u64
        });
        name << VERSION_BITS | FORM_VERSION
    }

    /// The type whose values begin with this number, in a supported version.
    pub(super) fn of(module_id: u64) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|own| own.module_id() == module_id)
    }

    /// The type whose values begin with this number in another version.
    pub(super) fn of_other_version(module_id: u64) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        let name = module_id >> VERSION_BITS;
        all.find(|own| own.module_id() >> VERSION_BITS == name && own.module_id() != module_id)
    }
}
