//! Sets: fields without values.
//!
//! What they share with hashes is in [`crate::fields`].

pub mod commands;

use bytes::Bytes;

use crate::error::CommandError;
use quoin_base::events::EventClasses;
use quoin_layout::{Entry, ValueType};
use quoin_store::StoreError;

use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::Slice;
use crate::unit::context::{ReadContext, WriteContext};

mod algebra;
mod kind;
mod lookup;

pub use kind::KIND;

/// A member as an entry.
fn entry(name: Bytes) -> Entry {
    Entry {
        name,
        value: Bytes::new(),
    }
}

impl ReadContext<'_> {
    /// Some members in the order in which they lie, for SORT. As in Redis, that order is not turned.
    async fn set_slice(&self, key: &OpenKey, slice: Slice) -> Result<Vec<Bytes>, StoreError> {
        let members = self.fields_all(key).await?.into_iter();
        let skipped = usize::try_from(slice.begin).unwrap_or(0);
        let count = usize::try_from(slice.end - slice.begin).unwrap_or(0);
        let names = members.map(|member| member.name);
        Ok(names.skip(skipped).take(count).collect())
    }
}

impl WriteContext<'_> {
    /// Puts members as a whole set in place of whatever is at `name`, or nothing where there are
    /// none. Answers how many there are.
    ///
    /// # Errors
    /// `KeyNameTooLong`.
    pub async fn set_store(&self, name: &Bytes, members: Vec<Bytes>) -> Result<i64, CommandError> {
        if members.is_empty() {
            if let Some(old) = self.find_any(name).await? {
                self.remove(&old);
                self.notify(EventClasses::GENERIC, "del", name);
            }
            return Ok(0);
        }
        let entries = members.into_iter().map(entry).collect();
        let stored = self
            .fields_create(name, ValueType::Set, None, entries)
            .await?;
        Ok(stored.added)
    }
}
