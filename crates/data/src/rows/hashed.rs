//! Rows ordered by hash: members of sorted sets and sets, and fields of hashes. Scans them and draws random ones.

use std::collections::HashSet;

use bytes::Bytes;

use quoin_layout::name::HASH_BITS;
use quoin_layout::{Id, KeyRange, Section};
use quoin_store::{KeyValue, StoreError};

use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;

/// Neighbouring rows from which a draw takes one or a few. Redis's `GETFAIR_NUM_ENTRIES` is one fewer.
const DRAW_ROWS: usize = 16;
/// One draw may take one row for every this many distinct rows wanted.
const TOGETHER_RATIO: usize = 8;
/// Maximum number of rows that one draw takes for distinct rows.
const TOGETHER_MAX: usize = DRAW_ROWS / 2;
/// If more than one row in this many is wanted, all rows are read once.
const SCAN_RATIO: i64 = 16;
/// If there are at most this many rows, they are all read: a page costs one read, as a draw does, and gives every row
/// the same chance.
const SCAN_ROWS_MAX: i64 = quoin_base::limits::RANGE_PAGE_ROWS as i64;
/// The same on a store whose reads are cheap.
const LOCAL_SCAN_ROWS_MAX: i64 = 192;
/// How often to draw for each of the distinct rows wanted. At most a third of a section is drawn this way, so fewer
/// than two draws are needed.
const DISTINCT_DRAWS_MAX: usize = 64;
/// Redis's threshold for distinct members (`ZRANDMEMBER_SUB_STRATEGY_MUL`).
const SCAN_RATIO_DISTINCT: i64 = 3;

impl ReadContext<'_> {
    /// At least `count` rows from a cursor onwards, if there are as many, and the next cursor, which is 0 at the end.
    /// The cursor is a hash, so no server keeps state. Rows that exist from the first call to the last are returned,
    /// whatever is added or removed meanwhile. Rows with the same hash are always returned together.
    pub(crate) async fn hashed_scan(
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
        let keys = self.layout().hashed_keys(data, section);
        let mut last_hash = None;
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let (hash, _) = keys.read(&row.key)?;
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

    /// `count` random rows of a section with `length` rows, each drawn from all. The chances are equal in a small
    /// section and nearly equal in a large one.
    pub(crate) async fn hashed_random(
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
                rows.extend(self.hashed_draw(data, section, 1).await?);
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

    /// `count` distinct random rows of a section with `length` rows. `count` is less than `length`.
    pub(crate) async fn hashed_random_distinct(
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
            let together = (count / TOGETHER_RATIO).clamp(1, TOGETHER_MAX);
            for _ in 0..count.saturating_mul(DISTINCT_DRAWS_MAX) {
                if rows.len() == count {
                    break;
                }
                let wanted = together.min(count - rows.len());
                let drawn = self.hashed_draw(data, section, wanted).await?;
                let is_new = |row: &KeyValue| seen.insert(row.key.clone());
                rows.extend(drawn.into_iter().filter(is_new));
            }
            return Ok(rows);
        }
        let ranks = self.distinct_ranks(length.unsigned_abs(), count);
        self.hashed_at_ranks(data, section, ranks.into_iter()).await
    }

    /// `count` distinct random numbers below `length`, in ascending order. All of them if there are no more.
    pub(crate) fn distinct_ranks(&self, length: u64, count: usize) -> Vec<u64> {
        // Take each with the probability (still wanted) / (still left).
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
        match self.environment.capabilities.reads_wait {
            false => LOCAL_SCAN_ROWS_MAX,
            true => SCAN_ROWS_MAX,
        }
    }

    /// `count` (at most [`DRAW_ROWS`]) distinct random rows of a section that is not small. They are chosen from the
    /// [`DRAW_ROWS`] rows after a random hash. Hashes are spread evenly, but the gaps between them are not equal. So
    /// the chances of rows differ by about a quarter, as in Redis (`dictGetFairRandomKey`).
    ///
    /// # Errors
    /// `Corrupt` if there are fewer rows.
    async fn hashed_draw(
        &self,
        data: Id,
        section: Section,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let random = &self.environment.random;
        let first = self
            .layout()
            .hashed_from(data, section, random.below(1_u64 << HASH_BITS));
        let mut rows = Pages::new(self, first.clone(), false, DRAW_ROWS)
            .slice(0, DRAW_ROWS)
            .await?;
        if rows.len() < DRAW_ROWS {
            // Wrap around from the highest hashes to the lowest.
            let all = self.layout().hashed_from(data, section, 0);
            let others = KeyRange {
                begin: all.begin,
                end: first.begin,
            };
            let missing = DRAW_ROWS - rows.len();
            let others = Pages::new(self, others, false, missing).slice(0, missing);
            rows.extend(others.await?);
        }
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            let at = usize::try_from(random.below(rows.len().max(1) as u64)).unwrap_or(0);
            if at >= rows.len() {
                return Err(StoreError::Corrupt("a key has fewer rows than its length"));
            }
            drawn.push(rows.swap_remove(at));
        }
        Ok(drawn)
    }
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
