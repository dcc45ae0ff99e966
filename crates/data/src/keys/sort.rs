//! SORT of lists and sorted sets.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::kind::TypeKind;
use quoin_base::limits::{KEY_READS_AT_ONCE, SORT_ANSWER_BYTES_MAX};
use quoin_base::number::parse_double_without_underflow;

use crate::keys::key_pattern::KeyPattern;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::Slice;
use crate::unit::context::ReadContext;

/// What elements are sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SortBy {
    /// Themselves.
    Element,
    /// What a pattern leads to from each of them, if anything.
    Weights(KeyPattern),
    /// Nothing: they stay in the order of the list or set.
    Nothing,
}

/// What SORT asks for.
#[derive(Debug, Clone)]
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
    /// none.
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
        let sorted = match (&query.by, query.alphabetic) {
            (SortBy::Weights(pattern), true) => {
                self.sort_by_texts(elements, pattern, query).await?
            }
            (SortBy::Weights(pattern), false) => {
                let weights = self.weights(&elements, pattern).await?;
                sort_by_numbers(weights.into_iter().zip(elements), query)
            }
            (_, true) => sort_by_numbers(elements.into_iter().map(|element| (0.0, element)), query),
            (_, false) => {
                let weights: Result<Vec<f64>, _> =
                    elements.iter().map(|element| weight(element)).collect();
                sort_by_numbers(weights?.into_iter().zip(elements), query)
            }
        };
        let skipped = usize::try_from(begin).unwrap_or(usize::MAX);
        let taken = usize::try_from(end - begin).unwrap_or(0);
        Ok(sorted.into_iter().skip(skipped).take(taken).collect())
    }

    /// The numbers that a pattern leads to; 0 where there is none.
    async fn weights(
        &self,
        elements: &[Bytes],
        pattern: &KeyPattern,
    ) -> Result<Vec<f64>, CommandError> {
        let mut weights = Vec::with_capacity(elements.len());
        for some in elements.chunks(KEY_READS_AT_ONCE) {
            let mut left_bytes = SORT_ANSWER_BYTES_MAX as u64;
            for text in self.texts(some, pattern, &mut left_bytes).await? {
                weights.push(text.map_or(Ok(0.0), |text| weight(&text))?);
            }
        }
        Ok(weights)
    }

    async fn sort_by_texts(
        &self,
        elements: Vec<Bytes>,
        pattern: &KeyPattern,
        query: &SortQuery,
    ) -> Result<Vec<Bytes>, CommandError> {
        let mut left_bytes = SORT_ANSWER_BYTES_MAX as u64;
        let mut texts = Vec::with_capacity(elements.len());
        for some in elements.chunks(KEY_READS_AT_ONCE) {
            texts.extend(self.texts(some, pattern, &mut left_bytes).await?);
        }
        let mut weighted: Vec<(Option<Bytes>, Bytes)> = texts.into_iter().zip(elements).collect();
        // Redis leaves the order of equal ones open.
        weighted.sort_by(|(first, _), (second, _)| query.directed(first.cmp(second)));
        Ok(weighted.into_iter().map(|(_, element)| element).collect())
    }

    async fn texts(
        &self,
        elements: &[Bytes],
        pattern: &KeyPattern,
        left_bytes: &mut u64,
    ) -> Result<Vec<Option<Bytes>>, CommandError> {
        let pairs: Vec<_> = elements.iter().map(|element| (pattern, element)).collect();
        let texts = self.values_of_patterns(&pairs, left_bytes).await?;
        texts.ok_or_else(|| {
            let line = format!(
                "ERR too long values for SORT with BY (more than {SORT_ANSWER_BYTES_MAX} bytes)"
            );
            CommandError::Text(line.into())
        })
    }
}

impl SortQuery {
    fn directed(&self, order: Ordering) -> Ordering {
        if self.descending {
            order.reverse()
        } else {
            order
        }
    }
}

/// Elements of one weight are in the order of their bytes, as in Redis.
fn sort_by_numbers(weighted: impl Iterator<Item = (f64, Bytes)>, query: &SortQuery) -> Vec<Bytes> {
    let mut weighted: Vec<(f64, Bytes)> = weighted.collect();
    weighted.sort_by(|(first_weight, first), (second_weight, second)| {
        let by_weight = first_weight.partial_cmp(second_weight);
        let order = by_weight.unwrap_or(Ordering::Equal);
        query.directed(order.then_with(|| first.cmp(second)))
    });
    weighted.into_iter().map(|(_, element)| element).collect()
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
