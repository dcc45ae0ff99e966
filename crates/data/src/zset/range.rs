//! Members by rank, by score and by their bytes.

use crate::keyspace::key::OpenKey;
use crate::list::clamp_range;
use crate::rows::pages::Pages;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_layout::{KeyRange, Section};
use quoin_store::{Isolation, KeyValue, StoreError};

use super::lex::{LexBound, LexSpan};
use super::{ScoredMember, score_rows};

/// A bound of a range of scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreBound {
    /// The score, never NaN.
    pub score: f64,
    /// Whether members of just that score are outside.
    pub is_exclusive: bool,
}

/// Which members a command is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// By rank, both ends included, negative from the end that is last in the range's order.
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
    /// Members to leave out at the beginning, not of a range by rank. As in Redis, a negative
    /// offset leaves out everything.
    pub offset: i64,
    /// Most members to answer, not of a range by rank.
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

impl ReadContext<'_> {
    /// The members of a range, in its order.
    pub async fn zset_range(
        &self,
        key: &OpenKey,
        range: &SortedRange,
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let rows = self.zset_rows(key, range).await?;
        self.zset_scored_members(key, &rows).await
    }

    async fn zset_rows(
        &self,
        key: &OpenKey,
        range: &SortedRange,
    ) -> Result<Vec<KeyValue>, StoreError> {
        if let Selection::Ranks { start, stop } = range.selection {
            let length = self.length(key, self.isolation).await?;
            return match clamp_range(start, stop, length) {
                Some((offset, count)) => {
                    let (all, _) = score_rows(self, key.data());
                    self.rows_from_rank(key, all, length, range.reverse, offset, count)
                        .await
                }
                None => Ok(Vec::new()),
            };
        }
        let Ok(offset) = usize::try_from(range.offset) else {
            return Ok(Vec::new());
        };
        let count = range.count.unwrap_or(usize::MAX);
        let keys = match &range.selection {
            Selection::Scores { min, max } => self.zset_score_span(key, *min, *max),
            Selection::Lex { min, max } => match self.zset_lex_span(key, min, max).await? {
                LexSpan::Keys(keys) => Some(keys),
                LexSpan::Empty => None,
                LexSpan::Walk => {
                    return self
                        .zset_lex_walk(key, (min, max), range.reverse, offset, count)
                        .await;
                }
            },
            Selection::Ranks { .. } => None,
        };
        let Some(keys) = keys else {
            return Ok(Vec::new());
        };
        let expected = range.count.map_or(0, |count| count.saturating_add(offset));
        Pages::new(self, keys, range.reverse, expected)
            .slice(offset, count)
            .await
    }

    /// Where members of these scores stand; `None` where there is no such score.
    pub(super) fn zset_score_span(
        &self,
        key: &OpenKey,
        min: ScoreBound,
        max: ScoreBound,
    ) -> Option<KeyRange> {
        let layout = self.layout();
        let keys = KeyRange {
            begin: layout.score_bound(key.data(), min.score, min.is_exclusive),
            end: layout.score_bound(key.data(), max.score, !max.is_exclusive),
        };
        (keys.begin < keys.end).then_some(keys)
    }
}

impl WriteContext<'_> {
    /// Removes what is selected and answers how many members that were. The caller ends with
    /// [`WriteContext::remove_if_empty`].
    pub async fn zset_remove_range(
        &self,
        key: &OpenKey,
        selection: &Selection,
    ) -> Result<i64, StoreError> {
        if let Selection::Ranks { start, stop } = selection {
            // This read conflicts with every change of the length.
            let length = self.length(key, Isolation::Serializable).await?;
            let is_all = clamp_range(*start, *stop, length)
                .is_some_and(|(offset, count)| offset == 0 && i64::try_from(count) == Ok(length));
            if is_all {
                self.drop_blocks(key);
                for section in [Section::Scores, Section::Members, Section::Chunks] {
                    let prefix = self.layout().section_prefix(key.data(), section);
                    let range = KeyRange::children(&prefix);
                    self.transaction.clear_range(&range.begin, &range.end);
                }
                self.add_length(key, -length);
                return Ok(length);
            }
        }
        let rows = self
            .zset_rows(key, &SortedRange::all_of(selection.clone()))
            .await?;
        let (_, prefix_length) = score_rows(self, key.data());
        for row in &rows {
            self.zset_take_row(key, prefix_length, row).await?;
        }
        let removed = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        self.add_length(key, -removed);
        Ok(removed)
    }
}
