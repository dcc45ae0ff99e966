//! The descriptor of priority queues.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;

use crate::keyspace::figures::StateFigures;
use crate::keyspace::import::{Import, Reading};
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{ElementFlow, QueueKind, SectionKind, Serialization, ValueKind};
use crate::rows::ranks;
use crate::rows::runs::element_row;
use crate::unit::context::ReadContext;
use quoin_layout::{ElementsValue, Section, priority_length};
use quoin_rdb::{OwnType, elements_in_chunks};
use quoin_store::StoreError;

use super::dumping::restorable;
use super::{PriorityQueue, PriorityQueueMut};

/// The descriptor of priority queues.
pub static KIND: ValueKind = ValueKind {
    name: "pqueue",
    encoding: |_, _| Box::pin(async { Ok("ordered-rows") }),
    exists_when_empty: false,
    inline: None,
    is_waited_for: true,
    flow: ElementFlow::ByLength,
    sections: &[
        SectionKind::elements(Section::Queue, element_row),
        SectionKind::CHUNKS,
        SectionKind::ranks(Section::RankCounts).checked(ranks::COUNTS),
        SectionKind::ranks(Section::RankMarks).checked(ranks::MARKS),
    ],
    counters: &[],
    queue: Some(QueueKind {
        // Pops from the highest priority do not start at the end of the section.
        sections: [Some(Section::Queue), None],
        rank_length: Some(priority_length),
        put_back: |context, key, elements, _| {
            Box::pin(async move {
                let queue = PriorityQueueMut::open(context, key);
                Ok(queue.put_back(&elements).await?)
            })
        },
    }),
    on_put: None,
    slice: None,
    named_section: None,
    figures: Some(|context, key| Box::pin(figures(context, key))),
    deadlines: &[],
    serialization: Some(Serialization {
        reads: |payload| payload.own_type() == Some(OwnType::PriorityQueue),
        dump: |context, key| {
            Box::pin(async move { PriorityQueue::open(context, key).dump().await.map(Some) })
        },
        read: restorable,
    }),
    import: Some(Import {
        counting: b"PQ.LEN",
        reading: Reading::Iteration(b"PQ.SCANDUMP"),
        reading_whole: Some(b"DUMP"),
        element_words: 1,
        elements_in: elements_in_chunks,
        elements_are_bytes: false,
        adding: b"PQ.LOADCHUNK",
        adds_reversed: false,
        is_own: true,
        may_be_empty: false,
        payload: |mut words| words.pop().map(Bytes::from),
    }),
};

/// The ends of the first and the last priority.
async fn figures(
    context: &ReadContext<'_>,
    key: &OpenKey,
) -> Result<Vec<StateFigures>, StoreError> {
    let length = |prefix_length, key: &Bytes| {
        let (_, length) = context.layout().read_queue_key(prefix_length, key)?;
        Ok(length)
    };
    let prefix = (context.layout()).section_prefix(key.data(), Section::Queue);
    let mut spans = context.outer_parts(&prefix, &length).await?;
    for (span, first) in &mut spans {
        let mut hasher = DefaultHasher::new();
        match ElementsValue::decode(&first.value)? {
            ElementsValue::One(_) => first.value.hash(&mut hasher),
            // Both are constant while the run exists. Its elements arrived together.
            ElementsValue::Run(run) => {
                (run.skipped() + run.count()).hash(&mut hasher);
                run.elements().last().hash(&mut hasher);
            }
        }
        span.first_digest = Some(hasher.finish());
    }
    let spans = spans.into_iter().map(|(span, _)| span).collect();
    context.ready_figures(key, spans).await
}
