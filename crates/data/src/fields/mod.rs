//! Fields of hashes and members of sets, which are fields without values.
//!
//! A small value lies whole in its key's metadata (a *body*), in the order in which fields were
//! added, as in Redis's listpacks; a body of whole numbers of a set in their order, as in Redis's
//! intsets. A value that outgrows its body lies in rows from then on, a row a field, in the order
//! of hashes. There changes of different fields do not conflict, and the length is a counter that
//! is added to without being read.

use std::cell::Cell;
use std::collections::VecDeque;

use bytes::Bytes;

use crate::error::CommandError;
use quoin_base::limits::{MGET_ANSWER_BYTES_MAX, RANGE_PAGE_ROWS};
use quoin_layout::{Entry, FieldRow, Member, StoredValue, ValueType};
use quoin_store::{KeyValue, StoreError};

use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;

mod body;
mod change;
mod draw;
mod dumping;
mod encoding;
#[cfg(test)]
mod tests;

pub(crate) use body::canonical_number;
pub use change::Changed;
pub(crate) use dumping::{restorable_hash, restorable_set};

/// Bytes of entries after which a page ends: values that are split may be long.
const PAGE_BYTES_SOFT_MAX: usize = 1024 * 1024;

/// How the fields of a key lie.
fn row_of(key: &OpenKey) -> FieldRow {
    row_of_type(key.meta.value_type)
}

fn row_of_type(value_type: ValueType) -> FieldRow {
    match value_type {
        ValueType::Hash => FieldRow::Hash,
        _ => FieldRow::Set,
    }
}

fn too_long_an_answer() -> CommandError {
    let line = format!("ERR too long an answer of HMGET (more than {MGET_ANSWER_BYTES_MAX} bytes)");
    CommandError::Text(line.into())
}

/// The entries of a key that lies in metadata; `None` of one in rows.
fn body_entries(key: &OpenKey) -> Result<Option<Vec<Entry>>, StoreError> {
    match &key.meta.body {
        Some(body) => Ok(Some(row_of(key).decode_body(&body.bytes)?)),
        None => Ok(None),
    }
}

/// All entries of a value, a page at a time.
pub struct EntryPages<'c, 't> {
    context: &'c ReadContext<'t>,
    key: &'c OpenKey,
    source: Source<'c, 't>,
}

enum Source<'c, 't> {
    Body(Option<Vec<Entry>>),
    Rows {
        pages: Pages<'c, 't>,
        /// Rows that were read and not handed out.
        rows: VecDeque<KeyValue>,
    },
}

impl EntryPages<'_, '_> {
    /// The next entries; `None` after the last. A page is never empty.
    pub async fn next(&mut self) -> Result<Option<Vec<Entry>>, StoreError> {
        match &mut self.source {
            Source::Body(entries) => Ok(entries.take().filter(|entries| !entries.is_empty())),
            Source::Rows { pages, rows } => {
                if rows.is_empty()
                    && let Some(page) = pages.next().await?
                {
                    rows.extend(page);
                }
                let (mut entries, mut bytes) = (Vec::new(), 0);
                while bytes < PAGE_BYTES_SOFT_MAX
                    && let Some(row) = rows.pop_front()
                {
                    let read = self.context.row_entries(self.key, &[row]).await?;
                    for entry in read {
                        bytes += entry.name.len() + entry.value.len();
                        entries.push(entry);
                    }
                }
                Ok((!entries.is_empty()).then_some(entries))
            }
        }
    }
}

