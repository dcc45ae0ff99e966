//! Sorted sets: a score index that gives the order, and a member index that gives the score.
//!
//! A member is `(…, score, member) = ""` in the one and `(…, hash, member) = score` in the other.
//! A long member stands in the score index by its first bytes and a label, with its full bytes as
//! the row's value, and in the member index by its digest. The order of keys is Redis's order in
//! both cases: score, then bytes.
//!
//! ZADD reads only the rows of its members, so that it conflicts with nothing but changes of the
//! same members; a pop conflicts with what it took and what would have come before it.

pub mod commands;
pub mod geo_commands;

use std::cmp::Ordering;

use bytes::Bytes;

use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{DecodeError, Id, KeyRange, Member, MemberEntry, PoppedElement};
use quoin_store::{Isolation, KeyValue, StoreError};

use crate::keyspace::key::OpenKey;
use crate::unit::context::ReadContext;

pub mod algebra;
mod encoding;
pub mod geo;
mod kind;
mod lex;
pub mod pop;
mod random;
pub mod range;
mod rank;
mod scan;
pub mod update;

pub use algebra::{Aggregate, Operand};
pub use kind::KIND;
pub use lex::LexBound;
pub use pop::Extreme;
pub use range::{ScoreBound, Selection, SortedRange};
pub use update::{AddOptions, AddOutcome};

/// A member with its score.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredMember {
    /// The member's bytes.
    pub member: Bytes,
    /// Its score, never NaN.
    pub score: f64,
}

impl ScoredMember {
    /// Redis's order: by score, then by bytes.
    pub fn order(&self, other: &Self) -> Ordering {
        self.score
            .partial_cmp(&other.score)
            .unwrap_or(Ordering::Equal)
            .then_with(|| self.member.cmp(&other.member))
    }
}

/// The rows of the score index, and the length of the prefix that they share.
fn score_rows(context: &ReadContext<'_>, data: Id) -> (KeyRange, usize) {
    let prefix = context.layout().scores_prefix(data);
    (KeyRange::children(&prefix), prefix.len())
}

impl ReadContext<'_> {
    /// The member's score.
    pub async fn zset_score(
        &self,
        key: &OpenKey,
        member: &Bytes,
    ) -> Result<Option<f64>, StoreError> {
        let entry = self.zset_entry(key, &Member::new(member)).await?;
        Ok(entry.map(|entry| entry.score))
    }

    /// The scores of several members, read at once.
    pub async fn zset_scores(
        &self,
        key: &OpenKey,
        members: &[Bytes],
    ) -> Result<Vec<Option<f64>>, StoreError> {
        let members: Vec<Member> = members.iter().map(Member::new).collect();
        let entries = self.zset_entries(key, &members).await?;
        Ok(entries
            .into_iter()
            .map(|entry| entry.map(|entry| entry.score))
            .collect())
    }

    async fn zset_entry(
        &self,
        key: &OpenKey,
        member: &Member,
    ) -> Result<Option<MemberEntry>, StoreError> {
        let member_key = self.layout().member_key(key.data(), member);
        match self.transaction.get(&member_key, self.isolation).await? {
            Some(value) => Ok(Some(MemberEntry::decode(&value)?)),
            None => Ok(None),
        }
    }

    /// The member index's entries of several members; their round trips overlap.
    async fn zset_entries(
        &self,
        key: &OpenKey,
        members: &[Member],
    ) -> Result<Vec<Option<MemberEntry>>, StoreError> {
        self.each(members, RANGE_PAGE_ROWS, async |member| {
            self.zset_entry(key, member).await
        })
        .await
    }

    /// What a row of the score index says.
    async fn zset_scored_member(
        &self,
        data: Id,
        prefix_length: usize,
        row: &KeyValue,
    ) -> Result<ScoredMember, StoreError> {
        let entry = self.layout().read_score_key(prefix_length, &row.key)?;
        let member = match entry.label {
            None => entry.prefix,
            Some(_) => self.load_value(data, &row.value).await?,
        };
        Ok(ScoredMember {
            member,
            score: entry.score,
        })
    }

    async fn zset_scored_members(
        &self,
        key: &OpenKey,
        rows: &[KeyValue],
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let (_, prefix_length) = score_rows(self, key.data());
        let mut members = Vec::with_capacity(rows.len());
        for row in rows {
            members.push(
                self.zset_scored_member(key.data(), prefix_length, row)
                    .await?,
            );
        }
        Ok(members)
    }

    /// What a row of the member index says.
    async fn zset_indexed_member(
        &self,
        data: Id,
        row: &KeyValue,
    ) -> Result<ScoredMember, StoreError> {
        let (_, inline) = self.layout().read_member_key(data, &row.key)?;
        let entry = MemberEntry::decode(&row.value)?;
        let member = match (inline, entry.long) {
            (Some(member), None) => member,
            (None, Some(place)) => {
                let score_key =
                    self.layout()
                        .score_key(data, entry.score, &place.prefix, Some(&place.label));
                // The row of the member index is what conflicts.
                let value = self
                    .transaction
                    .get(&score_key, Isolation::Snapshot)
                    .await?;
                let value = value.ok_or(DecodeError("long member is not in the score index"))?;
                self.load_value(data, &value).await?
            }
            _ => return Err(DecodeError("member index disagrees on a long member").into()),
        };
        let score = entry.score;
        Ok(ScoredMember { member, score })
    }
}

fn of_member(member: ScoredMember) -> PoppedElement {
    PoppedElement {
        name: member.member,
        value: Bytes::copy_from_slice(&member.score.to_be_bytes()),
    }
}

/// A member of a sorted set as it was when it was popped.
///
/// # Errors
/// Where the value is no score.
fn to_member(element: PoppedElement) -> Result<ScoredMember, DecodeError> {
    let score = <[u8; 8]>::try_from(element.value.as_ref());
    Ok(ScoredMember {
        member: element.name,
        score: f64::from_be_bytes(score.map_err(|_| DecodeError("score of a grant"))?),
    })
}
