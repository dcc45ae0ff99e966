//! Union, intersection and difference.

use std::collections::HashMap;

use bytes::Bytes;

use crate::fields::EntryPages;
use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::ReadContext;
use quoin_layout::{Entry, Member, ValueType};
use quoin_store::StoreError;

use super::{ScoredMember, score_rows};

/// The score of members of a set, which has none.
const SCORE_OF_SETS: f64 = 1.0;

/// How the scores of a member that is in several sets become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

impl Aggregate {
    /// Redis's `zunionInterAggregate`: the sum of both infinities is 0.
    fn apply(self, score: f64, other: f64) -> f64 {
        match self {
            Aggregate::Sum => zero_for_nan(score + other),
            Aggregate::Min if other < score => other,
            Aggregate::Max if other > score => other,
            Aggregate::Min | Aggregate::Max => score,
        }
    }
}

fn zero_for_nan(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// One of the sets of a union or intersection.
#[derive(Debug, Clone)]
pub struct Operand {
    /// The set or sorted set; `None` is an empty one.
    pub key: Option<OpenKey>,
    /// Its scores are multiplied by this.
    pub weight: f64,
}

/// The members of an operand, a page at a time.
enum MemberPages<'c, 't> {
    /// Of a sorted set, in its order.
    Scored(&'c ReadContext<'t>, &'c OpenKey, Pages<'c, 't>),
    /// Of a set.
    Plain(EntryPages<'c, 't>),
}

impl MemberPages<'_, '_> {
    async fn next(&mut self) -> Result<Option<Vec<ScoredMember>>, StoreError> {
        match self {
            MemberPages::Scored(context, key, pages) => match pages.next().await? {
                Some(rows) => Ok(Some(context.zset_scored_members(key, &rows).await?)),
                None => Ok(None),
            },
            MemberPages::Plain(pages) => {
                let scored = |Entry { name: member, .. }| ScoredMember {
                    member,
                    score: SCORE_OF_SETS,
                };
                let page = pages.next().await?;
                Ok(page.map(|page| page.into_iter().map(scored).collect()))
            }
        }
    }
}

impl ReadContext<'_> {
    /// Sets from the smallest to the largest, with their lengths. Redis adds scores up in this
    /// order, which sums of fractions show.
    async fn zset_by_length(
        &self,
        operands: &[Operand],
    ) -> Result<Vec<(i64, Operand)>, StoreError> {
        let mut sorted = Vec::with_capacity(operands.len());
        for operand in operands {
            let length = match &operand.key {
                Some(key) => self.length(key, self.isolation).await?,
                None => 0,
            };
            sorted.push((length, operand.clone()));
        }
        sorted.sort_by_key(|(length, _)| *length);
        Ok(sorted)
    }

    fn member_pages<'c>(&'c self, key: &'c OpenKey) -> Result<MemberPages<'c, 'c>, StoreError> {
        if key.meta.value_type == ValueType::Set {
            return Ok(MemberPages::Plain(self.fields(key)?));
        }
        let (range, _) = score_rows(self, key.data());
        let pages = Pages::new(self, range, false, 0);
        Ok(MemberPages::Scored(self, key, pages))
    }

    /// The scores that members have in an operand.
    async fn scores_in(
        &self,
        key: &OpenKey,
        members: &[ScoredMember],
    ) -> Result<Vec<Option<f64>>, StoreError> {
        if key.meta.value_type == ValueType::Set {
            let names: Vec<Bytes> = members.iter().map(|one| one.member.clone()).collect();
            let found = self.fields_exist(key, &names).await?.into_iter();
            return Ok(found.map(|there| there.then_some(SCORE_OF_SETS)).collect());
        }
        let forms: Vec<Member> = members.iter().map(|one| Member::new(&one.member)).collect();
        let entries = self.zset_entries(key, &forms).await?.into_iter();
        Ok(entries.map(|entry| Some(entry?.score)).collect())
    }

    /// The members that any of the sets has, in Redis's order.
    pub async fn zset_union(
        &self,
        operands: &[Operand],
        aggregate: Aggregate,
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let mut scores: HashMap<Bytes, f64> = HashMap::new();
        for (_, operand) in self.zset_by_length(operands).await? {
            let Some(key) = &operand.key else { continue };
            let mut pages = self.member_pages(key)?;
            while let Some(page) = pages.next().await? {
                for one in page {
                    let score = zero_for_nan(operand.weight * one.score);
                    scores
                        .entry(one.member)
                        .and_modify(|known| *known = aggregate.apply(*known, score))
                        .or_insert(score);
                }
            }
        }
        Ok(in_order(
            scores
                .into_iter()
                .map(|(member, score)| ScoredMember { member, score })
                .collect(),
        ))
    }

    /// The members that all of the sets have, in Redis's order.
    pub async fn zset_intersection(
        &self,
        operands: &[Operand],
        aggregate: Aggregate,
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let mut found = Vec::new();
        self.zset_intersect(operands, |one, others| {
            let mut score = 0.0;
            for (at, (operand, other)) in others.enumerate() {
                if at == 0 {
                    score = zero_for_nan(operand.weight * other);
                } else {
                    score = aggregate.apply(score, other * operand.weight);
                }
            }
            found.push(ScoredMember {
                member: one.member,
                score,
            });
            true
        })
        .await?;
        Ok(in_order(found))
    }

    /// How many members all of the sets have; stops counting at `limit`.
    pub async fn zset_intersection_length(
        &self,
        operands: &[Operand],
        limit: Option<usize>,
    ) -> Result<usize, StoreError> {
        let mut count = 0;
        self.zset_intersect(operands, |_, _| {
            count += 1;
            limit.is_none_or(|limit| count < limit)
        })
        .await?;
        Ok(count)
    }

    /// Goes through the smallest set and hands over each member that the others have too, with
    /// its score in each set, until `visit` says that it is enough.
    async fn zset_intersect(
        &self,
        operands: &[Operand],
        mut visit: impl FnMut(ScoredMember, &mut dyn Iterator<Item = (&Operand, f64)>) -> bool,
    ) -> Result<(), StoreError> {
        let sorted = self.zset_by_length(operands).await?;
        let Some(((_, smallest), others)) = sorted.split_first() else {
            return Ok(());
        };
        let Some(smallest_key) = &smallest.key else {
            return Ok(());
        };
        let mut other_keys = Vec::with_capacity(others.len());
        for (_, other) in others {
            match &other.key {
                Some(key) => other_keys.push((key, other)),
                None => return Ok(()),
            }
        }
        let mut pages = self.member_pages(smallest_key)?;
        while let Some(members) = pages.next().await? {
            let mut scores = Vec::with_capacity(other_keys.len());
            for (key, _) in &other_keys {
                scores.push(self.scores_in(key, &members).await?.into_iter());
            }
            for one in members {
                // Each set's column is advanced, whether the member is in the others or not.
                let row: Vec<Option<f64>> = scores
                    .iter_mut()
                    .map(|column| column.next().flatten())
                    .collect();
                if row.iter().any(Option::is_none) {
                    continue;
                }
                let score = one.score;
                let mut weighted = std::iter::once((smallest, score)).chain(
                    other_keys
                        .iter()
                        .zip(row)
                        .filter_map(|((_, operand), score)| Some((*operand, score?))),
                );
                if !visit(one, &mut weighted) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The members of the first set that none of the others has, in Redis's order.
    pub async fn zset_difference(
        &self,
        first: Option<&OpenKey>,
        others: &[OpenKey],
    ) -> Result<Vec<ScoredMember>, StoreError> {
        let mut found = Vec::new();
        let Some(first) = first else {
            return Ok(found);
        };
        let mut pages = self.member_pages(first)?;
        while let Some(mut members) = pages.next().await? {
            for other in others {
                let mut scores = self.scores_in(other, &members).await?.into_iter();
                members.retain(|_| scores.next() == Some(None));
            }
            found.append(&mut members);
        }
        Ok(match first.meta.value_type {
            ValueType::Set => in_order(found),
            _ => found,
        })
    }
}

fn in_order(mut members: Vec<ScoredMember>) -> Vec<ScoredMember> {
    members.sort_unstable_by(ScoredMember::order);
    members
}
