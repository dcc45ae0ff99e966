//! Redis's `pqsort`, a quicksort that sorts only the first elements (Bentley and McIlroy,
//! "Engineering a Sort Function", 1993).
//!
//! Clients see the order of members that are equally far away. Redis sorts all found members with a
//! stable sort. If COUNT wants fewer, it uses `pqsort`, which is not stable.

use std::cmp::Ordering;

/// The most items that are sorted by insertion.
const INSERTION_MAX: usize = 6;
/// The fewest items for which the pivot is the median of nine instead of three.
const NINE_MIN: usize = 41;

/// Sorts the first `wanted` items. The order of the others is a result of that work.
pub(super) fn sort_first<T>(items: &mut [T], wanted: usize, compare: impl Fn(&T, &T) -> Ordering) {
    if wanted >= items.len() {
        items.sort_by(compare);
        return;
    }
    let mut parts = vec![(items, wanted)];
    while let Some((items, wanted)) = parts.pop() {
        let part = Part {
            items,
            compare: &compare,
        };
        if part.items.len() <= INSERTION_MAX {
            part.insertion_sort();
            continue;
        }
        let (less, greater) = part.split();
        let greater_wanted = wanted.saturating_sub(less.1);
        parts.push((less.0, wanted));
        if greater_wanted > 0 {
            parts.push((greater, greater_wanted));
        }
    }
}

struct Part<'i, 'c, T, C> {
    items: &'i mut [T],
    compare: &'c C,
}

impl<'i, T, C: Fn(&T, &T) -> Ordering> Part<'i, '_, T, C> {
    fn order(&self, first: usize, second: usize) -> Ordering {
        match (self.items.get(first), self.items.get(second)) {
            (Some(first), Some(second)) => (self.compare)(first, second),
            _ => Ordering::Equal,
        }
    }

    fn insertion_sort(self) {
        for next in 1..self.items.len() {
            let mut at = next;
            while at > 0 && self.order(at - 1, at).is_gt() {
                self.items.swap(at, at - 1);
                at -= 1;
            }
        }
    }

    /// Partitions by a pivot: smaller items first, then equal ones, then greater ones. Returns the
    /// smaller items with the index of the first greater one, and the greater items.
    fn split(mut self) -> ((&'i mut [T], usize), &'i mut [T]) {
        let length = self.items.len();
        let pivot = self.pivot();
        self.items.swap(0, pivot);
        // Equal items are collected at both ends: before `first_other` and after `last_other`.
        let (mut first_other, mut last_other) = (1, length - 1);
        let (mut low, mut high) = (1, length - 1);
        loop {
            while low <= high {
                match self.order(low, 0) {
                    Ordering::Greater => break,
                    Ordering::Equal => {
                        self.items.swap(first_other, low);
                        first_other += 1;
                    }
                    Ordering::Less => {}
                }
                low += 1;
            }
            while low <= high {
                match self.order(high, 0) {
                    Ordering::Less => break,
                    Ordering::Equal => {
                        self.items.swap(high, last_other);
                        last_other -= 1;
                    }
                    Ordering::Greater => {}
                }
                high -= 1;
            }
            if low > high {
                break;
            }
            self.items.swap(low, high);
            low += 1;
            high -= 1;
        }
        let (less, greater) = (low - first_other, last_other - high);
        let equal_before = first_other.min(less);
        self.swap_runs(0, low - equal_before, equal_before);
        let equal_after = greater.min(length - 1 - last_other);
        self.swap_runs(low, length - equal_after, equal_after);
        let greater_from = length - greater;
        let (rest, greater) = self.items.split_at_mut(greater_from);
        let (less, _) = rest.split_at_mut(less);
        ((less, greater_from), greater)
    }

    fn swap_runs(&mut self, first: usize, second: usize, length: usize) {
        for at in 0..length {
            self.items.swap(first + at, second + at);
        }
    }

    fn pivot(&self) -> usize {
        let length = self.items.len();
        let middle = length / 2;
        let last = length - 1;
        if length == INSERTION_MAX + 1 {
            return middle;
        }
        if length < NINE_MIN {
            return self.middle_of(0, middle, last);
        }
        let step = length / 8;
        self.middle_of(
            self.middle_of(0, step, 2 * step),
            self.middle_of(middle - step, middle, middle + step),
            self.middle_of(last - 2 * step, last - step, last),
        )
    }

    fn middle_of(&self, first: usize, second: usize, third: usize) -> usize {
        if self.order(first, second).is_lt() {
            if self.order(second, third).is_lt() {
                second
            } else if self.order(first, third).is_lt() {
                third
            } else {
                first
            }
        } else if self.order(second, third).is_gt() {
            second
        } else if self.order(first, third).is_lt() {
            first
        } else {
            third
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_are_those_of_a_whole_sort(
            items in prop::collection::vec(0_u8..50, 0..200),
            wanted in 1_usize..210,
        ) {
            let mut sorted = items.clone();
            sorted.sort_unstable();
            let mut found = items.clone();
            sort_first(&mut found, wanted, u8::cmp);
            let wanted = wanted.min(items.len());
            prop_assert_eq!(&found[..wanted], &sorted[..wanted]);
            found.sort_unstable();
            prop_assert_eq!(found, sorted);
        }
    }
}
