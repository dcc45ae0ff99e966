//! Remembers what a transaction's last range read found empty.
//!
//! Each popped row of a queue leaves a cleared range of one key in the overlay. There are no rows
//! between two of these ranges. The read that found a row proves this: there was nothing between
//! the beginning of the read and the row. So clearing the row also clears the range before it.
//! Consecutive pops make one cleared range, which the next read skips at once.

use std::collections::VecDeque;

use bytes::Bytes;

use super::layer::{Layer, is_one_key};
use super::undo::Log;
use quoin_store::rules::key_after;
use quoin_store::{KeyValue, RangeQuery};

/// Maximum bytes of rows whose keys are remembered. A key keeps the memory of the rows that were
/// read with it.
const BYTES_MAX: usize = 1024 * 1024;

/// The last range read, and which of its rows have been cleared, in order. A read that continues
/// where the previous one ended is part of it.
#[derive(Debug, Default)]
pub(super) struct LastScan {
    /// Where the read began: the beginning of the range or, in reverse, its end.
    edge: Vec<u8>,
    reverse: bool,
    /// Keys of the rows that are not cleared yet, next one first.
    keys: VecDeque<Bytes>,
    /// Bytes of the rows that were read.
    bytes: usize,
}

impl LastScan {
    /// Forgets the read. A rollback needs this, because cleared rows may be back.
    pub(super) fn forget(&mut self) {
        self.keys.clear();
    }

    pub(super) fn remember(&mut self, query: &RangeQuery<'_>, found: &[KeyValue]) {
        let edge = if query.reverse {
            query.end
        } else {
            query.begin
        };
        if !self.is_continued(edge, query.reverse) {
            self.keys.clear();
            self.bytes = 0;
            self.edge.clear();
            self.edge.extend_from_slice(edge);
            self.reverse = query.reverse;
        }
        for row in found {
            self.bytes += row.key.len() + row.value.len();
            self.keys.push_back(row.key.clone());
        }
    }

    /// Whether a read that begins at `edge` continues where this one ended.
    fn is_continued(&self, edge: &[u8], reverse: bool) -> bool {
        let Some(last) = self.keys.back() else {
            return false;
        };
        let begins_there = match reverse {
            true => **last == *edge,
            false => is_one_key(last, edge),
        };
        begins_there && reverse == self.reverse && self.bytes < BYTES_MAX
    }

    /// Clears a range in the transaction's layer. If it contains the next row of the read, the
    /// empty range before that row is cleared too.
    pub(super) fn clear_range(
        &mut self,
        begin: &[u8],
        end: &[u8],
        layer: &mut Layer,
        log: &mut Log,
    ) {
        let is_next = self.keys.front().is_some_and(|next| {
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
            .front()
            .is_some_and(|next| **next >= *begin && **next < *end)
        {
            self.keys.pop_front();
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
        if self.keys.front().is_none_or(|next| next != key) {
            layer.clear(key, log);
            return;
        }
        self.keys.pop_front();
        layer.remove_row(key, log);
        // Rows that the transaction has written since then are in the layer and stay.
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

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_store::Isolation;

    fn key(number: usize) -> Bytes {
        format!("k{number:02}").into()
    }

    fn read(scan: &mut LastScan, (begin, end): (&[u8], &[u8]), reverse: bool, numbers: &[usize]) {
        let query = RangeQuery {
            begin,
            end,
            limit: numbers.len(),
            reverse,
            isolation: Isolation::Snapshot,
        };
        let rows: Vec<KeyValue> = { numbers.iter() }
            .map(|number| KeyValue {
                key: key(*number),
                value: Bytes::new(),
            })
            .collect();
        scan.remember(&query, &rows);
    }

    fn cleared(layer: &Layer) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let cleared = layer.cleared().iter();
        cleared
            .map(|(begin, end)| (text(begin), text(end)))
            .collect()
    }

    #[test]
    fn a_pop_of_two_reads_clears_all_from_where_the_first_began() {
        let (mut scan, mut layer) = (LastScan::default(), Layer::default());
        read(&mut scan, (b"k", b"l"), true, &[90, 80]);
        read(&mut scan, (b"k", &key(80)), true, &[70, 60]);
        let log = &mut Log::default();
        scan.clear_range(&key(70), &key_after(&key(90)), &mut layer, log);
        assert_eq!(cleared(&layer), [("k70".to_owned(), "l".to_owned())]);
        scan.clear(&key(60), &mut layer, log);
        assert_eq!(cleared(&layer), [("k60".to_owned(), "l".to_owned())]);
    }

    #[test]
    fn a_pop_of_two_reads_from_the_front_does_so_too() {
        let (mut scan, mut layer) = (LastScan::default(), Layer::default());
        read(&mut scan, (b"k", b"l"), false, &[10, 20]);
        read(&mut scan, (&key_after(&key(20)), b"l"), false, &[30, 40]);
        let log = &mut Log::default();
        scan.clear_range(&key(10), &key_after(&key(30)), &mut layer, log);
        assert_eq!(cleared(&layer), [("k".to_owned(), "k30\0".to_owned())]);
    }

    #[test]
    fn a_read_of_something_else_begins_again() {
        let (mut scan, mut layer) = (LastScan::default(), Layer::default());
        read(&mut scan, (b"k", b"l"), true, &[90, 80]);
        read(&mut scan, (b"k", &key(75)), true, &[70, 60]);
        let log = &mut Log::default();
        // There may be rows between 75 and 80.
        scan.clear(&key(80), &mut layer, log);
        scan.clear(&key(70), &mut layer, log);
        let expected = [("k70", "k75"), ("k80", "k80\0")];
        let expected = expected.map(|(begin, end)| (begin.to_owned(), end.to_owned()));
        assert_eq!(cleared(&layer), expected);
    }

    #[test]
    fn a_long_read_is_remembered_in_parts() {
        let mut scan = LastScan::default();
        read(&mut scan, (b"k", b"l"), true, &[90, 80]);
        scan.bytes = BYTES_MAX;
        read(&mut scan, (b"k", &key(80)), true, &[70, 60]);
        assert_eq!(scan.keys, [key(70), key(60)]);
    }
}
