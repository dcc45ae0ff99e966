//! Writes a closed generation into the data file.
//!
//! Many commits are written together. Rows that were overwritten or removed in the meantime are
//! never written, and a page that many commits touched is written once.

use heed::{Env, RwTxn, WithoutTls};
use std::ops::Bound;

use super::dirty::{Cleared, Closed};
use super::row::Row;
use super::table::{APPLIED_KEY, Rows};
use super::tree::Span;

/// Bytes that the drain writes in one transaction of the data file. Each row may change a different
/// page, which LMDB keeps in memory until the commit.
pub(super) const SLICE_BYTES: usize = 512 * 1024;

/// Bytes that a removed row counts as.
const REMOVED_BYTES: usize = 180;

/// Writes a generation into the data file, and the number of its last record under [`APPLIED_KEY`].
/// A large one takes several transactions of about `slice_bytes`. `after_slice` is called after
/// each one except the last. After an error, part of the generation may be written.
///
/// # Errors
/// If `after_slice` fails.
pub(super) fn write(
    environment: &Env<WithoutTls>,
    rows: &Rows,
    closed: &Closed,
    slice_bytes: usize,
    after_slice: impl FnMut() -> Result<(), heed::Error>,
) -> Result<(), heed::Error> {
    let changes = Changes {
        cleared: &closed.cleared,
        sorted: closed.sorted(),
        sequence: closed.sequence,
    };
    changes.write(environment, rows, slice_bytes, after_slice)
}

/// What is written into the data file.
pub(super) struct Changes<'c> {
    /// Cleared before the rows are set.
    pub(super) cleared: &'c Cleared,
    /// In the order of their keys.
    pub(super) sorted: Vec<&'c Row>,
    /// Number of the last record with these changes.
    pub(super) sequence: u64,
}

impl Changes<'_> {
    /// See [`write`].
    pub(super) fn write(
        self,
        environment: &Env<WithoutTls>,
        rows: &Rows,
        slice_bytes: usize,
        after_slice: impl FnMut() -> Result<(), heed::Error>,
    ) -> Result<(), heed::Error> {
        let mut slice = Slice {
            environment,
            transaction: environment.write_txn()?,
            bytes: 0,
            bytes_max: slice_bytes,
            after: after_slice,
        };
        // Ranges first, because the generation may have rows in ranges that it cleared.
        for Span { begin, end } in self.cleared.ranges.iter() {
            let deleted = delete(rows, &mut slice.transaction, begin, end)?;
            slice = slice.count(deleted * REMOVED_BYTES)?;
        }
        for row in self.cleared.keys.all() {
            rows.delete(&mut slice.transaction, row.key())?;
            slice = slice.count(REMOVED_BYTES)?;
        }
        let mut sorted = self.sorted.into_iter().peekable();
        while sorted.peek().is_some() {
            let mut writer = rows.writer(&mut slice.transaction)?;
            let mut bytes = 0;
            while slice.bytes + bytes < slice.bytes_max
                && let Some(row) = sorted.next()
            {
                let (key, value) = row.split();
                writer.put(key, value)?;
                bytes += key.len() + value.len();
            }
            drop(writer);
            slice = slice.count(bytes)?;
        }
        let sequence = self.sequence.to_le_bytes();
        rows.put(&mut slice.transaction, APPLIED_KEY, &sequence)?;
        slice.transaction.commit()
    }
}

/// The transaction of one slice.
struct Slice<'e, F> {
    environment: &'e Env<WithoutTls>,
    transaction: RwTxn<'e>,
    bytes: usize,
    bytes_max: usize,
    /// Called after each slice.
    after: F,
}

impl<F: FnMut() -> Result<(), heed::Error>> Slice<'_, F> {
    /// Counts bytes. If the transaction is now large, commits it and begins another.
    fn count(mut self, bytes: usize) -> Result<Self, heed::Error> {
        self.bytes += bytes;
        if self.bytes < self.bytes_max {
            return Ok(self);
        }
        self.transaction.commit()?;
        (self.after)()?;
        Ok(Self {
            transaction: self.environment.write_txn()?,
            bytes: 0,
            ..self
        })
    }
}

/// Whether a range contains exactly one key.
fn is_one_key(begin: &[u8], end: &[u8]) -> bool {
    end.split_last() == Some((&0, begin))
}

/// Removes the rows of a range. Returns their number.
pub(super) fn delete(
    rows: &Rows,
    transaction: &mut RwTxn<'_>,
    begin: &[u8],
    end: &[u8],
) -> Result<usize, heed::Error> {
    if is_one_key(begin, end) && !begin.is_empty() {
        return rows.delete(transaction, begin).map(usize::from);
    }
    // LMDB does not accept an empty key as a bound.
    let begin = if begin.is_empty() {
        Bound::Unbounded
    } else {
        Bound::Included(begin)
    };
    rows.delete_range(transaction, &(begin, Bound::Excluded(end)))
}

#[cfg(test)]
mod tests;
