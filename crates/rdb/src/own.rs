//! Values of Quoin's own types, in the form that Redis's modules use.
//!
//! A value begins with a number that encodes the name of the type and the version of its form. Parts follow,
//! each with its kind, and then an end mark. So a Redis refuses such a payload as the value of an unknown
//! module, and refuses a file with the name of the type. Tools that read files of Redis find the end of the
//! value.

use bytes::Bytes;

use super::DumpError;
use super::payload::{Payload, Reader, put_length, put_string, seal};
use super::priority_queue::{PriorityQueueReader, PriorityQueueWriter};
use super::task_queue::{TaskQueueReader, TaskQueueWriter};

/// The type of values of modules, as RDB files number it.
pub(super) const MODULE: u8 = 7;

/// Letters of the names of modules' types, each by its number.
const NAME_LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Bits of a letter.
const LETTER_BITS: u32 = 6;

/// Bits of the version, after the letters.
const VERSION_BITS: u32 = 10;

/// The version of the forms that are written.
const VERSION: u64 = 1;

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

    /// The number that such a value begins with.
    pub(super) fn module_id(self) -> u64 {
        let name = self.module_name().bytes().fold(0, |id, letter| {
            let number = NAME_LETTERS.iter().position(|known| *known == letter);
            id << LETTER_BITS | number.unwrap_or(0) as u64
        });
        name << VERSION_BITS | VERSION
    }

    /// The type whose values begin with this number, in a version that is read.
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

const END: u64 = 0;

const SIGNED: u64 = 1;

const UNSIGNED: u64 = 2;

const DOUBLE: u64 = 4;

const STRING: u64 = 5;

/// A part of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    End,
    Signed(i64),
    Unsigned(u64),
    Double(f64),
    String(Bytes),
}

/// Reads the parts of a value.
#[derive(Debug, Clone)]
pub(super) struct PartReader {
    value: Reader,
}

impl PartReader {
    /// The parts of a value of this type.
    pub(super) fn new(payload: Payload, own: OwnType) -> Result<Self, DumpError> {
        if payload.own_type() != Some(own) {
            return Err(DumpError::Format);
        }
        let mut value = payload.value;
        value.length()?;
        Ok(Self { value })
    }

    pub(super) fn next(&mut self) -> Result<Part, DumpError> {
        Ok(match self.value.length()? {
            END => Part::End,
            SIGNED => Part::Signed(self.value.length()?.cast_signed()),
            UNSIGNED => Part::Unsigned(self.value.length()?),
            DOUBLE => Part::Double(f64::from_le_bytes(self.value.array()?)),
            STRING => Part::String(self.value.string()?),
            _ => return Err(DumpError::Format),
        })
    }

    pub(super) fn signed(&mut self) -> Result<i64, DumpError> {
        match self.next()? {
            Part::Signed(number) => Ok(number),
            _ => Err(DumpError::Format),
        }
    }

    /// A number that is zero or more.
    pub(super) fn count(&mut self) -> Result<i64, DumpError> {
        let number = self.unsigned()?;
        i64::try_from(number).map_err(|_| DumpError::Format)
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, DumpError> {
        match self.next()? {
            Part::Unsigned(number) => Ok(number),
            _ => Err(DumpError::Format),
        }
    }

    /// A number other than NaN.
    pub(super) fn double(&mut self) -> Result<f64, DumpError> {
        match self.next()? {
            Part::Double(number) if !number.is_nan() => Ok(number),
            _ => Err(DumpError::Format),
        }
    }

    pub(super) fn string(&mut self) -> Result<Bytes, DumpError> {
        match self.next()? {
            Part::String(string) => Ok(string),
            _ => Err(DumpError::Format),
        }
    }
}

/// Writes the parts of a value.
#[derive(Debug)]
pub(super) struct PartWriter {
    bytes: Vec<u8>,
}

impl PartWriter {
    pub(super) fn new(own: OwnType) -> Self {
        let mut bytes = vec![MODULE];
        put_length(&mut bytes, own.module_id());
        Self { bytes }
    }

