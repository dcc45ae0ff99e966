//! The descriptor of lists.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::dumping::check_size;
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::{QueueKind, Restorable, SectionKind, Serialization, Slice, ValueKind};
use crate::rows::ranks;
use crate::rows::runs::{ElementsRows, element_row};
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::RANGE_PAGE_ROWS;
use quoin_layout::{Section, ValueType};
use quoin_rdb::{DumpError, ListElements, ListWriter, Payload};
use quoin_store::StoreError;

use super::End;
use super::rows::rows_of;

/// The descriptor of lists.
pub static KIND: ValueKind = ValueKind {
    name: "list",
    encoding: |context, key| Box::pin(context.list_encoding(key)),
    exists_when_empty: false,
    body: None,
    is_waited_for: true,
    sections: &[
        SectionKind::elements(Section::Elements, element_row),
        SectionKind::CHUNKS,
        SectionKind::ranks(Section::RankCounts).checked(ranks::COUNTS),
        SectionKind::ranks(Section::RankMarks).checked(ranks::MARKS),
    ],
    counters: &[],
    queue: Some(QueueKind {
        sections: [Some(Section::Elements); 2],
        rank_length: None,
        take: |context, key, from_end, count| {
            Box::pin(context.list_pop_placed(key, count, end(from_end)))
        },
        put_back: |context, key, elements, from_end| {
            Box::pin(async move { Ok(context.list_put_back(key, &elements, end(from_end)).await?) })
        },
    }),
    on_put: None,
    slice: Some(|context, key, slice| Box::pin(context.list_sorted_slice(key, slice))),
    serialization: Some(Serialization {
        reads: |payload| ListElements::reads(payload.rdb_type()),
        dump: |context, key| Box::pin(context.list_dump(key)),
        read: restorable,
    }),
};

fn end(from_end: bool) -> End {
    if from_end { End::Right } else { End::Left }
}

impl ReadContext<'_> {
    async fn list_sorted_slice(
        &self,
        key: &OpenKey,
        slice: Slice,
    ) -> Result<Vec<Bytes>, StoreError> {
        let Slice {
            begin,
            end,
            length,
            descending,
        } = slice;
        if !descending {
            return self.list_range(key, begin, end - 1).await;
        }
        let range = self.list_range(key, length - end, length - begin - 1);
        let mut elements = range.await?;
        elements.reverse();
        Ok(elements)
    }

    async fn list_dump(&self, key: &OpenKey) -> Result<Bytes, CommandError> {
        let (range, _) = rows_of(self, key.data());
        let mut rows = ElementsRows::new(self, range, false);
        let mut writer = ListWriter::new();
        while let Some(page) = rows.next(usize::MAX).await? {
            for (_, value) in page.iter().flat_map(|row| row.elements(false)) {
                writer.push(&self.load_stored(key.data(), value).await?);
                check_size(writer.size_bytes())?;
            }
        }
        Ok(writer.finish())
    }
}

fn restorable(context: &ReadContext<'_>, payload: Payload) -> Result<Restorable, CommandError> {
    let elements = ListElements::new(payload)?;
    let mut budget = context.size_budget();
    let mut is_empty = true;
    // Only read: elements are unpacked again when they are written, rather than kept.
    for element in elements.clone() {
        budget.take_element(element?.len())?;
        is_empty = false;
    }
    if is_empty {
        return Err(DumpError::Format.into());
    }
    Ok(Box::new(|context, name, expire_at_ms| {
        Box::pin(context.list_restore(name, elements, expire_at_ms))
    }))
}

impl WriteContext<'_> {
    async fn list_restore(
        &self,
        name: &Bytes,
        mut elements: ListElements,
        expire_at_ms: Option<i64>,
    ) -> Result<(), CommandError> {
        let key = self.create(name, ValueType::List, expire_at_ms).await?;
        loop {
            let page: Result<Vec<Bytes>, _> = elements.by_ref().take(RANGE_PAGE_ROWS).collect();
            let page = page?;
            if page.is_empty() {
                return Ok(());
            }
            self.list_push(&key, &page, End::Right).await?;
            if self.transaction.size_bytes() > self.environment.capabilities.transaction_bytes_max {
                return Ok(());
            }
        }
    }
}
