//! Hashes: fields with values.
//!
//! The operations are in [`crate::fields`], because sets have them too.

use crate::fields::{FieldsMut, FieldsType};
use crate::keyspace::handle::Value;
use quoin_layout::{Entry, FieldRow, ValueType};

pub mod commands;
pub mod expiry;
mod kind;
#[cfg(test)]
mod tests;

pub use kind::KIND;

/// The type of hashes.
pub enum HashType {}

/// A hash, for reading.
pub type Hash<'c, 't> = Value<'c, 't, HashType>;

/// A hash, for writing.
pub type HashMut<'c, 't> = FieldsMut<'c, 't, HashType>;

/// Fields of a listpack (`hash-max-listpack-entries`).
const LISTPACK_FIELDS_MAX: usize = 512;

impl FieldsType for HashType {
    const VALUE_TYPE: ValueType = ValueType::Hash;
    const ROW: FieldRow = FieldRow::Hash;
    const COMPACT_LENGTH_MAX: usize = LISTPACK_FIELDS_MAX;

    fn is_compact(_: &[Entry]) -> bool {
        true
    }
}
