//! The values of a priority queue with their priorities.

use bytes::Bytes;

use super::parts::{Part, PartReader, PartWriter};
use crate::DumpError;
use crate::payload::{OwnType, Payload};

/// A priority in the form in which it was given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DumpedPriority {
    /// A 64-bit integer.
    Integer(i64),
    /// A double; never NaN.
    Double(f64),
}

/// The values of a priority queue with their priorities. Ends after the first error.
#[derive(Debug, Clone)]
pub struct PriorityQueueReader {
    parts: PartReader,
    priority: Option<DumpedPriority>,
    is_done: bool,
}

impl PriorityQueueReader {
    /// Begins to read a payload.
    ///
    /// # Errors
    /// If it is not a priority queue.
    pub fn new(payload: Payload) -> Result<Self, DumpError> {
        Ok(Self {
            parts: PartReader::new(payload, OwnType::PriorityQueue)?,
            priority: None,
            is_done: false,
        })
    }

    fn step(&mut self) -> Result<Option<(DumpedPriority, Bytes)>, DumpError> {
        loop {
            match self.parts.next()? {
                Part::End => return Ok(None),
                Part::Signed(number) => self.priority = Some(DumpedPriority::Integer(number)),
                Part::Double(number) if !number.is_nan() => {
                    self.priority = Some(DumpedPriority::Double(number));
                }
                Part::String(value) => {
                    let priority = self.priority.ok_or(DumpError::Format)?;
                    return Ok(Some((priority, value)));
                }
                Part::Double(_) | Part::Unsigned(_) => return Err(DumpError::Format),
            }
        }
    }
}

impl Iterator for PriorityQueueReader {
    type Item = Result<(DumpedPriority, Bytes), DumpError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let value = self.step();
        self.is_done = !matches!(value, Ok(Some(_)));
        value.transpose()
    }
}

/// Writes a priority queue.
#[derive(Debug)]
pub struct PriorityQueueWriter {
    parts: PartWriter,
    priority: Option<DumpedPriority>,
}

impl Default for PriorityQueueWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl PriorityQueueWriter {
    /// Without values.
    pub fn new() -> Self {
        Self {
            parts: PartWriter::new(OwnType::PriorityQueue),
            priority: None,
        }
    }

    /// Adds a value after the others.
    pub fn push(&mut self, priority: DumpedPriority, value: &[u8]) {
        if self.priority != Some(priority) {
            match priority {
                DumpedPriority::Integer(number) => self.parts.signed(number),
                DumpedPriority::Double(number) => self.parts.double(number),
            }
            self.priority = Some(priority);
        }
        self.parts.string(value);
    }

    /// How many bytes the payload has so far.
    pub fn size_bytes(&self) -> usize {
        self.parts.len()
    }

    /// The payload.
    pub fn finish(self) -> Bytes {
        self.parts.finish()
    }
}
