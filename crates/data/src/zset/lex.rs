//! Ranges by bytes, which Redis defines for sets whose members all have one score.

use bytes::Bytes;

use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;
use quoin_base::limits::INLINE_NAME_BYTES_MAX;
use quoin_layout::member::indexed_prefix;
use quoin_layout::{Id, KeyRange, successor};
use quoin_store::{KeyValue, StoreError};

use super::score_rows;

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

/// Where the members between two lexicographical bounds stand.
pub(super) enum LexSpan {
    /// Nowhere.
    Empty,
    /// Side by side.
    Keys(KeyRange),
    /// Scores differ, and what a range means is not defined; Redis walks, and so do we.
    Walk,
}

impl ReadContext<'_> {
    /// Finds where the members between two bounds stand.
    pub(super) async fn zset_lex_span(
        &self,
        key: &OpenKey,
        min: &LexBound,
        max: &LexBound,
    ) -> Result<LexSpan, StoreError> {
        let (_, prefix_length) = score_rows(self, key.data());
        let first = self.zset_outermost(key, false).await?;
        let last = self.zset_outermost(key, true).await?;
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(LexSpan::Empty);
        };
        let first_score = self
            .layout()
            .read_score_key(prefix_length, &first.key)?
            .score;
        let last_score = self
            .layout()
            .read_score_key(prefix_length, &last.key)?
            .score;
        if first_score != last_score {
            let data = key.data();
            let first = self.zset_scored_member(data, prefix_length, &first).await?;
            let last = self.zset_scored_member(data, prefix_length, &last).await?;
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
                LexBound::Least => self.layout().score_bound(key.data(), first_score, false),
                LexBound::Greatest => return Ok(LexSpan::Empty),
                LexBound::Included(bytes) => {
                    self.zset_lex_place(key.data(), first_score, bytes, false)
                        .await?
                }
                LexBound::Excluded(bytes) => {
                    self.zset_lex_place(key.data(), first_score, bytes, true)
                        .await?
                }
            },
            end: match max {
                LexBound::Least => return Ok(LexSpan::Empty),
                LexBound::Greatest => self.layout().score_bound(key.data(), first_score, true),
                LexBound::Included(bytes) => {
                    self.zset_lex_place(key.data(), first_score, bytes, true)
                        .await?
                }
                LexBound::Excluded(bytes) => {
                    self.zset_lex_place(key.data(), first_score, bytes, false)
                        .await?
                }
            },
        };
        Ok(if keys.begin < keys.end {
            LexSpan::Keys(keys)
        } else {
            LexSpan::Empty
        })
    }

    async fn zset_outermost(
        &self,
        key: &OpenKey,
        reverse: bool,
    ) -> Result<Option<KeyValue>, StoreError> {
        let (range, _) = score_rows(self, key.data());
        self.outermost(&range, reverse, self.isolation).await
    }

    /// The first key of one score whose member is at least `bytes`, or greater (`above`). A
    /// bound that is longer than what keys hold is looked for among the long members that share
    /// its first bytes.
    async fn zset_lex_place(
        &self,
        data: Id,
        score: f64,
        bytes: &[u8],
        above: bool,
    ) -> Result<Vec<u8>, StoreError> {
        let prefix = indexed_prefix(bytes);
        if bytes.len() <= INLINE_NAME_BYTES_MAX {
            let place = self.layout().score_key(data, score, prefix, None);
            return Ok(if above { successor(&place) } else { place });
        }
        let group = self.layout().long_members(data, score, prefix);
        let behind = group.end.clone();
        let mut pages = Pages::new(self, group, false, 0);
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let member = self.load_value(data, &row.value).await?;
                if member > bytes || (!above && member == bytes) {
                    return Ok(row.key.to_vec());
                }
            }
        }
        Ok(behind)
    }

    /// What Redis does with a set of several scores (with its compact encoding, in which it
    /// looks at one member after the other): goes to the first member within the bound where it
    /// begins, leaves `offset` out unseen, and takes what follows until the other bound.
    pub(super) async fn zset_lex_walk(
        &self,
        key: &OpenKey,
        (min, max): (&LexBound, &LexBound),
        reverse: bool,
        mut offset: usize,
        count: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        let (range, prefix_length) = score_rows(self, key.data());
        let mut pages = Pages::new(self, range, reverse, 0);
        let mut found = Vec::new();
        let mut has_begun = false;
        while let Some(rows) = pages.next().await? {
            for row in rows {
                let one = self
                    .zset_scored_member(key.data(), prefix_length, &row)
                    .await?;
                let (is_above, is_below) =
                    (min.admits_above(&one.member), max.admits_below(&one.member));
                let (is_behind_begin, is_before_end) = if reverse {
                    (is_below, is_above)
                } else {
                    (is_above, is_below)
                };
                if !has_begun {
                    if !is_behind_begin {
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

/// Whether nothing can be between two bounds.
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
