//! DUMP, RESTORE, PQ.SCANDUMP and PQ.LOADCHUNK of priority queues.

use bytes::Bytes;

use crate::command::arguments::{
    argument, chunk_arguments, chunk_payload, chunk_reply, clamp_range, cursor,
};
use crate::error::CommandError;
use crate::keyspace::dumping::{Chunk, check_size};
use crate::keyspace::kind::Restorable;
use crate::rows::runs::ElementsRows;
use crate::unit::context::{ReadContext, WriteContext};
use quoin_base::events::EventClasses;
use quoin_base::limits::{IMPORT_CHUNK_BYTES, RANGE_PAGE_ROWS};
use quoin_layout::{Priority, PriorityNumber, ValueType, successor};
use quoin_rdb::{DumpError, DumpedPriority, Payload, PriorityQueueReader, PriorityQueueWriter};
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

use super::commands::PUSH_EVENT;
use super::range::QueueSlice;
use super::{PriorityQueue, PriorityQueueMut, QueuedValue, rows_of};

/// Values that a chunk reads first. Even the largest of them hardly exceed [`IMPORT_CHUNK_BYTES`].
const FIRST_STEP_ELEMENTS: usize = 16;
/// Values that a chunk reads at a time if they are small.
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

impl PriorityQueue<'_, '_> {
    /// A queue as a payload.
    ///
    /// # Errors
    /// `Text` if the payload is too large.
    pub(super) async fn dump(&self) -> Result<Bytes, CommandError> {
        let (range, prefix_length) = rows_of(self.context, self.key.data());
        let mut rows = ElementsRows::new(self.context, range, false);
        let mut writer = PriorityQueueWriter::new();
        while let Some(page) = rows.next(usize::MAX).await? {
            for row in page {
                let (place, _) = row.queue_place(self.context, prefix_length)?;
                for (_, value) in row.elements(false) {
                    let value = self.context.load_stored(self.key.data(), value).await?;
                    writer.push(dumped(&place.priority), &value);
                    check_size(writer.size_bytes())?;
                }
            }
        }
        Ok(writer.finish())
    }

    /// Up to `count` values from a rank on, about [`IMPORT_CHUNK_BYTES`] in size.
    pub(super) async fn chunk(&self, rank: i64, count: usize) -> Result<Chunk, StoreError> {
        let length = self
            .context
            .length(self.key, self.context.isolation)
            .await?;
        let stop = rank.saturating_add_unsigned(count as u64).saturating_sub(1);
        let Some((offset, count)) = clamp_range(rank, stop, length) else {
            return Ok(Chunk::default());
        };
        // In steps, because a chunk may have only a few values if they are large.
        let mut step = FIRST_STEP_ELEMENTS;
        let slice = self.ascending(length, offset, count.min(step));
        let mut slice = slice.await?;
        let (mut range, prefix_length) = rows_of(self.context, self.key.data());
        if let Some(last) = slice.rows.last() {
            range.begin = successor(&last.key);
        }
        let mut rows = ElementsRows::new(self.context, range, false);
        let mut writer = PriorityQueueWriter::new();
        let mut taken = 0;
        let is_full = |taken: usize, writer: &PriorityQueueWriter| {
            taken >= count || writer.size_bytes() >= IMPORT_CHUNK_BYTES
        };
        while !slice.rows.is_empty() {
            let mut skip = slice.skip;
            'rows: for row in &slice.rows {
                let (place, _) = row.queue_place(self.context, prefix_length)?;
                let skipped = std::mem::take(&mut skip);
                for (_, value) in row.elements(false).into_iter().skip(skipped) {
                    if is_full(taken, &writer) {
                        break 'rows;
                    }
                    let value = self.context.load_stored(self.key.data(), value).await?;
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

/// The values of a payload. All of them are valid.
fn sound_values(
    context: &ReadContext<'_>,
    payload: Payload,
) -> Result<PriorityQueueReader, CommandError> {
    let values = PriorityQueueReader::new(payload)?;
    let mut budget = context.size_budget();
    let mut is_empty = true;
    // Values are not kept. They are read again when they are written.
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
            let queue = PriorityQueueMut::open(context, &key);
            queue.push_dumped(values).await?;
            Ok(())
        })
    }))
}

impl PriorityQueueMut<'_, '_> {
    /// Adds the values of a payload. Returns how many.
    async fn push_dumped(&self, mut values: PriorityQueueReader) -> Result<i64, CommandError> {
        let mut count = 0;
        loop {
            let page = values.by_ref().take(RANGE_PAGE_ROWS);
            let page: Result<Vec<_>, _> = page.map(|value| queued(value?)).collect();
            let page = page?;
            // A transaction that is too large is refused when it commits.
            let bytes_max = self.context.environment.capabilities.transaction_bytes_max;
            if page.is_empty() || self.context.transaction.size_bytes() > bytes_max {
                return Ok(count);
            }
            count += i64::try_from(page.len()).unwrap_or(i64::MAX);
            self.push(&page).await?;
        }
    }
}

/// `PQ.SCANDUMP key cursor [COUNT count]` → the next cursor, and a chunk. A cursor is a rank.
pub(super) async fn scan_dump(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let (at, count) = chunk_arguments(arguments)?;
    let rank = at.map_or(Ok(0), |at| cursor(at))?;
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    let name = argument(arguments, 1)?;
    Ok(chunk_reply(
        match context.find(name, ValueType::PriorityQueue).await? {
            Some(key) => {
                PriorityQueue::open(context, &key)
                    .chunk(rank, count)
                    .await?
            }
            None => Chunk::default(),
        },
    ))
}

/// `PQ.LOADCHUNK key chunk` → the number of values added.
pub(super) async fn load_chunk(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let name = argument(arguments, 1)?;
    let values = sound_values(context, chunk_payload(arguments)?)?;
    let value_type = ValueType::PriorityQueue;
    let key = context.find_or_create(name, value_type).await?;
    let queue = PriorityQueueMut::open(context, &key);
    let count = queue.push_dumped(values).await?;
    context.notify(EventClasses::MODULE, PUSH_EVENT, name);
    Ok(Reply::Integer(count))
}
