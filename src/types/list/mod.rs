//! Lists: the queue recipe of FoundationDB with Redis's operations.
//!
//! An element is `(…, index, random, sequence) = value`. A push takes the index next to the last
//! one that its snapshot shows, and a random number of its own, so that pushes never conflict;
//! all its elements share both and stay together. A pop conflicts with pops of the same elements
//! (and with pushes in front of them), not with pushes at the other end.

use bytes::Bytes;

use crate::error::CommandError;
use crate::layout::{Id, KeyRange, PoppedElement, Position, Section, successor};
use crate::store::{Isolation, KeyValue, StoreError};

use super::context::{ReadContext, WriteContext};
use super::key::OpenKey;
use super::pages::Pages;

mod kind;

pub use kind::KIND;

/// One of a list's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The head: index 0.
    Left,
    /// The tail: index −1.
    Right,
}

/// Where LINSERT puts the new element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In front of the pivot.
    Before,
    /// Behind the pivot.
    After,
}

/// What LPOS looks for.
#[derive(Debug, Clone)]
pub struct PositionQuery {
    /// The element that counts.
    pub element: Bytes,
    /// Matches to skip, from the end that is searched first.
    pub skip_matches: u64,
    /// Search from the tail.
    pub reverse: bool,
    /// Most matches to return; `None` is all.
    pub count: Option<usize>,
    /// Most elements to compare; `None` is all.
    pub maxlen: Option<usize>,
}

fn elements(context: &ReadContext<'_>, data: Id) -> (KeyRange, usize) {
    let prefix = context.layout().elements_prefix(data);
    (KeyRange::children(&prefix), prefix.len())
}

/// A redis index range as offset and count, for a list or set of `length` elements.
pub fn clamp_range(start: i64, stop: i64, length: i64) -> Option<(usize, usize)> {
    let from_end = |index: i64| {
        if index < 0 {
            index.saturating_add(length)
        } else {
            index
        }
    };
    let start = from_end(start).max(0);
    let stop = from_end(stop).min(length - 1);
    if start > stop || start >= length {
        return None;
    }
    let offset = usize::try_from(start).ok()?;
    let count = usize::try_from(stop - start + 1).ok()?;
    Some((offset, count))
}

