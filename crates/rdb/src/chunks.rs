//! Values of Quoin's own types in chunks: payloads of the same form, each with some of the elements.

use bytes::Bytes;

use super::DumpError;
use super::own::OwnType;
use super::payload::Payload;
use super::priority_queue::{PriorityQueueReader, PriorityQueueWriter};
use super::task_queue::{TaskQueueReader, TaskQueueWriter};

/// Hands out the elements of a payload of one of Quoin's own types in chunks.
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
    /// Where it is of no such type, or not sound.
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
    /// Where the payload is not sound.
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
                let mut writer = TaskQueueWriter::new(tasks.added(), tasks.resources());
                while count < count_max
                    && writer.size_bytes() < bytes_max
                    && let Some(task) = tasks.next().transpose()?
                {
                    writer.push(&task);
                    count += 1;
                }
                writer.finish()
            }
        };
        Ok((count > 0).then_some(chunk))
    }

    /// How many elements are left.
    ///
    /// # Errors
    /// Where the payload is not sound.
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
                for task in tasks {
                    task?;
                    count += 1;
                }
            }
        }
        Ok(count)
    }
}
