//! Adding entries (XADD), and setting the last id (XSETID).

use bytes::Bytes;

use quoin_layout::stream::{encode_stream_deleted, encode_stream_fields};
use quoin_layout::{StreamHead, StreamId};
use quoin_store::StoreError;

use super::trim::Trim;
use super::{IdRange, StreamMut};
use crate::error::CommandError;

/// How a new entry gets its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewId {
    /// The time. If the last id is later: the id after the last.
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
    /// The id of an entry that follows the last id (Redis: `streamAppendItem`).
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

/// What XSETID sets in addition to the last id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamSettings {
    /// The number of entries that were ever added.
    pub added: Option<u64>,
    /// The greatest deleted id. The least id sets nothing.
    pub deleted: StreamId,
}

/// Adds several entries, and reads and writes the stream's head once.
pub(super) struct Appending<'c, 't> {
    stream: StreamMut<'c, 't>,
    head: StreamHead,
    length: i64,
    /// Entries that were written, and that the head and the length in the store do not count yet.
    uncounted: i64,
}

impl<'c, 't> Appending<'c, 't> {
    /// Begins to add entries.
    pub(super) async fn begin(stream: StreamMut<'c, 't>) -> Result<Self, StoreError> {
        let context = stream.context;
        Ok(Self {
            head: stream.head().await?,
            length: context.length(stream.key, context.isolation).await?,
            uncounted: 0,
            stream,
        })
    }

    /// Adds an entry, given as alternating names and values. Returns its id.
    ///
    /// # Errors
    /// `Text` if no entry can have that id.
    pub(super) fn append(&mut self, id: NewId, fields: &[Bytes]) -> Result<StreamId, CommandError> {
        let id = id.after(self.head.last, self.stream.context.now_ms)?;
        self.stream.put_entry(id, fields);
        self.head = StreamHead {
            last: id,
            added: self.head.added.saturating_add(1),
        };
        self.length += 1;
        self.uncounted += 1;
        Ok(id)
    }

    /// Trims the stream, including the entries added so far.
    pub(super) async fn trim(&mut self, trim: &Trim) -> Result<(), StoreError> {
        let length = u64::try_from(self.length).unwrap_or(0);
        if self.stream.may_trim(trim, self.head, length) {
            self.count();
            self.length -= self.stream.trim(trim).await?;
        }
        Ok(())
    }

    /// Counts the added entries. Must be called at the end.
    pub(super) fn count(&mut self) {
        self.stream.set_head(self.head);
        let context = self.stream.context;
        context.add_length(self.stream.key, self.uncounted);
        self.uncounted = 0;
    }
}

impl StreamMut<'_, '_> {
    /// Adds an entry, given as alternating names and values. Returns its id.
    ///
    /// # Errors
    /// `Text` if no entry can have that id.
    pub async fn append(&self, id: NewId, fields: &[Bytes]) -> Result<StreamId, CommandError> {
        let head = self.head().await?;
        let id = id.after(head.last, self.context.now_ms)?;
        self.put_entry(id, fields);
        self.set_head(StreamHead {
            last: id,
            added: head.added.saturating_add(1),
        });
        self.context.add_length(self.key, 1);
        Ok(id)
    }

    /// Writes only an entry's row.
    pub(super) fn put_entry(&self, id: StreamId, fields: &[Bytes]) {
        let (context, data) = (self.context, self.key.data());
        let row = context.store_value(data, &encode_stream_fields(fields));
        let entry_key = context.layout().stream_entry_key(data, id);
        context.transaction.set(&entry_key, &row);
    }

    /// Sets the last id, and more.
    ///
    /// # Errors
    /// `Text` if the new values contradict the stream's entries.
    pub async fn set_id(
        &self,
        last: StreamId,
        settings: StreamSettings,
    ) -> Result<(), CommandError> {
        if last < self.max_deleted_id().await? {
            return Err(CommandError::text(
                "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id",
            ));
        }
        if let Some(top) = self.pages(IdRange::ALL, true, 1).take(1).await?.pop() {
            if last < top.id {
                return Err(CommandError::text(
                    "ERR The ID specified in XSETID is smaller than the target stream top item",
                ));
            }
            let length = self.context.length(self.key, self.context.isolation);
            let length = length.await?;
            let is_less = |added| length > i64::try_from(added).unwrap_or(i64::MAX);
            if settings.added.is_some_and(is_less) {
                return Err(CommandError::text(
                    "ERR The entries_added specified in XSETID is smaller than the target stream \
                     length",
                ));
            }
        }
        let added = self.head().await?.added;
        self.set_head(StreamHead {
            last,
            added: settings.added.unwrap_or(added),
        });
        if settings.deleted != StreamId::MIN {
            self.set_max_deleted_id(settings.deleted);
        }
        Ok(())
    }

    /// Writes the head.
    pub(super) fn set_head(&self, head: StreamHead) {
        let row = self.context.layout().stream_head_key(self.key.data());
        self.context.transaction.set(&row, &head.encode());
    }

    /// Writes the greatest id that was deleted.
    pub(super) fn set_max_deleted_id(&self, id: StreamId) {
        let row = self.context.layout().stream_deleted_key(self.key.data());
        self.context
            .transaction
            .set(&row, &encode_stream_deleted(id));
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
