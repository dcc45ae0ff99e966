//! How much a key holds and how old the oldest of it is, for metrics. The layout says it at the ends of the data.
//!
//! Rows of elements hold no time. A reader that comes again and again tells from the ends of a queue how long its
//! elements have been there (docs/understand/decisions/030-ages.md).

use bytes::Bytes;

use quoin_layout::{DecodeError, KeyRange, TaskState, ValueType};
use quoin_store::{Isolation, KeyValue, StoreError};

use crate::keyspace::key::OpenKey;
use crate::unit::context::ReadContext;

/// A part of a queue in which elements keep the order in which they came, as places that compare as
/// bytes. Of a sorted set, just its first member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSpan {
    /// Which part of which value. Never that of another value.
    pub id: Bytes,
    /// The place of its first element.
    pub first: Bytes,
    /// The place of its last element.
    pub last: Bytes,
    /// Given where places begin again when the part is empty: tells the first element apart from one
    /// that had its place before.
    pub first_digest: Option<u64>,
}

/// What lies in a key in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFigures {
    /// `ready`, or a state of tasks.
    pub state: &'static str,
    /// Elements.
    pub length: i64,
    /// Since when the oldest of them is in this state, in milliseconds since the Unix epoch. `None`
    /// where there is none, or where the layout does not say it: only a stream's ids and the rows of
    /// dead tasks hold a time of the past.
    pub since_ms: Option<i64>,
    /// The ends of what is there. A reader that comes again can tell ages from them.
    pub spans: Vec<QueueSpan>,
}

/// What lies in a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFigures {
    /// The key's type.
    pub value_type: ValueType,
    /// All states that the type has.
    pub states: Vec<StateFigures>,
}

/// Reads the length of the prefix that the keys of a part share, from the length of the prefix of all
/// parts and one of those keys.
pub(crate) type PartLength<'f> = &'f dyn Fn(usize, &Bytes) -> Result<usize, DecodeError>;

impl ReadContext<'_> {
    /// The figures of a value whose elements have one state. `spans` are the ends of what can be taken.
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

    /// The part with this prefix, whose first row is known.
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

/// The place that a row's key says. A copy, as it is kept: the key may share memory with the row's value.
pub(crate) fn place(row: &KeyValue, prefix_length: usize) -> Bytes {
    Bytes::copy_from_slice(row.key.get(prefix_length..).unwrap_or_default())
}
