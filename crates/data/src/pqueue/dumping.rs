//! Priority queues as payloads.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::dumping::{Chunk, check_size};
use crate::keyspace::key::OpenKey;
use crate::keyspace::kind::Restorable;
use crate::list::clamp_range;
use crate::rows::runs::ElementsRows;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::limits::{IMPORT_CHUNK_BYTES, RANGE_PAGE_ROWS};
use quoin_layout::{Priority, PriorityNumber, ValueType, successor};
use quoin_rdb::{DumpError, DumpedPriority, Payload, PriorityQueueReader, PriorityQueueWriter};
use quoin_store::StoreError;

use super::QueuedValue;
use super::rows::{QueueSlice, rows_of};

/// Values that a chunk reads at first. As large as rows may be, they hardly exceed [`IMPORT_CHUNK_BYTES`].
const FIRST_STEP_ELEMENTS: usize = 16;
/// Values that a chunk reads at a time, once it has seen that they are small.
const STEP_ELEMENTS_MAX: usize = 128;

fn dumped(priority: &Priority) -> DumpedPriority {
    match priority.number() {
        PriorityNumber::Integer(number) => DumpedPriority::Integer(number),
        PriorityNumber::Double(number) => DumpedPriority::Double(number),
    }
}

fn queued((priority, value): (DumpedPriority, Bytes)) -> Result<QueuedValue, DumpError> {
    let priority = match priority {
        DumpedPriority::Integer(number) => Priority::integer(number),
        DumpedPriority::Double(number) => Priority::double(number).ok_or(DumpError::Format)?,
    };
    Ok(QueuedValue { value, priority })
}

impl ReadContext<'_> {
    /// A queue as a payload.
    ///
    /// # Errors
    /// `Text` where that is too large.
    pub(super) async fn queue_dump(&self, key: &OpenKey) -> Result<Bytes, CommandError> {
        let (range, prefix_length) = rows_of(self, key.data());
        let mut rows = ElementsRows::new(self, range, false);
        let mut writer = PriorityQueueWriter::new();
        while let Some(page) = rows.next(usize::MAX).await? {
            for row in page {
                let (place, _) = row.queue_place(self, prefix_length)?;
                for (_, value) in row.elements(false) {
                    let value = self.load_stored(key.data(), value).await?;
                    writer.push(dumped(&place.priority), &value);
                    check_size(writer.size_bytes())?;
                }
            }
        }
        Ok(writer.finish())
    }

    /// Up to `count` values from a rank on, of about [`IMPORT_CHUNK_BYTES`].
    pub async fn queue_chunk(
        &self,
        key: &OpenKey,
        rank: i64,
        count: usize,
    ) -> Result<Chunk, StoreError> {
        let length = self.length(key, self.isolation).await?;
        let stop = rank.saturating_add_unsigned(count as u64).saturating_sub(1);
        let Some((offset, count)) = clamp_range(rank, stop, length) else {
            return Ok(Chunk::default());
        };
        // In steps: values may be so large that a chunk has only a few of them.
        let mut step = FIRST_STEP_ELEMENTS;
        let slice = self.queue_ascending(key, length, offset, count.min(step));
        let mut slice = slice.await?;
        let (mut range, prefix_length) = rows_of(self, key.data());
        if let Some(last) = slice.rows.last() {
            range.begin = successor(&last.key);
        }
        let mut rows = ElementsRows::new(self, range, false);
        let mut writer = PriorityQueueWriter::new();
        let mut taken = 0;
        let is_full = |taken: usize, writer: &PriorityQueueWriter| {
            taken >= count || writer.size_bytes() >= IMPORT_CHUNK_BYTES
        };
        while !slice.rows.is_empty() {
            let mut skip = slice.skip;
            'rows: for row in &slice.rows {
                let (place, _) = row.queue_place(self, prefix_length)?;
                let skipped = std::mem::take(&mut skip);
                for (_, value) in row.elements(false).into_iter().skip(skipped) {
                    if is_full(taken, &writer) {
                        break 'rows;
                    }
                    let value = self.load_stored(key.data(), value).await?;
                    writer.push(dumped(&place.priority), &value);
                    taken += 1;
                }
            }
            if is_full(taken, &writer) {
                break;
            }
            step = step.saturating_mul(2).min(STEP_ELEMENTS_MAX);
            slice = QueueSlice::read(&mut rows, 0, step.min(count - taken)).await?;
        }
        if taken == 0 {
            return Ok(Chunk::default());
        }
        let next = rank.saturating_add_unsigned(taken as u64);
        Ok(Chunk {
            payload: Some(writer.finish()),
            next: (next < length).then(|| next.to_string().into()),
        })
    }
}

