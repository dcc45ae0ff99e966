//! Runs: elements of a list, or of one priority of a priority queue, that were pushed together and
//! share a row.

use bytes::Bytes;

use super::{DecodeError, Position, StoredValue, corrupt};

const RUN: u8 = 3;
/// The format byte and `skipped`.
const HEADER_BYTES: usize = 3;
/// Greater lengths take three bytes.
const SHORT_LENGTH_MAX: usize = 254;
const LONG_LENGTH: u8 = 255;

/// Maximum size of a run's row that still gets more elements. With its key and checksums the row
/// takes less than half of an LMDB page, so it is within one page. A single pop rewrites the rest
/// of the run, half of this on average.
pub const RUN_BYTES_MAX: usize = 1_800;
/// Places of a run.
pub const RUN_ELEMENTS_MAX: usize = 256;
/// Bytes of the longest element in a run: two fit.
pub const RUN_ELEMENT_BYTES_MAX: usize = 890;

/// What a row of a list or of a priority queue holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementsValue {
    /// One element, at the place in the row's key.
    One(StoredValue),
    /// Some that follow each other.
    Run(Run),
}

/// Consecutive elements. The place of a run is the one in its row's key. Element `n` is at that
/// place with its sequence (the last number of a list's position) raised by `skipped + n`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    skipped: usize,
    count: usize,
    /// Each element after its length.
    packed: Bytes,
}

impl ElementsValue {
    /// Reads a row's value.
    ///
    /// # Errors
    /// If the format is unknown.
    pub fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        match value.first() {
            Some(&RUN) => Ok(ElementsValue::Run(Run::decode(value)?)),
            _ => Ok(ElementsValue::One(StoredValue::decode(value)?)),
        }
    }

    /// How many elements it holds.
    pub fn count(&self) -> usize {
        match self {
            ElementsValue::One(_) => 1,
            ElementsValue::Run(run) => run.count(),
        }
    }
}

impl Run {
    /// A run of these elements in order, after `skipped` places without an element.
    pub fn new<'e>(skipped: usize, elements: impl IntoIterator<Item = &'e Bytes>) -> Self {
        let (mut count, mut packed) = (0, Vec::with_capacity(RUN_BYTES_MAX));
        for element in elements {
            count += 1;
            match u8::try_from(element.len()) {
                Ok(length) if usize::from(length) <= SHORT_LENGTH_MAX => packed.push(length),
                _ => {
                    // At most `RUN_BYTES_MAX`.
                    let length = u16::try_from(element.len()).unwrap_or(u16::MAX);
                    packed.push(LONG_LENGTH);
                    packed.extend_from_slice(&length.to_be_bytes());
                }
            }
            packed.extend_from_slice(element);
        }
        Self {
            skipped,
            count,
            packed: packed.into(),
        }
    }

    /// The row's value.
    pub fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(HEADER_BYTES + self.packed.len());
        value.push(RUN);
        // At most `RUN_ELEMENTS_MAX`.
        let skipped = u16::try_from(self.skipped).unwrap_or(u16::MAX);
        value.extend_from_slice(&skipped.to_be_bytes());
        value.extend_from_slice(&self.packed);
        value
    }

    fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        let [_, high, low, ..] = value[..] else {
            return corrupt("run of elements");
        };
        let skipped = usize::from(u16::from_be_bytes([high, low]));
        let packed = value.slice(HEADER_BYTES..);
        let (mut count, mut at) = (0, 0);
        while at < packed.len() {
            match element_at(&packed, at) {
                Some((_, end)) => at = end,
                None => return corrupt("run of elements"),
            }
            count += 1;
        }
        if count == 0 || skipped + count > RUN_ELEMENTS_MAX {
            return corrupt("run of elements");
        }
        Ok(Self {
            skipped,
            count,
            packed,
        })
    }

    /// Places at the start of the run that hold no element: not yet, or not any more.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The elements in their order.
    pub fn elements(&self) -> impl Iterator<Item = Bytes> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (start, end) = element_at(&self.packed, at)?;
            at = end;
            Some(self.packed.slice(start..end))
        })
    }

    /// Takes up to `count` elements from the start, in order.
    pub fn take_first(&mut self, count: usize) -> Vec<Bytes> {
        let taken: Vec<Bytes> = self.elements().take(count).collect();
        let bytes: usize = taken.iter().map(|one| Self::bytes_of(one.len())).sum();
        self.packed = self.packed.slice(bytes.min(self.packed.len())..);
        self.skipped += taken.len();
        self.count -= taken.len();
        taken
    }

    /// Takes up to `count` elements from the end, the last one first.
    pub fn take_last(&mut self, count: usize) -> Vec<Bytes> {
        let left = self.count.saturating_sub(count);
        let mut taken: Vec<Bytes> = self.elements().skip(left).collect();
        taken.reverse();
        let bytes: usize = taken.iter().map(|one| Self::bytes_of(one.len())).sum();
        self.packed
            .truncate(self.packed.len().saturating_sub(bytes));
        self.count = left;
        taken
    }

    /// Bytes of an element of this length in a run.
    pub fn bytes_of(length: usize) -> usize {
        let header = if length <= SHORT_LENGTH_MAX { 1 } else { 3 };
        header + length
    }

    /// The place of an element in a run at `position`.
    pub fn place_of(&self, position: &Position, element: usize) -> Position {
        position.raised_by(self.skipped + element)
    }
}

