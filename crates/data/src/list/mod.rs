//! Lists: the queue recipe of FoundationDB with Redis's operations.
//!
//! A row is `(…, index, random, sequence) = element`, or a run: elements that one unit of work has
//! pushed and that follow each other. A push takes the index next to the last one that its snapshot
//! shows, and a random number of its unit, so that pushes never conflict. A pop conflicts with pops
//! of the same rows (and with pushes in front of them), not with pushes at the other end.

pub mod commands;

use bytes::Bytes;

use quoin_layout::ElementsValue;
use quoin_store::StoreError;

use crate::keyspace::key::OpenKey;
use crate::rows::runs::{ElementsRow, ElementsRows};
use crate::unit::context::ReadContext;
use rows::rows_of;

mod edit;
mod encoding;
mod kind;
mod pop;
mod push;
mod rows;
#[cfg(test)]
mod tests;

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
    pub async fn list_index(&self, key: &OpenKey, index: i64) -> Result<Option<Bytes>, StoreError> {
        let found = self.list_find(key, index).await?;
        match found.and_then(|(row, number)| row.element(number)) {
            Some(value) => Ok(Some(self.load_stored(key.data(), value).await?)),
            None => Ok(None),
        }
    }

    /// The row of the element at `index` (negative: from the tail), and the element's number in it.
    async fn list_find(
        &self,
        key: &OpenKey,
        index: i64,
    ) -> Result<Option<(ElementsRow, usize)>, StoreError> {
        let length = self.length(key, self.isolation).await?;
        match clamp_range(index, index, length) {
            Some((offset, _)) => self.list_at(key, length, offset).await,
            None => Ok(None),
        }
    }

    /// The row of the element at `offset`, and the element's number in it, looked for from the nearer
    /// end.
    async fn list_at(
        &self,
        key: &OpenKey,
        length: i64,
        offset: usize,
    ) -> Result<Option<(ElementsRow, usize)>, StoreError> {
        let (range, _) = rows_of(self, key.data());
        let mut place = self.elements_place(key, range, length, offset, 1).await?;
        let page = place.arrive(self, key, 1).await?;
        let row = page.into_iter().flatten().next();
        Ok(row.map(|row| {
            let number = match place.reverse {
                true => row.count() - 1 - place.skip,
                false => place.skip,
            };
            (row, number)
        }))
    }

    /// The values of LRANGE.
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
        let (range, _) = rows_of(self, key.data());
        let mut place = self
            .elements_place(key, range, length, offset, count)
            .await?;
        let reverse = place.reverse;
        let mut next = place.arrive(self, key, count).await?;
        let mut skip = place.skip;
        let mut values = Vec::new();
        while let Some(page) = next {
            for row in page {
                let skipped = std::mem::take(&mut skip);
                match row.value {
                    ElementsValue::One(value) => {
                        values.push(self.load_stored(key.data(), value).await?);
                    }
                    ElementsValue::Run(mut run) => {
                        let wanted = skipped.saturating_add(count - values.len());
                        let taken = match reverse {
                            false => run.take_first(wanted),
                            true => run.take_last(wanted),
                        };
                        values.extend(taken.into_iter().skip(skipped));
                    }
                }
                if values.len() >= count {
                    break;
                }
            }
            next = match count - values.len() {
                0 => None,
                missing => place.rows.next(missing).await?,
            };
        }
        if reverse {
            values.reverse();
        }
        Ok(values)
    }

    /// The indexes at which LPOS finds its element, in the order of the search.
    pub async fn list_positions(
        &self,
        key: &OpenKey,
        query: &PositionQuery,
    ) -> Result<Vec<i64>, StoreError> {
        let length = self.length(key, self.isolation).await?;
        let (range, _) = rows_of(self, key.data());
        let mut rows = ElementsRows::new(self, range, query.reverse);
        let mut skip = query.skip_matches;
        let mut compared = 0_usize;
        let mut found = Vec::new();
        while let Some(page) = rows.next(query.maxlen.unwrap_or(usize::MAX)).await? {
            let elements = page.iter().flat_map(|row| row.elements(query.reverse));
            for (_, value) in elements {
                if query.maxlen.is_some_and(|maxlen| compared >= maxlen) {
                    return Ok(found);
                }
                let offset = i64::try_from(compared).unwrap_or(i64::MAX);
                compared += 1;
                if self.load_stored(key.data(), value).await? != query.element {
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
