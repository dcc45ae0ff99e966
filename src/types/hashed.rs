//! Rows in the order of hashes: members of sorted sets and sets, fields of hashes. Scanning and
//! drawing them.

use std::collections::HashSet;
use std::ops::ControlFlow;

use bytes::Bytes;

use crate::layout::name::HASH_BITS;
use crate::layout::{Id, Section};
use crate::store::{KeyValue, StoreError};

use super::context::ReadContext;
use super::pages::Pages;

/// Rows that a draw expects in the slice of hashes that it looks at.
const SLICE_ROWS: u64 = 16;
/// Rows in a slice beyond which all count as so many. Hashes are spread evenly, so a slice has more
/// with a probability below 10^-9, and a draw is fair except for that.
const SLICE_ROWS_MAX: u64 = 48;
/// Slices that a draw looks at. About one in three is accepted, so running out of attempts means
/// that the length is wrong.
const DRAW_ATTEMPTS_MAX: usize = 1_000;
/// Where more than one row in so many is wanted, all of them are read once.
const SCAN_RATIO: i64 = 16;
/// So are so few rows. Where a read is a round trip, a page costs less than the slices of a draw.
const SCAN_ROWS_MAX: i64 = crate::limits::RANGE_PAGE_ROWS as i64;
/// The same on a store with a single writer, whose reads are cheap.
const LOCAL_SCAN_ROWS_MAX: i64 = 4 * SLICE_ROWS_MAX as i64;
/// Draws for each of the distinct rows wanted. At most a third of a section is drawn this way, so
/// fewer than two are needed.
const DISTINCT_DRAWS_MAX: usize = 64;
/// Redis's threshold for distinct members (`ZRANDMEMBER_SUB_STRATEGY_MUL`).
const SCAN_RATIO_DISTINCT: i64 = 3;

