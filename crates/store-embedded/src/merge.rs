//! Reads layers and the data file as one.
//!
//! The newest layer that has something for a key decides. A read skips a whole cleared range
//! instead of stepping over its hidden rows one by one.

use std::ops::Bound;

use heed::{AnyTls, RoTxn};
use imbl::ordmap::RangedIter;
use imbl::shared_ptr::DefaultSharedPtr;

use super::blob::{Blob, Key};
use super::error::store_error;
use super::filter::Fingerprint;
use super::layer::{Layer, Lookup};
use super::rows;
use super::table::{Rows, Walk};
use quoin_store::{KeyValue, RangeQuery, StoreError, page};

use quoin_store::page::Row;

/// Hidden rows that a read steps over before it seeks the end of the cleared range.
const STEPS_BEFORE_SEEK: usize = 4;

/// Layers, newest first, above a snapshot of the data file.
#[derive(Clone, Copy)]
pub(super) struct View<'v> {
    pub(super) layers: &'v [Layer],
    pub(super) rows: &'v Rows,
    pub(super) transaction: &'v RoTxn<'v, AnyTls>,
}

impl<'v> View<'v> {
    /// The value of one key.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<&'v [u8]>, StoreError> {
        let mut fingerprint = None;
        for layer in self.layers {
            let fingerprint = || *fingerprint.get_or_insert_with(|| Fingerprint::of(key));
            match layer.get_by(key, fingerprint) {
                Lookup::Value(value) => return Ok(Some(value)),
                Lookup::Cleared => return Ok(None),
                Lookup::Nothing => {}
            }
        }
        rows::get(self.rows, self.transaction, key)
    }

    /// The rows of a range, one by one.
    pub(super) fn merge<'q>(&self, query: &RangeQuery<'q>) -> Result<Merge<'v, 'q>, StoreError> {
        Merge::new(*self, query)
    }

    /// The rows of a range, copied into one shared buffer.
    pub(super) fn get_range(&self, query: &RangeQuery<'_>) -> Result<Vec<KeyValue>, StoreError> {
        self.get_page(query, usize::MAX)
    }

    /// Like [`Self::get_range`], but ends with the row at which keys and values reach `bytes_max`.
    pub(super) fn get_page(
        &self,
        query: &RangeQuery<'_>,
        bytes_max: usize,
    ) -> Result<Vec<KeyValue>, StoreError> {
        if query.limit == 0 || query.begin >= query.end {
            return Ok(Vec::new());
        }
        if self.layers.iter().all(Layer::is_empty) {
            return rows::get_page(self.rows, self.transaction, query, bytes_max);
        }
        let mut merge = Merge::new(*self, query)?;
        if query.limit == 1 {
            let found = merge.next_row()?;
            return Ok(found.map(|row| page::pack(&[row])).unwrap_or_default());
        }
        let mut found = Vec::new();
        let mut bytes = 0;
        while found.len() < query.limit
            && bytes < bytes_max
            && let Some(row) = merge.next_row()?
        {
            bytes += row.0.len() + row.1.len();
            found.push(row);
        }
        Ok(page::pack(&found))
    }
}

/// The position of one layer, or of the data file, in a merge.
struct Cursor<'v> {
    source: Source<'v>,
    /// Its next row.
    head: Option<Row<'v>>,
    /// Created at the first step, because most reads take one row.
    steps: Option<Box<Steps<'v>>>,
}

