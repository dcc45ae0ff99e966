//! Sorted sets: a score index that gives the order, and a member index that gives the score.
//!
//! A member is `(…, score, member) = ""` in the score index and `(…, hash, member) = score` in the
//! member index. A long member is in the score index by its first bytes and a label, with its full
//! bytes as the row's value, and in the member index by its digest. The order of keys is Redis's
//! order in both cases: score, then bytes.
//!
//! ZADD reads only the rows of its members, so it conflicts only with changes of the same members.
//! A pop conflicts with changes of the members that it took, and with new members that would have
//! been popped before them.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::keyspace::handle::{Value, ValueMut};

mod add;
mod algebra;
pub mod commands;
pub mod geo;
mod kind;
mod lex;
mod members;
mod range;
mod remove;
#[cfg(test)]
mod tests;

pub use add::{AddOptions, AddOutcome, store};
pub use algebra::{Aggregate, Operand};
pub use kind::KIND;
pub use lex::LexBound;
pub use range::{ScoreBound, Selection, SortedRange};

/// The type of sorted sets.
pub enum SortedSetType {}

/// A sorted set, for reading.
pub type SortedSet<'c, 't> = Value<'c, 't, SortedSetType>;

/// A sorted set, for writing.
pub type SortedSetMut<'c, 't> = ValueMut<'c, 't, SortedSetType>;

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

/// One of the two ends of a sorted set or a priority queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The lowest score or priority.
    Min,
    /// The highest score or priority.
    Max,
}
