//! Adding an entry.

use bytes::Bytes;

use crate::error::CommandError;
use crate::keyspace::key::OpenKey;
use crate::unit::context::WriteContext;
use quoin_layout::stream::encode_stream_fields;
use quoin_layout::{StreamHead, StreamId};
use quoin_store::StoreError;

use super::Trim;

/// What a new entry's id shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewId {
    /// The time, or after the last id where that is later.
    Now,
    /// These milliseconds, and the next sequence number.
    At(u64),
    /// This one.
    Exact(StreamId),
}

const EXHAUSTED: CommandError = CommandError::text(
    "ERR The stream has exhausted the last possible ID, unable to add more items",
);
const NOT_GREATER: CommandError = CommandError::text(
    "ERR The ID specified in XADD is equal or smaller than the target stream top item",
);

impl NewId {
    /// The id of the entry after the last (Redis: `streamAppendItem`).
    fn after(self, last: StreamId, now_ms: i64) -> Result<StreamId, CommandError> {
        if last == StreamId::MAX {
            return Err(EXHAUSTED);
        }
        let id = match self {
            NewId::Exact(id) => Some(id),
            NewId::At(ms) if ms == last.ms => {
                last.seq.checked_add(1).map(|seq| StreamId { ms, seq })
            }
            NewId::At(ms) => Some(StreamId { ms, seq: 0 }),
            NewId::Now => match u64::try_from(now_ms) {
                Ok(ms) if ms > last.ms => Some(StreamId { ms, seq: 0 }),
                _ => last.next(),
            },
        };
        id.filter(|id| *id > last).ok_or(NOT_GREATER)
    }
}

/// Adds several entries to a stream: its head is read and written once.
pub struct Appending<'c, 't> {
    context: &'c WriteContext<'t>,
    key: &'c OpenKey,
    head: StreamHead,
    length: i64,
    /// Entries that are written, and that neither the head nor the length counts.
    uncounted: i64,
}

impl<'c, 't> Appending<'c, 't> {
    /// Begins to add.
    pub async fn begin(
        context: &'c WriteContext<'t>,
        key: &'c OpenKey,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            context,
            key,
            head: context.stream_head(key).await?,
            length: context.length(key, context.isolation).await?,
            uncounted: 0,
        })
    }

    /// Adds an entry of names and values in turns, and answers its id.
    ///
    /// # Errors
    /// `Text` where no entry can have that id.
    pub fn append(&mut self, id: NewId, fields: &[Bytes]) -> Result<StreamId, CommandError> {
        let id = id.after(self.head.last, self.context.now_ms)?;
        self.context.stream_put(self.key, id, fields);
        self.head = StreamHead {
            last: id,
            added: self.head.added.saturating_add(1),
        };
        self.length += 1;
        self.uncounted += 1;
        Ok(id)
    }

    /// Trims the stream as it is so far.
    pub async fn trim(&mut self, trim: &Trim) -> Result<(), StoreError> {
        let length = u64::try_from(self.length).unwrap_or(0);
        if self.context.stream_trims(self.key, trim, self.head, length) {
            self.count();
            self.length -= self.context.stream_trim(self.key, trim).await?;
        }
        Ok(())
    }

    /// Counts what was added. To be called at the end.
    pub fn count(&mut self) {
        self.context.set_stream_head(self.key, self.head);
        self.context.add_length(self.key, self.uncounted);
        self.uncounted = 0;
    }
}

impl WriteContext<'_> {
    /// Adds an entry of names and values in turns, and answers its id.
    ///
    /// # Errors
    /// `Text` where no entry can have that id.
    pub async fn stream_append(
        &self,
        key: &OpenKey,
        id: NewId,
        fields: &[Bytes],
    ) -> Result<StreamId, CommandError> {
        let head = self.stream_head(key).await?;
        let id = id.after(head.last, self.now_ms)?;
        self.stream_put(key, id, fields);
        self.set_stream_head(
            key,
            StreamHead {
                last: id,
                added: head.added.saturating_add(1),
            },
        );
        self.add_length(key, 1);
        Ok(id)
    }

    /// Writes an entry's row and nothing else.
    pub(super) fn stream_put(&self, key: &OpenKey, id: StreamId, fields: &[Bytes]) {
        let row = self.store_value(key.data(), &encode_stream_fields(fields));
        let entry_key = self.layout().stream_entry_key(key.data(), id);
        self.transaction.set(&entry_key, &row);
    }

    /// Writes a stream's head.
    pub(super) fn set_stream_head(&self, key: &OpenKey, head: StreamHead) {
        let head_key = self.layout().stream_head_key(key.data());
        self.transaction.set(&head_key, &head.encode());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ms: u64, seq: u64) -> StreamId {
        StreamId { ms, seq }
    }

    #[test]
    fn an_id_of_the_server_is_the_time_unless_the_last_is_later() {
        let now = |last| NewId::Now.after(last, 7).ok();
        assert_eq!(now(StreamId::MIN), Some(id(7, 0)));
        assert_eq!(now(id(6, 9)), Some(id(7, 0)));
        assert_eq!(now(id(7, 0)), Some(id(7, 1)));
        assert_eq!(now(id(8, 3)), Some(id(8, 4)));
        assert_eq!(now(id(8, u64::MAX)), Some(id(9, 0)));
        assert_eq!(now(StreamId::MAX), None);
        assert_eq!(NewId::Now.after(StreamId::MIN, -1).ok(), Some(id(0, 1)));
    }

    #[test]
    fn an_id_without_a_sequence_is_the_next_of_its_millisecond() {
        let at = |ms, last| NewId::At(ms).after(last, 0).ok();
        assert_eq!(at(0, StreamId::MIN), Some(id(0, 1)));
        assert_eq!(at(5, id(5, 3)), Some(id(5, 4)));
        assert_eq!(at(6, id(5, 3)), Some(id(6, 0)));
        assert_eq!(at(4, id(5, 3)), None);
        assert_eq!(at(5, id(5, u64::MAX)), None);
    }

    #[test]
    fn an_id_that_was_given_is_above_the_last() {
        let exact = |given, last| NewId::Exact(given).after(last, 0).ok();
        assert_eq!(exact(id(5, 4), id(5, 3)), Some(id(5, 4)));
        assert_eq!(exact(id(5, 3), id(5, 3)), None);
        assert_eq!(exact(StreamId::MAX, id(5, 3)), Some(StreamId::MAX));
    }
}
