//! Messages between servers of one store. Whoever publishes also writes its messages into a log,
//! in the order of commits, and changes one row, the bell, that all who have subscribers watch.
//! They read what is behind their place in the log and deliver what others have published.
//!
//! Nobody waits for a reader, and the log is cleared after some seconds: a message is delivered
//! at most once, as in Redis.

use bytes::Bytes;

use crate::layout::message::{decode_messages, encode_messages, read_message_row};
use crate::layout::{KeyRange, Layout, successor};
use crate::store::{Isolation, KeyValue, RangeQuery, ReadTransaction, StoreError, Transaction};

use super::context::Environment;
use super::signals::{ChannelKind, Message};

/// Writes messages for the other servers, in the transaction of the commands that publish them.
/// Conflicts with nobody.
pub fn write_messages(
    transaction: &dyn Transaction,
    environment: &Environment,
    messages: &[Message],
) {
    if messages.is_empty() {
        return;
    }
    let layout = &environment.layout;
    let parts = messages.iter().map(|message| {
        let kind = match message.kind {
            ChannelKind::Global => 0,
            ChannelKind::Shard => 1,
        };
        (kind, message.channel.as_ref(), message.payload.as_ref())
    });
    let rows = encode_messages(environment.ids.instance(), parts);
    transaction.append(&layout.messages_prefix(), &rows);
    transaction.atomic_add(&layout.bell_key(), 1);
}

/// The key of the last row of the log; where the log is empty, one before every row.
///
/// # Errors
/// When the store fails.
pub async fn last_message_key(
    transaction: &dyn ReadTransaction,
    layout: &Layout,
) -> Result<Option<Bytes>, StoreError> {
    let KeyRange { begin, end } = layout.messages();
    let query = RangeQuery {
        begin: &begin,
        end: &end,
        limit: 1,
        reverse: true,
        isolation: Isolation::Snapshot,
    };
    let rows = transaction.get_range(query).await?;
    Ok(rows.into_iter().next().map(|row| row.key))
}

/// Clears the log up to a row, that row included.
pub fn clear_messages(transaction: &dyn Transaction, layout: &Layout, last: &[u8]) {
    let begin = layout.messages().begin;
    transaction.clear_range(&begin, &successor(last));
}

/// One server's place in the log.
pub struct LogReader {
    own_instance: u64,
    next: Vec<u8>,
    end: Vec<u8>,
    partial: Option<Partial>,
}

/// Rows of one transaction of which more follow.
struct Partial {
    stamp: [u8; 10],
    rows: u16,
    text: Vec<u8>,
}

impl LogReader {
    /// A reader of what is written from now on: behind `last`.
    pub fn new(environment: &Environment, last: Option<&[u8]>) -> Self {
        let KeyRange { begin, end } = environment.layout.messages();
        Self {
            own_instance: environment.ids.instance(),
            next: last.map_or(begin, successor),
            end,
            partial: None,
        }
    }

    /// Reads up to `rows_max` rows and answers what other servers have published; `true` with it
    /// where there may be more.
    ///
    /// # Errors
    /// When the store fails; nothing is skipped then.
    pub async fn read(
        &mut self,
        transaction: &dyn ReadTransaction,
        layout: &Layout,
        rows_max: usize,
    ) -> Result<(Vec<Message>, bool), StoreError> {
        let query = RangeQuery {
            begin: &self.next,
            end: &self.end,
            limit: rows_max,
            reverse: false,
            isolation: Isolation::Snapshot,
        };
        let rows = transaction.get_range(query).await?;
        let has_more = rows.len() >= rows_max;
        let mut messages = Vec::new();
        for row in &rows {
            self.next = successor(&row.key);
            // A newer server may write what this one cannot read: it is skipped.
            match self.take(layout, row) {
                Ok(found) => messages.extend(found),
                Err(error) => tracing::warn!(%error, "a message of another server is lost"),
            }
        }
        Ok((messages, has_more))
    }

    fn take(&mut self, layout: &Layout, row: &KeyValue) -> Result<Vec<Message>, StoreError> {
        let (stamp, number) = layout.read_message_key(&row.key)?;
        let (count, piece) = read_message_row(&row.value)?;
        let mut partial = match self.partial.take() {
            Some(partial) if partial.stamp == stamp && partial.rows == number => partial,
            // Rows whose beginning has been cleared are of no use.
            _ if number != 0 => return Ok(Vec::new()),
            _ => Partial {
                stamp,
                rows: 0,
                text: Vec::new(),
            },
        };
        partial.text.extend_from_slice(piece);
        partial.rows += 1;
        if partial.rows < count {
            self.partial = Some(partial);
            return Ok(Vec::new());
        }
        let (instance, stored) = decode_messages(partial.text.into())?;
        if instance == self.own_instance {
            return Ok(Vec::new());
        }
        let messages = stored.into_iter().map(|message| Message {
            kind: match message.kind {
                0 => ChannelKind::Global,
                _ => ChannelKind::Shard,
            },
            channel: message.channel,
            payload: message.payload,
        });
        Ok(messages.collect())
    }
}