impl ReadContext<'_> {
    /// The values of fields, `None` of those that are not there; of members that are there, which
    /// have no values, empty bytes.
    ///
    /// # Errors
    /// `Text` where the values have more than [`MGET_ANSWER_BYTES_MAX`] together.
    pub async fn fields_get(
        &self,
        key: &OpenKey,
        names: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, CommandError> {
        if let Some(body) = &key.meta.body {
            let row = row_of(key);
            let values = names.iter().map(|name| row.find_in_body(&body.bytes, name));
            return Ok(values.collect::<Result<_, _>>()?);
        }
        let taken_bytes = Cell::new(0_usize);
        self.each(names, RANGE_PAGE_ROWS, async |name| {
            let name = Member::new(name);
            let Some(row) = self.field_row(key, &name).await? else {
                return Ok(None);
            };
            // One value may be as long; and it may be named many times.
            let taken = taken_bytes.get();
            let bytes = match row.is_empty() {
                true => 0,
                false => StoredValue::decode(&row)
                    .map_err(StoreError::from)?
                    .length(),
            };
            let bytes = taken.saturating_add(bytes);
            if taken > 0 && bytes > MGET_ANSWER_BYTES_MAX {
                return Err(too_long_an_answer());
            }
            taken_bytes.set(bytes);
            Ok(Some(self.row_entry(key, Some(&name), &row).await?.value))
        })
        .await
    }

    /// The value of one field.
    pub async fn field_get(
        &self,
        key: &OpenKey,
        name: &Bytes,
    ) -> Result<Option<Bytes>, StoreError> {
        if let Some(body) = &key.meta.body {
            return Ok(row_of(key).find_in_body(&body.bytes, name)?);
        }
        let name = Member::new(name);
        match self.field_row(key, &name).await? {
            Some(row) => Ok(Some(self.row_entry(key, Some(&name), &row).await?.value)),
            None => Ok(None),
        }
    }

    /// Which of these fields are there. Reads no values that are split.
    pub async fn fields_exist(
        &self,
        key: &OpenKey,
        names: &[Bytes],
    ) -> Result<Vec<bool>, StoreError> {
        if let Some(body) = &key.meta.body {
            let row = row_of(key);
            let found = names.iter().map(|name| {
                let value = row.find_in_body(&body.bytes, name)?;
                Ok::<_, StoreError>(value.is_some())
            });
            return found.collect();
        }
        self.each(names, RANGE_PAGE_ROWS, async |name| {
            let row = self.field_row(key, &Member::new(name)).await?;
            Ok(row.is_some())
        })
        .await
    }

    /// All entries, a page at a time.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn fields<'c>(&'c self, key: &'c OpenKey) -> Result<EntryPages<'c, 'c>, StoreError> {
        let source = match body_entries(key)? {
            Some(entries) => Source::Body(Some(entries)),
            None => {
                let range = self.layout().fields_from(key.data(), row_of(key), 0);
                Source::Rows {
                    pages: Pages::new(self, range, false, 0),
                    rows: VecDeque::new(),
                }
            }
        };
        Ok(EntryPages {
            context: self,
            key,
            source,
        })
    }

    /// All entries at once.
    pub async fn fields_all(&self, key: &OpenKey) -> Result<Vec<Entry>, StoreError> {
        let mut pages = self.fields(key)?;
        let mut all = Vec::new();
        while let Some(page) = pages.next().await? {
            all.extend(page);
        }
        Ok(all)
    }

    /// One step of HSCAN or SSCAN: entries, and the cursor to go on from; 0 at the end. A value
    /// that Redis keeps in a compact encoding is answered whole, as is one that lies in metadata.
    pub async fn fields_scan(
        &self,
        key: &OpenKey,
        cursor: u64,
        count: usize,
    ) -> Result<(u64, Vec<Entry>), StoreError> {
        if let Some(entries) = body_entries(key)? {
            return Ok((0, entries));
        }
        if let Some(entries) = self.compact_fields(key).await? {
            return Ok((0, entries));
        }
        let section = row_of(key).section();
        let (next, rows) = self.hashed_scan(key.data(), section, cursor, count).await?;
        Ok((next, self.row_entries(key, &rows).await?))
    }

    /// The row of a field.
    async fn field_row(&self, key: &OpenKey, name: &Member) -> Result<Option<Bytes>, StoreError> {
        let row = self.layout().field_key(key.data(), row_of(key), name);
        self.transaction.get(&row, self.isolation).await
    }

    /// What a row says. `name` is the field's name, where the row's key holds it.
    async fn row_entry(
        &self,
        key: &OpenKey,
        name: Option<&Member>,
        row: &Bytes,
    ) -> Result<Entry, StoreError> {
        let content = match row.is_empty() {
            true => Bytes::new(),
            false => self.load_value(key.data(), row).await?,
        };
        let name = name.filter(|name| !name.is_long());
        let name = name.map(|name| name.bytes().clone());
        Ok(row_of(key).read_content(name, content)?)
    }

    /// What rows say.
    async fn row_entries(
        &self,
        key: &OpenKey,
        rows: &[KeyValue],
    ) -> Result<Vec<Entry>, StoreError> {
        let mut entries = Vec::with_capacity(rows.len());
        for row in rows {
            let (_, name) = self
                .layout()
                .read_field_key(key.data(), row_of(key), &row.key)?;
            let name = name.as_ref().map(Member::new);
            entries.push(self.row_entry(key, name.as_ref(), &row.value).await?);
        }
        Ok(entries)
    }
}
