//! What stream commands answer.

use std::io::Write;

use bytes::Bytes;

use crate::stream::StreamEntry;
use quoin_layout::StreamId;
use quoin_resp::reply::Reply;

/// Bytes of the longest id.
const ID_BYTES_MAX: usize = 41;

/// An id. Ranges have many, so each is allocated once, in its length.
pub(super) fn id_reply(id: StreamId) -> Reply {
    let mut text = [0; ID_BYTES_MAX];
    let mut rest = text.as_mut_slice();
    // There is room for any.
    let _ = write!(rest, "{id}");
    let bytes = ID_BYTES_MAX - rest.len();
    Reply::Bulk(Bytes::copy_from_slice(
        text.get(..bytes).unwrap_or_default(),
    ))
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
