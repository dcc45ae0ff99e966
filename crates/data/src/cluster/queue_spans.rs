//! The ends of queues, from which a reader that comes again and again tells how long elements have been
//! there: rows hold no time.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use futures_util::future::try_join_all;

use quoin_layout::{DecodeError, ElementsValue, KeyRange, Section, ValueType};
use quoin_store::{Isolation, KeyValue, StoreError};

use crate::keyspace::key::OpenKey;
use crate::unit::context::ReadContext;

/// Classes of a task queue that are looked at. A queue whose tasks need no resources has one.
const TASK_CLASSES_LOOKED_AT: usize = 16;

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

/// Reads the length of the prefix that the keys of a part share, from the length of the prefix of all
/// parts and one of those keys.
type PartLength<'f> = &'f dyn Fn(usize, &Bytes) -> Result<usize, DecodeError>;

impl ReadContext<'_> {
    /// The ends of what can be taken from a queue; nothing of types that are no queues, or whose
    /// rows hold a time. Where there are priorities: of the first and the last of them.
    pub(crate) async fn queue_spans(&self, key: &OpenKey) -> Result<Vec<QueueSpan>, StoreError> {
        let prefix = |section| self.layout().section_prefix(key.data(), section);
        match key.meta.value_type {
            ValueType::List => {
                let prefix = prefix(Section::Elements);
                let range = KeyRange::children(&prefix);
                let first = self.outermost(&range, false, Isolation::Snapshot);
                let span = match first.await? {
                    Some(first) => self.span(&prefix, &first).await?,
                    None => None,
                };
                Ok(span.into_iter().collect())
            }
            ValueType::SortedSet => {
                let prefix = prefix(Section::Scores);
                let range = KeyRange::children(&prefix);
                let first = self.outermost(&range, false, Isolation::Snapshot);
                let first = first.await?.map(|row| place(&row, prefix.len()));
                let span = first.map(|first| QueueSpan {
                    id: prefix.into(),
                    last: first.clone(),
                    first,
                    first_digest: None,
                });
                Ok(span.into_iter().collect())
            }
            ValueType::PriorityQueue => {
                let length = |prefix_length, key: &Bytes| {
                    let (_, length) = self.layout().read_queue_key(prefix_length, key)?;
                    Ok(length)
                };
                let prefix = prefix(Section::Queue);
                let mut spans = self.outer_parts(&prefix, &length).await?;
                for (span, first) in &mut spans {
                    let mut hasher = DefaultHasher::new();
                    match ElementsValue::decode(&first.value)? {
                        ElementsValue::One(_) => first.value.hash(&mut hasher),
                        // These stay as long as the run does. Its elements came together.
                        ElementsValue::Run(run) => {
                            (run.skipped() + run.count()).hash(&mut hasher);
                            run.elements().last().hash(&mut hasher);
                        }
                    }
                    span.first_digest = Some(hasher.finish());
                }
                Ok(spans.into_iter().map(|(span, _)| span).collect())
            }
            ValueType::TaskQueue => {
                let length = |prefix_length, key: &Bytes| {
                    self.layout().task_priority_length(prefix_length, key)
                };
                let classes = self.task_order_prefixes(key).await?;
                let classes = classes.iter().take(TASK_CLASSES_LOOKED_AT);
                let spans = classes.map(|prefix| self.outer_parts(prefix, &length));
                let spans = try_join_all(spans).await?.into_iter().flatten();
                Ok(spans.map(|(span, _)| span).collect())
            }
            ValueType::Hash | ValueType::Set | ValueType::Stream | ValueType::String => {
                Ok(Vec::new())
            }
        }
    }

    /// The first and the last part below a prefix, each with the row of its first element.
    async fn outer_parts(
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
    async fn span(&self, part: &[u8], first: &KeyValue) -> Result<Option<QueueSpan>, StoreError> {
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
fn place(row: &KeyValue, prefix_length: usize) -> Bytes {
    Bytes::copy_from_slice(row.key.get(prefix_length..).unwrap_or_default())
}
