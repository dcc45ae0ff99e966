//! Sets of keys as ranges: what a transaction conflicts on, and what it has cleared. Also their
//! sizes in a commit.
//!
//! Each pop of a batch asks for a conflict from the queue's head to the popped element.
//! FoundationDB's resolvers check each range of a commit, so these ranges should be joined.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Ranges of keys. Ranges that touch are joined.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// Ends by beginnings. No two ranges touch.
    ranges: BTreeMap<Vec<u8>, Vec<u8>>,
    bytes: usize,
}

/// What a change of a [`Coverage`] replaced.
#[derive(Debug)]
pub(super) struct Replaced {
    begin: Vec<u8>,
    /// The previous end of the range that begins there. `None` if there was no range.
    end: Option<Vec<u8>>,
}

impl Replaced {
    pub(super) fn new(begin: &[u8], end: Option<&[u8]>) -> Self {
        Self {
            begin: begin.to_vec(),
            end: end.map(<[u8]>::to_vec),
        }
    }
}

impl Coverage {
    /// Adds `begin..end`.
    pub(super) fn add(&mut self, begin: &[u8], end: &[u8]) {
        self.add_logged(begin, end, |_, _| {});
    }

    /// Adds `begin..end`. Calls `log` for each range that changes, with its beginning and its
    /// previous end, if it existed (see [`Replaced`]).
    pub(super) fn add_logged(
        &mut self,
        begin: &[u8],
        end: &[u8],
        mut log: impl FnMut(&[u8], Option<&[u8]>),
    ) {
        if self.covers(begin, end) {
            return;
        }
        // From the last to the first. Only the last may reach further than `end`.
        let mut last: Option<(Vec<u8>, Vec<u8>)> = None;
        while let Some(other) = self.last_begin_in(begin, end) {
            if let Some(other_end) = self.ranges.remove(&other) {
                log(&other, Some(&other_end));
                self.bytes -= conflict_bytes(&other, &other_end);
                last.get_or_insert((other, other_end));
            }
        }
        let (mut joined_begin, mut joined_end) = last.unwrap_or_default();
        if joined_end.as_slice() < end {
            end.clone_into(&mut joined_end);
        }
        let before = self.ranges.range_mut::<[u8], _>(up_to(begin)).next_back();
        if let Some((its_begin, its_end)) =
            before.filter(|(_, its_end)| its_end.as_slice() >= begin)
        {
            log(its_begin, Some(its_end));
            self.bytes = self.bytes - its_end.len() + joined_end.len();
            *its_end = joined_end;
            return;
        }
        log(begin, None);
        self.bytes += conflict_bytes(begin, &joined_end);
        begin.clone_into(&mut joined_begin);
        self.ranges.insert(joined_begin, joined_end);
    }

    /// Undoes one change. Changes are undone in reverse order.
    pub(super) fn restore(&mut self, replaced: Replaced) {
        let Replaced { begin, end } = replaced;
        if let Some(now) = self.ranges.remove(&begin) {
            self.bytes -= conflict_bytes(&begin, &now);
        }
        if let Some(end) = end {
            self.bytes += conflict_bytes(&begin, &end);
            self.ranges.insert(begin, end);
        }
    }

    fn last_begin_in(&self, begin: &[u8], end: &[u8]) -> Option<Vec<u8>> {
        let inside = (Bound::Excluded(begin), Bound::Included(end));
        let last = self.ranges.range::<[u8], _>(inside).next_back();
        last.map(|(begin, _)| begin.clone())
    }

    /// The end of the range that `key` is in.
    pub(super) fn end_of(&self, key: &[u8]) -> Option<&[u8]> {
        let (_, end) = self.ranges.range::<[u8], _>(up_to(key)).next_back()?;
        (end.as_slice() > key).then_some(end)
    }

    /// Whether it contains all of `begin..end`.
    pub(super) fn covers(&self, begin: &[u8], end: &[u8]) -> bool {
        begin >= end || self.end_of(begin).is_some_and(|reached| reached >= end)
    }