/// The values of a payload, which were read to their end.
fn sound_values(
    context: &ReadContext<'_>,
    payload: Payload,
) -> Result<PriorityQueueReader, CommandError> {
    let values = PriorityQueueReader::new(payload)?;
    let mut budget = context.size_budget();
    let mut is_empty = true;
    // Only read: values are read again when they are written, rather than kept.
    for value in values.clone() {
        let (_, value) = value?;
        budget.take_element(value.len())?;
        is_empty = false;
    }
    match is_empty {
        true => Err(DumpError::Format.into()),
        false => Ok(values),
    }
}

/// Reads a queue from a payload.
pub(super) fn restorable(
    context: &ReadContext<'_>,
    payload: Payload,
) -> Result<Restorable, CommandError> {
    let values = sound_values(context, payload)?;
    Ok(Box::new(|context, name, expire_at_ms| {
        Box::pin(async move {
            let value_type = ValueType::PriorityQueue;
            let key = context.create(name, value_type, expire_at_ms).await?;
            context.queue_push_dumped(&key, values).await?;
            Ok(())
        })
    }))
}

impl WriteContext<'_> {
    /// Adds the values of a payload to a queue, which is made where there is none. Answers how many.
    ///
    /// # Errors
    /// `Payload` if the payload is not that of a priority queue; `TooLarge`; `WrongType`.
    pub async fn queue_add_chunk(
        &self,
        name: &Bytes,
        payload: Payload,
    ) -> Result<i64, CommandError> {
        let values = sound_values(self, payload)?;
        let key = self.find_or_create(name, ValueType::PriorityQueue).await?;
        self.queue_push_dumped(&key, values).await
    }

    async fn queue_push_dumped(
        &self,
        key: &OpenKey,
        mut values: PriorityQueueReader,
    ) -> Result<i64, CommandError> {
        let mut count = 0;
        loop {
            let page = values.by_ref().take(RANGE_PAGE_ROWS);
            let page: Result<Vec<_>, _> = page.map(|value| queued(value?)).collect();
            let page = page?;
            // One that is larger than a transaction may be is refused for that afterwards.
            let bytes_max = self.environment.capabilities.transaction_bytes_max;
            if page.is_empty() || self.transaction.size_bytes() > bytes_max {
                return Ok(count);
            }
            count += i64::try_from(page.len()).unwrap_or(i64::MAX);
            self.queue_push(key, &page).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::pages::testing::Counting;
    use crate::testing::environment;
    use crate::unit::context::NamespaceCache;
    use quoin_engine::testing::Bench;

    #[test]
    fn a_chunk_reads_little_more_than_it_answers() {
        for bench in [Bench::embedded(), Bench::cluster_like()] {
            let value = "v".repeat(80_000);
            for number in 0..100 {
                bench.run(&format!("PQ.PUSH q {number} {value}"));
            }
            for rank in [0, 95] {
                let environment = &environment(&bench);
                let transaction = bench.store.begin_read().unwrap();
                let counting = Counting::of(&*transaction);
                let namespaces = NamespaceCache::default();
                let context = ReadContext::new(&counting, environment, &namespaces, 0, 0);
                let chunk = bench.block_on(async {
                    let name = Bytes::from_static(b"q");
                    let key = context.find(&name, ValueType::PriorityQueue).await.unwrap();
                    context
                        .queue_chunk(&key.unwrap(), rank, 10_000)
                        .await
                        .unwrap()
                });
                assert!(chunk.payload.is_some());
                assert_eq!(chunk.next.is_some(), rank == 0);
                assert!(
                    counting.bytes() <= 3 * IMPORT_CHUNK_BYTES,
                    "{rank}: {}",
                    counting.bytes()
                );
            }
        }
    }
}
