//! Long range reads, one page at a time.

use crate::keyspace::kind::TypeKind;
use quoin_base::limits::{RANGE_PAGE_BYTES, RANGE_PAGE_ROWS};
use quoin_layout::{KeyRange, successor};
use quoin_store::{Isolation, KeyValue, RangeQuery, StoreError};

use crate::keyspace::key::OpenKey;
use crate::unit::context::{ReadContext, WriteContext};

/// Rows of a first page on a store that does not limit pages by bytes. Such a store has rows of at most 100 kB.
const FIRST_PAGE_ROWS_CLUSTER_MAX: usize = 128;

/// Reads a range page by page, forwards or backwards. A page has about [`RANGE_PAGE_BYTES`] or a single row.
pub struct Pages<'c, 't> {
    context: &'c ReadContext<'t>,
    range: KeyRange,
    reverse: bool,
    isolation: Isolation,
    page_rows: usize,
    page_rows_max: usize,
    /// How many rows fill a page, estimated from the last one.
    rows_expected: usize,
    is_done: bool,
}

impl<'c, 't> Pages<'c, 't> {
    /// Pages of `range`, in the context's isolation. `expected_rows` (0 if unknown) keeps the first page from being
    /// larger than needed.
    pub fn new(
        context: &'c ReadContext<'t>,
        range: KeyRange,
        reverse: bool,
        expected_rows: usize,
    ) -> Self {
        let rows_expected = match context.environment.capabilities.reads_wait {
            false => RANGE_PAGE_ROWS,
            true => FIRST_PAGE_ROWS_CLUSTER_MAX,
        };
        Self {
            context,
            range,
            reverse,
            isolation: context.isolation,
            page_rows: if expected_rows == 0 {
                RANGE_PAGE_ROWS
            } else {
                expected_rows.min(RANGE_PAGE_ROWS)
            },
            page_rows_max: RANGE_PAGE_ROWS,
            rows_expected,
            is_done: false,
        }
    }

    /// The same pages without conflict detection. The caller adds the conflicts that it needs.
    pub fn with_snapshot_reads(self) -> Self {
        self.in_isolation(Isolation::Snapshot)
    }

    /// The same pages in another isolation than the context's.
    pub fn in_isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// The same in pages of at most this many rows, for large rows.
    pub fn of_rows(mut self, page_rows_max: usize) -> Self {
        self.page_rows_max = page_rows_max;
        self.page_rows = self.page_rows.min(page_rows_max);
        self
    }

    /// The next rows, at most this many. `None` after the last.
    pub async fn next_of(&mut self, rows: usize) -> Result<Option<Vec<KeyValue>>, StoreError> {
        self.page_rows = rows.clamp(1, self.page_rows_max);
        self.next().await
    }

    /// The next rows. `None` after the last. A page is never empty.
    pub async fn next(&mut self) -> Result<Option<Vec<KeyValue>>, StoreError> {
        if self.is_done {
            return Ok(None);
        }
        let limit = self.page_rows.min(self.rows_expected);
        let query = RangeQuery {
            begin: &self.range.begin,
            end: &self.range.end,
            limit,
            reverse: self.reverse,
            isolation: self.isolation,
        };
        let page = self.context.transaction.get_page(query, RANGE_PAGE_BYTES);
        let rows = page.await?;
        let bytes = rows.iter().map(|row| row.key.len() + row.value.len());
        let bytes: usize = bytes.sum();
        self.is_done = rows.len() < limit && bytes < RANGE_PAGE_BYTES;
        let row_bytes = bytes.checked_div(rows.len()).unwrap_or(0).max(1);
        self.rows_expected = (RANGE_PAGE_BYTES / row_bytes).max(1);
        match rows.last() {
            None => return Ok(None),
            Some(last) if self.reverse => self.range.end = last.key.to_vec(),
            Some(last) => self.range.begin = successor(&last.key),
        }
        self.page_rows = self.page_rows_max;
        Ok(Some(rows))
    }

    /// Whether there are certainly no rows after the last page.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Up to `count` rows after the first `offset`.
    pub async fn slice(
        mut self,
        mut offset: usize,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let mut slice = Vec::new();
        while slice.len() < count {
            let Some(rows) = self.next().await? else {
                break;
            };
            let skipped = offset.min(rows.len());
            offset -= skipped;
            let missing = count - slice.len();
            slice.extend(rows.into_iter().skip(skipped).take(missing));
        }
        Ok(slice)
    }
}

