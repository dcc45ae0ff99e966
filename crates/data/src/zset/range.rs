//! Ranges by rank, by score and by bytes: their members, counts, and the rank of a member.

use bytes::Bytes;

use crate::command::arguments::clamp_range;
use crate::rows::pages::Pages;
use quoin_layout::{KeyRange, Member};
use quoin_store::{KeyValue, StoreError};

use super::lex::{LexBound, LexSpan};
use super::{ScoredMember, SortedSet};

/// A bound of a range of scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreBound {
    /// The score, never NaN.
    pub score: f64,
    /// Whether members of exactly this score are outside.
    pub is_exclusive: bool,
}

/// The members that a command selects.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// By rank, both ends included. Negative ranks count from the last member in the order of the
    /// range.
    Ranks {
        /// First rank.
        start: i64,
        /// Last rank.
        stop: i64,
    },
    /// By score.
    Scores {
        /// The lower bound.
        min: ScoreBound,
        /// The upper bound.
        max: ScoreBound,
    },
    /// By bytes, meant for sets whose members all have one score.
    Lex {
        /// The lower bound.
        min: LexBound,
        /// The upper bound.
        max: LexBound,
    },
}

/// A selection with the options of ZRANGE.
#[derive(Debug, Clone, PartialEq)]
pub struct SortedRange {
    /// Which members.
    pub selection: Selection,
    /// From the highest to the lowest.
    pub reverse: bool,
    /// Members to skip; not used in ranges by rank. As in Redis, a negative offset skips everything.
    pub offset: i64,
    /// The most members to return; not used in ranges by rank.
    pub count: Option<usize>,
}

impl SortedRange {
    /// All that is selected, from the lowest to the highest.
    pub fn all_of(selection: Selection) -> Self {
        Self {
            selection,
            reverse: false,
            offset: 0,
            count: None,
        }
    }
}

impl SortedSet<'_, '_> {
    /// The members of a range, in its order.
    pub async fn range(&self, range: &SortedRange) -> Result<Vec<ScoredMember>, StoreError> {
        let rows = self.rows(range).await?;
        self.scored_members(&rows).await
    }

    /// The rows of a range in the score index, in its order.
    pub(super) async fn rows(&self, range: &SortedRange) -> Result<Vec<KeyValue>, StoreError> {
        let (context, reverse) = (self.context, range.reverse);
        if let Selection::Ranks { start, stop } = range.selection {
            let length = self.length().await?;
            let Some((offset, count)) = clamp_range(start, stop, length) else {
                return Ok(Vec::new());
            };
            let (all, _) = self.score_rows();
            return context
                .rows_from_rank(self.key, all, length, reverse, offset, count)
                .await;
        }
        let Ok(offset) = usize::try_from(range.offset) else {
            return Ok(Vec::new());
        };
        let count = range.count.unwrap_or(usize::MAX);
        let keys = match &range.selection {
            Selection::Scores { min, max } => self.score_span(*min, *max),
            Selection::Lex { min, max } => match self.lex_span(min, max).await? {
                LexSpan::Keys(keys) => Some(keys),
                LexSpan::Empty => None,
                LexSpan::Walk => return self.lex_walk((min, max), reverse, offset, count).await,
            },
            Selection::Ranks { .. } => None,
        };
        let Some(keys) = keys else {
            return Ok(Vec::new());
        };
        let expected = range.count.map_or(0, |count| count.saturating_add(offset));
        Pages::new(context, keys, reverse, expected)
            .slice(offset, count)
            .await
    }

    /// The keys of members with these scores; `None` if no score is in the range.
    pub(super) fn score_span(&self, min: ScoreBound, max: ScoreBound) -> Option<KeyRange> {
        let (layout, data) = (self.context.layout(), self.key.data());
        let keys = KeyRange {
            begin: layout.score_bound(data, min.score, min.is_exclusive),
            end: layout.score_bound(data, max.score, !max.is_exclusive),
        };
        (keys.begin < keys.end).then_some(keys)
    }

    /// The number of members before this one (after it if `reverse`), and its score.
    pub async fn rank(
        &self,
        member: &Bytes,
        reverse: bool,
    ) -> Result<Option<(i64, f64)>, StoreError> {
        let context = self.context;
        let member = Member::new(member);
        let Some(entry) = self.entry(&member).await? else {
            return Ok(None);
        };
        let (all, _) = self.score_rows();
        let score_key = self.score_key(&member, &entry);
        let rank = context.rank_of(self.key, all, score_key).await?;
        if !reverse {
            return Ok(Some((rank, entry.score)));
        }
        let length = self.length().await?;
        Ok(Some((length - 1 - rank, entry.score)))
    }

    /// How many members a range by score or by bytes has.
    pub async fn count(&self, selection: &Selection) -> Result<i64, StoreError> {
        let keys = match selection {
            Selection::Scores { min, max } => self.score_span(*min, *max),
            Selection::Lex { min, max } => match self.lex_span(min, max).await? {
                LexSpan::Keys(keys) => Some(keys),
                LexSpan::Empty | LexSpan::Walk => None,
            },
            Selection::Ranks { .. } => None,
        };
        match keys {
            Some(keys) => {
                let (all, _) = self.score_rows();
                self.context.count_between(self.key, all, keys).await
            }
            None => {
                let range = SortedRange::all_of(selection.clone());
                let members = self.range(&range).await?;
                Ok(i64::try_from(members.len()).unwrap_or(i64::MAX))
            }
        }
    }
}
