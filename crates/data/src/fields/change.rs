//! Adding, changing and removing fields.

use std::collections::hash_map::Entry as Place;
use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use crate::command::put_coalesced::Put;
use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::INLINE_BYTES_MAX;
use crate::unit::context::WriteContext;
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{Entry, FieldRow, FieldValue, Member, successor};
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

use super::{FieldsMut, FieldsType, canonical_number};

/// Maximum number of entries of an inline value. A lookup reads it from its beginning.
pub(super) const INLINE_ENTRIES_MAX: usize = 64;

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
    let inline = encode_inline(T::ROW, &entries);
    let is_small = inline.is_some();
    let mut key = context
        .create_with(name, T::VALUE_TYPE, expire_at_ms, inline)
        .await?;
    if !is_small {
        let mut fields = FieldsMut::<T>::open(context, &mut key);
        fields.expect_expiries(&entries).await?;
        fields.fill_rows(&entries)?;
        context.add_length(&key, added);
    }
    Ok(Changed { key, added })
}

impl<T: FieldsType> FieldsMut<'_, '_, T> {
    /// Puts entries into the value and returns how many are new.
    async fn put(&mut self, name: &Bytes, entries: Vec<Entry>) -> Result<i64, StoreError> {
        let Some(mut present) = self.read().inline_entries()? else {
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
        match encode_inline(T::ROW, &present) {
            Some(bytes) => self.context.write_inline(self.key, bytes),
            None => self.convert_to_rows(&present).await?,
        }
        Ok(added)
    }

    /// Moves an inline value to rows, with these entries.
    async fn convert_to_rows(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        self.context.drop_inline(self.key, to_i64(entries.len()));
        self.expect_expiries(entries).await?;
        self.fill_rows(entries)
    }

    /// Moves a value to rows, where fields may expire, if it is inline.
    pub(crate) async fn ensure_rows(&mut self) -> Result<(), StoreError> {
        match self.read().inline_entries()? {
            Some(entries) => self.convert_to_rows(&entries).await,
            None => Ok(()),
        }
    }

    /// [`Self::expect_expiry`] for these entries.
    async fn expect_expiries(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        match entries.iter().filter_map(|entry| entry.expire_at_ms).min() {
            Some(at_ms) => self.expect_expiry(at_ms).await,
            None => Ok(()),
        }
    }

    /// Must be called before fields are written that expire at this time or later. Marks the key and sets a
    /// [timer](crate::taskqueue::timers), unless a field that expires earlier has one.
    pub(crate) async fn expect_expiry(&mut self, at_ms: i64) -> Result<(), StoreError> {
        if !self.key.meta.fields_expire {
            self.context.mark_fields_expire(self.key);
            self.context.set_timer(self.key, at_ms);
            return Ok(());
        }
        let (layout, data) = (self.context.layout(), self.key.data());
        let earlier = layout.field_expiries_by(data, at_ms);
        let earlier = self.context.first_rows(&earlier, 1).await?;
        match earlier.first() {
            // If the row is removed concurrently, perhaps by the pass that its timer began, the timer is gone too.
            Some(row) => {
                let transaction = self.context.transaction;
                transaction.add_read_conflict_range(&row.key, &successor(&row.key));
            }
            None => self.context.set_timer(self.key, at_ms),
        }
        Ok(())
    }

    /// Removes fields and returns how many there were, with those that have expired, as in Redis. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    pub async fn remove(&mut self, names: &[Bytes]) -> Result<i64, StoreError> {
        let Some(mut present) = self.read().inline_entries()? else {
            return self.remove_rows(names).await;
        };
        let before = present.len();
        present.retain(|entry| !names.contains(&entry.name));
        let removed = before - present.len();
        if removed > 0 {
            self.shrink_inline(&present);
        }
        Ok(to_i64(removed))
    }

    /// Writes an inline value from which entries were removed.
    pub(super) fn shrink_inline(&mut self, left: &[Entry]) {
        // An inline value that becomes smaller stays within the limits.
        let bytes = T::ROW.encode_inline(left, usize::MAX);
        self.context
            .write_inline(self.key, bytes.unwrap_or_default());
    }

    /// Writes the rows of a value that has none yet. The names are distinct.
    fn fill_rows(&self, entries: &[Entry]) -> Result<(), StoreError> {
        for entry in entries {
            self.write_row(&Member::new(&entry.name), entry)?;
        }
        Ok(())
    }

