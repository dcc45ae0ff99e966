//! ZSCAN: the member index by hash.

use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;
use quoin_layout::Section;
use quoin_store::StoreError;

use super::{ScoredMember, score_rows};

impl ReadContext<'_> {
    /// All members in Redis's order, if there are at most `most` of them.
    pub(crate) async fn zset_all_of_small(
        &self,
        key: &OpenKey,
        most: usize,
    ) -> Result<Option<Vec<ScoredMember>>, StoreError> {
        let length = self.length(key, self.isolation).await?;
        if usize::try_from(length).is_ok_and(|length| length > most) {
            return Ok(None);
        }
        let (range, _) = score_rows(self, key.data());
        let rows = Pages::new(self, range, false, 0)
            .slice(0, usize::MAX)
            .await?;
        Ok(Some(self.zset_scored_members(key, &rows).await?))
    }

    /// At least `count` members from a cursor onwards, as far as there are any, and the next
    /// cursor; 0 at the end ([`ReadContext::hashed_scan`]).
    pub async fn zset_scan(
        &self,
        key: &OpenKey,
        cursor: u64,
        count: usize,
    ) -> Result<(u64, Vec<ScoredMember>), StoreError> {
        let (next, rows) = self
            .hashed_scan(key.data(), Section::Members, cursor, count)
            .await?;
        Ok((next, self.zset_indexed_members(key, &rows).await?))
    }
}
