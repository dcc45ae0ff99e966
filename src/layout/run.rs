//! Runs: elements of a list that were pushed together and lie in one row.

use bytes::Bytes;

use super::{DecodeError, Position, StoredValue, corrupt};

const RUN: u8 = 3;
/// The format byte and `skipped`.
const HEADER_BYTES: usize = 3;
/// Lengths from this one on take three bytes.
const SHORT_LENGTH_MAX: usize = 254;
const LONG_LENGTH: u8 = 255;

/// Bytes of a run's row to which elements are added. With its key and checksums the row takes less
/// than half of one of LMDB's pages, so that it lies within one. A lone pop writes the rest of the
/// run again, which is half of this on average.
pub const RUN_BYTES_MAX: usize = 1_800;
/// Places of a run.
pub const RUN_ELEMENTS_MAX: usize = 256;
/// Bytes of the longest element in a run: two fit.
pub const RUN_ELEMENT_BYTES_MAX: usize = 890;

/// What a row of a list holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListValue {
    /// One element, at the position that the row's key says.
    One(StoredValue),
    /// Some that follow each other.
    Run(Run),
}

/// Elements that follow each other. The place of a run is the position that its row's key says;
/// element `n` is at that position with its last number raised by `skipped + n`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// Places at the start of the run that hold no element: not yet, or not any more.
    pub skipped: usize,
    /// The elements, the leftmost first.
    pub elements: Vec<Bytes>,
}

impl ListValue {
    /// Reads the value of a list's row.
    ///
    /// # Errors
    /// Where the format is not known.
    pub fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        match value.first() {
            Some(&RUN) => Ok(ListValue::Run(Run::decode(value)?)),
            _ => Ok(ListValue::One(StoredValue::decode(value)?)),
        }
    }

    /// How many elements it holds.
    pub fn count(&self) -> usize {
        match self {
            ListValue::One(_) => 1,
            ListValue::Run(run) => run.elements.len(),
        }
    }
}

impl Run {
    /// The row's value.
    pub fn encode(&self) -> Vec<u8> {
        Self::encode_elements(self.skipped, self.elements.iter())
    }

    /// The value of a row with these elements.
    pub fn encode_elements<'e>(
        skipped: usize,
        elements: impl Iterator<Item = &'e Bytes> + Clone,
    ) -> Vec<u8> {
        let bytes = elements
            .clone()
            .map(|element| Self::bytes_of(element.len()));
        let mut value = Vec::with_capacity(HEADER_BYTES + bytes.sum::<usize>());
        value.push(RUN);
        // At most `RUN_ELEMENTS_MAX`.
        value.extend_from_slice(&u16::try_from(skipped).unwrap_or(u16::MAX).to_be_bytes());
        for element in elements {
            match u8::try_from(element.len()) {
                Ok(length) if usize::from(length) <= SHORT_LENGTH_MAX => value.push(length),
                _ => {
                    // At most `RUN_BYTES_MAX`.
                    let length = u16::try_from(element.len()).unwrap_or(u16::MAX);
                    value.push(LONG_LENGTH);
                    value.extend_from_slice(&length.to_be_bytes());
                }
            }
            value.extend_from_slice(element);
        }
        value
    }

    fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        let [_, high, low, ..] = value[..] else {
            return corrupt("run of list elements");
        };
        let skipped = usize::from(u16::from_be_bytes([high, low]));
        let mut at = HEADER_BYTES;
        // As many as fit if all are as long as the first.
        let first_bytes = value.get(at).map_or(1, |length| usize::from(*length) + 1);
        let mut elements = Vec::with_capacity((value.len() / first_bytes).min(RUN_ELEMENTS_MAX));
        while let Some(&length) = value.get(at) {
            at += 1;
            let length = if length == LONG_LENGTH {
                let Some(&[high, low]) = value.get(at..at + 2) else {
                    return corrupt("run of list elements");
                };
                at += 2;
                usize::from(u16::from_be_bytes([high, low]))
            } else {
                usize::from(length)
            };
            if value.len() - at < length {
                return corrupt("run of list elements");
            }
            elements.push(value.slice(at..at + length));
            at += length;
        }
        if elements.is_empty() || skipped + elements.len() > RUN_ELEMENTS_MAX {
            return corrupt("run of list elements");
        }
        Ok(Self { skipped, elements })
    }

    /// Bytes that an element of this length takes in a run.
    pub fn bytes_of(length: usize) -> usize {
        let header = if length <= SHORT_LENGTH_MAX { 1 } else { 3 };
        header + length
    }

    /// Bytes of the row's value.
    pub fn bytes(&self) -> usize {
        let elements = self.elements.iter();
        HEADER_BYTES + elements.map(|one| Self::bytes_of(one.len())).sum::<usize>()
    }

    /// The place of an element of a run that lies at `position`.
    pub fn place_of(&self, position: &Position, element: usize) -> Position {
        position.raised_by(self.skipped + element)
    }
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
            let elements = elements.into_iter().map(Bytes::from).collect();
            let run = Run { skipped, elements };
            let value = Bytes::from(run.encode());
            prop_assert_eq!(value.len(), run.bytes());
            prop_assert_eq!(ListValue::decode(&value).unwrap(), ListValue::Run(run));
        }

        #[test]
        fn bytes_that_are_no_row_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = ListValue::decode(&Bytes::from(bytes.clone()));
            let run = [&[RUN], &bytes[..]].concat();
            if let Ok(ListValue::Run(run)) = ListValue::decode(&Bytes::from(run)) {
                prop_assert!(!run.elements.is_empty());
            }
        }
    }

    #[test]
    fn a_run_without_elements_is_none() {
        assert!(ListValue::decode(&Bytes::from_static(&[RUN, 0, 0])).is_err());
    }
}
