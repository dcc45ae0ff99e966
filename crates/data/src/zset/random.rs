//! Random members.

use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;
use quoin_layout::Section;
use quoin_store::{KeyValue, StoreError};

use super::{ScoredMember, score_rows};

impl ReadContext<'_> {
    /// `count` random members, each drawn from the whole set.
    pub async fn zset_random(
        &self,
        key: &OpenKey,
        count: usize,
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let length = self.length(key, self.isolation).await?;
        let rows = self
            .hashed_random(key.data(), Section::Members, length, count)
            .await?;
        self.zset_indexed_members(key, &rows).await
    }

    /// Up to `count` distinct random members.
    pub async fn zset_random_distinct(
        &self,
        key: &OpenKey,
        count: usize,
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let length = self.length(key, self.isolation).await?;
        if length <= 0 || count == 0 {
            return Ok(Vec::new());
        }
        if i64::try_from(count).is_ok_and(|count| count < length) {
            let rows = self
                .hashed_random_distinct(key.data(), Section::Members, length, count)
                .await?;
            return self.zset_indexed_members(key, &rows).await;
        }
        // All of them, in the order in which Redis happens to have them.
        let (range, _) = score_rows(self, key.data());
        let rows = Pages::new(self, range, true, 0)
            .slice(0, usize::MAX)
            .await?;
        self.zset_scored_members(key, &rows).await
    }

    /// What rows of the member index say.
    pub(super) async fn zset_indexed_members(
        &self,
        key: &OpenKey,
        rows: &[KeyValue],
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let mut members = Vec::with_capacity(rows.len());
        for row in rows {
            members.push(self.zset_indexed_member(key.data(), row).await?);
        }
        Ok(members)
    }
}
