//! From payloads to elements.

use bytes::Bytes;

use super::packed::Packed;
use super::reader::Reader;
use super::{CHECKSUM_BYTES, DumpError, FOOTER_BYTES, VERSION_READ_MAX, checksum, value_type};
use crate::number::parse_double;

/// A value whose payload is sound on the outside; what is inside is checked as it is read.
#[derive(Debug, Clone)]
pub enum Serialized {
    /// A list, from its head.
    List(ListElements),
    /// A sorted set, in no certain order.
    SortedSet(SetMembers),
}

/// Opens a payload. Bytes behind the value are not looked at, as in Redis.
///
/// # Errors
/// Where version or checksum are wrong, and where the value is not a list or a sorted set.
pub fn open(payload: &Bytes) -> Result<Serialized, DumpError> {
    let Some(value_bytes) = payload.len().checked_sub(FOOTER_BYTES) else {
        return Err(DumpError::VersionOrChecksum);
    };
    let mut footer = Reader::new(payload.slice(value_bytes..));
    let version = u16::from_le_bytes(footer.array()?);
    let expected = u64::from_le_bytes(footer.array()?);
    let checked = payload.slice(..payload.len() - CHECKSUM_BYTES);
    if version > VERSION_READ_MAX || checksum(&checked) != expected {
        return Err(DumpError::VersionOrChecksum);
    }
    let mut value = Reader::new(payload.slice(..value_bytes));
    let type_byte = value.byte()?;
    let list = |value, form| ListElements::new(value, form).map(Serialized::List);
    let set = |value, form| SetMembers::new(value, form).map(Serialized::SortedSet);
    match type_byte {
        value_type::LIST => list(value, ListForm::Strings),
        value_type::LIST_ZIPLIST => list(value, ListForm::OneZiplist),
        value_type::LIST_OF_ZIPLISTS => list(value, ListForm::Ziplists),
        value_type::LIST_OF_LISTPACKS => list(value, ListForm::Listpacks),
        value_type::SET_WITH_TEXT_SCORES => set(value, SetForm::TextScores),
        value_type::SET_WITH_BINARY_SCORES => set(value, SetForm::BinaryScores),
        value_type::SET_ZIPLIST => set(value, SetForm::Ziplist),
        value_type::SET_LISTPACK => set(value, SetForm::Listpack),
        other => Err(other_type(other)),
    }
}

fn other_type(type_byte: u8) -> DumpError {
    DumpError::OtherType(match type_byte {
        0 => "string",
        2 | 11 | 20 => "set",
        4 | 9 | 13 | 16 => "hash",
        6 | 7 => "module value",
        15 | 19 | 21 => "stream",
        _ => return DumpError::Format,
    })
}

/// How a list is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListForm {
    Strings,
    OneZiplist,
    Ziplists,
    Listpacks,
}

/// The elements of a list, from its head; ends after the first error.
#[derive(Debug, Clone)]
pub struct ListElements {
    value: Reader,
    form: ListForm,
    /// Strings or nodes that are still to come.
    left: u64,
    node: Option<Packed>,
}

impl ListElements {
    fn new(mut value: Reader, form: ListForm) -> Result<Self, DumpError> {
        let left = match form {
            ListForm::OneZiplist => 1,
            _ => value.length()?,
        };
        Ok(Self {
            value,
            form,
            left,
            node: None,
        })
    }

    fn step(&mut self) -> Result<Option<Bytes>, DumpError> {
        loop {
            if let Some(node) = &mut self.node {
                if let Some(element) = node.next()? {
                    return Ok(Some(element));
                }
                self.node = None;
            }
            if self.left == 0 {
                return Ok(None);
            }
            self.left -= 1;
            self.node = Some(match self.form {
                ListForm::Strings => return self.value.string().map(Some),
                ListForm::OneZiplist | ListForm::Ziplists => {
                    Packed::ziplist(&self.value.string()?)?
                }
                ListForm::Listpacks => match self.value.length()? {
                    // One long element.
                    1 => {
                        let element = self.value.string()?;
                        return if element.is_empty() {
                            Err(DumpError::Format)
                        } else {
                            Ok(Some(element))
                        };
                    }
                    2 => Packed::listpack(&self.value.string()?)?,
                    _ => return Err(DumpError::Format),
                },
            });
        }
    }
}

impl Iterator for ListElements {
    type Item = Result<Bytes, DumpError>;

    fn next(&mut self) -> Option<Self::Item> {
        let element = self.step();
        if element.is_err() {
            self.left = 0;
            self.node = None;
        }
        element.transpose()
    }
}

/// How a sorted set is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SetForm {
    TextScores,
    BinaryScores,
    Ziplist,
    Listpack,
}

/// The members of a sorted set with their scores, which are never NaN; ends after the first
/// error. Whether a member comes twice is for the caller to see.
#[derive(Debug, Clone)]
pub struct SetMembers {
    value: Reader,
    has_text_scores: bool,
    /// Members outside of `packed` that are still to come.
    left: u64,
    packed: Option<Packed>,
}

impl SetMembers {
    fn new(mut value: Reader, form: SetForm) -> Result<Self, DumpError> {
        let (left, packed) = match form {
            SetForm::TextScores | SetForm::BinaryScores => (value.length()?, None),
            SetForm::Ziplist => (0, Some(Packed::ziplist(&value.string()?)?)),
            SetForm::Listpack => (0, Some(Packed::listpack(&value.string()?)?)),
        };
        Ok(Self {
            value,
            has_text_scores: form == SetForm::TextScores,
            left,
            packed,
        })
    }

    fn step(&mut self) -> Result<Option<(Bytes, f64)>, DumpError> {
        if let Some(packed) = &mut self.packed {
            let Some(member) = packed.next()? else {
                return Ok(None);
            };
            let score = packed.next()?.ok_or(DumpError::Format)?;
            let score = parse_double(&score).ok_or(DumpError::Format)?;
            return Ok(Some((member, score)));
        }
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let member = self.value.string()?;
        let score = if self.has_text_scores {
            text_score(&mut self.value)?
        } else {
            f64::from_le_bytes(self.value.array()?)
        };
        if score.is_nan() {
            return Err(DumpError::Format);
        }
        Ok(Some((member, score)))
    }
}

/// A score as Redis before 3.2 writes it: text behind a byte for its length, or a byte alone.
fn text_score(value: &mut Reader) -> Result<f64, DumpError> {
    match value.byte()? {
        255 => Ok(f64::NEG_INFINITY),
        254 => Ok(f64::INFINITY),
        253 => Err(DumpError::Format),
        length => parse_double(&value.take(length.into())?).ok_or(DumpError::Format),
    }
}

impl Iterator for SetMembers {
    type Item = Result<(Bytes, f64), DumpError>;

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.step();
        if member.is_err() {
            self.left = 0;
            self.packed = None;
        }
        member.transpose()
    }
}
