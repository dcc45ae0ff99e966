//! What a transaction's last range read found empty.
//!
//! A queue is popped at its head, so what was popped lies before what is next. Each popped row
//! leaves a cleared range of one key in the overlay; between two of them there is nothing, which
//! nobody would know without looking. But the read that found the row has looked: nothing lies
//! between where it began and the row. Clearing the row may clear that too, and a run of pops
//! becomes one range, which the next read jumps over at once.

use bytes::Bytes;

use super::layer::Layer;
use super::undo::Log;
use crate::store::rules::key_after;
use crate::store::{KeyValue, RangeQuery};

/// The last range read and how far its rows have been cleared, in their order.
#[derive(Debug, Default)]
pub(super) struct LastScan {
    /// Where the read began: the range's begin, or backwards its end.
    edge: Vec<u8>,
    reverse: bool,
    /// The rows' keys that are not cleared yet, the next one last.
    keys: Vec<Bytes>,
}

impl LastScan {
    /// Forgets the read: what it found gone may be there again.
    pub(super) fn forget(&mut self) {
        self.keys.clear();
    }

    /// Remembers a read.
    pub(super) fn remember(&mut self, query: &RangeQuery<'_>, found: &[KeyValue]) {
        self.keys.clear();
        self.keys
            .extend(found.iter().rev().map(|row| row.key.clone()));
        let edge = if query.reverse {
            query.end
        } else {
            query.begin
        };
        self.edge.clear();
        self.edge.extend_from_slice(edge);
        self.reverse = query.reverse;
    }

    /// Clears a key in the transaction's layer, with the emptiness before it where it is the
    /// next row of the read.
    pub(super) fn clear(&mut self, key: &[u8], layer: &mut Layer, log: &mut Log) {
        if self.keys.last().is_none_or(|next| next != key) {
            layer.clear(key, log);
            return;
        }
        self.keys.pop();
        layer.remove_row(key, log);
        // Whatever the transaction has written meanwhile is in its own layer and stays.
        if self.reverse {
            layer.hide(key, &self.edge, log);
            self.edge.clear();
            self.edge.extend_from_slice(key);
        } else {
            let after = key_after(key);
            layer.hide(&self.edge, &after, log);
            self.edge = after;
        }
    }
}
