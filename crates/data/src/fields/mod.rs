//! What hashes and sets share: a set is a hash whose fields have no values.
//!
//! A small value is stored whole in its key's metadata, as an *inline value*. Its entries keep the order in which
//! they were added, as in Redis's listpacks. The integers of a set of integers are sorted, as in Redis's intsets.
//! A value that outgrows the limits of inline values moves to rows for good, one row a field, in the order of
//! hashes. Changes of different rows do not conflict. The length is a counter that is added to without being read.
//!
//! `Value<T>` of this module reads, [`FieldsMut`] writes. A hash and a set add little to them.

use std::marker::PhantomData;

use bytes::Bytes;

use crate::keyspace::handle::Value;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::{Entry, FieldRow, ValueType};

mod change;
pub(crate) mod commands;
mod dump;
mod random;
mod read;
#[cfg(test)]
mod tests;

pub use change::{Changed, create, put};
pub(crate) use dump::restorable;
pub use read::EntryPages;

/// A type whose values have fields.
pub trait FieldsType {
    /// The type in metadata.
    const VALUE_TYPE: ValueType;
    /// The form of its rows and inline values.
    const ROW: FieldRow;
    /// The greatest length that Redis has a compact encoding for.
    const COMPACT_LENGTH_MAX: usize;

    /// Whether Redis has a compact encoding for these entries, which are short and at most
    /// [`Self::COMPACT_LENGTH_MAX`].
    fn is_compact(entries: &[Entry]) -> bool;
}

/// A value with fields, for writing. It changes its key, whose metadata may hold the fields.
pub struct FieldsMut<'c, 't, T> {
    pub(crate) context: &'c WriteContext<'t>,
    pub(crate) key: &'c mut OpenKey,
    of_type: PhantomData<T>,
}

impl<'c, 't, T: FieldsType> FieldsMut<'c, 't, T> {
    /// The value of a key that was found, or created, with this type.
    pub fn open(context: &'c WriteContext<'t>, key: &'c mut OpenKey) -> Self {
        Self {
            context,
            key,
            of_type: PhantomData,
        }
    }

    /// The value for reading.
    pub(crate) fn read(&self) -> Value<'_, 't, T> {
        Value::open(self.context, self.key)
    }
}

/// The 64-bit integer that prints as these bytes.
pub(crate) fn canonical_number(bytes: &Bytes) -> Option<i64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