impl ReadContext<'_> {
    /// The row at one end of a range.
    pub(crate) async fn outermost(
        &self,
        range: &KeyRange,
        reverse: bool,
        isolation: Isolation,
    ) -> Result<Option<KeyValue>, StoreError> {
        let query = RangeQuery {
            begin: &range.begin,
            end: &range.end,
            limit: 1,
            reverse,
            isolation,
        };
        Ok(self.transaction.get_range(query).await?.pop())
    }

    /// `count` rows from `offset` on in one direction, of a key with `length` rows. Reads from the nearer end.
    pub(crate) async fn rows_by_rank(
        &self,
        range: KeyRange,
        length: i64,
        reverse: bool,
        offset: usize,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let length = usize::try_from(length).unwrap_or(0);
        let behind = length.saturating_sub(offset.saturating_add(count));
        let is_from_other_end = behind < offset;
        let skipped = if is_from_other_end { behind } else { offset };
        let direction = reverse != is_from_other_end;
        let mut rows = Pages::new(self, range, direction, skipped.saturating_add(count))
            .slice(skipped, count)
            .await?;
        if is_from_other_end {
            rows.reverse();
        }
        Ok(rows)
    }

    /// Counts the elements in those rows of a key that are inside a range. Also counts those outside, alternately.
    /// Whichever count finishes first gives the answer, because the length is known. `all`: the range of the rows of
    /// all elements except the first `left_out`.
    pub(crate) async fn count_elements(
        &self,
        key: &OpenKey,
        all: KeyRange,
        left_out: i64,
        inside: KeyRange,
    ) -> Result<i64, StoreError> {
        let before = KeyRange {
            begin: all.begin,
            end: inside.begin.clone(),
        };
        let behind = KeyRange {
            begin: inside.end.clone(),
            end: all.end,
        };
        let mut inside = Pages::new(self, inside, false, 0);
        let mut outside = [
            Pages::new(self, before, false, 0),
            Pages::new(self, behind, false, 0),
        ];
        let (mut count_inside, mut count_outside, mut passed_rows) = (0_usize, 0_usize, 0_usize);
        let counted = loop {
            let rows = inside.next().await?.unwrap_or_default();
            count_inside += self.elements_in(key, &rows);
            passed_rows += rows.len();
            if inside.is_done() {
                break i64::try_from(count_inside).unwrap_or(i64::MAX);
            }
            let mut has_more = false;
            for pages in &mut outside {
                if let Some(rows) = pages.next().await? {
                    count_outside += self.elements_in(key, &rows);
                    passed_rows += rows.len();
                    has_more = !pages.is_done();
                    if has_more {
                        break;
                    }
                }
            }
            if !has_more {
                let length = self.length(key, self.isolation).await?;
                let count_outside = i64::try_from(count_outside).unwrap_or(i64::MAX);
                break length - left_out - count_outside;
            }
        };
        self.note_rows_passed_for_rank(key, passed_rows, count_inside + count_outside);
        Ok(counted)
    }
}

impl ReadContext<'_> {
    /// Number of elements in rows of a key.
    pub(crate) fn elements_in(&self, key: &OpenKey, rows: &[KeyValue]) -> usize {
        let kind = key.meta.value_type.kind();
        let Some(section) = kind.ranked_section() else {
            return rows.len();
        };
        rows.iter().map(|row| kind.elements_in(section, row)).sum()
    }
}

