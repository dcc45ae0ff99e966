//! Taking members from either end.

use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::PoppedElement;
use quoin_store::StoreError;

use super::{ScoredMember, of_member, score_rows, to_member};

/// One of the two ends of a sorted set or a priority queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The lowest score or priority.
    Min,
    /// The highest score or priority.
    Max,
}

impl WriteContext<'_> {
    /// Takes up to `count` members from one end, the outermost first. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    pub async fn zset_pop(
        &self,
        key: &OpenKey,
        count: usize,
        end: Extreme,
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let popped = self.pop_elements(key, end == Extreme::Max, count).await?;
        let members = popped.into_iter().map(to_member);
        Ok(members.collect::<Result<_, _>>()?)
    }

    /// Takes members off the set itself.
    pub(super) async fn zset_pop_placed(
        &self,
        key: &OpenKey,
        count: usize,
        end: Extreme,
    ) -> Result<Vec<PoppedElement>, StoreError> {
        let (range, prefix_length) = score_rows(self, key.data());
        let to_pop = self.rows_to_pop(&range, end == Extreme::Max, count).await?;
        let mut members = Vec::with_capacity(to_pop.len());
        for row in &to_pop {
            let member = self.zset_take_row(key, prefix_length, row).await?;
            members.push(of_member(member));
        }
        self.add_length(key, -i64::try_from(members.len()).unwrap_or(i64::MAX));
        Ok(members)
    }
}
