//! The representation that Redis would have of a sorted set.

use quoin_store::StoreError;

use super::ScoredMember;
use crate::keyspace::encoding::{LISTPACK_MEMBERS_MAX, is_short};
use crate::keyspace::key::OpenKey;
use crate::unit::context::ReadContext;

impl ReadContext<'_> {
    /// All members of a sorted set in Redis's order, if it keeps the set in its compact encoding,
    /// which it also scans whole.
    pub async fn compact_members(
        &self,
        key: &OpenKey,
    ) -> Result<Option<Vec<ScoredMember>>, StoreError> {
        let members = self.zset_all_of_small(key, LISTPACK_MEMBERS_MAX).await?;
        Ok(members.filter(|members| members.iter().all(|one| is_short(&one.member))))
    }

    pub(crate) async fn zset_encoding(&self, key: &OpenKey) -> Result<&'static str, StoreError> {
        match self.compact_members(key).await? {
            Some(_) => Ok("listpack"),
            None => Ok("skiplist"),
        }
    }
}