impl ReadContext<'_> {
    /// The value of the element at `index` (negative: from the tail).
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_index(&self, key: &OpenKey, index: i64) -> Result<Option<Bytes>, StoreError> {
        match self.list_row_at(key, index).await? {
            Some(row) => Ok(Some(self.load_value(key.data(), &row.value).await?)),
            None => Ok(None),
        }
    }

    async fn list_row_at(&self, key: &OpenKey, index: i64) -> Result<Option<KeyValue>, StoreError> {
        let length = self.length(key, self.isolation).await?;
        let Some((offset, _)) = clamp_range(index, index, length) else {
            return Ok(None);
        };
        Ok(self.list_slice(key, length, offset, 1).await?.pop())
    }

    /// Rows of the list from `offset` on, read from the nearer end.
    async fn list_slice(
        &self,
        key: &OpenKey,
        length: i64,
        offset: usize,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let (range, _) = elements(self, key.data());
        self.rows_by_rank(range, length, false, offset, count).await
    }

    /// The values of LRANGE.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_range(
        &self,
        key: &OpenKey,
        start: i64,
        stop: i64,
    ) -> Result<Vec<Bytes>, StoreError> {
        let length = self.length(key, self.isolation).await?;
        let Some((offset, count)) = clamp_range(start, stop, length) else {
            return Ok(Vec::new());
        };
        let rows = self.list_slice(key, length, offset, count).await?;
        self.load_values(key.data(), &rows).await
    }

    async fn load_values(&self, data: Id, rows: &[KeyValue]) -> Result<Vec<Bytes>, StoreError> {
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            values.push(self.load_value(data, &row.value).await?);
        }
        Ok(values)
    }

    /// The indexes at which LPOS finds its element, in the order of the search.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_positions(
        &self,
        key: &OpenKey,
        query: &PositionQuery,
    ) -> Result<Vec<i64>, StoreError> {
        let length = self.length(key, self.isolation).await?;
        let (range, _) = elements(self, key.data());
        let mut pages = Pages::new(self, range, query.reverse, 0);
        let mut skip = query.skip_matches;
        let mut compared = 0_usize;
        let mut found = Vec::new();
        while let Some(rows) = pages.next().await? {
            for row in rows {
                if query.maxlen.is_some_and(|maxlen| compared >= maxlen) {
                    return Ok(found);
                }
                let offset = i64::try_from(compared).unwrap_or(i64::MAX);
                compared += 1;
                if self.load_value(key.data(), &row.value).await? != query.element {
                    continue;
                }
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                found.push(if query.reverse {
                    length - 1 - offset
                } else {
                    offset
                });
                if query.count.is_some_and(|count| found.len() >= count) {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }
}

impl WriteContext<'_> {
    /// Adds values at one end, the first of them first (so that LPUSH a b leaves b in front),
    /// and answers the new length as this transaction sees it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_push<'v>(
        &self,
        key: &OpenKey,
        values: impl IntoIterator<Item = &'v Bytes>,
        end: End,
    ) -> Result<i64, StoreError> {
        let (range, prefix_length) = elements(self, key.data());
        let outermost = self
            .outermost(&range, end == End::Right, Isolation::Snapshot)
            .await?;
        let index = match outermost {
            // Not the same for both ends: where two servers push to an empty list at the same
            // moment, what goes to the head stands in front of what goes to the tail.
            None if end == End::Left => -1,
            None => 0,
            Some(row) => {
                let outermost = Position::read_index(prefix_length, &row.key)?;
                match end {
                    End::Left => outermost - 1,
                    End::Right => outermost + 1,
                }
            }
        };
        let random = self.environment.position_random();
        let mut element_key = self.layout().elements_prefix(key.data());
        let mut count = 0;
        for value in values {
            let sequence = match end {
                End::Left => -count,
                End::Right => count,
            };
            count += 1;
            let row = self.store_value(key.data(), value);
            element_key.truncate(prefix_length);
            Position::pack_pushed(index, random, sequence, &mut element_key);
            self.transaction.set(&element_key, &row);
        }
        self.add_length(key, count);
        self.length(key, Isolation::Snapshot).await
    }

    /// Takes up to `count` elements off one end, the outermost first. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_pop(
        &self,
        key: &OpenKey,
        count: usize,
        end: End,
    ) -> Result<Vec<Bytes>, StoreError> {
        let elements = self.pop_elements(key, end == End::Right, count).await?;
        Ok(elements.into_iter().map(|element| element.value).collect())
    }

    /// Takes elements off the list itself, and tells their positions.
    pub(super) async fn list_pop_placed(
        &self,
        key: &OpenKey,
        count: usize,
        end: End,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        let (range, prefix_length) = elements(self, key.data());
        let to_pop = self.rows_to_pop(&range, end == End::Right, count).await?;
        self.pop_rows(key, &to_pop, prefix_length).await
    }

    fn list_clear_row(&self, key: &OpenKey, row: &KeyValue) -> Result<(), StoreError> {
        self.discard_value(key.data(), &row.value)?;
        self.transaction.clear(&row.key);
        Ok(())
    }

    /// Replaces the element at `index`; false where there is none.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_set(
        &self,
        key: &OpenKey,
        index: i64,
        value: &[u8],
    ) -> Result<bool, StoreError> {
        let Some(row) = self.list_row_at(key, index).await? else {
            return Ok(false);
        };
        self.discard_value(key.data(), &row.value)?;
        let stored = self.store_value(key.data(), value);
        self.transaction.set(&row.key, &stored);
        self.mark_changed(key);
        Ok(true)
    }

    /// Inserts beside the first element that equals `pivot`, and answers the new length; `None`
    /// where there is no such element.
    ///
    /// # Errors
    /// `Text` where a million of alternating insertions at one spot have used up the room that
    /// a key has for positions; when the store fails.
    pub async fn list_insert(
        &self,
        key: &OpenKey,
        side: Side,
        pivot: &[u8],
        value: &[u8],
    ) -> Result<Option<i64>, CommandError> {
        let (range, prefix_length) = elements(self, key.data());
        let mut pages = Pages::new(self, range, false, 0);
        let mut previous: Option<Position> = None;
        let mut pivot_position: Option<Position> = None;
        let mut next: Option<Position> = None;
        'search: while let Some(rows) = pages.next().await? {
            for row in rows {
                let position = self.layout().read_position(prefix_length, &row.key)?;
                if pivot_position.is_some() {
                    next = Some(position);
                    break 'search;
                }
                if self.load_value(key.data(), &row.value).await? == pivot {
                    pivot_position = Some(position);
                    if side == Side::Before {
                        break 'search;
                    }
                } else {
                    previous = Some(position);
                }
            }
        }
        let Some(pivot_position) = pivot_position else {
            return Ok(None);
        };
        let position = match side {
            Side::Before => Position::between(previous.as_ref(), Some(&pivot_position)),
            Side::After => Position::between(Some(&pivot_position), next.as_ref()),
        };
        let element_key = self.layout().element_key(key.data(), &position);
        if element_key.len() > crate::limits::ELEMENT_KEY_BYTES_MAX {
            return Err(CommandError::text(
                "ERR too many insertions between the same two elements",
            ));
        }
        let row = self.store_value(key.data(), value);
        self.transaction.set(&element_key, &row);
        self.add_length(key, 1);
        Ok(Some(self.length(key, Isolation::Snapshot).await?))
    }

    /// Removes up to `count` elements (`None`: all) that equal `value`, searching from one end,
    /// and answers how many. The caller ends with [`WriteContext::remove_if_empty`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_remove(
        &self,
        key: &OpenKey,
        value: &[u8],
        count: Option<usize>,
        from: End,
    ) -> Result<i64, StoreError> {
        let (range, _) = elements(self, key.data());
        let mut pages = Pages::new(self, range, from == End::Right, 0);
        let mut removed = 0_usize;
        'search: while let Some(rows) = pages.next().await? {
            for row in rows {
                if self.load_value(key.data(), &row.value).await? == value {
                    self.list_clear_row(key, &row)?;
                    removed += 1;
                    if count.is_some_and(|count| removed >= count) {
                        break 'search;
                    }
                }
            }
        }
        let removed = i64::try_from(removed).unwrap_or(i64::MAX);
        self.add_length(key, -removed);
        Ok(removed)
    }

    /// Keeps only the elements of an index range. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_trim(&self, key: &OpenKey, start: i64, stop: i64) -> Result<(), StoreError> {
        let length = self.length(key, Isolation::Serializable).await?;
        let (range, _) = elements(self, key.data());
        let Some((offset, count)) = clamp_range(start, stop, length) else {
            self.list_clear_range(key, &range).await?;
            self.add_length(key, -length);
            return Ok(());
        };
        let kept = i64::try_from(count).unwrap_or(i64::MAX);
        let offset_last = offset + count - 1;
        let first = self.list_slice(key, length, offset, 1).await?.pop();
        let last = self.list_slice(key, length, offset_last, 1).await?.pop();
        let (Some(first), Some(last)) = (first, last) else {
            return Err(StoreError::Corrupt(
                "length of a list disagrees with its elements",
            ));
        };
        for outside in [
            KeyRange {
                begin: range.begin.clone(),
                end: first.key.to_vec(),
            },
            KeyRange {
                begin: successor(&last.key),
                end: range.end.clone(),
            },
        ] {
            self.list_clear_range(key, &outside).await?;
        }
        if kept == length {
            // Redis tells WATCH of an LTRIM that takes nothing away too.
            self.mark_changed(key);
        }
        self.add_length(key, kept - length);
        Ok(())
    }

    /// Clears elements without reading them, unless some of the list's values are split and
    /// their chunks have to be found.
    async fn list_clear_range(&self, key: &OpenKey, range: &KeyRange) -> Result<(), StoreError> {
        let chunks = KeyRange::children(&self.layout().section_prefix(key.data(), Section::Chunks));
        let chunk = self.outermost(&chunks, false, Isolation::Serializable);
        if chunk.await?.is_some() {
            let mut pages = Pages::new(self, range.clone(), false, 0);
            while let Some(rows) = pages.next().await? {
                for row in rows {
                    self.discard_value(key.data(), &row.value)?;
                }
            }
        }
        self.transaction.clear_range(&range.begin, &range.end);
        Ok(())
    }
}
