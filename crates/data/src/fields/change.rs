//! Adding, changing and removing fields.

use std::collections::hash_map::Entry as Place;
use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use crate::command::put_series::Put;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::BODY_BYTES_MAX;
use crate::unit::context::WriteContext;
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{Entry, FieldRow, Member};
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

use super::{FieldsMut, FieldsType, canonical_number};

/// The most entries of a body. A look-up reads a body from its beginning.
pub(super) const BODY_ENTRIES_MAX: usize = 64;

/// What a command did that adds fields.
#[derive(Debug)]
pub struct Changed {
    /// The key after the change.
    pub key: OpenKey,
    /// How many fields are new.
    pub added: i64,
}

impl From<Changed> for Put {
    /// HSET and SADD reply with the number of new fields or members.
    fn from(changed: Changed) -> Self {
        Self {
            key: Some(changed.key),
            reply: Reply::Integer(changed.added),
        }
    }
}

/// Puts entries into the value named `name`, in order. An entry replaces one of the same name.
/// `found` is what [`find`](crate::unit::context::ReadContext::find) has found at `name`; if it is
/// `None`, the key is created.
///
/// # Errors
/// `KeyNameTooLong`.
pub async fn put<T: FieldsType>(
    context: &WriteContext<'_>,
    name: &Bytes,
    found: Option<OpenKey>,
    entries: Vec<Entry>,
) -> Result<Changed, CommandError> {
    let Some(mut key) = found else {
        return create::<T>(context, name, None, entries).await;
    };
    let mut fields = FieldsMut::<T>::open(context, &mut key);
    let added = fields.put(name, entries).await?;
    Ok(Changed { key, added })
}

/// Puts entries, at least one, as a new value in place of whatever is at `name`.
///
/// # Errors
/// `KeyNameTooLong`.
pub async fn create<T: FieldsType>(
    context: &WriteContext<'_>,
    name: &Bytes,
    expire_at_ms: Option<i64>,
    entries: Vec<Entry>,
) -> Result<Changed, CommandError> {
    let entries = distinct(T::ROW, entries);
    let added = to_i64(entries.len());
    let body = encode_body(T::ROW, &entries);
    let is_small = body.is_some();
    let mut key = context
        .create_with(name, T::VALUE_TYPE, expire_at_ms, body)
        .await?;
    if !is_small {
        FieldsMut::<T>::open(context, &mut key).fill_rows(&entries);
        context.add_length(&key, added);
    }
    Ok(Changed { key, added })
}

impl<T: FieldsType> FieldsMut<'_, '_, T> {
    /// Puts entries into the value and returns how many are new.
    async fn put(&mut self, name: &Bytes, entries: Vec<Entry>) -> Result<i64, StoreError> {
        let Some(mut present) = self.read().body_entries()? else {
            self.context.notify_if_reborn(self.key, name).await?;
            return self.put_rows(&entries).await;
        };
        let mut added = 0;
        for entry in entries {
            added += i64::from(put_among(T::ROW, &mut present, entry));
        }
        if added == 0 && T::ROW == FieldRow::Set {
            return Ok(added);
        }
        // Rows of a single field would conflict as the body does.
        let changed_bodies = &self.context.signals.changed_bodies;
        let is_contended = present.len() > 1 && changed_bodies.is_contended(self.key);
        match encode_body(T::ROW, &present).filter(|_| !is_contended) {
            Some(bytes) => self.change_body(bytes),
            None => {
                self.context.drop_body(self.key, to_i64(present.len()));
                self.fill_rows(&present);
            }
        }
        Ok(added)
    }

