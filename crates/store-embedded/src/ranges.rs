//! A set of keys, as ranges that do not touch.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::tree::Span;

/// Estimated memory of a range, in bytes. Most keys are short.
pub(super) const RANGE_BYTES: usize = 224;

type Key = Arc<[u8]>;

/// A range before a change. `None` if no range began there.
pub(super) type Before = (Key, Option<Key>);

/// A set of keys. A clone shares its memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranges {
    /// The end of each range by its beginning.
    ends: OrdMap<Key, Key>,
}

impl Ranges {
    /// The keys of a span.
    pub(super) fn of(span: Span<'_>) -> Self {
        Self {
            ends: OrdMap::unit(span.begin.into(), span.end.into()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of ranges.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Beginnings and ends, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Span<'_>> {
        self.ends.iter().map(|(begin, end)| Span { begin, end })
    }

    /// The range with this key.
    pub(super) fn around(&self, key: &[u8]) -> Option<Span<'_>> {
        let (begin, end) = self.ends.get_prev(key)?;
        (**end > *key).then_some(Span { begin, end })
    }

    /// The range that has the keys right before `end`.
    pub(super) fn around_before(&self, end: &[u8]) -> Option<Span<'_>> {
        let found = self.last_before(end)?;
        (*found.end >= *end).then_some(found)
    }

    /// The last range that begins before `key`.
    pub(super) fn last_before(&self, key: &[u8]) -> Option<Span<'_>> {
        let mut found = self.ends.get_prev(key)?;
        if **found.0 == *key {
            let before = (Bound::Unbounded, Bound::Excluded(key));
            found = self.ends.range::<_, [u8]>(before).next_back()?;
        }
        let (begin, end) = found;
        Some(Span { begin, end })
    }

    /// The first range that begins at or after `key`.
    pub(super) fn first_from(&self, key: &[u8]) -> Option<Span<'_>> {
        let (begin, end) = self.ends.get_next(key)?;
        Some(Span { begin, end })
    }

    /// Whether all keys of a span are in the set.
    pub(super) fn has_all(&self, span: Span<'_>) -> bool {
        let around = self.around(span.begin);
        around.is_some_and(|around| around.end >= span.end)
    }

    /// Adds the keys of a span. `log` receives each changed range as it was.
    pub(super) fn add(&mut self, span: Span<'_>, mut log: impl FnMut(Before)) {
        let Span { begin, end } = span;
        if begin >= end || self.has_all(span) {
            return;
        }
        if let Some(last) = self.last_before(begin)
            && last.end == begin
            && self.first_from(begin).is_none_or(|next| next.begin > end)
        {
            // A consecutive key only extends the last range.
            let last: Key = last.begin.into();
            self.set(last, Some(end.into()), &mut log);
            return;
        }
        let mut begin: Key = begin.into();
        let mut end: Key = end.into();
        while let Some(touching) = self.touching(&begin, &end) {
            let (other_begin, other_end): (Key, Key) = touching;
            self.set(other_begin.clone(), None, &mut log);
            begin = begin.min(other_begin);
            end = end.max(other_end);
        }
        self.set(begin, Some(end), &mut log);
    }

    /// The last range with keys in a span or right next to it.
    fn touching(&self, begin: &[u8], end: &[u8]) -> Option<(Key, Key)> {
        let (other_begin, other_end) = self.ends.get_prev(end)?;
        (**other_end >= *begin).then(|| (other_begin.clone(), other_end.clone()))
    }

    /// Removes the keys of a span.
    pub(super) fn remove(&mut self, span: Span<'_>) {
        while span.begin < span.end
            && let Some(last) = self.last_before(span.end)
            && last.end > span.begin
        {
            let (begin, end): (Key, Key) = (last.begin.into(), last.end.into());
            self.ends.remove(&begin);
            if *end > *span.end {
                self.ends.insert(span.end.into(), end);
            }
            if *begin < *span.begin {
                self.ends.insert(begin, span.begin.into());
            }
        }
    }

    /// Undoes a change.
    pub(super) fn restore(&mut self, (begin, end): Before) {
        self.set(begin, end, &mut |_| {});
    }

    fn set(&mut self, begin: Key, end: Option<Key>, log: &mut impl FnMut(Before)) {
        let old = match end {
            Some(end) => self.ends.insert(begin.clone(), end),
            None => self.ends.remove(&begin),
        };
        log((begin, old));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> [u8; 1] {
        [number]
    }

    /// Ranges between keys of one byte, and the numbers of those keys.
    fn assert_is(ranges: &Ranges, model: &BTreeSet<u8>) {
        for number in 0..32 {
            let begin = key(number);
            let is_in = model.contains(&number);
            assert_eq!(
                ranges.around(&begin).is_some(),
                is_in,
                "{number} {ranges:?}"
            );
            let end = key(number + 1);
            assert_eq!(
                ranges.around_before(&end).is_some(),
                is_in,
                "{number} {ranges:?}"
            );
        }
        let all: Vec<Span<'_>> = ranges.iter().collect();
        let do_not_touch = all.windows(2).all(|two| two[0].end < two[1].begin);
        assert!(
            do_not_touch && all.iter().all(|one| one.begin < one.end),
            "{ranges:?}"
        );
    }

    proptest! {
        #[test]
        fn they_are_a_set_of_keys(steps in prop::collection::vec((0_u8..30, 0_u8..8, 0_u8..4), 1..60)) {
            let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
            let mut logs: Vec<(Vec<Before>, Ranges)> = Vec::new();
            for (begin, length, kind) in steps {
                let end = (begin + length).min(31);
                let (first, last) = (key(begin), key(end));
                let span = Span { begin: &first, end: &last };
                let numbers: BTreeSet<u8> = (begin..end).collect();
                if !numbers.is_empty() {
                    prop_assert_eq!(ranges.has_all(span), numbers.is_subset(&model));
                }
                if kind == 0 {
                    ranges.remove(span);
                    model.retain(|number| !numbers.contains(number));
                    logs.clear();
                } else {
                    let before = ranges.clone();
                    let mut log = Vec::new();
                    ranges.add(span, |one| log.push(one));
                    logs.push((log, before));
                    model.extend(numbers);
                }
                assert_is(&ranges, &model);
            }
            while let Some((log, before)) = logs.pop() {
                for one in log.into_iter().rev() {
                    ranges.restore(one);
                }
                prop_assert!(ranges.iter().map(|one| (one.begin, one.end)).eq(before.iter().map(|one| (one.begin, one.end))));
            }
        }
    }

    #[test]
    fn one_key_after_another_stays_one_range() {
        let mut ranges = Ranges::default();
        for number in [2_u8, 0, 1] {
            let end = key(number + 1);
            ranges.add(
                Span {
                    begin: &key(number),
                    end: &end,
                },
                |_| {},
            );
        }
        let all: Vec<_> = ranges
            .iter()
            .map(|one| (one.begin.to_vec(), one.end.to_vec()))
            .collect();
        assert_eq!(all, [(vec![0], vec![3])]);
    }
}
