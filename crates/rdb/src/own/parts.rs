//! The parts of a value: numbers and strings, each with its kind, and an end mark.

use bytes::Bytes;

use crate::DumpError;
use crate::payload::{MODULE, OwnType, Payload, Reader, put_length, put_string, seal};

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

    /// A non-negative number.
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

    /// A non-negative number.
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
