//! DUMP and RESTORE of values with fields.

use std::collections::HashSet;

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::dumping::check_size;
use crate::keyspace::handle::Value;
use crate::keyspace::kind::Restorable;
use crate::unit::context::ReadContext;
use quoin_layout::Entry;
use quoin_rdb::DumpError;
use quoin_store::StoreError;

use super::{FieldsType, create};

impl<T: FieldsType> Value<'_, '_, T> {
    /// The number of entries that a payload announces.
    pub(crate) async fn counted_length(&self) -> Result<u64, StoreError> {
        Ok(u64::try_from(self.length().await?).unwrap_or(0))
    }

    /// Passes all entries to `write`, which returns the bytes of the payload up to this entry.
    ///
    /// # Errors
    /// `Text` if the payload becomes too large; `Corrupt` if there are not `length` entries.
    pub(crate) async fn dump_each(
        &self,
        length: u64,
        mut write: impl FnMut(&Entry) -> usize,
    ) -> Result<(), CommandError> {
        let mut pages = self.pages()?;
        let mut count = 0;
        while let Some(page) = pages.next().await? {
            for entry in &page {
                check_size(write(entry))?;
                count += 1;
            }
        }
        match count == length {
            true => Ok(()),
            false => {
                Err(StoreError::Corrupt("a key has another number of rows than is counted").into())
            }
        }
    }
}

/// Reads the entries of a payload for RESTORE.
///
/// # Errors
/// Those of RESTORE for a payload that is not sound.
pub(crate) fn restorable<T: FieldsType>(
    context: &ReadContext<'_>,
    entries: impl Iterator<Item = Result<Entry, DumpError>>,
) -> Result<Restorable, CommandError> {
    let mut budget = context.size_budget();
    let mut names: HashSet<Bytes> = HashSet::new();
    let mut read = Vec::new();
    for entry in entries {
        let entry = entry?;
        budget.take_field(entry.name.len(), entry.value.len())?;
        // A payload of a few bytes can contain the same name millions of times.
        if !names.insert(entry.name.clone()) {
            return Err(DumpError::Format.into());
        }
        read.push(entry);
    }
    if read.is_empty() {
        return Err(DumpError::Format.into());
    }
    Ok(Box::new(move |context, name, expire_at_ms| {
        Box::pin(async move {
            create::<T>(context, name, expire_at_ms, read).await?;
            Ok(())
        })
    }))
}