impl WriteContext<'_> {
    /// The rows to pop: up to `count` from one end of a range. Uses snapshot reads, and conflicts only on these rows
    /// and those between them and the end, because a read past the last row would conflict with every push. Within
    /// EXEC it does read past it, because other commands may depend on there being nothing more.
    pub(crate) async fn rows_to_pop(
        &self,
        range: &KeyRange,
        from_end: bool,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let pages = Pages::new(self, range.clone(), from_end, count);
        if self.is_strict {
            return pages.slice(0, count).await;
        }
        let rows = pages.with_snapshot_reads().slice(0, count).await?;
        let section = (range.begin.as_slice(), range.end.as_slice());
        let range = match rows.last() {
            None => return Ok(rows),
            Some(last) if from_end => (last.key.to_vec(), range.end.clone()),
            Some(last) => (range.begin.clone(), successor(&last.key)),
        };
        self.transaction
            .add_conflict_unless_own(section, (&range.0, &range.1));
        Ok(rows)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use std::cell::Cell;

    use bytes::Bytes;

    use quoin_store::{Isolation, KeyValue, RangeQuery, ReadTransaction, StoreError, StoreFuture};

    /// Counts the bytes of the rows that are read.
    pub(crate) struct Counting<'c> {
        inner: &'c dyn ReadTransaction,
        bytes: Cell<usize>,
        largest: Cell<usize>,
    }

    impl<'c> Counting<'c> {
        pub(crate) fn of(inner: &'c dyn ReadTransaction) -> Self {
            Self {
                inner,
                bytes: Cell::new(0),
                largest: Cell::new(0),
            }
        }

        /// Bytes of all range reads.
        pub(crate) fn bytes(&self) -> usize {
            self.bytes.get()
        }

        /// Bytes of the largest range read.
        pub(crate) fn largest_bytes(&self) -> usize {
            self.largest.get()
        }

        fn counted<'t>(
            &'t self,
            rows: StoreFuture<'t, Vec<KeyValue>>,
        ) -> StoreFuture<'t, Vec<KeyValue>> {
            StoreFuture::Pending(Box::pin(async move {
                let rows: Result<Vec<KeyValue>, StoreError> = rows.await;
                let rows = rows?;
                let bytes = rows.iter().map(|row| row.value.len()).sum::<usize>();
                self.bytes.set(self.bytes.get() + bytes);
                self.largest.set(self.largest.get().max(bytes));
                Ok(rows)
            }))
        }
    }

    impl ReadTransaction for Counting<'_> {
        fn get<'t>(&'t self, key: &[u8], isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
            self.inner.get(key, isolation)
        }

        fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
            self.counted(self.inner.get_range(query))
        }

        fn get_page<'t>(
            &'t self,
            query: RangeQuery<'_>,
            bytes_max: usize,
        ) -> StoreFuture<'t, Vec<KeyValue>> {
            self.counted(self.inner.get_page(query, bytes_max))
        }

        fn cache_value(&self, key: &[u8], value: &Bytes) {
            self.inner.cache_value(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::testing::Counting;
    use super::*;
    use crate::testing::environment;
    use crate::unit::context::NamespaceCache;
    use quoin_engine::testing::Bench;
    use quoin_layout::{Section, ValueType};

    /// Reads all rows of a list of large elements. Returns their number and the bytes of the largest page.
    fn read_all(bench: &Bench, reverse: bool, count: usize) -> (usize, usize) {
        let environment = &environment(bench);
        let transaction = bench.store.begin_read().unwrap();
        let counting = Counting::of(&*transaction);
        let namespaces = NamespaceCache::default();
        let context = ReadContext::new(&counting, environment, &namespaces, 0, 0);
        let rows = bench.block_on(async {
            let name = Bytes::from_static(b"large");
            let key = context.find(&name, ValueType::List).await.unwrap().unwrap();
            let prefix = context
                .layout()
                .section_prefix(key.data(), Section::Elements);
            let pages = Pages::new(&context, KeyRange::children(&prefix), reverse, 0);
            pages.slice(0, count).await.unwrap().len()
        });
        (rows, counting.largest_bytes())
    }

    #[test]
    fn pages_of_large_rows_have_few_of_them_and_leave_none_out() {
        let value = "v".repeat(80_000);
        let push = format!("RPUSH large{}", format!(" {value}").repeat(50));
        for (bench, largest) in [
            (Bench::embedded(), RANGE_PAGE_BYTES + value.len()),
            // The first page is limited by its number of rows.
            (
                Bench::cluster_like(),
                (FIRST_PAGE_ROWS_CLUSTER_MAX + 1) * value.len(),
            ),
        ] {
            for _ in 0..4 {
                bench.run(&push);
            }
            for reverse in [false, true] {
                let (rows, largest_read) = read_all(&bench, reverse, usize::MAX);
                assert_eq!(rows, 200);
                assert!(largest_read <= largest, "{largest_read}");
                assert_eq!(read_all(&bench, reverse, 130).0, 130);
            }
        }
    }
}
