//! Reading fields: by name, all of them, and a scan.

use std::cell::Cell;
use std::vec;

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::encoding::is_short;
use crate::keyspace::handle::Value;
use crate::rows::pages::Pages;
use quoin_base::decode_error::DecodeError;
use quoin_base::limits::{MGET_ANSWER_BYTES_MAX, RANGE_PAGE_ROWS};
use quoin_layout::{Entry, FieldValue, HashedKeys, Member, StoredValue};
use quoin_store::{KeyValue, StoreError};

use super::FieldsType;

/// A page ends when its entries have this many bytes. Values that are split may be long.
const PAGE_BYTES_SOFT_MAX: usize = 1024 * 1024;

fn too_long_an_answer() -> CommandError {
    let line = format!("ERR too long an answer of HMGET (more than {MGET_ANSWER_BYTES_MAX} bytes)");
    CommandError::Text(line.into())
}

/// All entries of a value, a page at a time.
pub struct EntryPages<'c, 't, T> {
    value: Value<'c, 't, T>,
    source: Source<'c, 't>,
}

enum Source<'c, 't> {
    Inline(Option<Vec<Entry>>),
    Rows {
        pages: Pages<'c, 't>,
        /// Rows that were read and not returned yet.
        rows: vec::IntoIter<KeyValue>,
        keys: HashedKeys,
    },
}

impl<T: FieldsType> EntryPages<'_, '_, T> {
    /// The next entries; `None` after the last. A page is never empty.
    pub async fn next(&mut self) -> Result<Option<Vec<Entry>>, StoreError> {
        match &mut self.source {
            Source::Inline(entries) => Ok(entries.take().filter(|entries| !entries.is_empty())),
            Source::Rows { pages, rows, keys } => {
                let (mut entries, mut bytes) = (Vec::with_capacity(rows.len()), 0);
                // All fields of a page may have expired.
                while entries.is_empty() {
                    if rows.as_slice().is_empty() {
                        let Some(page) = pages.next().await? else {
                            return Ok(None);
                        };
                        *rows = page.into_iter();
                        entries.reserve(rows.len());
                    }
                    while bytes < PAGE_BYTES_SOFT_MAX
                        && let Some(row) = rows.next()
                    {
                        let Some(entry) = self.value.row_entry(keys, &row).await? else {
                            continue;
                        };
                        bytes += entry.name.len() + entry.value.len();
                        entries.push(entry);
                    }
                }
                Ok(Some(entries))
            }
        }
    }
}

impl<'c, 't, T: FieldsType> Value<'c, 't, T> {
    /// The number of fields, with those that have expired and not been removed.
    pub(super) async fn length(&self) -> Result<i64, StoreError> {
        self.context.length(self.key, self.context.isolation).await
    }

    /// The values of fields; `None` for a field that does not exist. Members of sets have no
    /// values, so a member that exists gives empty bytes.
    ///
    /// # Errors
    /// `Text` if the values have more than [`MGET_ANSWER_BYTES_MAX`] together.
    pub async fn get_each(&self, names: &[Bytes]) -> Result<Vec<Option<Bytes>>, CommandError> {
        if let Some(inline) = &self.key.meta.inline {
            let find = |name: &Bytes| T::ROW.find_inline(&inline.bytes, name);
            return Ok(names.iter().map(find).collect::<Result<_, _>>()?);
        }
        let taken_bytes = Cell::new(0_usize);
        let get = async |name| {
            let name = Member::new(name);
            let Some(row) = self.live_row(&name).await? else {
                return Ok(None);
            };
            // A single value may be this long, and a field may be named many times.
            let taken = taken_bytes.get();
            let bytes = match row.stored.is_empty() {
                true => 0,
                false => StoredValue::decode(&row.stored)
                    .map_err(StoreError::from)?
                    .length(),
            };
            let bytes = taken.saturating_add(bytes);
            if taken > 0 && bytes > MGET_ANSWER_BYTES_MAX {
                return Err(too_long_an_answer());
            }
            taken_bytes.set(bytes);
            Ok(Some(self.named_entry(name.inline(), row).await?.value))
        };
        self.context.each(names, RANGE_PAGE_ROWS, get).await
    }

    /// The value of one field.
    pub async fn get(&self, name: &Bytes) -> Result<Option<Bytes>, StoreError> {
        let entry = self.get_entry(name).await?;
        Ok(entry.map(|entry| entry.value))
    }

    /// One field, with its value and expiry.
    pub(crate) async fn get_entry(&self, name: &Bytes) -> Result<Option<Entry>, StoreError> {
        if let Some(inline) = &self.key.meta.inline {
            let value = T::ROW.find_inline(&inline.bytes, name)?;
            return Ok(value.map(|value| Entry::new(name.clone(), value)));
        }
        let member = Member::new(name);
        match self.live_row(&member).await? {
            Some(row) => Ok(Some(self.named_entry(member.inline(), row).await?)),
            None => Ok(None),
        }
    }

    /// Whether a field exists. Does not read a value that is split.
    pub async fn contains(&self, name: &Bytes) -> Result<bool, StoreError> {
        match &self.key.meta.inline {
            Some(inline) => Ok(T::ROW.find_inline(&inline.bytes, name)?.is_some()),
            None => Ok(self.live_row(&Member::new(name)).await?.is_some()),
        }
    }

