//! The descriptor of priority queues.

use crate::cluster::delegation::row_key;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{QueueKind, SectionKind, Serialization, ValueKind};
use crate::rows::ranks;
use crate::rows::runs::{ElementsRow, element_row};
use crate::unit::context::WriteContext;
use quoin_layout::{KeyRange, PoppedElement, QueuePlace, Section, priority_length};
use quoin_rdb::OwnType;
use quoin_store::{Isolation, StoreError};

use super::Extreme;
use super::dumping::restorable;

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
        // Pops from the highest priority read priority by priority.
        sections: [Some(Section::Queue), None],
        rank_length: Some(priority_length),
        take: |context, key, from_end, count| {
            let end = if from_end { Extreme::Max } else { Extreme::Min };
            Box::pin(context.queue_pop_placed(key, count, end))
        },
        put_back: |context, key, elements, _| {
            Box::pin(async move { Ok(context.queue_put_back(key, &elements).await?) })
        },
    }),
    on_put: None,
    slice: None,
    serialization: Some(Serialization {
        reads: |payload| payload.own_type() == Some(OwnType::PriorityQueue),
        dump: |context, key| Box::pin(context.queue_dump(key)),
        read: restorable,
    }),
};

impl WriteContext<'_> {
    async fn queue_put_back(
        &self,
        key: &OpenKey,
        elements: &[PoppedElement],
    ) -> Result<(), StoreError> {
        for of_one in elements.chunk_by(|one, next| self.is_of_priority(one, next)) {
            self.queue_put_back_priority(key, of_one).await?;
        }
        Ok(())
    }

    fn is_of_priority(&self, one: &PoppedElement, other: &PoppedElement) -> bool {
        let read = |element: &PoppedElement| {
            let (_, length) = self.layout().read_queue_key(0, &element.name).ok()?;
            element.name.get(..length).map(<[u8]>::to_vec)
        };
        read(one) == read(other)
    }

    /// Puts back popped elements of one priority, the oldest first: at their old places, unless
    /// there was nothing of that priority meanwhile and it has begun again in front of those.
    async fn queue_put_back_priority(
        &self,
        key: &OpenKey,
        elements: &[PoppedElement],
    ) -> Result<(), StoreError> {
        let Some(oldest) = elements.first() else {
            return Ok(());
        };
        let (place, _) = self.layout().read_queue_key(0, &oldest.name)?;
        let of_priority = self.layout().priority_prefix(key.data(), &place.priority);
        let first = self
            .outermost(
                &KeyRange::children(&of_priority),
                false,
                Isolation::Snapshot,
            )
            .await?;
        let first = first.map(ElementsRow::read).transpose()?;
        let prefix = self.layout().queue_prefix(key.data());
        let first_place = match &first {
            Some(row) => Some(row.first_queue_place(self, prefix.len())?),
            None => None,
        };
        let first_key = first_place.map(|place| self.layout().queue_key(key.data(), &place));
        let last = elements.last().map(|last| row_key(&prefix, last));
        let begun_again = first_place.filter(|_| last >= first_key);
        if let (Some(row), Some(first_key), None) = (&first, &first_key, &begun_again)
            && row.key != *first_key
        {
            self.free_places(key, row, first_key);
        }
        let random = self.environment.position_random();
        let count = i64::try_from(elements.len()).unwrap_or(i64::MAX);
        for (number, element) in (0_i64..).zip(elements) {
            let row = match &begun_again {
                None => row_key(&prefix, element),
                Some(first) => {
                    let (place, _) = self.layout().read_queue_key(0, &element.name)?;
                    let place = QueuePlace {
                        count: first.count.saturating_sub(count - number),
                        random,
                        sequence: Some(0),
                        ..place
                    };
                    self.layout().queue_key(key.data(), &place)
                }
            };
            let value = self.store_value(key.data(), &element.value);
            self.transaction.set(&row, &value);
            self.note_rank_change(key, &row, 1);
        }
        self.add_length(key, count);
        Ok(())
    }
}
