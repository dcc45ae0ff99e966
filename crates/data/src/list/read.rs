//! LINDEX, LRANGE, LPOS: reads by index and searches.

use bytes::Bytes;

use super::{End, List};
use crate::command::arguments::clamp_range;
use crate::rows::runs::ElementsRow;
use quoin_layout::{ElementsValue, StoredValue};
use quoin_store::StoreError;

/// The arguments of LPOS.
#[derive(Debug, Clone)]
pub(crate) struct PositionQuery {
    /// The element to find.
    pub element: Bytes,
    /// Matches to skip, from the end where the search begins.
    pub skip_matches: u64,
    /// Search from the tail.
    pub reverse: bool,
    /// Most matches to return; `None` is all.
    pub count: Option<usize>,
    /// Most elements to compare; `None` is all.
    pub maxlen: Option<usize>,
}

impl List<'_, '_> {
    /// The element at `index` (negative: from the tail).
    pub async fn index(&self, index: i64) -> Result<Option<Bytes>, StoreError> {
        let found = self.find(index).await?;
        match found.and_then(|(row, number)| row.element(number)) {
            Some(value) => {
                let value = self.context.load_stored(self.key.data(), value);
                Ok(Some(value.await?))
            }
            None => Ok(None),
        }
    }

    /// The row with the element at `index` (negative: from the tail), and the element's number in it.
    pub(super) async fn find(
        &self,
        index: i64,
    ) -> Result<Option<(ElementsRow, usize)>, StoreError> {
        let length = self.length().await?;
        match clamp_range(index, index, length) {
            Some((offset, _)) => self.find_offset(length, offset).await,
            None => Ok(None),
        }
    }

    /// The row with the element at `offset`, and the element's number in it. The search begins at the
    /// nearer end.
    pub(super) async fn find_offset(
        &self,
        length: i64,
        offset: usize,
    ) -> Result<Option<(ElementsRow, usize)>, StoreError> {
        let (context, key) = (self.context, self.key);
        let (range, _) = self.rows();
        let mut place = context
            .elements_place(key, range, length, offset, 1)
            .await?;
        let page = place.arrive(context, key, 1).await?;
        let row = page.into_iter().flatten().next();
        Ok(row.map(|row| {
            let number = match place.reverse {
                true => row.count() - 1 - place.skip,
                false => place.skip,
            };
            (row, number)
        }))
    }

    /// The elements of LRANGE.
    pub async fn range(&self, start: i64, stop: i64) -> Result<Vec<Bytes>, StoreError> {
        let (context, key) = (self.context, self.key);
        let length = self.length().await?;
        let Some((offset, count)) = clamp_range(start, stop, length) else {
            return Ok(Vec::new());
        };
        let (range, _) = self.rows();
        let mut place = context
            .elements_place(key, range, length, offset, count)
            .await?;
        let reverse = place.reverse;
        let mut next = place.arrive(context, key, count).await?;
        let mut skip = place.skip;
        let mut values = Vec::new();
        while let Some(page) = next {
            for row in page {
                let skipped = std::mem::take(&mut skip);
                match row.value {
                    ElementsValue::One(StoredValue::Plain(value)) => values.push(value),
                    ElementsValue::One(value) => {
                        values.push(context.load_stored(key.data(), value).await?);
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

    /// The indexes that LPOS returns, in the order of the search.
    pub(super) async fn positions(&self, query: &PositionQuery) -> Result<Vec<i64>, StoreError> {
        let length = self.length().await?;
        let mut rows = self.elements_rows(End::new(query.reverse));
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
                if self.context.load_stored(self.key.data(), value).await? != query.element {
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

    /// The number of elements.
    pub(super) async fn length(&self) -> Result<i64, StoreError> {
        self.context.length(self.key, self.context.isolation).await
    }
}
