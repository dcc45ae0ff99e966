//! Taking members from either end.

use crate::layout::successor;
use crate::store::StoreError;
use crate::types::context::WriteContext;
use crate::types::keyspace::OpenKey;
use crate::types::pages::Pages;

use super::{ScoredMember, score_rows};

/// One of a sorted set's two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The lowest score.
    Min,
    /// The highest score.
    Max,
}

impl WriteContext<'_> {
    /// Takes up to `count` members from one end, the outermost first. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    ///
    /// # Errors
    /// When the store fails.
    pub async fn zset_pop(
        &self,
        key: &OpenKey,
        count: usize,
        end: Extreme,
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let (range, prefix_length) = score_rows(self, key.data());
        // Snapshot reads and a conflict on just what was taken and the way to it: reading
        // beyond the last member would conflict with every ZADD there.
        let mut pages =
            Pages::new(self, range.clone(), end == Extreme::Max, count).with_snapshot_reads();
        let mut members = Vec::new();
        while members.len() < count {
            let Some(rows) = pages.next().await? else {
                break;
            };
            let missing = count - members.len();
            let taken = rows.get(..missing.min(rows.len())).unwrap_or(&rows);
            if let Some(last) = taken.last() {
                match end {
                    Extreme::Min => self
                        .transaction
                        .add_read_conflict_range(&range.begin, &successor(&last.key)),
                    Extreme::Max => self
                        .transaction
                        .add_read_conflict_range(&last.key, &range.end),
                }
            }
            for row in taken {
                members.push(self.zset_take_row(key, prefix_length, row).await?);
            }
        }
        self.add_length(key, -i64::try_from(members.len()).unwrap_or(i64::MAX));
        Ok(members)
    }
}
