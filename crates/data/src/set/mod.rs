//! Sets. A member is a field without a value.
//!
//! Most operations are in [`crate::fields`], because hashes have them too.

use bytes::Bytes;

use crate::error::CommandError;
use crate::fields::{self, FieldsMut, FieldsType, canonical_number};
use crate::keyspace::encoding::LISTPACK_MEMBERS_MAX;
use crate::keyspace::handle::Value;
use crate::unit::context::WriteContext;
use quoin_base::events::EventClasses;
use quoin_layout::{Entry, FieldRow, ValueType};
use quoin_rdb::SMALL_SET_NUMBERS_MAX;

mod algebra;
pub mod commands;
mod kind;
#[cfg(test)]
mod tests;

pub use kind::KIND;

/// The type of sets.
pub enum SetType {}

/// A set, for reading.
pub type Set<'c, 't> = Value<'c, 't, SetType>;

/// A set, for writing.
pub type SetMut<'c, 't> = FieldsMut<'c, 't, SetType>;

impl FieldsType for SetType {
    const VALUE_TYPE: ValueType = ValueType::Set;
    const ROW: FieldRow = FieldRow::Set;
    const COMPACT_LENGTH_MAX: usize = SMALL_SET_NUMBERS_MAX;

    fn is_compact(members: &[Entry]) -> bool {
        members.len() <= LISTPACK_MEMBERS_MAX || are_numbers(members)
    }
}

/// Whether Redis keeps these members in an intset.
fn are_numbers(members: &[Entry]) -> bool {
    let mut members = members.iter();
    members.all(|member| canonical_number(&member.name).is_some())
}

/// A member as an entry.
fn entry(name: Bytes) -> Entry {
    Entry::new(name, Bytes::new())
}

/// Replaces whatever is at `name` with a set of these members. Without members, only removes what
/// is there. Returns the number of members.
///
/// # Errors
/// `KeyNameTooLong`.
pub async fn store(
    context: &WriteContext<'_>,
    name: &Bytes,
    members: Vec<Bytes>,
) -> Result<i64, CommandError> {
    if members.is_empty() {
        if let Some(old) = context.find_any(name).await? {
            context.remove(&old);
            context.notify(EventClasses::GENERIC, "del", name);
        }
        return Ok(0);
    }
    let entries = members.into_iter().map(entry).collect();
    let stored = fields::create::<SetType>(context, name, None, entries).await?;
    Ok(stored.added)
}