/// Begin and end of the element whose length is at `at`. `None` if the bytes end too early.
fn element_at(packed: &[u8], at: usize) -> Option<(usize, usize)> {
    let (start, length) = match *packed.get(at)? {
        LONG_LENGTH => {
            let &[high, low] = packed.get(at + 1..at + 3)? else {
                return None;
            };
            (at + 3, usize::from(u16::from_be_bytes([high, low])))
        }
        length => (at + 1, usize::from(length)),
    };
    let end = start + length;
    (end <= packed.len()).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_run_is_read_as_it_was_written(
            skipped in 0_usize..=56,
            elements in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 0..600), 1..=200
            ),
        ) {
            let elements: Vec<Bytes> = elements.into_iter().map(Bytes::from).collect();
            let run = Run::new(skipped, &elements);
            prop_assert_eq!(run.elements().collect::<Vec<_>>(), elements);
            let value = Bytes::from(run.encode());
            prop_assert_eq!(ElementsValue::decode(&value).unwrap(), ElementsValue::Run(run));
        }

        #[test]
        fn what_is_taken_off_both_ends_is_what_was_there(
            lengths in proptest::collection::vec(0_usize..300, 2..40),
            first in 0_usize..40,
            last in 0_usize..40,
        ) {
            let elements: Vec<Bytes> = lengths.iter().map(|length| vec![b'x'; *length].into()).collect();
            let mut run = Run::new(7, &elements);
            let mut taken = run.take_first(first);
            prop_assert_eq!(run.skipped(), 7 + taken.len());
            let from_end = run.take_last(last);
            taken.extend(run.elements());
            prop_assert_eq!(run.count(), elements.len() - from_end.len() - taken.len() + run.elements().count());
            taken.extend(from_end.into_iter().rev());
            prop_assert_eq!(taken, elements);
        }

        #[test]
        fn bytes_that_are_no_row_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = ElementsValue::decode(&Bytes::from(bytes.clone()));
            let run = [&[RUN], &bytes[..]].concat();
            if let Ok(ElementsValue::Run(run)) = ElementsValue::decode(&Bytes::from(run)) {
                prop_assert!(run.count() > 0 && run.count() == run.elements().count());
            }
        }
    }

    #[test]
    fn a_run_without_elements_is_none() {
        assert!(ElementsValue::decode(&Bytes::from_static(&[RUN, 0, 0])).is_err());
    }
}
