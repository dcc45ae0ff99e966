//! Ranks and counts of members.

use crate::keyspace::key::OpenKey;
use crate::unit::context::ReadContext;
use quoin_layout::Member;
use quoin_store::StoreError;

use super::lex::LexSpan;
use super::{Selection, SortedRange, score_rows};

impl ReadContext<'_> {
    /// How many members come before this one (`reverse`: after it), and its score.
    pub async fn zset_rank(
        &self,
        key: &OpenKey,
        member: &bytes::Bytes,
        reverse: bool,
    ) -> Result<Option<(i64, f64)>, StoreError> {
        let member = Member::new(member);
        let Some(entry) = self.zset_entry(key, &member).await? else {
            return Ok(None);
        };
        let label = entry.long.as_ref().map(|place| &place.label);
        let score_key =
            self.layout()
                .score_key(key.data(), entry.score, member.indexed_prefix(), label);
        let (all, _) = score_rows(self, key.data());
        let rank = self.rank_of(key, all, score_key).await?;
        if !reverse {
            return Ok(Some((rank, entry.score)));
        }
        let length = self.length(key, self.isolation).await?;
        Ok(Some((length - 1 - rank, entry.score)))
    }

    /// How many members a range by score or by bytes has.
    pub async fn zset_count(
        &self,
        key: &OpenKey,
        selection: &Selection,
    ) -> Result<i64, StoreError> {
        let keys = match selection {
            Selection::Scores { min, max } => self.zset_score_span(key, *min, *max),
            Selection::Lex { min, max } => match self.zset_lex_span(key, min, max).await? {
                LexSpan::Keys(keys) => Some(keys),
                LexSpan::Empty | LexSpan::Walk => None,
            },
            Selection::Ranks { .. } => None,
        };
        match keys {
            Some(keys) => {
                let (all, _) = score_rows(self, key.data());
                self.count_between(key, all, keys).await
            }
            None => {
                let range = SortedRange::all_of(selection.clone());
                let members = self.zset_range(key, &range).await?;
                Ok(i64::try_from(members.len()).unwrap_or(i64::MAX))
            }
        }
    }
}
