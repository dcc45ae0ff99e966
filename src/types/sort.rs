//! SORT of lists and sorted sets.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::error::CommandError;
use crate::number::parse_double_without_underflow;

use super::context::ReadContext;
use super::key::OpenKey;
use super::kind::Slice;

/// What elements are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
    /// Themselves.
    Element,
    /// Values of keys that a pattern leads to. They would be strings or hashes, of which Quoin
    /// has none, so that all elements lack a weight.
    AbsentWeights,
    /// Nothing: they stay in the order of the list or set.
    Nothing,
}

/// What SORT asks for.
#[derive(Debug, Clone, Copy)]
pub struct SortQuery {
    /// What to sort by.
    pub by: SortBy,
    /// From the greatest to the least.
    pub descending: bool,
    /// By bytes rather than by number.
    pub alphabetic: bool,
    /// Elements of the result to leave out at its beginning; negative is 0.
    pub offset: i64,
    /// Most elements to return; negative is all.
    pub count: i64,
}

impl SortQuery {
    /// The part of a result of `length` elements that is asked for, as begin and end.
    fn bounds(&self, length: i64) -> (i64, i64) {
        let begin = self.offset.clamp(0, length);
        let end = if self.count < 0 {
            length
        } else {
            begin.saturating_add(self.count).min(length)
        };
        (begin, end)
    }
}

impl ReadContext<'_> {
    /// The elements of a list or the members of a sorted set, as SORT orders them.
    ///
    /// # Errors
    /// `WrongType` for other types; `Text` where an element that is to be sorted as a number is
    /// none; when the store fails.
    pub async fn sort(&self, key: &OpenKey, query: &SortQuery) -> Result<Vec<Bytes>, CommandError> {
        let Some(slice_of) = key.meta.value_type.kind().slice else {
            return Err(CommandError::WrongType);
        };
        let length = self.length(key, self.isolation).await?;
        let (begin, end) = query.bounds(length);
        if query.by == SortBy::Nothing {
            if begin == end {
                return Ok(Vec::new());
            }
            let slice = Slice {
                begin,
                end,
                length,
                descending: query.descending,
            };
            return Ok(slice_of(self, key, slice).await?);
        }
        let all = Slice {
            begin: 0,
            end: length,
            length,
            descending: false,
        };
        let elements = slice_of(self, key, all).await?;
        let sorted = sort(elements, query)?;
        let skipped = usize::try_from(begin).unwrap_or(usize::MAX);
        let taken = usize::try_from(end - begin).unwrap_or(0);
        Ok(sorted.into_iter().skip(skipped).take(taken).collect())
    }
}

fn sort(elements: Vec<Bytes>, query: &SortQuery) -> Result<Vec<Bytes>, CommandError> {
    let mut weighted = Vec::with_capacity(elements.len());
    for element in elements {
        let weight = if query.alphabetic || query.by == SortBy::AbsentWeights {
            0.0
        } else {
            weight(&element)?
        };
        weighted.push((weight, element));
    }
    weighted.sort_by(|(first_weight, first), (second_weight, second)| {
        let order = if query.alphabetic && query.by == SortBy::AbsentWeights {
            Ordering::Equal
        } else {
            // Elements of one weight are in the order of their bytes, as in Redis.
            first_weight
                .partial_cmp(second_weight)
                .unwrap_or(Ordering::Equal)
                .then_with(|| first.cmp(second))
        };
        if query.descending {
            order.reverse()
        } else {
            order
        }
    });
    Ok(weighted.into_iter().map(|(_, element)| element).collect())
}

/// An element as a number, as Redis reads it here: with C's `strtod`, which passes over blanks in
/// front, sees nothing behind a zero byte, and finds 0 in nothing at all.
fn weight(element: &[u8]) -> Result<f64, CommandError> {
    const NO_NUMBER: CommandError =
        CommandError::text("ERR One or more scores can't be converted into double");
    let text = element.split(|byte| *byte == 0).next().unwrap_or(element);
    if text.is_empty() {
        return Ok(0.0);
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let blanks = text.iter().take_while(|byte| is_blank(byte)).count();
    parse_double_without_underflow(text.get(blanks..).unwrap_or_default()).ok_or(NO_NUMBER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_as_strtod_reads_them() {
        for (text, expected) in [
            (&b""[..], Some(0.0)),
            (b"\0x", Some(0.0)),
            (b" \t12", Some(12.0)),
            (b"1.5e3", Some(1500.0)),
            (b"0x10", Some(16.0)),
            (b"-inf", Some(f64::NEG_INFINITY)),
            (b"0x1p-1074", Some(f64::from_bits(1))),
            (b"7\0abc", Some(7.0)),
            (b" ", None),
            (b"12 ", None),
            (b"nan", None),
            (b"1e400", None),
            (b"1e-310", None),
            (b"abc", None),
        ] {
            assert_eq!(weight(text).ok(), expected, "{text:?}");
        }
    }
}
