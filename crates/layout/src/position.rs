//! Positions: the place of an element among its neighbours, with room for more elements between any two.

use foundationdb_tuple::pack_into;

use super::{DecodeError, corrupt, take};

/// Distance between the positions that an insertion creates, so that later ones fit in between by
/// halving before another level is needed.
const LEVEL_STEP: i64 = 1 << 20;

/// A place in an order, as a tuple of integers. It is compared element by element, and a prefix
/// comes before its extensions. A pushed list element is at `(index, random, sequence)`. LINSERT
/// varies or extends the positions of the neighbours. Labels of long members are positions too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub Vec<i64>);

impl Position {
    /// The place of one pushed element.
    #[cfg(feature = "testing")]
    pub fn pushed(index: i64, random: i64, sequence: i64) -> Self {
        Position(vec![index, random, sequence])
    }

    /// Appends the place of one pushed element to a key.
    pub fn pack_pushed(index: i64, random: i64, sequence: i64, key: &mut Vec<u8>) {
        pack_into(&(index, random, sequence), key);
    }

    /// The index that pushes count, from the key of an element with a prefix of this length; 0 for a
    /// position without elements.
    ///
    /// # Errors
    /// If the key holds no position.
    pub fn read_index(prefix_length: usize, key: &[u8]) -> Result<i64, DecodeError> {
        match key.get(prefix_length..) {
            Some([]) => Ok(0),
            Some(mut rest) => take(&mut rest, "position"),
            None => corrupt("list element key"),
        }
    }

    /// The position with its last number increased by `by`.
    pub fn raised_by(&self, by: usize) -> Position {
        let mut raised = self.clone();
        if let Some(last) = raised.0.last_mut() {
            *last = last.saturating_add(i64::try_from(by).unwrap_or(i64::MAX));
        }
        raised
    }

    /// Appends the position's elements to a key.
    pub fn pack_into(&self, key: &mut Vec<u8>) {
        for part in &self.0 {
            pack_into(&(*part,), key);
        }
    }

    /// Reads the rest of a key as a position.
    pub fn take_all(rest: &mut &[u8]) -> Result<Self, DecodeError> {
        let mut parts = Vec::with_capacity(3);
        while !rest.is_empty() {
            parts.push(take(rest, "position")?);
        }
        Ok(Position(parts))
    }

    /// A position strictly between two neighbours: after `before` if `after` is `None`, before
    /// `after` if `before` is `None`. `before` must be less than `after`.
    ///
    /// Repeated insertions at one side stay on one level, for up to 2^43 of them. Only alternating
    /// insertions at one spot go deeper, about a level for every twenty.
    pub fn between(before: Option<&Position>, after: Option<&Position>) -> Position {
        match (before, after) {
            (None, None) => Position(vec![0]),
            (Some(before), None) => before
                .stepped(LEVEL_STEP)
                .unwrap_or_else(|| before.below(0)),
            (None, Some(after)) => after.stepped(-LEVEL_STEP).unwrap_or_else(|| after.above()),
            (Some(before), Some(after)) => Self::between_two(before, after),
        }
    }

    fn between_two(before: &Position, after: &Position) -> Position {
        // If `after` is below `before`, one more step down from it on that level.
        let in_front_below = after
            .0
            .strip_prefix(before.0.as_slice())
            .and_then(<[i64]>::first)
            .and_then(|first| first.checked_sub(LEVEL_STEP))
            .map(|lower| before.below(lower));
        let candidates = [
            Self::halfway(before, after),
            before.stepped(LEVEL_STEP),
            after.stepped(-LEVEL_STEP),
            in_front_below,
        ];
        candidates
            .into_iter()
            .flatten()
            .find(|candidate| before < candidate && candidate < after)
            .unwrap_or_else(|| before.below(0))
    }

    /// The middle between two that differ only in their last element.
    fn halfway(before: &Position, after: &Position) -> Option<Position> {
        let (low, parent) = before.0.split_last()?;
        let (high, other_parent) = after.0.split_last()?;
        if parent != other_parent {
            return None;
        }
        let middle = ((i128::from(*low) + i128::from(*high)) >> 1) as i64;
        Some(Position(parent.to_vec()).below(middle))
    }

    /// The position with its last element changed by `by`. `None` if that overflows.
    fn stepped(&self, by: i64) -> Option<Position> {
        let (last, parent) = self.0.split_last()?;
        Some(Position(parent.to_vec()).below(last.checked_add(by)?))
    }

    /// This position with one more element. It comes after this one, and before everything that
    /// came after this one, except other extensions.
    fn below(&self, element: i64) -> Position {
        let mut parts = Vec::with_capacity(self.0.len() + 1);
        parts.extend_from_slice(&self.0);
        parts.push(element);
        Position(parts)
    }

    /// This position without its last element, which comes before it.
    fn above(&self) -> Position {
        let mut parts = self.0.clone();
        parts.pop();
        Position(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_new_position_is_strictly_between_its_neighbours(
            choices in proptest::collection::vec(any::<prop::sample::Index>(), 1..200)
        ) {
            let mut order = vec![
                Position::pushed(0, 7, 0),
                Position::pushed(0, 7, 1),
                Position::pushed(1, -3, 0),
            ];
            for choice in choices {
                let at = choice.index(order.len() + 1);
                let before = at.checked_sub(1).and_then(|i| order.get(i)).cloned();
                let after = order.get(at).cloned();
                let new = Position::between(before.as_ref(), after.as_ref());
                if let Some(before) = &before { prop_assert!(before < &new); }
                if let Some(after) = &after { prop_assert!(&new < after); }
                order.insert(at, new);
            }
        }

        #[test]
        fn key_order_is_position_order(
            a in proptest::collection::vec(any::<i64>(), 1..5),
            b in proptest::collection::vec(any::<i64>(), 1..5),
        ) {
            let (a, b) = (Position(a), Position(b));
            let (mut key_a, mut key_b) = (Vec::new(), Vec::new());
            a.pack_into(&mut key_a);
            b.pack_into(&mut key_b);
            prop_assert_eq!(a.cmp(&b), key_a.cmp(&key_b));
            prop_assert_eq!(Position::take_all(&mut key_a.as_slice()).unwrap(), a);
        }
    }

    #[test]
    fn a_thousand_insertions_on_one_side_stay_on_one_level() {
        let first = Position::pushed(0, 7, 0);
        let last = Position::pushed(0, 7, 1);
        let mut right = last.clone();
        for _ in 0..1000 {
            right = Position::between(Some(&first), Some(&right));
        }
        assert!(right.0.len() <= 4, "{right:?}");
        let mut left = first.clone();
        for _ in 0..1000 {
            left = Position::between(Some(&left), Some(&last));
        }
        assert!(left.0.len() <= 4, "{left:?}");
    }

    #[test]
    fn alternating_insertions_at_one_spot_deepen_slowly() {
        let mut left = Position::pushed(0, 7, 0);
        let mut right = Position::pushed(0, 7, 1);
        for turn in 0..400 {
            let new = Position::between(Some(&left), Some(&right));
            if turn % 2 == 0 {
                left = new;
            } else {
                right = new;
            }
        }
        assert!(left.0.len().max(right.0.len()) < 40);
    }
}
