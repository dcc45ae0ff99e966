//! Elements from the highest priority down, the oldest of each priority first.
//!
//! Keys ascend in both, so neither direction of reading gives this order. A page is read
//! backwards; priorities that are on it as a whole are turned around there, and the one that the
//! page ends within is read from its oldest.

use crate::rows::runs::{ElementsRow, ElementsRows, RowsExpected};
use crate::unit::context::ReadContext;
use quoin_layout::{Id, KeyRange};
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError};

use super::rows::{QueueSlice, rows_of};

/// What is skipped at the beginning, and what is taken behind it.
struct Taken {
    slice: QueueSlice,
    /// Elements that are wanted.
    count: usize,
    /// Elements of the rows that were taken.
    elements: usize,
}

impl Taken {
    fn is_done(&self) -> bool {
        self.wanted() == 0
    }

    /// Elements that are still to be skipped or taken.
    fn wanted(&self) -> usize {
        let all = self.slice.skip.saturating_add(self.count);
        all.saturating_sub(self.elements)
    }

    fn offer(&mut self, rows: impl IntoIterator<Item = ElementsRow>) {
        for row in rows {
            if self.is_done() {
                break;
            }
            let count = row.count();
            if self.slice.rows.is_empty() && self.slice.skip >= count {
                self.slice.skip -= count;
                continue;
            }
            self.elements += count;
            self.slice.rows.push(row);
        }
    }
}

impl ReadContext<'_> {
    /// Rows with up to `count` elements behind the first `offset`.
    pub(super) async fn queue_descending(
        &self,
        data: Id,
        offset: usize,
        count: usize,
        isolation: Isolation,
    ) -> Result<QueueSlice, StoreError> {
        let (mut range, prefix_length) = rows_of(self, data);
        let mut taken = Taken {
            slice: QueueSlice {
                rows: Vec::new(),
                skip: offset,
            },
            count,
            elements: 0,
        };
        let mut expected = RowsExpected::new(self);
        while !taken.is_done() {
            // One more, which tells whether the priority in front of it is whole.
            let limit = expected.rows_of(taken.wanted()).saturating_add(1);
            let page = self.queue_page(&range, limit, isolation).await?;
            let is_last = page.len() < limit;
            let page = { page.into_iter() }
                .map(ElementsRow::read)
                .collect::<Result<Vec<_>, _>>()?;
            expected.note(&page);
            let mut rest = page.as_slice();
            while let Some(first) = rest.first() {
                let group = self.group(prefix_length, first)?;
                let size = rest
                    .iter()
                    .take_while(|row| row.key.as_ref() >= group.begin.as_slice())
                    .count();
                let (rows, behind) = rest.split_at(size);
                if !behind.is_empty() || is_last {
                    taken.offer(rows.iter().rev().cloned());
                } else {
                    self.offer_group(&group, &mut taken, isolation).await?;
                }
                range.end = group.begin;
                rest = behind;
                if taken.is_done() {
                    break;
                }
            }
            if is_last {
                break;
            }
        }
        Ok(taken.slice)
    }

    /// All keys of the priority of this row.
    pub(super) fn group(
        &self,
        prefix_length: usize,
        row: &ElementsRow,
    ) -> Result<KeyRange, StoreError> {
        let (_, priority_length) = row.queue_place(self, prefix_length)?;
        let prefix = row.key.get(..priority_length).unwrap_or_default();
        Ok(KeyRange::children(prefix))
    }

    async fn offer_group(
        &self,
        group: &KeyRange,
        taken: &mut Taken,
        isolation: Isolation,
    ) -> Result<(), StoreError> {
        let mut rows = ElementsRows::new(self, group.clone(), false).in_isolation(isolation);
        while !taken.is_done() {
            match rows.next(taken.wanted()).await? {
                Some(page) => taken.offer(page),
                None => break,
            }
        }
        Ok(())
    }

    async fn queue_page(
        &self,
        range: &KeyRange,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<KeyValue>, StoreError> {
        self.transaction
            .get_range(RangeQuery {
                begin: &range.begin,
                end: &range.end,
                limit,
                reverse: true,
                isolation,
            })
            .await
    }
}
