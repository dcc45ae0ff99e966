//! Sets many rows of the data file in key order.

use std::io::Write;

use heed::types::Bytes as Raw;
use heed::{Database, PutFlags, RwIter, RwTxn};

use super::checksum::{CHECKSUM_BYTES, RowFormat, checksums};

/// Sets rows of one transaction through one cursor. If a row belongs in the same page as the
/// previous one, LMDB need not search from the root or look up the path's pages in its list of
/// changed pages. Rows may come in any order, but only sorted rows benefit.
pub(super) struct OrderedWriter<'t> {
    cursor: RwIter<'t, Raw, Raw>,
    format: RowFormat,
}

impl<'t> OrderedWriter<'t> {
    pub(super) fn new(
        database: &Database<'static, Raw, Raw>,
        transaction: &'t mut RwTxn<'_>,
        format: RowFormat,
    ) -> Result<Self, heed::Error> {
        let cursor = database.iter_mut(transaction)?;
        Ok(Self { cursor, format })
    }

    /// Sets a row.
    #[allow(unsafe_code)]
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), heed::Error> {
        let flags = PutFlags::empty();
        // SAFETY: `key` and `value` are not read from the data file while this cursor lives: the
        // cursor borrows the only transaction that writes. heed sets LMDB's flag for the current
        // row in other methods only. Without that flag, LMDB's cursor searches for the key's
        // position, so it never answers that there is no such row. After such an answer heed would
        // write into space that does not exist.
        unsafe {
            if self.format == RowFormat::Plain {
                return self
                    .cursor
                    .put_current_with_options::<Raw>(flags, key, value);
            }
            let checksums = checksums(key, value);
            let bytes = value.len() + CHECKSUM_BYTES;
            self.cursor
                .put_current_reserved_with_flags(flags, key, bytes, |space| {
                    space.write_all(&checksums)?;
                    space.write_all(value)
                })
                .map(drop)
        }
    }
}

#[cfg(test)]
mod tests;
