//! Ranges by bytes (BYLEX). Redis defines them only for sets whose members all have one score.

use bytes::Bytes;

use crate::rows::pages::Pages;
use quoin_base::limits::INLINE_NAME_BYTES_MAX;
use quoin_layout::member::indexed_prefix;
use quoin_layout::{KeyRange, successor};
use quoin_store::{KeyValue, StoreError};

use super::SortedSet;

/// A bound of a range of members of one score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LexBound {
    /// `-`: before every member.
    Least,
    /// `+`: after every member.
    Greatest,
    /// `[…`
    Included(Bytes),
    /// `(…`
    Excluded(Bytes),
}

impl LexBound {
    /// Whether a member is inside a range that begins here.
    pub fn admits_above(&self, member: &[u8]) -> bool {
        match self {
            LexBound::Least => true,
            LexBound::Greatest => false,
            LexBound::Included(bound) => member >= bound,
            LexBound::Excluded(bound) => member > bound,
        }
    }

    /// Whether a member is inside a range that ends here.
    pub fn admits_below(&self, member: &[u8]) -> bool {
        match self {
            LexBound::Least => false,
            LexBound::Greatest => true,
            LexBound::Included(bound) => member <= bound,
            LexBound::Excluded(bound) => member < bound,
        }
    }
}

/// The keys of the members between two bounds.
pub(super) enum LexSpan {
    /// There are no such members.
    Empty,
    /// The members are in this range.
    Keys(KeyRange),
    /// The scores differ, so that the range is not defined. Redis walks, and so does Quoin.
    Walk,
}

impl SortedSet<'_, '_> {
    /// Finds the keys of the members between two bounds.
    pub(super) async fn lex_span(
        &self,
        min: &LexBound,
        max: &LexBound,
    ) -> Result<LexSpan, StoreError> {
        let (context, data) = (self.context, self.key.data());
        let layout = context.layout();
        let (all, prefix_length) = self.score_rows();
        let first = context.outermost(&all, false, context.isolation).await?;
        let last = context.outermost(&all, true, context.isolation).await?;
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(LexSpan::Empty);
        };
        let score = layout.read_score_key(prefix_length, &first.key)?.score;
        if layout.read_score_key(prefix_length, &last.key)?.score != score {
            let first = self.scored_member(prefix_length, &first).await?;
            let last = self.scored_member(prefix_length, &last).await?;
            let is_possible = !is_inverted(min, max)
                && min.admits_above(&last.member)
                && max.admits_below(&first.member);
            return Ok(if is_possible {
                LexSpan::Walk
            } else {
                LexSpan::Empty
            });
        }
        let keys = KeyRange {
            begin: match min {
                LexBound::Least => layout.score_bound(data, score, false),
                LexBound::Greatest => return Ok(LexSpan::Empty),
                LexBound::Included(bytes) => self.lex_place(score, bytes, false).await?,
                LexBound::Excluded(bytes) => self.lex_place(score, bytes, true).await?,
            },
            end: match max {
                LexBound::Least => return Ok(LexSpan::Empty),
                LexBound::Greatest => layout.score_bound(data, score, true),
                LexBound::Included(bytes) => self.lex_place(score, bytes, true).await?,
                LexBound::Excluded(bytes) => self.lex_place(score, bytes, false).await?,
            },
        };
        Ok(if keys.begin < keys.end {
            LexSpan::Keys(keys)
        } else {
            LexSpan::Empty
        })
    }

    /// The first key of one score whose member is at least `bytes`, or greater (`above`). A bound
    /// that is too long for a key is compared with the long members that share its first bytes.
    async fn lex_place(
        &self,
        score: f64,
        bytes: &[u8],
        above: bool,
    ) -> Result<Vec<u8>, StoreError> {
        let (context, data) = (self.context, self.key.data());
        let prefix = indexed_prefix(bytes);
        if bytes.len() <= INLINE_NAME_BYTES_MAX {
            let place = context.layout().score_key(data, score, prefix, None);
            return Ok(if above { successor(&place) } else { place });
        }
        let group = context.layout().long_members(data, score, prefix);
        let after_all = group.end.clone();
        let mut pages = Pages::new(context, group, false, 0);
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let member = context.load_value(data, &row.value).await?;
                if member > bytes || (!above && member == bytes) {
                    return Ok(row.key.to_vec());
                }
            }
        }
        Ok(after_all)
    }

    /// What Redis does with a set of several scores in its compact encoding: it finds the first
    /// member within the bound at which the range begins, skips `offset` members without a check,
    /// and takes members until one is not within the other bound.
    pub(super) async fn lex_walk(
        &self,
        (min, max): (&LexBound, &LexBound),
        reverse: bool,
        mut offset: usize,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let (_, prefix_length) = self.score_rows();
        let mut pages = self.score_pages(reverse);
        let mut found = Vec::new();
        let mut has_begun = false;
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let one = self.scored_member(prefix_length, &row).await?;
                let is_above = min.admits_above(&one.member);
                let is_below = max.admits_below(&one.member);
                let (is_after_begin, is_before_end) = match reverse {
                    true => (is_below, is_above),
                    false => (is_above, is_below),
                };
                if !has_begun {
                    if !is_after_begin {
                        continue;
                    }
                    if !is_before_end {
                        return Ok(found);
                    }
                    has_begun = true;
                }
                if offset > 0 {
                    offset -= 1;
                    continue;
                }
                if !is_before_end || found.len() >= count {
                    return Ok(found);
                }
                found.push(row);
            }
        }
        Ok(found)
    }
}

/// Whether no member can be between two bounds.
fn is_inverted(min: &LexBound, max: &LexBound) -> bool {
    match (min, max) {
        (LexBound::Greatest, _) | (_, LexBound::Least) => true,
        (LexBound::Included(min), LexBound::Included(max)) => min > max,
        (
            LexBound::Included(min) | LexBound::Excluded(min),
            LexBound::Included(max) | LexBound::Excluded(max),
        ) => min >= max,
        _ => false,
    }
}
