//! Where Redis's nodes of a stream end.
//!
//! Redis trims whole nodes where it is asked to trim approximately, and a node ends by its entries or by
//! its bytes. So entries are read to find where the first node ends, which this server then remembers:
//! while less than that node is to go, no entry is read. What is read at once is bounded. Later commands
//! trim the rest.

use crate::keyspace::key::OpenKey;
use crate::rows::pages::Pages;
use crate::unit::context::WriteContext;
use quoin_layout::{StoredValue, StreamId};
use quoin_rdb::StreamNode;
use quoin_store::StoreError;

use super::{IdRange, decode_stream_fields};

/// Entries that are looked at to find nodes. Of more, just as many go as are asked for.
const WALKED_ENTRIES_MAX: u64 = 100_000;
/// Bytes of entries that are read to find nodes, and those of one read more.
pub(super) const WALKED_BYTES_MAX: usize = 64 * 1024 * 1024;

impl WriteContext<'_> {
    /// How many of the first `at_most` entries are in whole nodes, of a stream of which so many are
    /// gone; of very large nodes and of many, how many of them can be looked at.
    pub(super) async fn entries_in_whole_nodes(
        &self,
        key: &OpenKey,
        gone: u64,
        at_most: u64,
    ) -> Result<u64, StoreError> {
        let nodes = &self.environment.stream_first_nodes;
        let left = nodes.entries_left(key.data(), gone);
        if left.is_some_and(|left| left > at_most) {
            return Ok(0);
        }
        if at_most > WALKED_ENTRIES_MAX {
            return Ok(at_most);
        }
        let entries_max = self.environment.stream_node_entries_max();
        let bytes_max = self.environment.stream_node_bytes_max();
        // Entries of the first node that are gone count too. Of a stream that was not looked at yet
        // nobody knows where it begins: as if all nodes had had all their entries.
        let begun = nodes.first(key.data(), gone);
        let begun = begun.unwrap_or(gone - gone % entries_max);
        let mut room = entries_max.saturating_sub(gone - begun);
        let layout = self.layout();
        let rows = layout.stream_entries(key.data(), IdRange::ALL.first, IdRange::ALL.last);
        let expected = usize::try_from(room.saturating_add(1)).unwrap_or(usize::MAX);
        let mut pages = Pages::new(self, rows, false, expected).in_isolation(self.relaxed());
        let mut begun = Some(begun);
        let mut whole = 0;
        let mut node: Option<StreamNode> = None;
        let mut walked_bytes = 0;
        'walk: while let Some(rows) = pages.next().await? {
            for row in rows {
                if walked_bytes >= WALKED_BYTES_MAX {
                    break 'walk;
                }
                walked_bytes += row.value.len();
                let StreamId { ms, seq } = layout.read_stream_entry_key(key.data(), &row.key)?;
                let fields = match StoredValue::decode(&row.value)? {
                    StoredValue::Plain(content) => Some(decode_stream_fields(&content)?),
                    // So large that it is not read: it fills a node.
                    StoredValue::Split { .. } => None,
                };
                match (&mut node, &fields) {
                    (Some(node), Some(fields)) if node.takes(fields, room, bytes_max) => {
                        node.push((ms, seq), fields);
                    }
                    (Some(full), _) if whole + full.entries() > at_most => {
                        let first = begun.unwrap_or(gone + whole);
                        nodes.remember(key.data(), first, gone + whole + full.entries());
                        return Ok(whole);
                    }
                    (ended, fields) => {
                        if let Some(ended) = ended {
                            whole += ended.entries();
                            (begun, room) = (None, entries_max);
                        }
                        *ended = Some(match fields {
                            Some(fields) => StreamNode::begin((ms, seq), fields),
                            None => StreamNode::of_one_large_entry(),
                        });
                    }
                }
            }
        }
        if let Some(node) = &node
            && walked_bytes >= WALKED_BYTES_MAX
            && whole == 0
            && node.entries() <= at_most
        {
            // Else a node that is larger than what is read would never go.
            return Ok(node.entries());
        }
        // The last node is not full, or not known to be.
        if let Some(node) = node {
            let first = begun.unwrap_or(gone + whole);
            nodes.remember(key.data(), first, gone + whole + node.entries());
        }
        Ok(whole)
    }
}
