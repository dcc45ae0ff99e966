//! Elements from the highest priority down, the oldest of each priority first.
//!
//! Keys ascend in both, so neither direction of reading gives this order. A page is read
//! backwards; priorities that are on it as a whole are turned around there, and the one that the
//! page ends within is read from its oldest.

use crate::layout::{Id, KeyRange};
use crate::limits::RANGE_PAGE_ROWS;
use crate::store::{Isolation, KeyValue, RangeQuery, StoreError};
use crate::types::context::ReadContext;

use super::queue_rows;

/// What is skipped at the beginning, and what is taken behind it.
struct Taken {
    skip: usize,
    count: usize,
    rows: Vec<KeyValue>,
}

impl Taken {
    fn is_done(&self) -> bool {
        self.rows.len() >= self.count
    }

    /// Rows that are still to be skipped or taken.
    fn wanted(&self) -> usize {
        self.skip.saturating_add(self.count - self.rows.len())
    }

    fn offer<'r>(&mut self, rows: impl ExactSizeIterator<Item = &'r KeyValue>) {
        let skipped = self.skip.min(rows.len());
        self.skip -= skipped;
        let missing = self.count - self.rows.len();
        self.rows.extend(rows.skip(skipped).take(missing).cloned());
    }
}

impl ReadContext<'_> {
    /// Up to `count` rows behind the first `offset`.
    pub(super) async fn queue_descending(
        &self,
        data: Id,
        offset: usize,
        count: usize,
        isolation: Isolation,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let (mut range, prefix_length) = queue_rows(self, data);
        let mut taken = Taken {
            skip: offset,
            count,
            rows: Vec::new(),
        };
        while !taken.is_done() {
            // One more, which tells whether the priority in front of it is whole.
            let limit = taken.wanted().saturating_add(1).min(RANGE_PAGE_ROWS);
            let page = self.queue_page(&range, limit, true, isolation).await?;
            let is_last = page.len() < limit;
            let mut rest = page.as_slice();
            while let Some(first) = rest.first() {
                let group = self.group(prefix_length, first)?;
                let size = rest
                    .iter()
                    .take_while(|row| row.key.as_ref() >= group.begin.as_slice())
                    .count();
                let (rows, behind) = rest.split_at(size);
                if !behind.is_empty() || is_last {
                    taken.offer(rows.iter().rev());
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
        Ok(taken.rows)
    }

    /// All keys of the priority of this row.
    pub(super) fn group(
        &self,
        prefix_length: usize,
        row: &KeyValue,
    ) -> Result<KeyRange, StoreError> {
        let (_, priority_length) = self.layout().read_queue_key(prefix_length, &row.key)?;
        let prefix = row.key.get(..priority_length).unwrap_or_default();
        Ok(KeyRange::children(prefix))
    }

    async fn offer_group(
        &self,
        group: &KeyRange,
        taken: &mut Taken,
        isolation: Isolation,
    ) -> Result<(), StoreError> {
        let mut range = group.clone();
        while !taken.is_done() {
            let limit = taken.wanted().min(RANGE_PAGE_ROWS);
            let page = self.queue_page(&range, limit, false, isolation).await?;
            taken.offer(page.iter());
            match page.last() {
                Some(last) if page.len() == limit => {
                    range.begin = crate::layout::successor(&last.key);
                }
                _ => break,
            }
        }
        Ok(())
    }

    async fn queue_page(
        &self,
        range: &KeyRange,
        limit: usize,
        reverse: bool,
        isolation: Isolation,
    ) -> Result<Vec<KeyValue>, StoreError> {
        self.transaction
            .get_range(RangeQuery {
                begin: &range.begin,
                end: &range.end,
                limit,
                reverse,
                isolation,
            })
            .await
    }
}