    /// Whether it contains `key`.
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.end_of(key).is_some()
    }

    /// The ranges that overlap `begin..end`, the last first.
    pub(super) fn overlapping(
        &self,
        begin: &[u8],
        end: &[u8],
    ) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.ranges
            .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(end)))
            .rev()
            .take_while(move |(_, its_end)| its_end.as_slice() > begin)
            .map(|(begin, end)| (begin.as_slice(), end.as_slice()))
    }

    /// The ranges in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let ranges = self.ranges.iter();
        ranges.map(|(begin, end)| (begin.as_slice(), end.as_slice()))
    }

    /// Their size in a commit.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn up_to(key: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Included(key))
}

/// Bytes that FoundationDB adds for a mutation or a conflict range.
const OVERHEAD_BYTES: usize = 32;

/// Bytes of a set, or of an atomic operation. The key counts once in the mutation and twice in the
/// write conflict range.
pub fn set_bytes(key: &[u8], value_bytes: usize) -> usize {
    3 * key.len() + value_bytes + OVERHEAD_BYTES
}

/// Bytes of a clear of one key.
pub fn clear_bytes(key: &[u8]) -> usize {
    4 * key.len() + OVERHEAD_BYTES
}

/// Bytes of a conflict range. A clear of a range counts twice as much.
pub fn conflict_bytes(begin: &[u8], end: &[u8]) -> usize {
    begin.len() + end.len() + OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use quoin_base::random::{Random, SeededRandom};

    #[test]
    fn it_holds_what_was_added_in_ranges_that_do_not_touch() {
        for seed in 0..200 {
            let random = SeededRandom::new(seed);
            let mut coverage = Coverage::default();
            let mut model = BTreeSet::new();
            for _ in 0..60 {
                let begin = random.below(80) as u8;
                let end = begin.saturating_add(random.below(12) as u8);
                model.extend(begin..end);
                coverage.add(&[begin], &[end]);
                let keys = coverage.iter().flat_map(|(begin, end)| begin[0]..end[0]);
                assert!(keys.eq(model.iter().copied()), "seed {seed}");
                let ranges: Vec<_> = coverage.iter().collect();
                assert!(ranges.windows(2).all(|two| two[0].1 < two[1].0));
                let bytes = ranges.iter().map(|(begin, end)| conflict_bytes(begin, end));
                assert_eq!(coverage.bytes(), bytes.sum::<usize>());
                let (from, to) = (random.below(80) as u8, random.below(80) as u8);
                assert_eq!(coverage.contains(&[from]), model.contains(&from));
                if from < to {
                    let (first, last) = ([from], [to]);
                    let inside: BTreeSet<u8> = coverage
                        .overlapping(&first, &last)
                        .flat_map(|(begin, end)| begin[0].max(from)..end[0].min(to))
                        .collect();
                    assert!(inside.iter().eq(model.range(from..to)), "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn additions_are_undone_the_last_first() {
        for seed in 0..200 {
            let random = SeededRandom::new(seed);
            let mut coverage = Coverage::default();
            let mut steps = Vec::new();
            for _ in 0..40 {
                let begin = random.below(80) as u8;
                let end = begin.saturating_add(random.below(12) as u8);
                let mut log = Vec::new();
                let before = (coverage.ranges.clone(), coverage.bytes());
                coverage.add_logged(&[begin], &[end], |begin, end| {
                    log.push(Replaced::new(begin, end));
                });
                steps.push((before, log));
            }
            for (before, log) in steps.into_iter().rev() {
                log.into_iter().rev().for_each(|one| coverage.restore(one));
                let now = (coverage.ranges.clone(), coverage.bytes());
                assert_eq!(now, before, "seed {seed}");
            }
        }
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let mut coverage = Coverage::default();
        for key in 0..100_u8 {
            coverage.add(&[key], &[key + 1]);
        }
        assert_eq!(coverage.iter().count(), 1);
    }
}
