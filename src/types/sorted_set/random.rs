//! Random members.

use std::collections::HashSet;

use crate::layout::name::HASH_BITS;
use crate::store::StoreError;
use crate::types::context::ReadContext;
use crate::types::key::OpenKey;
use crate::types::pages::Pages;

use super::{ScoredMember, score_rows};

/// Members that a draw from the member index expects in the slice of hashes that it looks at.
const SLICE_MEMBERS: u64 = 16;
/// Members in a slice beyond which all count as so many. Hashes are spread evenly, so that a
/// slice has more with a probability below 10^-9, and a draw is fair but for that.
const SLICE_MEMBERS_MAX: u64 = 48;
/// Up to this many members, and where more than one in so many is wanted, the whole set is read
/// once.
const SCAN_RATIO: i64 = 16;
/// See [`SCAN_RATIO`].
const SCAN_MEMBERS_MAX: i64 = crate::limits::RANGE_PAGE_ROWS as i64;
/// Slices that a draw looks at. About one in three is accepted, so that running out of attempts
/// means that the set's length is wrong.
const DRAW_ATTEMPTS_MAX: usize = 1_000;
/// Draws for each of the distinct members wanted. At most a third of the set is drawn this way, so
/// that fewer than two are needed.
const DISTINCT_DRAWS_MAX: usize = 64;
/// Redis's threshold for distinct members (`ZRANDMEMBER_SUB_STRATEGY_MUL`).
const SCAN_RATIO_DISTINCT: i64 = 3;

impl ReadContext<'_> {
    /// `count` random members, each drawn from the whole set.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn zset_random(
        &self,
        key: &OpenKey,
        count: usize,
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let length = self.length(key, self.isolation).await?;
        if length <= 0 {
            return Ok(Vec::new());
        }
        if length > SCAN_MEMBERS_MAX && to_i64(count).saturating_mul(SCAN_RATIO) < length {
            let mut members = Vec::with_capacity(count);
            while members.len() < count {
                members.push(self.zset_draw(key, length).await?);
            }
            return Ok(members);
        }
        let random = &self.environment.random;
        let mut draws: Vec<(u64, usize)> = (0..count)
            .map(|place| (random.below(length.unsigned_abs()), place))
            .collect();
        draws.sort_unstable();
        let ranks = draws.iter().map(|(rank, _)| *rank);
        let mut drawn: Vec<(usize, ScoredMember)> = self
            .zset_at_ranks(key, ranks)
            .await?
            .into_iter()
            .zip(&draws)
            .map(|(one, (_, place))| (*place, one))
            .collect();
        drawn.sort_unstable_by_key(|(place, _)| *place);
        Ok(drawn.into_iter().map(|(_, one)| one).collect())
    }

    /// Up to `count` distinct random members.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn zset_random_distinct(
        &self,
        key: &OpenKey,
        count: usize,
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let length = self.length(key, self.isolation).await?;
        if length <= 0 || count == 0 {
            return Ok(Vec::new());
        }
        if to_i64(count) >= length {
            // All of them, in the order in which Redis happens to have them.
            let (range, _) = score_rows(self, key.data());
            let rows = Pages::new(self, range, true, 0)
                .slice(0, usize::MAX)
                .await?;
            return self.zset_scored_members(key, &rows).await;
        }
        let is_few = to_i64(count).saturating_mul(SCAN_RATIO_DISTINCT) <= length;
        if length > SCAN_MEMBERS_MAX && is_few {
            let mut seen = HashSet::with_capacity(count);
            let mut members = Vec::with_capacity(count);
            for _ in 0..count.saturating_mul(DISTINCT_DRAWS_MAX) {
                if members.len() == count {
                    break;
                }
                let one = self.zset_draw(key, length).await?;
                if seen.insert(one.member.clone()) {
                    members.push(one);
                }
            }
            return Ok(members);
        }
        // Each rank is taken with the probability of what is wanted among what is left.
        let length = length.unsigned_abs();
        let mut wanted = count as u64;
        let ranks = (0..length).filter(|rank| {
            let is_taken = self.environment.random.below(length - rank) < wanted;
            wanted -= u64::from(is_taken);
            is_taken
        });
        let ranks: Vec<u64> = ranks.collect();
        self.zset_at_ranks(key, ranks.into_iter()).await
    }

    /// The members at these ranks, which must ascend and may repeat.
    async fn zset_at_ranks(
        &self,
        key: &OpenKey,
        ranks: impl Iterator<Item = u64>,
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let (range, prefix_length) = score_rows(self, key.data());
        let mut pages = Pages::new(self, range, false, 0);
        let mut found: Vec<ScoredMember> = Vec::new();
        let mut ranks = ranks.peekable();
        let mut rank = 0;
        while ranks.peek().is_some() {
            let Some(rows) = pages.next().await? else {
                break;
            };
            for row in rows {
                if ranks.peek() == Some(&rank) {
                    let one = self
                        .zset_scored_member(key.data(), prefix_length, &row)
                        .await?;
                    while ranks.next_if_eq(&rank).is_some() {
                        found.push(one.clone());
                    }
                }
                rank += 1;
            }
        }
        Ok(found)
    }

    /// One random member of a set that is not small. Draws slices of equal width from the range
    /// of hashes until one is accepted, with a probability proportional to its members, of which
    /// one is drawn: so that every member of the set has the same chance.
    async fn zset_draw(&self, key: &OpenKey, length: i64) -> Result<ScoredMember, StoreError> {
        let hashes = 1_u64 << HASH_BITS;
        let slices = (length.unsigned_abs() / SLICE_MEMBERS).clamp(1, hashes);
        let width = hashes.div_ceil(slices);
        for _ in 0..DRAW_ATTEMPTS_MAX {
            let begin = self.environment.random.below(slices) * width;
            let mut range = self.layout().members_from(key.data(), begin);
            let behind = begin.saturating_add(width);
            if behind < hashes {
                range.end = self.layout().members_from(key.data(), behind).begin;
            }
            if range.begin >= range.end {
                continue;
            }
            let rows = Pages::new(self, range, false, 0)
                .slice(0, usize::MAX)
                .await?;
            let members = rows.len() as u64;
            if self.environment.random.below(SLICE_MEMBERS_MAX) >= members {
                continue;
            }
            let drawn = usize::try_from(self.environment.random.below(members)).unwrap_or(0);
            if let Some(row) = rows.get(drawn) {
                return Ok(self.zset_indexed_member(key.data(), row).await?.1);
            }
        }
        Err(StoreError::Corrupt(
            "sorted set has fewer members than its length",
        ))
    }
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