    /// [`Self::contains`] of several fields.
    pub async fn contains_each(&self, names: &[Bytes]) -> Result<Vec<bool>, StoreError> {
        if let Some(inline) = &self.key.meta.inline {
            let is_found = |name: &Bytes| Ok(T::ROW.find_inline(&inline.bytes, name)?.is_some());
            return names.iter().map(is_found).collect();
        }
        let is_found = async |name| self.contains(name).await;
        self.context.each(names, RANGE_PAGE_ROWS, is_found).await
    }

    /// All entries, a page at a time.
    pub fn pages(&self) -> Result<EntryPages<'c, 't, T>, StoreError> {
        let source = match self.inline_entries()? {
            Some(entries) => Source::Inline(Some(entries)),
            None => Source::Rows {
                pages: self.row_pages(),
                rows: Vec::new().into_iter(),
                keys: self.row_keys(),
            },
        };
        Ok(EntryPages {
            value: Value::open(self.context, self.key),
            source,
        })
    }

    /// All entries at once.
    pub async fn all(&self) -> Result<Vec<Entry>, StoreError> {
        let mut pages = self.pages()?;
        let mut all = Vec::new();
        while let Some(page) = pages.next().await? {
            all.extend(page);
        }
        Ok(all)
    }

    /// All entries, if Redis has a compact encoding for the value.
    pub(crate) async fn compact(&self) -> Result<Option<Vec<Entry>>, StoreError> {
        let length = self.length().await?;
        if usize::try_from(length).is_ok_and(|length| length > T::COMPACT_LENGTH_MAX) {
            return Ok(None);
        }
        let mut pages = self.pages()?;
        let mut all = Vec::new();
        while let Some(page) = pages.next().await? {
            // The next page may be long too. One long entry is enough to stop.
            if !page
                .iter()
                .all(|one| is_short(&one.name) && is_short(&one.value))
            {
                return Ok(None);
            }
            all.extend(page);
        }
        Ok(T::is_compact(&all).then_some(all))
    }

    /// One step of HSCAN or SSCAN: entries and the next cursor, 0 at the end. Returns a value
    /// whole if Redis has a compact encoding for it or if it is in metadata.
    pub async fn scan(&self, cursor: u64, count: usize) -> Result<(u64, Vec<Entry>), StoreError> {
        if let Some(entries) = self.inline_entries()? {
            return Ok((0, entries));
        }
        if let Some(entries) = self.compact().await? {
            return Ok((0, entries));
        }
        let (next, rows) = self
            .context
            .hashed_scan(self.key.data(), T::ROW.section(), cursor, count)
            .await?;
        Ok((next, self.row_entries(&rows).await?))
    }

    /// The entries of a value in metadata; `None` if the value is in rows.
    pub(super) fn inline_entries(&self) -> Result<Option<Vec<Entry>>, StoreError> {
        match &self.key.meta.inline {
            Some(inline) => Ok(Some(T::ROW.decode_inline(&inline.bytes)?)),
            None => Ok(None),
        }
    }

    /// All rows, a page at a time.
    pub(crate) fn row_pages(&self) -> Pages<'c, 't> {
        let layout = self.context.layout();
        let all = layout.fields_from(self.key.data(), T::ROW, 0);
        Pages::new(self.context, all, false, 0)
    }

    /// The row of a field.
    pub(super) async fn row(&self, name: &Member) -> Result<Option<Bytes>, StoreError> {
        let layout = self.context.layout();
        let row_key = layout.field_key(self.key.data(), T::ROW, name);
        let isolation = self.context.isolation;
        self.context.transaction.get(&row_key, isolation).await
    }

    /// The row of a field that has not expired.
    pub(crate) async fn live_row(&self, name: &Member) -> Result<Option<FieldValue>, StoreError> {
        match self.row(name).await? {
            Some(row) => Ok(self.live(&row)?),
            None => Ok(None),
        }
    }

    /// What a row holds; `None` if its field has expired. Such rows stay until background work removes them.
    pub(super) fn live(&self, row: &Bytes) -> Result<Option<FieldValue>, DecodeError> {
        let row = FieldValue::decode(row)?;
        let is_live = row
            .expire_at_ms
            .is_none_or(|at_ms| at_ms > self.context.now_ms);
        Ok(is_live.then_some(row))
    }

    /// Reads a row's value. `name` is the field's name, if the row's key holds it.
    async fn named_entry(&self, name: Option<Bytes>, row: FieldValue) -> Result<Entry, StoreError> {
        let content = match row.stored.is_empty() {
            true => Bytes::new(),
            false => match StoredValue::decode(&row.stored)? {
                StoredValue::Plain(content) => content,
                split => self.context.load_stored(self.key.data(), split).await?,
            },
        };
        Ok(Entry {
            expire_at_ms: row.expire_at_ms,
            ..T::ROW.read_content(name, content)?
        })
    }

    /// The keys of its rows.
    pub(super) fn row_keys(&self) -> HashedKeys {
        self.context.layout().field_keys(self.key.data(), T::ROW)
    }

    /// Reads a row; `None` if its field has expired.
    pub(super) async fn row_entry(
        &self,
        keys: &HashedKeys,
        row: &KeyValue,
    ) -> Result<Option<Entry>, StoreError> {
        let Some(value) = self.live(&row.value)? else {
            return Ok(None);
        };
        let (_, name) = keys.read(&row.key)?;
        Ok(Some(self.named_entry(name, value).await?))
    }

    /// Reads rows, except those of fields that have expired.
    pub(super) async fn row_entries(&self, rows: &[KeyValue]) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::with_capacity(rows.len());
        let keys = self.row_keys();
        for row in rows {
            entries.extend(self.row_entry(&keys, row).await?);
        }
        Ok(entries)
    }
}
