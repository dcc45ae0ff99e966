//! The descriptor of priority queues.

use crate::keyspace::kind::{QueueKind, SectionKind, Serialization, ValueKind};
use crate::rows::ranks;
use crate::rows::runs::element_row;
use quoin_layout::{Section, priority_length};
use quoin_rdb::OwnType;

use super::dumping::restorable;
use super::{Extreme, PriorityQueue, PriorityQueueMut};

/// The descriptor of priority queues.
pub static KIND: ValueKind = ValueKind {
    name: "pqueue",
    encoding: |_, _| Box::pin(async { Ok("ordered-rows") }),
    exists_when_empty: false,
    body: None,
    is_waited_for: true,
    sections: &[
        SectionKind::elements(Section::Queue, element_row),
        SectionKind::CHUNKS,
        SectionKind::ranks(Section::RankCounts).checked(ranks::COUNTS),
        SectionKind::ranks(Section::RankMarks).checked(ranks::MARKS),
    ],
    counters: &[],
    queue: Some(QueueKind {
        // Pops from the highest priority do not begin at the end of the section.
        sections: [Some(Section::Queue), None],
        rank_length: Some(priority_length),
        take: |context, key, from_end, count| {
            let end = if from_end { Extreme::Max } else { Extreme::Min };
            Box::pin(async move {
                let queue = PriorityQueueMut::open(context, key);
                queue.pop_placed(count, end).await
            })
        },
        put_back: |context, key, elements, _| {
            Box::pin(async move {
                let queue = PriorityQueueMut::open(context, key);
                Ok(queue.put_back(&elements).await?)
            })
        },
    }),
    on_put: None,
    slice: None,
    serialization: Some(Serialization {
        reads: |payload| payload.own_type() == Some(OwnType::PriorityQueue),
        dump: |context, key| {
            Box::pin(async move { PriorityQueue::open(context, key).dump().await })
        },
        read: restorable,
    }),
};
