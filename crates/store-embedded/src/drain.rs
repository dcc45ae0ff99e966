//! Writes a closed layer into the data file.
//!
//! Many commits are written together. Rows that were overwritten or removed in the meantime are
//! never written, and a page that many commits touched is written once.

use heed::{Env, RwTxn, WithoutTls};
use std::ops::Bound;

use super::layer::{ENTRY_BYTES, is_one_key};
use super::overlay::Closed;
use super::table::{APPLIED_KEY, Rows};

/// Bytes that the drain writes in one transaction of the data file. Each row may change a different
/// page, which LMDB keeps in memory until the commit.
pub(super) const SLICE_BYTES: usize = 512 * 1024;

/// Writes a layer into the data file, and the number of its last record under [`APPLIED_KEY`]. A
/// large layer takes several transactions of about `slice_bytes`. `after_slice` is called after
/// each one except the last. After an error, part of the layer may be written.
///
/// # Errors
/// If `after_slice` fails.
pub(super) fn write_layer(
    environment: &Env<WithoutTls>,
    rows: &Rows,
    closed: &Closed,
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
    // Ranges first: rows of the layer may be in ranges that it cleared.
    for (begin, end) in closed.layer.cleared() {
        let deleted = delete(rows, &mut slice.transaction, begin, end)?;
        slice = slice.count(deleted * ENTRY_BYTES)?;
    }
    let mut layer_rows = closed.layer.rows().iter().peekable();
    while layer_rows.peek().is_some() {
        let mut writer = rows.writer(&mut slice.transaction)?;
        let mut bytes = 0;
        while slice.bytes + bytes < slice.bytes_max
            && let Some((key, value)) = layer_rows.next()
        {
            writer.put(key, value)?;
            bytes += key.len() + value.len();
        }
        drop(writer);
        slice = slice.count(bytes)?;
    }
    let sequence = closed.sequence.to_le_bytes();
    rows.put(&mut slice.transaction, APPLIED_KEY, &sequence)?;
    slice.transaction.commit()
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