impl ReadContext<'_> {
    /// At least `count` rows from a cursor onwards, as far as there are any, and the next cursor; 0
    /// at the end. The cursor is a hash, so no server remembers anything: what is there from the
    /// first call to the last is answered, whatever comes and goes meanwhile. Rows of one hash are
    /// never apart.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn hashed_scan(
        &self,
        data: Id,
        section: Section,
        cursor: u64,
        count: usize,
    ) -> Result<(u64, Vec<KeyValue>), StoreError> {
        let range = self.layout().hashed_from(data, section, cursor);
        let mut found = Vec::new();
        if range.begin >= range.end {
            return Ok((0, found));
        }
        let mut pages = Pages::new(self, range, false, count.saturating_add(1));
        let mut last_hash = None;
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let (hash, _) = self.layout().read_hashed_key(data, section, &row.key)?;
                if let Some(last_hash) = last_hash
                    && last_hash != hash
                    && found.len() >= count
                {
                    return Ok((last_hash + 1, found));
                }
                last_hash = Some(hash);
                found.push(row);
            }
        }
        Ok((0, found))
    }

    /// `count` random rows of a section that has `length` of them, each drawn from all.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn hashed_random(
        &self,
        data: Id,
        section: Section,
        length: i64,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        if length <= 0 {
            return Ok(Vec::new());
        }
        if length > self.scan_rows_max() && to_i64(count).saturating_mul(SCAN_RATIO) < length {
            let mut rows = Vec::with_capacity(count);
            while rows.len() < count {
                rows.push(self.hashed_draw(data, section, length).await?);
            }
            return Ok(rows);
        }
        let random = &self.environment.random;
        let mut draws: Vec<(u64, usize)> = (0..count)
            .map(|place| (random.below(length.unsigned_abs()), place))
            .collect();
        draws.sort_unstable();
        let ranks = draws.iter().map(|(rank, _)| *rank);
        let rows = self.hashed_at_ranks(data, section, ranks).await?;
        let places = draws.iter().map(|(_, place)| *place);
        let mut drawn: Vec<(usize, KeyValue)> = places.zip(rows).collect();
        drawn.sort_unstable_by_key(|(place, _)| *place);
        Ok(drawn.into_iter().map(|(_, row)| row).collect())
    }

    /// `count` distinct random rows of a section that has `length` of them, more than that.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn hashed_random_distinct(
        &self,
        data: Id,
        section: Section,
        length: i64,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let is_few = to_i64(count).saturating_mul(SCAN_RATIO_DISTINCT) <= length;
        if length > self.scan_rows_max() && is_few {
            let mut seen: HashSet<Bytes> = HashSet::with_capacity(count);
            let mut rows = Vec::with_capacity(count);
            for _ in 0..count.saturating_mul(DISTINCT_DRAWS_MAX) {
                if rows.len() == count {
                    break;
                }
                let row = self.hashed_draw(data, section, length).await?;
                if seen.insert(row.key.clone()) {
                    rows.push(row);
                }
            }
            return Ok(rows);
        }
        let ranks = self.distinct_ranks(length.unsigned_abs(), count);
        self.hashed_at_ranks(data, section, ranks.into_iter()).await
    }

    /// `count` distinct random numbers below `length`, ascending; all of them where there are no
    /// more.
    pub(super) fn distinct_ranks(&self, length: u64, count: usize) -> Vec<u64> {
        // Each is taken with the probability of what is wanted among what is left.
        let mut wanted = count as u64;
        let ranks = (0..length).filter(|rank| {
            let is_taken = self.environment.random.below(length - rank) < wanted;
            wanted -= u64::from(is_taken);
            is_taken
        });
        ranks.collect()
    }

    /// The rows at these ranks, which must ascend and may repeat.
    async fn hashed_at_ranks(
        &self,
        data: Id,
        section: Section,
        ranks: impl Iterator<Item = u64>,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let range = self.layout().hashed_from(data, section, 0);
        let mut pages = Pages::new(self, range, false, 0);
        let mut found: Vec<KeyValue> = Vec::new();
        let mut ranks = ranks.peekable();
        let mut rank = 0;
        while ranks.peek().is_some() {
            let Some(rows) = pages.next().await? else {
                break;
            };
            for row in rows {
                while ranks.next_if_eq(&rank).is_some() {
                    found.push(row.clone());
                }
                rank += 1;
            }
        }
        Ok(found)
    }

    fn scan_rows_max(&self) -> i64 {
        match self.environment.capabilities.single_writer {
            true => LOCAL_SCAN_ROWS_MAX,
            false => SCAN_ROWS_MAX,
        }
    }

    /// One random row of a section that has `length` of them, not few. Draws slices of equal width
    /// from the range of hashes until one is accepted, with a probability proportional to its rows,
    /// then draws one of those: so every row has the same chance.
    ///
    /// # Errors
    /// `Corrupt` where there are fewer rows than that; when the store fails.
    async fn hashed_draw(
        &self,
        data: Id,
        section: Section,
        length: i64,
    ) -> Result<KeyValue, StoreError> {
        for _ in 0..DRAW_ATTEMPTS_MAX {
            if let ControlFlow::Break(row) = self.try_draw(data, section, length).await? {
                return Ok(row);
            }
        }
        Err(StoreError::Corrupt("a key has fewer rows than its length"))
    }

    async fn try_draw(
        &self,
        data: Id,
        section: Section,
        length: i64,
    ) -> Result<ControlFlow<KeyValue>, StoreError> {
        let random = &self.environment.random;
        let hashes = 1_u64 << HASH_BITS;
        let slices = (length.unsigned_abs() / SLICE_ROWS).clamp(1, hashes);
        let width = hashes.div_ceil(slices);
        let begin = random.below(slices) * width;
        let mut range = self.layout().hashed_from(data, section, begin);
        let behind = begin.saturating_add(width);
        if behind < hashes {
            range.end = self.layout().hashed_from(data, section, behind).begin;
        }
        if range.begin >= range.end {
            return Ok(ControlFlow::Continue(()));
        }
        let mut rows = Pages::new(self, range, false, 0)
            .slice(0, usize::MAX)
            .await?;
        let found = rows.len() as u64;
        if random.below(SLICE_ROWS_MAX) >= found {
            return Ok(ControlFlow::Continue(()));
        }
        let drawn = usize::try_from(random.below(found)).unwrap_or(0);
        Ok(ControlFlow::Break(rows.swap_remove(drawn)))
    }
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
