//! What a transaction's last range read found empty.
//!
//! Each popped row of a queue leaves a cleared range of one key in the overlay. There are no rows
//! between two of these ranges. The read that found a row knows that: there was nothing between
//! the beginning of the read and the row. So clearing the row also clears the range before it. A
//! run of pops becomes one cleared range, which the next read skips at once.

use bytes::Bytes;

use super::layer::Layer;
use super::undo::Log;
use crate::store::rules::key_after;
use crate::store::{KeyValue, RangeQuery};

/// The last range read, and which of its rows have been cleared, in their order.
#[derive(Debug, Default)]
pub(super) struct LastScan {
    /// Where the read began: the beginning of the range, or in reverse its end.
    edge: Vec<u8>,
    reverse: bool,
    /// The rows' keys that are not cleared yet, the next one last.
    keys: Vec<Bytes>,
}

impl LastScan {
    /// Forgets the read. For a rollback, after which cleared rows may be back.
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

    /// Clears a range in the transaction's layer. If it begins with the next row of the read, the empty
    /// range before it is cleared too.
    pub(super) fn clear_range(
        &mut self,
        begin: &[u8],
        end: &[u8],
        layer: &mut Layer,
        log: &mut Log,
    ) {
        let is_next = self.keys.last().is_some_and(|next| {
            let begins_there = match self.reverse {
                true => end <= self.edge.as_slice(),
                false => begin >= self.edge.as_slice(),
            };
            begins_there && **next >= *begin && **next < *end
        });
        if !is_next {
            layer.clear_range(begin, end, log);
            return;
        }
        while self
            .keys
            .last()
            .is_some_and(|next| **next >= *begin && **next < *end)
        {
            self.keys.pop();
        }
        layer.remove_rows(begin, end, log);
        let after = if self.reverse {
            layer.hide(begin, &self.edge, log);
            begin
        } else {
            layer.hide(&self.edge, end, log);
            end
        };
        self.edge.clear();
        self.edge.extend_from_slice(after);
    }

    /// Clears a key in the transaction's layer. If it is the next row of the read, the empty range
    /// before it is cleared too.
    pub(super) fn clear(&mut self, key: &[u8], layer: &mut Layer, log: &mut Log) {
        if self.keys.last().is_none_or(|next| next != key) {
            layer.clear(key, log);
            return;
        }
        self.keys.pop();
        layer.remove_row(key, log);
        // Rows that the transaction has written since are in the layer and stay.
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