    /// Removes fields and returns how many there were. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    pub async fn remove(&mut self, names: &[Bytes]) -> Result<i64, StoreError> {
        let Some(mut present) = self.read().body_entries()? else {
            return self.remove_rows(names).await;
        };
        let before = present.len();
        present.retain(|entry| !names.contains(&entry.name));
        let removed = before - present.len();
        if removed > 0 {
            self.shrink_body(&present);
        }
        Ok(to_i64(removed))
    }

    /// Writes a body from which entries were removed.
    pub(super) fn shrink_body(&mut self, left: &[Entry]) {
        // A body that becomes smaller stays within the limits of a body.
        let bytes = T::ROW.encode_body(left, usize::MAX);
        self.change_body(bytes.unwrap_or_default());
    }

    fn change_body(&mut self, bytes: Bytes) {
        if self.context.environment.capabilities.has_other_writers {
            self.context.signals.changed_bodies.note(self.key);
        }
        self.context.write_body(self.key, bytes);
    }

    /// Writes the rows of a value that has none yet. The names are distinct.
    fn fill_rows(&self, entries: &[Entry]) {
        for entry in entries {
            self.write_row(&Member::new(&entry.name), &entry.value);
        }
    }

    fn write_row(&self, name: &Member, value: &Bytes) {
        let data = self.key.data();
        let content = T::ROW.content(name, value);
        let stored = content.map(|content| self.context.store_value(data, &content));
        let row_key = self.context.layout().field_key(data, T::ROW, name);
        let transaction = self.context.transaction;
        transaction.set(&row_key, &stored.unwrap_or_default());
    }

    /// The rows of these fields.
    async fn rows(&self, names: &[Member]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let value = self.read();
        let read = async |name| value.row(name).await;
        self.context.each(names, RANGE_PAGE_ROWS, read).await
    }

    /// Writes entries as rows. Returns how many are new.
    async fn put_rows(&self, entries: &[Entry]) -> Result<i64, StoreError> {
        let mut added = 0;
        for chunk in entries.chunks(RANGE_PAGE_ROWS) {
            let names: Vec<Member> = chunk.iter().map(|one| Member::new(&one.name)).collect();
            let old_rows = self.rows(&names).await?;
            let mut written: HashSet<&Bytes> = HashSet::new();
            for ((entry, name), mut old) in chunk.iter().zip(&names).zip(old_rows) {
                // If a field is named twice, its first change has made the row that was read old.
                if chunk.len() > 1 && !written.insert(&entry.name) {
                    old = self.read().row(name).await?;
                }
                match &old {
                    // A member has no value that could change.
                    Some(_) if T::ROW == FieldRow::Set => continue,
                    Some(old) if !old.is_empty() => {
                        self.context.discard_value(self.key.data(), old)?;
                    }
                    Some(_) => {}
                    None => added += 1,
                }
                self.write_row(name, &entry.value);
            }
        }
        match added {
            0 if T::ROW == FieldRow::Set => {}
            0 => self.context.mark_changed(self.key),
            _ => self.context.add_length(self.key, added),
        }
        Ok(added)
    }

    async fn remove_rows(&self, names: &[Bytes]) -> Result<i64, StoreError> {
        let mut removed = 0;
        for chunk in names.chunks(RANGE_PAGE_ROWS) {
            let names: Vec<Member> = chunk.iter().map(Member::new).collect();
            let old_rows = self.rows(&names).await?;
            let mut gone: HashSet<&Bytes> = HashSet::new();
            for (name, old) in names.iter().zip(old_rows) {
                let Some(old) = old else { continue };
                if chunk.len() > 1 && !gone.insert(name.bytes()) {
                    continue;
                }
                let layout = self.context.layout();
                let row_key = layout.field_key(self.key.data(), T::ROW, name);
                self.clear_row(&row_key, &old)?;
                removed += 1;
            }
        }
        self.context.add_length(self.key, -removed);
        Ok(removed)
    }

    /// Clears a field's row and the chunks of its value.
    pub(super) fn clear_row(&self, row_key: &[u8], row: &Bytes) -> Result<(), StoreError> {
        if !row.is_empty() {
            self.context.discard_value(self.key.data(), row)?;
        }
        self.context.transaction.clear(row_key);
        Ok(())
    }
}

/// The body with these entries; `None` if they need rows.
fn encode_body(row: FieldRow, entries: &[Entry]) -> Option<Bytes> {
    match entries.len() <= BODY_ENTRIES_MAX {
        true => row.encode_body(entries, BODY_BYTES_MAX),
        false => None,
    }
}

/// Removes duplicate names: the last value counts. Puts the entries into the order of a body, if
/// they fit one.
fn distinct(row: FieldRow, entries: Vec<Entry>) -> Vec<Entry> {
    let mut distinct: Vec<Entry> = Vec::with_capacity(entries.len());
    if entries.len() <= BODY_ENTRIES_MAX {
        for entry in entries {
            put_among(row, &mut distinct, entry);
        }
        return distinct;
    }
    let mut places: HashMap<Bytes, usize> = HashMap::with_capacity(entries.len());
    for entry in entries {
        match places.entry(entry.name.clone()) {
            Place::Occupied(place) => {
                if let Some(present) = distinct.get_mut(*place.get()) {
                    present.value = entry.value;
                }
            }
            Place::Vacant(place) => {
                place.insert(distinct.len());
                distinct.push(entry);
            }
        }
    }
    match distinct.len() <= BODY_ENTRIES_MAX {
        true => self::distinct(row, distinct),
        false => distinct,
    }
}

/// Puts an entry into a list, or replaces the entry of the same name. Returns whether it is new.
fn put_among(row: FieldRow, entries: &mut Vec<Entry>, entry: Entry) -> bool {
    let mut present = entries.iter_mut();
    if let Some(present) = present.find(|present| present.name == entry.name) {
        present.value = entry.value;
        return false;
    }
    let place = match row {
        FieldRow::Hash => entries.len(),
        FieldRow::Set => place_of_number(entries, &entry.name).unwrap_or(entries.len()),
    };
    entries.insert(place, entry);
    true
}

/// Insertion point in a sorted list of integers. `None` if the name is not an integer, or if the
/// list is not one of sorted integers.
fn place_of_number(entries: &[Entry], name: &Bytes) -> Option<usize> {
    let number = canonical_number(name)?;
    let mut place = 0;
    let mut last = None;
    for entry in entries {
        let other = canonical_number(&entry.name)?;
        if last.is_some_and(|last| last > other) {
            return None;
        }
        place += usize::from(other < number);
        last = Some(other);
    }
    Some(place)
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
