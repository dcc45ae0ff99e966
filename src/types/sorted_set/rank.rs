//! Ranks and counts: by the blocks that are counted, and by reading what lies on the shorter side of
//! what is in none.

use crate::layout::{KeyRange, Member};
use crate::store::{KeyValue, StoreError};
use crate::types::context::ReadContext;
use crate::types::key::OpenKey;
use crate::types::pages::Pages;

use super::lex::LexSpan;
use super::{Selection, SortedRange, score_rows};

/// Members from the nearer end up to which blocks are not looked at.
const NEAR_ROWS_MAX: usize = 512;

/// Members up to which a range is counted one by one though there are blocks.
const FIRST_LOOK_ROWS: usize = 128;

impl ReadContext<'_> {
    /// How many members come before this one (`reverse`: after it), and its score.
    ///
    /// # Errors
    /// When the store fails.
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
        let rank = self.zset_rank_of(key, score_key).await?;
        if !reverse {
            return Ok(Some((rank, entry.score)));
        }
        let length = self.length(key, self.isolation).await?;
        Ok(Some((length - 1 - rank, entry.score)))
    }

    /// How many members come before a key of the score index.
    async fn zset_rank_of(&self, key: &OpenKey, end: Vec<u8>) -> Result<i64, StoreError> {
        let (mut all, prefix_length) = score_rows(self, key.data());
        let place = end.get(prefix_length..).unwrap_or_default();
        let start = self.rank_start_by_place(key, place).await?;
        all.begin = self.layout().scores_from(key.data(), &start.place);
        let begin = all.begin.clone();
        let rest = self
            .count_rows(key, all, start.members, KeyRange { begin, end })
            .await?;
        Ok(start.members + rest)
    }

    /// The members from a rank on in one direction. There are `offset` before them and `count` of
    /// them in a set that has `length`.
    pub(super) async fn zset_rows_by_rank(
        &self,
        key: &OpenKey,
        length: i64,
        reverse: bool,
        offset: usize,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let (mut all, _) = score_rows(self, key.data());
        let members = usize::try_from(length).unwrap_or(0);
        let behind = members.saturating_sub(offset.saturating_add(count));
        if offset.min(behind) <= NEAR_ROWS_MAX {
            return self.rows_by_rank(all, length, reverse, offset, count).await;
        }
        let (signed_offset, signed_count) = (signed(offset), signed(count));
        let first = match reverse {
            false => signed_offset,
            true => length.saturating_sub(signed_offset.saturating_add(signed_count)),
        };
        let start = self.rank_start_by_rank(key, first.max(0)).await?;
        all.begin = self.layout().scores_from(key.data(), &start.place);
        let length = length - start.members;
        let offset = match reverse {
            true => offset,
            false => usize::try_from(signed_offset - start.members).unwrap_or(0),
        };
        let left = usize::try_from(length).unwrap_or(0);
        let behind = left.saturating_sub(offset.saturating_add(count));
        self.note_rows_for_rank(key, offset.min(behind));
        self.rows_by_rank(all, length, reverse, offset, count).await
    }

    /// How many members a range by score or by bytes has.
    ///
    /// # Errors
    /// When the store fails.
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
            Some(keys) => self.zset_count_of(key, keys).await,
            None => {
                let range = SortedRange::all_of(selection.clone());
                let members = self.zset_range(key, &range).await?;
                Ok(signed(members.len()))
            }
        }
    }

    async fn zset_count_of(&self, key: &OpenKey, keys: KeyRange) -> Result<i64, StoreError> {
        if key.meta.rank_levels == 0 {
            let (all, _) = score_rows(self, key.data());
            return self.count_rows(key, all, 0, keys).await;
        }
        let mut pages = Pages::new(self, keys.clone(), false, FIRST_LOOK_ROWS);
        let rows = pages.next().await?.map_or(0, |rows| rows.len());
        if rows < FIRST_LOOK_ROWS {
            return Ok(signed(rows));
        }
        let before = self.zset_rank_of(key, keys.begin).await?;
        Ok(self.zset_rank_of(key, keys.end).await? - before)
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
