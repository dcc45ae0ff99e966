//! Hashes and sets in Redis's serialization.

use std::collections::HashSet;

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::dumping::check_size;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::Restorable;
use crate::unit::context::ReadContext;
use quoin_layout::{Entry, ValueType};
use quoin_rdb::{
    DumpError, HashFields, HashWriter, Payload, SMALL_HASH_FIELDS_MAX, SMALL_SET_NUMBERS_MAX,
    SetMembers, SetWriter, small_hash, small_set,
};
use quoin_store::StoreError;

impl ReadContext<'_> {
    /// A hash in Redis's serialization.
    ///
    /// # Errors
    /// `Text` where that is too large.
    pub(crate) async fn hash_dump(&self, key: &OpenKey) -> Result<Bytes, CommandError> {
        let length = self.counted_length(key).await?;
        if length <= SMALL_HASH_FIELDS_MAX as u64 {
            let fields = self.fields_all(key).await?;
            let parts = fields.iter().map(|field| (&field.name, &field.value));
            if let Some(payload) = small_hash(parts) {
                return Ok(payload);
            }
        }
        let mut writer = HashWriter::new(length);
        let write = |field: &Entry| {
            writer.push(&field.name, &field.value);
            writer.size_bytes()
        };
        self.dump_each(key, length, write).await?;
        Ok(writer.finish())
    }

    /// A set in Redis's serialization.
    ///
    /// # Errors
    /// `Text` where that is too large.
    pub(crate) async fn set_dump(&self, key: &OpenKey) -> Result<Bytes, CommandError> {
        let length = self.counted_length(key).await?;
        if length <= SMALL_SET_NUMBERS_MAX as u64 {
            let members = self.fields_all(key).await?;
            if let Some(payload) = small_set(members.iter().map(|member| &member.name)) {
                return Ok(payload);
            }
        }
        let mut writer = SetWriter::new(length);
        let write = |member: &Entry| {
            writer.push(&member.name);
            writer.size_bytes()
        };
        self.dump_each(key, length, write).await?;
        Ok(writer.finish())
    }

    async fn counted_length(&self, key: &OpenKey) -> Result<u64, StoreError> {
        let length = self.length(key, self.isolation).await?;
        Ok(u64::try_from(length).unwrap_or(0))
    }

    /// Hands over all entries, of which there must be `length`; `write` answers the bytes so far.
    async fn dump_each(
        &self,
        key: &OpenKey,
        length: u64,
        mut write: impl FnMut(&Entry) -> usize,
    ) -> Result<(), CommandError> {
        let mut pages = self.fields(key)?;
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

/// Reads a hash from a payload.
pub(crate) fn restorable_hash(
    context: &ReadContext<'_>,
    payload: Payload,
) -> Result<Restorable, CommandError> {
    let fields = HashFields::new(payload)?;
    let entries = fields.map(|field| field.map(|(name, value)| Entry { name, value }));
    restorable(context, ValueType::Hash, entries)
}

/// Reads a set from a payload.
pub(crate) fn restorable_set(
    context: &ReadContext<'_>,
    payload: Payload,
) -> Result<Restorable, CommandError> {
    let members = SetMembers::new(payload)?;
    let value = Bytes::new();
    let entries = members.map(move |member| {
        member.map(|name| Entry {
            name,
            value: value.clone(),
        })
    });
    restorable(context, ValueType::Set, entries)
}

fn restorable(
    context: &ReadContext<'_>,
    value_type: ValueType,
    entries: impl Iterator<Item = Result<Entry, DumpError>>,
) -> Result<Restorable, CommandError> {
    let mut budget = context.size_budget();
    let mut names: HashSet<Bytes> = HashSet::new();
    let mut read = Vec::new();
    for entry in entries {
        let entry = entry?;
        budget.take_field(entry.name.len(), entry.value.len())?;
        // A few bytes can stand for millions of equal names.
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
            context
                .fields_create(name, value_type, expire_at_ms, read)
                .await?;
            Ok(())
        })
    }))
}
