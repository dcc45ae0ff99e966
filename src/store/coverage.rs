//! Which keys a transaction conflicts on already.
//!
//! A batch that pops one element after the other asks for a conflict from the queue's head to
//! the element each time. FoundationDB's client goes through all that the transaction has written
//! in a range whenever a conflict is added to it, so adding the same stretch again and again
//! takes quadratic time. [`Coverage`] says what of a range is new.

use std::collections::BTreeMap;
use std::ops::Bound;

/// A half-open range of keys.
type Stretch = (Vec<u8>, Vec<u8>);

/// Ranges of keys, joined where they touch.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// Ends by begins; none touch.
    ranges: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Coverage {
    /// Adds `begin..end` and answers the parts of it that were not in here yet, in order.
    pub(super) fn add(&mut self, begin: &[u8], end: &[u8]) -> Vec<Stretch> {
        if begin >= end {
            return Vec::new();
        }
        let up_to_end = (Bound::Unbounded, Bound::Included(end));
        let touched: Vec<Stretch> = self
            .ranges
            .range::<[u8], _>(up_to_end)
            .rev()
            .take_while(|(_, other_end)| other_end.as_slice() >= begin)
            .map(|(begin, end)| (begin.clone(), end.clone()))
            .collect();
        let mut fresh = Vec::new();
        let mut joined: Stretch = (begin.to_vec(), end.to_vec());
        // What is still to be looked at lies in front of this.
        let mut open_end = end.to_vec();
        for (other_begin, other_end) in touched {
            self.ranges.remove(&other_begin);
            let gap_begin = other_end.as_slice().max(begin);
            if gap_begin < open_end.as_slice() {
                fresh.push((gap_begin.to_vec(), open_end));
            }
            joined.0 = joined.0.min(other_begin.clone());
            joined.1 = joined.1.max(other_end);
            open_end = other_begin;
        }
        if begin < open_end.as_slice() {
            fresh.push((begin.to_vec(), open_end));
        }
        fresh.reverse();
        self.ranges.insert(joined.0, joined.1);
        fresh
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::random::{Random, SeededRandom};

    #[test]
    fn only_what_is_new_is_answered_and_nothing_is_forgotten() {
        for seed in 0..200 {
            let random = SeededRandom::new(seed);
            let mut coverage = Coverage::default();
            let mut model = BTreeSet::new();
            for _ in 0..60 {
                let begin = random.below(40) as u8;
                let end = begin.saturating_add(random.below(12) as u8);
                let expected: BTreeSet<u8> =
                    (begin..end).filter(|key| model.insert(*key)).collect();
                let fresh = coverage.add(&[begin], &[end]);
                let answered: Vec<u8> = fresh
                    .iter()
                    .flat_map(|(begin, end)| begin[0]..end[0])
                    .collect();
                assert_eq!(answered, Vec::from_iter(expected), "seed {seed}");
            }
        }
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let mut coverage = Coverage::default();
        for key in 0..100_u8 {
            coverage.add(&[key], &[key + 1]);
        }
        assert_eq!(coverage.ranges.len(), 1);
    }
}
