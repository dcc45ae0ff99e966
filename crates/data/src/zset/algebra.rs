//! Union, intersection and difference of sorted sets and sets.

use std::collections::HashMap;

use bytes::Bytes;

use crate::fields::EntryPages;
use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::set::{Set, SetType};
use crate::unit::context::ReadContext;
use quoin_layout::{Entry, Member, ValueType};
use quoin_store::StoreError;

use super::{ScoredMember, SortedSet};

/// The score of the members of a set.
const SCORE_OF_SETS: f64 = 1.0;

/// How the scores of a member in several sets are combined.
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
    /// As Redis's `zunionInterAggregate`: the sum of both infinities is 0.
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
    /// The set or sorted set. `None` is an empty one.
    pub key: Option<OpenKey>,
    /// Its scores are multiplied by this.
    pub weight: f64,
}

/// A set or sorted set.
enum Source<'c, 't> {
    Scored(SortedSet<'c, 't>),
    Plain(Set<'c, 't>),
}

/// The members of a source, a page at a time.
enum MemberPages<'s, 'c, 't> {
    /// Of a sorted set, in its order.
    Scored(&'s SortedSet<'c, 't>, Pages<'c, 't>),
    /// Of a set.
    Plain(EntryPages<'c, 't, SetType>),
}

impl MemberPages<'_, '_, '_> {
    async fn next(&mut self) -> Result<Option<Vec<ScoredMember>>, StoreError> {
        match self {
            MemberPages::Scored(set, pages) => match pages.next().await? {
                Some(rows) => Ok(Some(set.scored_members(&rows).await?)),
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

impl<'c, 't> Source<'c, 't> {
    fn open(context: &'c ReadContext<'t>, key: &'c OpenKey) -> Self {
        match key.meta.value_type {
            ValueType::Set => Source::Plain(Set::open(context, key)),
            _ => Source::Scored(SortedSet::open(context, key)),
        }
    }

    fn pages(&self) -> Result<MemberPages<'_, 'c, 't>, StoreError> {
        Ok(match self {
            Source::Plain(set) => MemberPages::Plain(set.pages()?),
            Source::Scored(set) => MemberPages::Scored(set, set.score_pages(false)),
        })
    }

    /// The scores that these members have here.
    async fn scores(&self, members: &[ScoredMember]) -> Result<Vec<Option<f64>>, StoreError> {
        match self {
            Source::Plain(set) => {
                let names: Vec<Bytes> = members.iter().map(|one| one.member.clone()).collect();
                let found = set.contains_each(&names).await?.into_iter();
                Ok(found.map(|there| there.then_some(SCORE_OF_SETS)).collect())
            }
            Source::Scored(set) => {
                let forms: Vec<Member> =
                    members.iter().map(|one| Member::new(&one.member)).collect();
                let entries = set.entries(&forms).await?.into_iter();
                Ok(entries.map(|entry| Some(entry?.score)).collect())
            }
        }
    }
}

/// The operands from the smallest to the largest. Redis adds scores in this order, which shows in
/// the sums of fractions.
async fn by_length<'o>(
    context: &ReadContext<'_>,
    operands: &'o [Operand],
) -> Result<Vec<&'o Operand>, StoreError> {
    let mut sorted = Vec::with_capacity(operands.len());
    for operand in operands {
        let length = match &operand.key {
            Some(key) => context.length(key, context.isolation).await?,
            None => 0,
        };
        sorted.push((length, operand));
    }
    sorted.sort_by_key(|(length, _)| *length);
    Ok(sorted.into_iter().map(|(_, operand)| operand).collect())
}

/// The members that any of the sets has, in Redis's order.
pub(super) async fn union(
    context: &ReadContext<'_>,
    operands: &[Operand],
    aggregate: Aggregate,
) -> Result<Vec<ScoredMember>, StoreError> {
    let mut scores: HashMap<Bytes, f64> = HashMap::new();
    for operand in by_length(context, operands).await? {
        let Some(key) = &operand.key else { continue };
        let source = Source::open(context, key);
        let mut pages = source.pages()?;
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
pub(super) async fn intersection(
    context: &ReadContext<'_>,
    operands: &[Operand],
    aggregate: Aggregate,
) -> Result<Vec<ScoredMember>, StoreError> {
    let mut found = Vec::new();
    intersect(context, operands, |one, scores| {
        let mut score = 0.0;
        for (at, (operand, other)) in scores.enumerate() {
            if at == 0 {
                score = zero_for_nan(operand.weight * other);
            } else {
                score = aggregate.apply(score, other * operand.weight);
            }
        }
        let member = one.member;
        found.push(ScoredMember { member, score });
        true
    })
    .await?;
    Ok(in_order(found))
}

/// How many members all of the sets have; stops counting at `limit`.
pub(super) async fn intersection_length(
    context: &ReadContext<'_>,
    operands: &[Operand],
    limit: Option<usize>,
) -> Result<usize, StoreError> {
    let mut count = 0;
    intersect(context, operands, |_, _| {
        count += 1;
        limit.is_none_or(|limit| count < limit)
    })
    .await?;
    Ok(count)
}

/// Reads the smallest set and passes each member that the others have too to `visit`, with its
/// score in each set, until `visit` returns that no more are wanted.
async fn intersect(
    context: &ReadContext<'_>,
    operands: &[Operand],
    mut visit: impl FnMut(ScoredMember, &mut dyn Iterator<Item = (&Operand, f64)>) -> bool,
) -> Result<(), StoreError> {
    let mut sources = Vec::with_capacity(operands.len());
    for operand in by_length(context, operands).await? {
        match &operand.key {
            Some(key) => sources.push((operand, Source::open(context, key))),
            None => return Ok(()),
        }
    }
    let Some(((smallest, source), others)) = sources.split_first() else {
        return Ok(());
    };
    let mut pages = source.pages()?;
    while let Some(members) = pages.next().await? {
        let mut scores = Vec::with_capacity(others.len());
        for (_, other) in others {
            scores.push(other.scores(&members).await?.into_iter());
        }
        for one in members {
            // Each column advances even if another set does not have the member.
            let row: Vec<Option<f64>> = scores
                .iter_mut()
                .map(|column| column.next().flatten())
                .collect();
            if row.iter().any(Option::is_none) {
                continue;
            }
            let others = others.iter().zip(row);
            let others = others.filter_map(|((operand, _), score)| Some((*operand, score?)));
            let mut weighted = std::iter::once((*smallest, one.score)).chain(others);
            if !visit(one, &mut weighted) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The members of the first set that none of the others has, in Redis's order.
pub(super) async fn difference(
    context: &ReadContext<'_>,
    first: &OpenKey,
    others: &[&OpenKey],
) -> Result<Vec<ScoredMember>, StoreError> {
    let mut found = Vec::new();
    let source = Source::open(context, first);
    let mut pages = source.pages()?;
    while let Some(mut members) = pages.next().await? {
        for other in others {
            let scores = Source::open(context, other).scores(&members).await?;
            let mut scores = scores.into_iter();
            members.retain(|_| scores.next() == Some(None));
        }
        found.append(&mut members);
    }
    Ok(match source {
        Source::Plain(_) => in_order(found),
        Source::Scored(_) => found,
    })
}

fn in_order(mut members: Vec<ScoredMember>) -> Vec<ScoredMember> {
    members.sort_unstable_by(ScoredMember::order);
    members
}
