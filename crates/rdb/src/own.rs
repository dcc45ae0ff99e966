//! Values of Quoin's own types, in the form that Redis's modules use.
//!
//! A value begins with a number that encodes the name of the type and the version of its form.
//! Parts follow, each with its kind, and then an end mark. So Redis refuses such a payload as the
//! value of an unknown module, and refuses a file and names the type. Tools that read Redis's files
//! can find the end of the value.

mod parts;
mod priority_queue;
mod task_queue;

use bytes::Bytes;

use super::DumpError;
use super::payload::{OwnType, Payload, open};
pub use priority_queue::{DumpedPriority, PriorityQueueReader, PriorityQueueWriter};
pub use task_queue::{
    DumpedItem, DumpedKept, DumpedKeptKind, DumpedOptions, DumpedState, DumpedTask,
    TaskQueueReader, TaskQueueWriter,
};

/// Splits a payload of one of Quoin's own types into chunks.
#[derive(Debug, Clone)]
pub enum Chunks {
    /// Of a priority queue.
    PriorityQueue(PriorityQueueReader),
    /// Of a task queue.
    TaskQueue(TaskQueueReader),
}

impl Chunks {
    /// Begins to read a payload.
    ///
    /// # Errors
    /// If it is not of such a type, or is invalid.
    pub fn new(payload: Payload) -> Result<Self, DumpError> {
        Ok(match payload.own_type() {
            Some(OwnType::PriorityQueue) => {
                Chunks::PriorityQueue(PriorityQueueReader::new(payload)?)
            }
            Some(OwnType::TaskQueue) => Chunks::TaskQueue(TaskQueueReader::new(payload)?),
            None => return Err(payload.refusal()),
        })
    }

    /// The next chunk, of up to `count_max` elements and about `bytes_max` bytes; `None` at the end.
    ///
    /// # Errors
    /// If the payload is invalid.
    pub fn next_chunk(
        &mut self,
        bytes_max: usize,
        count_max: usize,
    ) -> Result<Option<Bytes>, DumpError> {
        let mut count = 0;
        let chunk = match self {
            Chunks::PriorityQueue(values) => {
                let mut writer = PriorityQueueWriter::new();
                while count < count_max
                    && writer.size_bytes() < bytes_max
                    && let Some((priority, value)) = values.next().transpose()?
                {
                    writer.push(priority, &value);
                    count += 1;
                }
                writer.finish()
            }
            Chunks::TaskQueue(tasks) => {
                let mut writer =
                    TaskQueueWriter::new(tasks.added(), tasks.resources(), tasks.options());
                while count < count_max
                    && writer.size_bytes() < bytes_max
                    && let Some(item) = tasks.next().transpose()?
                {
                    match item {
                        DumpedItem::Task(task) => writer.push(&task),
                        DumpedItem::Kept(kept) => writer.push_kept(&kept),
                    }
                    count += 1;
                }
                writer.finish()
            }
        };
        Ok((count > 0).then_some(chunk))
    }

    /// How many elements are left. Tokens, results and schedules of a task queue are none.
    ///
    /// # Errors
    /// If the payload is invalid.
    pub fn count_left(self) -> Result<u64, DumpError> {
        let mut count = 0;
        match self {
            Chunks::PriorityQueue(values) => {
                for value in values {
                    value?;
                    count += 1;
                }
            }
            Chunks::TaskQueue(tasks) => {
                for item in tasks {
                    count += u64::from(matches!(item?, DumpedItem::Task(_)));
                }
            }
        }
        Ok(count)
    }
}

/// Elements of payloads of Quoin's own types.
pub fn elements_in_chunks(payloads: &[Vec<u8>]) -> usize {
    let count = |payload: &Vec<u8>| {
        let payload = open(&Bytes::copy_from_slice(payload))?;
        Chunks::new(payload)?.count_left()
    };
    let counts = payloads.iter().map(|payload| count(payload).unwrap_or(0));
    usize::try_from(counts.sum::<u64>()).unwrap_or(usize::MAX)
}
