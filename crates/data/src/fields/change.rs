//! Putting fields into a value, and removing them.

use std::collections::HashSet;

use bytes::Bytes;

use crate::command::put_series::Put;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{Entry, FieldRow, Member, ValueType};
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

use super::{body, body_entries, row_of, row_of_type};

/// What a change did.
#[derive(Debug)]
pub struct Changed {
    /// The key after it.
    pub key: OpenKey,
    /// How many fields are new.
    pub added: i64,
}

impl From<Changed> for Put {
    /// Of a command that answers how many fields or members are new.
    fn from(changed: Changed) -> Self {
        Self {
            key: Some(changed.key),
            reply: Reply::Integer(changed.added),
        }
    }
}

impl WriteContext<'_> {
    /// Puts entries into a value, in order, in place of those of the same names. `found` is what
    /// [`find`](crate::unit::context::ReadContext::find) has found at `name`; where it is `None`, the key
    /// is created.
    ///
    /// # Errors
    /// `KeyNameTooLong`.
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
        if added == 0 && row == FieldRow::Set {
            return Ok(Changed { key, added });
        }
        // Rows help where there is more than one field.
        let is_contended = present.len() > 1 && self.signals.changed_bodies.is_contended(&key);
        match body::encode(row, &present).filter(|_| !is_contended) {
            Some(bytes) => self.change_body(&mut key, bytes),
            None => {
                self.drop_body(&mut key, to_i64(present.len()));
                self.fill_rows(&key, &present);
            }
        }
        Ok(Changed { key, added })
    }

    /// Puts entries as a whole new value in place of whatever is at `name`. There must be one.
    ///
    /// # Errors
    /// `KeyNameTooLong`.
    pub async fn fields_create(
        &self,
        name: &Bytes,
        value_type: ValueType,
        expire_at_ms: Option<i64>,
        entries: Vec<Entry>,
    ) -> Result<Changed, CommandError> {
        let entries = body::distinct(row_of_type(value_type), entries);
        let added = to_i64(entries.len());
        let body = body::encode(row_of_type(value_type), &entries);
        let is_small = body.is_some();
        let key = self
            .create_with(name, value_type, expire_at_ms, body)
            .await?;
        if !is_small {
            self.fill_rows(&key, &entries);
            self.add_length(&key, added);
        }
        Ok(Changed { key, added })
    }

    /// Removes fields and answers how many there were. The caller ends with
    /// [`WriteContext::remove_if_empty`].
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
        Ok(to_i64(removed))
    }

    /// Writes a body from which entries were taken.
    pub(super) fn write_left(&self, key: &mut OpenKey, left: &[Entry]) {
        // It has become smaller, so that it is a body still.
        let bytes = row_of(key).encode_body(left, usize::MAX);
        self.change_body(key, bytes.unwrap_or_default());
    }

    fn change_body(&self, key: &mut OpenKey, bytes: Bytes) {
        if !self.environment.capabilities.single_writer {
            self.signals.changed_bodies.note(key);
        }
        self.write_body(key, bytes);
    }

    /// Writes the rows of a value that has none yet. The names are distinct.
    fn fill_rows(&self, key: &OpenKey, entries: &[Entry]) {
        for entry in entries {
            self.write_row(key, &Member::new(&entry.name), &entry.value);
        }
    }

    fn write_row(&self, key: &OpenKey, name: &Member, value: &Bytes) {
        let row = row_of(key);
        let content = row.content(name, value);
        let stored = content.map(|content| self.store_value(key.data(), &content));
        let row_key = self.layout().field_key(key.data(), row, name);
        self.transaction.set(&row_key, &stored.unwrap_or_default());
    }

    /// Puts entries into rows. Answers how many are new.
    async fn put_rows(&self, key: &OpenKey, entries: &[Entry]) -> Result<i64, StoreError> {
        let mut added = 0;
        for chunk in entries.chunks(RANGE_PAGE_ROWS) {
            let names: Vec<Member> = chunk.iter().map(|one| Member::new(&one.name)).collect();
            let read = async |name| self.field_row(key, name).await;
            let old_rows = self.each(&names, RANGE_PAGE_ROWS, read).await?;
            let mut written: HashSet<&Bytes> = HashSet::new();
            for ((entry, name), mut old) in chunk.iter().zip(&names).zip(old_rows) {
                // A field may be named twice; what was read before its first change is old.
                if chunk.len() > 1 && !written.insert(&entry.name) {
                    old = self.field_row(key, name).await?;
                }
                match &old {
                    // Of a member there is nothing to change.
                    Some(_) if row_of(key) == FieldRow::Set => continue,
                    Some(old) if !old.is_empty() => self.discard_value(key.data(), old)?,
                    Some(_) => {}
                    None => added += 1,
                }
                self.write_row(key, name, &entry.value);
            }
        }
        match added {
            0 if row_of(key) == FieldRow::Set => {}
            0 => self.mark_changed(key),
            _ => self.add_length(key, added),
        }
        Ok(added)
    }

    async fn remove_rows(&self, key: &OpenKey, names: &[Bytes]) -> Result<i64, StoreError> {
        let mut removed = 0;
        for chunk in names.chunks(RANGE_PAGE_ROWS) {
            let names: Vec<Member> = chunk.iter().map(Member::new).collect();
            let read = async |name| self.field_row(key, name).await;
            let old_rows = self.each(&names, RANGE_PAGE_ROWS, read).await?;
            let mut gone: HashSet<&Bytes> = HashSet::new();
            for (name, old) in names.iter().zip(old_rows) {
                let Some(old) = old else { continue };
                if chunk.len() > 1 && !gone.insert(name.bytes()) {
                    continue;
                }
                let row_key = self.layout().field_key(key.data(), row_of(key), name);
                self.clear_row(key, &row_key, &old)?;
                removed += 1;
            }
        }
        self.add_length(key, -removed);
        Ok(removed)
    }

    /// Clears a field's row with what it holds elsewhere.
    pub(super) fn clear_row(
        &self,
        key: &OpenKey,
        row_key: &[u8],
        row: &Bytes,
    ) -> Result<(), StoreError> {
        if !row.is_empty() {
            self.discard_value(key.data(), row)?;
        }
        self.transaction.clear(row_key);
        Ok(())
    }
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
