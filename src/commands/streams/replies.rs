//! What stream commands answer.

use crate::layout::StreamId;
use crate::reply::Reply;
use crate::types::stream::StreamEntry;

/// An id.
pub(super) fn id_reply(id: StreamId) -> Reply {
    Reply::bulk(id.to_string())
}

/// An entry: its id, and its names and values in turns.
pub(super) fn entry_reply(entry: StreamEntry) -> Reply {
    let fields = entry.fields.into_iter().map(Reply::Bulk);
    Reply::Array(vec![id_reply(entry.id), Reply::Array(fields.collect())])
}

/// Entries in their order.
pub(super) fn entries_reply(entries: Vec<StreamEntry>) -> Reply {
    Reply::Array(entries.into_iter().map(entry_reply).collect())
}
