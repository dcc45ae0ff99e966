//! A key's length and the age of its oldest element, for metrics. The ends of the data provide both.
//!
//! Rows of elements hold no time. A reader that comes repeatedly infers from the ends of a queue how long its elements
//! have been there (docs/understand/decisions/030-ages.md).

use bytes::Bytes;

use quoin_layout::{DecodeError, KeyRange, TaskState, ValueType};
use quoin_store::{Isolation, KeyValue, StoreError};

use crate::keyspace::key::OpenKey;
use crate::unit::context::ReadContext;

/// A part of a queue in which elements keep their order of arrival. Positions compare as bytes. For a sorted set, only
/// its first member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSpan {
    /// Identifies the part and its value. Values never share an id.
    pub id: Bytes,
    /// The position of its first element.
    pub first: Bytes,
    /// The position of its last element.
    pub last: Bytes,
    /// Set if positions start over when the part is empty. Distinguishes the first element from an earlier one with the
    /// same position.
    pub first_digest: Option<u64>,
}

/// The elements of a key that are in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFigures {
    /// `ready`, or a state of tasks.
    pub state: &'static str,
    /// Number of elements.
    pub length: i64,
    /// When the oldest element entered this state, in milliseconds since the Unix epoch. `None` if there is no element,
    /// or if the layout does not record it: only a stream's ids and the rows of dead tasks hold a past time.
    pub since_ms: Option<i64>,
    /// The ends of the data. A reader that comes repeatedly can infer ages from them.
    pub spans: Vec<QueueSpan>,
}

/// The figures of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFigures {
    /// The key's type.
    pub value_type: ValueType,
    /// All states of the type.
    pub states: Vec<StateFigures>,
}

/// Returns the length of the key prefix of a part, given the length of the prefix of all parts and one key in the part.
pub(crate) type PartLength<'f> = &'f dyn Fn(usize, &Bytes) -> Result<usize, DecodeError>;

impl ReadContext<'_> {
    /// The figures of a value whose elements have only one state. `spans` are the ends of the elements that can be
    /// taken.
    pub(crate) async fn ready_figures(
        &self,
        key: &OpenKey,
        spans: Vec<QueueSpan>,
    ) -> Result<Vec<StateFigures>, StoreError> {
        Ok(vec![StateFigures {
            state: TaskState::Ready.name(),
            length: self.length(key, Isolation::Snapshot).await?,
            since_ms: None,
            spans,
        }])
    }

    /// The first and the last part below a prefix, each with the row of its first element.
    pub(crate) async fn outer_parts(
        &self,
        prefix: &[u8],
        part_length: PartLength<'_>,
    ) -> Result<Vec<(QueueSpan, KeyValue)>, StoreError> {
        let mut parts: Vec<(QueueSpan, KeyValue)> = Vec::with_capacity(2);
        for from_end in [false, true] {
            let all = KeyRange::children(prefix);
            let Some(row) = self.outermost(&all, from_end, Isolation::Snapshot).await? else {
                break;
            };
            let length = part_length(prefix.len(), &row.key)?;
            let part = row.key.slice(..length.min(row.key.len()));
            if parts.iter().any(|(span, _)| span.id == part) {
                continue;
            }
            let range = KeyRange::children(&part);
            let first = self.outermost(&range, false, Isolation::Snapshot).await?;
            let Some(first) = first else {
                continue;
            };
            if let Some(span) = self.span(&part, &first).await? {
                parts.push((span, first));
            }
        }
        Ok(parts)
    }

    /// The span of the part with this prefix and this first row.
    pub(crate) async fn span(
        &self,
        part: &[u8],
        first: &KeyValue,
    ) -> Result<Option<QueueSpan>, StoreError> {
        let range = KeyRange::children(part);
        let last = self.outermost(&range, true, Isolation::Snapshot).await?;
        Ok(last.map(|last| QueueSpan {
            id: Bytes::copy_from_slice(part),
            first: place(first, part.len()),
            last: place(&last, part.len()),
            first_digest: None,
        }))
    }
}

/// The position in a row's key. It is kept for long, so it is a copy: the key may share memory with the row's value.
pub(crate) fn place(row: &KeyValue, prefix_length: usize) -> Bytes {
    Bytes::copy_from_slice(row.key.get(prefix_length..).unwrap_or_default())
}