    fn write_row(&self, name: &Member, entry: &Entry) -> Result<(), StoreError> {
        let data = self.key.data();
        let content = T::ROW.content(name, &entry.value);
        let stored = content.map(|content| self.context.store_value(data, &content));
        let row_key = self.context.layout().field_key(data, T::ROW, name);
        let value = FieldValue {
            expire_at_ms: entry.expire_at_ms,
            stored: stored.unwrap_or_default().into(),
        };
        self.write_field(&row_key, &value)
    }

    /// Writes a row, and the one by its expiry.
    pub(crate) fn write_field(&self, row_key: &[u8], value: &FieldValue) -> Result<(), StoreError> {
        let transaction = self.context.transaction;
        transaction.set(row_key, &value.encode());
        if let Some(at_ms) = value.expire_at_ms {
            transaction.set(&self.expiry_key(at_ms, row_key)?, b"");
        }
        Ok(())
    }

    fn expiry_key(&self, at_ms: i64, row_key: &[u8]) -> Result<Vec<u8>, StoreError> {
        let layout = self.context.layout();
        Ok(layout.field_expiry_key(self.key.data(), at_ms, row_key)?)
    }

    /// Clears the row by the expiry of a field.
    pub(crate) fn clear_expiry(
        &self,
        row_key: &[u8],
        value: &FieldValue,
    ) -> Result<(), StoreError> {
        if let Some(at_ms) = value.expire_at_ms {
            let expiry_key = self.expiry_key(at_ms, row_key)?;
            self.context.transaction.clear(&expiry_key);
        }
        Ok(())
    }

    /// The rows of these fields.
    async fn rows(&self, names: &[Member]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let value = self.read();
        let read = async |name| value.row(name).await;
        self.context.each(names, RANGE_PAGE_ROWS, read).await
    }

    /// Writes entries as rows. Returns how many are new.
    async fn put_rows(&mut self, entries: &[Entry]) -> Result<i64, StoreError> {
        self.expect_expiries(entries).await?;
        let (mut added, mut longer) = (0, 0);
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
                    Some(old) => {
                        added += i64::from(self.read().live(old)?.is_none());
                        let row_key = self.row_key(name);
                        self.discard_row(&row_key, &FieldValue::decode(old)?)?;
                    }
                    None => {
                        added += 1;
                        longer += 1;
                    }
                }
                self.write_row(name, entry)?;
            }
        }
        match longer {
            0 if T::ROW == FieldRow::Set => {}
            0 => self.context.mark_changed(self.key),
            _ => self.context.add_length(self.key, longer),
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
                self.clear_row(&self.row_key(name), &old)?;
                removed += 1;
            }
        }
        self.context.add_length(self.key, -removed);
        Ok(removed)
    }

    pub(crate) fn row_key(&self, name: &Member) -> Vec<u8> {
        let layout = self.context.layout();
        layout.field_key(self.key.data(), T::ROW, name)
    }

    /// Clears a field's row, the row by its expiry and the chunks of its value.
    pub(crate) fn clear_row(&self, row_key: &[u8], row: &Bytes) -> Result<(), StoreError> {
        self.discard_row(row_key, &FieldValue::decode(row)?)?;
        self.context.transaction.clear(row_key);
        Ok(())
    }

    /// Clears what belongs to a field's row.
    fn discard_row(&self, row_key: &[u8], row: &FieldValue) -> Result<(), StoreError> {
        if !row.stored.is_empty() {
            self.context.discard_value(self.key.data(), &row.stored)?;
        }
        self.clear_expiry(row_key, row)
    }
}

/// The inline value with these entries; `None` if they need rows.
fn encode_inline(row: FieldRow, entries: &[Entry]) -> Option<Bytes> {
    match entries.len() <= INLINE_ENTRIES_MAX {
        true => row.encode_inline(entries, INLINE_BYTES_MAX),
        false => None,
    }
}

/// Removes duplicate names: the last value counts. Puts the entries into the order of an inline
/// value, if they fit one.
fn distinct(row: FieldRow, entries: Vec<Entry>) -> Vec<Entry> {
    let mut distinct: Vec<Entry> = Vec::with_capacity(entries.len());
    if entries.len() <= INLINE_ENTRIES_MAX {
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
                    *present = entry;
                }
            }
            Place::Vacant(place) => {
                place.insert(distinct.len());
                distinct.push(entry);
            }
        }
    }
    match distinct.len() <= INLINE_ENTRIES_MAX {
        true => self::distinct(row, distinct),
        false => distinct,
    }
}

/// Puts an entry into a list, or replaces the entry of the same name. Returns whether it is new.
fn put_among(row: FieldRow, entries: &mut Vec<Entry>, entry: Entry) -> bool {
    let mut present = entries.iter_mut();
    if let Some(present) = present.find(|present| present.name == entry.name) {
        *present = entry;
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
