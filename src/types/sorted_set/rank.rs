//! Ranks and counts, by scanning what lies on the shorter side.

use crate::layout::{KeyRange, Member};
use crate::limits::RANGE_PAGE_ROWS;
use crate::store::StoreError;
use crate::types::context::ReadContext;
use crate::types::keyspace::OpenKey;
use crate::types::pages::Pages;

use super::lex::LexSpan;
use super::{Selection, SortedRange, score_rows};

impl ReadContext<'_> {
    /// How many members come before this one (`reverse`: behind it), and its score.
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
        let (range, _) = score_rows(self, key.data());
        let before = KeyRange {
            begin: range.begin,
            end: score_key,
        };
        let rank = self.zset_count_rows(key, before).await?;
        if !reverse {
            return Ok(Some((rank, entry.score)));
        }
        let length = self.length(key, self.isolation).await?;
        Ok(Some((length - 1 - rank, entry.score)))
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
            Some(keys) => self.zset_count_rows(key, keys).await,
            None => {
                let range = SortedRange::all_of(selection.clone());
                let members = self.zset_range(key, &range).await?;
                Ok(i64::try_from(members.len()).unwrap_or(i64::MAX))
            }
        }
    }

    /// Counts rows of the score index inside a range, and in turns those outside of it; the
    /// first that comes to its end gives the answer, since the length is known.
    async fn zset_count_rows(&self, key: &OpenKey, inside: KeyRange) -> Result<i64, StoreError> {
        let (all, _) = score_rows(self, key.data());
        let before = KeyRange {
            begin: all.begin,
            end: inside.begin.clone(),
        };
        let behind = KeyRange {
            begin: inside.end.clone(),
            end: all.end,
        };
        let mut inside = Pages::new(self, inside, false, 0);
        let mut outside = [
            Pages::new(self, before, false, 0),
            Pages::new(self, behind, false, 0),
        ];
        let (mut count_inside, mut count_outside) = (0_usize, 0_usize);
        loop {
            let rows = inside.next().await?.map_or(0, |rows| rows.len());
            count_inside += rows;
            if rows < RANGE_PAGE_ROWS {
                return Ok(i64::try_from(count_inside).unwrap_or(i64::MAX));
            }
            let mut has_more = false;
            for pages in &mut outside {
                if let Some(rows) = pages.next().await? {
                    count_outside += rows.len();
                    has_more = rows.len() == RANGE_PAGE_ROWS;
                    if has_more {
                        break;
                    }
                }
            }
            if !has_more {
                let length = self.length(key, self.isolation).await?;
                return Ok(length - i64::try_from(count_outside).unwrap_or(i64::MAX));
            }
        }
    }
}
