//! Putting fields into a value, and removing them.

use std::collections::HashSet;

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::error::CommandError;
use crate::layout::{Entry, Member, ValueType};
use crate::limits::RANGE_PAGE_ROWS;
use crate::store::StoreError;
use crate::types::context::WriteContext;
use crate::types::key::OpenKey;

use super::{body, body_entries, row_of, row_of_type};

/// What a change did.
#[derive(Debug)]
pub struct Changed {
    /// The key after it.
    pub key: OpenKey,
    /// How many fields are new.
    pub added: i64,
}

impl WriteContext<'_> {
    /// Puts entries into a value, in order, in place of those of the same names. `found` is what
    /// [`find`](crate::types::ReadContext::find) has found at `name`; where it is `None`, the key
    /// is created.
    ///
    /// # Errors
    /// `KeyNameTooLong`; when the store fails.
    pub async fn fields_put(
        &self,
        name: &Bytes,
        value_type: ValueType,
        found: Option<OpenKey>,
        entries: Vec<Entry>,
    ) -> Result<Changed, CommandError> {
        let Some(mut key) = found else {
            return self.fields_create(name, value_type, None, entries).await;
        };
        let Some(mut present) = body_entries(&key)? else {
            self.notify_if_reborn(&key, name).await?;
            let added = self.put_rows(&key, &entries).await?;
            return Ok(Changed { key, added });
        };
        let row = row_of(&key);
        let mut added = 0;
        for entry in entries {
            added += i64::from(body::put(row, &mut present, entry));
        }
        match body::encode(row, &present) {
            Some(bytes) => self.write_body(&mut key, bytes),
            None => {
                self.drop_body(&mut key, 0);
                self.put_rows(&key, &present).await?;
            }
        }
        Ok(Changed { key, added })
    }

    /// Puts entries as a whole new value in place of whatever is at `name`. There must be one.
    ///
    /// # Errors
    /// `KeyNameTooLong`; when the store fails.
    pub async fn fields_create(
        &self,
        name: &Bytes,
        value_type: ValueType,
        expire_at_ms: Option<i64>,
        entries: Vec<Entry>,
    ) -> Result<Changed, CommandError> {
        let row = row_of_type(value_type);
        if entries.len() <= body::BODY_ENTRIES_MAX {
            let mut distinct = Vec::with_capacity(entries.len());
            for entry in &entries {
                body::put(row, &mut distinct, entry.clone());
            }
            if let Some(bytes) = body::encode(row, &distinct) {
                let key = self
                    .create_with(name, value_type, expire_at_ms, Some(bytes))
                    .await?;
                let added = i64::try_from(distinct.len()).unwrap_or(i64::MAX);
                return Ok(Changed { key, added });
            }
        }
        let key = self.create(name, value_type, expire_at_ms).await?;
        let added = self.put_rows(&key, &entries).await?;
        Ok(Changed { key, added })
    }

    /// Removes fields and answers how many there were. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn fields_remove(
        &self,
        key: &mut OpenKey,
        names: &[Bytes],
    ) -> Result<i64, StoreError> {
        let Some(mut present) = body_entries(key)? else {
            return self.remove_rows(key, names).await;
        };
        let before = present.len();
        present.retain(|entry| !names.contains(&entry.name));
        let removed = before - present.len();
        if removed > 0 {
            self.write_left(key, &present);
        }
        Ok(i64::try_from(removed).unwrap_or(i64::MAX))
    }

    /// Writes a body from which entries were taken.
    pub(super) fn write_left(&self, key: &mut OpenKey, left: &[Entry]) {
        // It has become smaller, so that it is a body still.
        let bytes = row_of(key).encode_body(left, usize::MAX);
        self.write_body(key, bytes.unwrap_or_default());
    }

    /// Puts entries into rows. Answers how many are new.
    async fn put_rows(&self, key: &OpenKey, entries: &[Entry]) -> Result<i64, StoreError> {
        let row = row_of(key);
        let mut added = 0;
        for chunk in entries.chunks(RANGE_PAGE_ROWS) {
            let names: Vec<Member> = chunk.iter().map(|one| Member::new(&one.name)).collect();
            let reads = names.iter().map(|name| self.field_row(key, name));
            let old_rows = try_join_all(reads).await?;
            let mut written: HashSet<&Bytes> = HashSet::new();
            for ((entry, name), mut old) in chunk.iter().zip(&names).zip(old_rows) {
                // A field may be named twice; what was read before its first change is old.
                if chunk.len() > 1 && !written.insert(&entry.name) {
                    old = self.field_row(key, name).await?;
                }
                match &old {
                    Some(old) if !old.is_empty() => self.discard_value(key.data(), old)?,
                    Some(_) => {}
                    None => added += 1,
                }
                let content = row.content(name, &entry.value);
                let value = content.map(|content| self.store_value(key.data(), &content));
                let row_key = self.layout().field_key(key.data(), row, name);
                self.transaction.set(&row_key, &value.unwrap_or_default());
            }
        }
        match added {
            0 => self.mark_changed(key),
            _ => self.add_length(key, added),
        }
        Ok(added)
    }

    async fn remove_rows(&self, key: &OpenKey, names: &[Bytes]) -> Result<i64, StoreError> {
        let mut removed = 0;
        for chunk in names.chunks(RANGE_PAGE_ROWS) {
            let names: Vec<Member> = chunk.iter().map(Member::new).collect();
            let reads = names.iter().map(|name| self.field_row(key, name));
            let old_rows = try_join_all(reads).await?;
            let mut gone: HashSet<&Bytes> = HashSet::new();
            for (name, old) in names.iter().zip(old_rows) {
                let Some(old) = old else { continue };
                if chunk.len() > 1 && !gone.insert(name.bytes()) {
                    continue;
                }
                if !old.is_empty() {
                    self.discard_value(key.data(), &old)?;
                }
                let row_key = self.layout().field_key(key.data(), row_of(key), name);
                self.transaction.clear(&row_key);
                removed += 1;
            }
        }
        self.add_length(key, -removed);
        Ok(removed)
    }
}
