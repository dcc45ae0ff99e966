//! ZSCAN: the member index by hash.

use crate::store::StoreError;
use crate::types::context::ReadContext;
use crate::types::key::OpenKey;
use crate::types::pages::Pages;

use super::{ScoredMember, score_rows};

impl ReadContext<'_> {
    /// All members in Redis's order, if there are at most `most` of them.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn zset_all_of_small(
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
    /// cursor; 0 at the end. The cursor is a hash, so that no server remembers anything: what is
    /// there from the first call to the last is answered, whatever comes and goes meanwhile.
    /// Members of one hash are never apart.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn zset_scan(
        &self,
        key: &OpenKey,
        cursor: u64,
        count: usize,
    ) -> Result<(u64, Vec<ScoredMember>), StoreError> {
        let range = self.layout().members_from(key.data(), cursor);
        let mut members = Vec::new();
        if range.begin >= range.end {
            return Ok((0, members));
        }
        let mut pages = Pages::new(self, range, false, count.saturating_add(1));
        let mut last_hash = None;
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let (hash, one) = self.zset_indexed_member(key.data(), &row).await?;
                if let Some(last_hash) = last_hash
                    && last_hash != hash
                    && members.len() >= count
                {
                    return Ok((last_hash + 1, members));
                }
                last_hash = Some(hash);
                members.push(one);
            }
        }
        Ok((0, members))
    }
}