    pub(super) fn signed(&mut self, number: i64) {
        put_length(&mut self.bytes, SIGNED);
        put_length(&mut self.bytes, number.cast_unsigned());
    }

    pub(super) fn unsigned(&mut self, number: u64) {
        put_length(&mut self.bytes, UNSIGNED);
        put_length(&mut self.bytes, number);
    }

    /// A number that is zero or more.
    pub(super) fn count(&mut self, number: i64) {
        self.unsigned(u64::try_from(number).unwrap_or(0));
    }

    pub(super) fn double(&mut self, number: f64) {
        put_length(&mut self.bytes, DOUBLE);
        self.bytes.extend(number.to_le_bytes());
    }

    pub(super) fn string(&mut self, string: &[u8]) {
        put_length(&mut self.bytes, STRING);
        put_string(&mut self.bytes, string);
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn finish(mut self) -> Bytes {
        put_length(&mut self.bytes, END);
        seal(self.bytes, 0)
    }
}

/// Hands out the elements of a payload of one of Quoin's own types in chunks.
#[derive(Debug, Clone)]
pub enum Chunks {
    /// Of a priority queue.
    PriorityQueue(PriorityQueueReader),
    /// Of a task queue.
    TaskQueue(TaskQueueReader),
}

impl Chunks {
    /// Begins to read a payload.
    ///
    /// # Errors
    /// If it is not of such a type, or not sound.
    pub fn new(payload: Payload) -> Result<Self, DumpError> {
        Ok(match payload.own_type() {
            Some(OwnType::PriorityQueue) => {
                Chunks::PriorityQueue(PriorityQueueReader::new(payload)?)
            }
            Some(OwnType::TaskQueue) => Chunks::TaskQueue(TaskQueueReader::new(payload)?),
            None => return Err(payload.refusal()),
        })
    }

    /// The next chunk, of up to `count_max` elements and about `bytes_max` bytes; `None` at the end.
    ///
    /// # Errors
    /// If the payload is invalid.
    pub fn next_chunk(
        &mut self,
        bytes_max: usize,
        count_max: usize,
    ) -> Result<Option<Bytes>, DumpError> {
        let mut count = 0;
        let chunk = match self {
            Chunks::PriorityQueue(values) => {
                let mut writer = PriorityQueueWriter::new();
                while count < count_max
                    && writer.size_bytes() < bytes_max
                    && let Some((priority, value)) = values.next().transpose()?
                {
                    writer.push(priority, &value);
                    count += 1;
                }
                writer.finish()
            }
            Chunks::TaskQueue(tasks) => {
                let mut writer = TaskQueueWriter::new(tasks.added(), tasks.resources());
                while count < count_max
                    && writer.size_bytes() < bytes_max
                    && let Some(task) = tasks.next().transpose()?
                {
                    writer.push(&task);
                    count += 1;
                }
                writer.finish()
            }
        };
        Ok((count > 0).then_some(chunk))
    }

    /// How many elements are left.
    ///
    /// # Errors
    /// If the payload is invalid.
    pub fn count_left(self) -> Result<u64, DumpError> {
        let mut count = 0;
        match self {
            Chunks::PriorityQueue(values) => {
                for value in values {
                    value?;
                    count += 1;
                }
            }
            Chunks::TaskQueue(tasks) => {
                for task in tasks {
                    task?;
                    count += 1;
                }
            }
        }
        Ok(count)
    }
}

/// Elements of payloads of Quoin's own types.
pub fn elements_in_chunks(payloads: &[Vec<u8>]) -> usize {
    let count = |payload: &Vec<u8>| {
        let payload = crate::open(&Bytes::copy_from_slice(payload))?;
        Chunks::new(payload)?.count_left()
    };
    let counts = payloads.iter().map(|payload| count(payload).unwrap_or(0));
    usize::try_from(counts.sum::<u64>()).unwrap_or(usize::MAX)
}