#[derive(Clone, Copy)]
enum Source<'v> {
    Layer(&'v Layer),
    File(&'v Rows, &'v RoTxn<'v, AnyTls>),
}

enum Steps<'v> {
    Layer(RangedIter<'v, Key, Blob, DefaultSharedPtr>),
    File(Walk<'v>),
}

/// The rows of a range, in the order of the query.
pub(super) struct Merge<'v, 'q> {
    layers: &'v [Layer],
    /// One for each layer, then one for the data file.
    cursors: Vec<Cursor<'v>>,
    begin: &'q [u8],
    end: &'q [u8],
    reverse: bool,
    /// The cursor whose head was returned last. It is advanced before the next row.
    taken: Option<usize>,
}

impl<'v, 'q> Merge<'v, 'q> {
    fn new(view: View<'v>, query: &RangeQuery<'q>) -> Result<Self, StoreError> {
        let sources = view
            .layers
            .iter()
            .map(Source::Layer)
            .chain([Source::File(view.rows, view.transaction)]);
        let cursors = sources
            .map(|source| Cursor {
                source,
                head: None,
                steps: None,
            })
            .collect();
        let merge = Self {
            layers: view.layers,
            cursors,
            begin: query.begin,
            end: query.end,
            reverse: query.reverse,
            taken: None,
        };
        let mut edge = if query.reverse {
            query.end
        } else {
            query.begin
        };
        let mut merge = merge;
        for at in 0..merge.cursors.len() {
            // Each layer may hide more of the older ones from the edge on.
            if let Some(layer) = at.checked_sub(1).and_then(|newer| view.layers.get(newer))
                && let Some(further) = merge.further(layer, edge)
            {
                edge = merge.skip_cleared(at, further);
            }
            merge.place(at, edge)?;
        }
        Ok(merge)
    }

    /// The next row, if there is one.
    pub(super) fn next_row(&mut self) -> Result<Option<Row<'v>>, StoreError> {
        if let Some(taken) = self.taken.take() {
            self.step(taken)?;
        }
        loop {
            let Some((at, row)) = self.nearest() else {
                return Ok(None);
            };
            let hidden_until = self.jump_from(at, row.0);
            if let Some(edge) = hidden_until {
                self.pass(at, edge)?;
                continue;
            }
            // Skips older rows of the same key.
            for older in at + 1..self.cursors.len() {
                let head = self.cursors.get(older).and_then(|cursor| cursor.head);
                if head.is_some_and(|head| head.0 == row.0) {
                    self.step(older)?;
                }
            }
            self.taken = Some(at);
            return Ok(Some(row));
        }
    }

    /// The head that comes first in read order. Among equal keys, the newest.
    fn nearest(&self) -> Option<(usize, Row<'v>)> {
        let mut nearest: Option<(usize, Row<'v>)> = None;
        for (at, cursor) in self.cursors.iter().enumerate() {
            let Some(row) = cursor.head else { continue };
            let is_nearer = nearest.is_none_or(|(_, other)| {
                if self.reverse {
                    row.0 > other.0
                } else {
                    row.0 < other.0
                }
            });
            if is_nearer {
                nearest = Some((at, row));
            }
        }
        nearest
    }

    /// The far edge of a range that a newer layer has cleared and that hides `key` of cursor `at`.
    fn jump_from(&self, at: usize, key: &[u8]) -> Option<&'v [u8]> {
        self.layers.iter().take(at).find_map(|layer| {
            let (begin, end) = layer.cleared_over(key)?;
            Some(if self.reverse { begin } else { end })
        })
    }

    /// Moves a cursor past `edge`: by a few steps, or else by a seek.
    fn pass(&mut self, at: usize, edge: &[u8]) -> Result<(), StoreError> {
        for _ in 0..STEPS_BEFORE_SEEK {
            self.step(at)?;
            let head = self.cursors.get(at).and_then(|cursor| cursor.head);
            let is_past = match head {
                Some((key, _)) if self.reverse => key < edge,
                Some((key, _)) => key >= edge,
                None => true,
            };
            if is_past {
                return Ok(());
            }
        }
        self.seek(at, edge)
    }

    /// Moves a cursor to its first row from `edge` on, past everything that newer layers hide
    /// there.
    fn seek(&mut self, at: usize, edge: &[u8]) -> Result<(), StoreError> {
        let edge = self.skip_cleared(at, edge);
        self.place(at, edge)
    }

    /// The far edge of a layer's cleared range at `edge`.
    fn further(&self, layer: &'v Layer, edge: &[u8]) -> Option<&'v [u8]> {
        if self.reverse {
            layer.cleared_before(edge)
        } else {
            layer.cleared_over(edge).map(|(_, end)| end)
        }
    }

    /// `edge`, moved past everything that layers newer than `at` have cleared there.
    fn skip_cleared<'e>(&self, at: usize, edge: &'e [u8]) -> &'e [u8]
    where
        'v: 'e,
    {
        let mut edge = edge;
        while let Some(further) = self
            .layers
            .iter()
            .take(at)
            .find_map(|layer| self.further(layer, edge))
        {
            edge = further;
        }
        edge
    }

    /// Moves a cursor to its first row from `edge` on.
    fn place(&mut self, at: usize, edge: &[u8]) -> Result<(), StoreError> {
        let (begin, end) = (self.begin, self.end);
        let Some(cursor) = self.cursors.get_mut(at) else {
            return Ok(());
        };
        cursor.steps = None;
        let is_outside = if self.reverse {
            edge <= begin
        } else {
            edge >= end
        };
        let first = if is_outside {
            None
        } else {
            cursor.source.first(edge, self.reverse)?
        };
        cursor.head = first.filter(|(key, _)| *key >= begin && *key < end);
        Ok(())
    }

    fn step(&mut self, at: usize) -> Result<(), StoreError> {
        let Some(cursor) = self.cursors.get_mut(at) else {
            return Ok(());
        };
        let Some((key, _)) = cursor.head else {
            return Ok(());
        };
        let (begin, end) = (self.begin, self.end);
        if cursor.steps.is_none() {
            let steps = cursor.source.steps(key, begin, end, self.reverse)?;
            cursor.steps = Some(Box::new(steps));
        }
        cursor.head = match cursor.steps.as_deref_mut() {
            Some(Steps::Layer(steps)) if self.reverse => {
                steps.next_back().map(|(key, value)| (&**key, &**value))
            }
            Some(Steps::Layer(steps)) => steps.next().map(|(key, value)| (&**key, &**value)),
            // The walk reads one row past the range: a damaged row may seem to be the range's end.
            Some(Steps::File(steps)) => {
                let row = steps.next().transpose().map_err(store_error)?;
                row.filter(|(key, _)| *key >= begin && *key < end)
            }
            None => None,
        };
        Ok(())
    }
}

impl<'v> Source<'v> {
    /// The row at or after `edge`. In reverse, the one before it.
    fn first(self, edge: &[u8], reverse: bool) -> Result<Option<Row<'v>>, StoreError> {
        match self {
            Source::Layer(layer) if reverse => Ok(layer.row_before(edge)),
            Source::Layer(layer) => Ok(layer.row_at_or_after(edge)),
            Source::File(rows, transaction) => {
                let found = rows.next_to(transaction, edge, reverse);
                found.map_err(store_error)
            }
        }
    }

    /// The rows after `key` in read order.
    fn steps(
        self,
        key: &'v [u8],
        begin: &[u8],
        end: &[u8],
        reverse: bool,
    ) -> Result<Steps<'v>, StoreError> {
        let bounds = if reverse {
            let begin = if begin.is_empty() {
                Bound::Unbounded
            } else {
                Bound::Included(begin)
            };
            (begin, Bound::Excluded(key))
        } else {
            (Bound::Excluded(key), Bound::Excluded(end))
        };
        Ok(match self {
            Source::Layer(layer) => Steps::Layer(layer.rows().range::<_, [u8]>(bounds)),
            Source::File(rows, transaction) => {
                let steps = rows.walk(transaction, key, reverse);
                Steps::File(steps.map_err(store_error)?)
            }
        })
    }
}

#[cfg(test)]
mod tests;
