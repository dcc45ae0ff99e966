//! The rows of the data file, each with its checksums.
//!
//! A search that meets a damaged key may miss its row, or a row next to it in its page. Such a
//! search ends next to the damaged key. So a row counts as missing, or as the first of a range,
//! only if the keys on both sides are as they were written.

use std::io::Write;
use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes as Raw;
use heed::{
    AnyTls, CommitOrAbort, Database, DatabaseStat, Env, RoRange, RoRevRange, RoTxn, RwTxn,
    WithoutTls,
};

use super::checksum::{CHECKSUM_BYTES, DamageLog, RowFormat, checksums, has_its_key, verified};
use super::data_file::DATA_FILE;
use super::ordered_writer::OrderedWriter;
use quoin_store::page::Row;

/// Keys from here on are the store's own. Like FoundationDB, this store does not accept them from
/// its users.
pub(super) const OWN_KEYS: &[u8] = b"\xff\xff";
/// The key of the row format, a number of 4 bytes. Absent in the first format.
pub(super) const FORMAT_KEY: &[u8] = b"\xff\xffquoin/format";
/// The key of the number up to which LMDB has all records. LMDB may have parts of later ones.
pub(super) const APPLIED_KEY: &[u8] = b"\xff\xffquoin/journal-applied";
/// Present while the store has a journal. The value is the number of its files, 1 byte. This key
/// sorts after all others.
pub(super) const JOURNAL_KEY: &[u8] = b"\xff\xffquoin/journal-files";

/// The rows of a data file.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    database: Database<'static, Raw, Raw>,
    format: RowFormat,
    log: DamageLog,
}

/// The stored rows on both sides of a key: the last before it, and the first at or after it.
type Neighbours<'t> = (Option<Row<'t>>, Option<Row<'t>>);

impl Rows {
    pub(super) fn new(
        folder: &Path,
        database: Database<'static, Raw, Raw>,
        format: RowFormat,
    ) -> Self {
        Self {
            database,
            format,
            log: DamageLog::new(&folder.join(DATA_FILE)),
        }
    }

    pub(super) fn format(&self) -> RowFormat {
        self.format
    }

    /// Sets a row.
    pub(super) fn put(
        &self,
        transaction: &mut RwTxn<'_>,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), heed::Error> {
        if self.format == RowFormat::Plain {
            return self.database.put(transaction, key, value);
        }
        put_checked(&self.database, transaction, key, value)
    }

    /// A writer that sets rows in key order.
    pub(super) fn writer<'t>(
        &self,
        transaction: &'t mut RwTxn<'_>,
    ) -> Result<OrderedWriter<'t>, heed::Error> {
        OrderedWriter::new(&self.database, transaction, self.format)
    }

    /// Removes a row. Returns whether it was there.
    pub(super) fn delete(
        &self,
        transaction: &mut RwTxn<'_>,
        key: &[u8],
    ) -> Result<bool, heed::Error> {
        self.database.delete(transaction, key)
    }

    /// Removes the rows of a range. Returns their number.
    pub(super) fn delete_range(
        &self,
        transaction: &mut RwTxn<'_>,
        range: &(Bound<&[u8]>, Bound<&[u8]>),
    ) -> Result<usize, heed::Error> {
        self.database.delete_range(transaction, range)
    }

    /// The value of one key.
    pub(super) fn get<'t>(
        &self,
        transaction: &'t RoTxn<'_, AnyTls>,
        key: &[u8],
    ) -> Result<Option<&'t [u8]>, heed::Error> {
        if let Some(stored) = self.database.get(transaction, key)? {
            return self.value(key, stored).map(Some);
        }
        if self.format == RowFormat::Checked {
            let (_, found) = self.around(transaction, key)?;
            if let Some((found, _)) = found
                && found == key
            {
                // The row exists, so a page that leads to it is damaged.
                return Err(self.log.damaged(key));
            }
        }
        Ok(None)
    }

    /// The first row at or after `edge`. In reverse, the last row before it.
    pub(super) fn next_to<'t>(
        &self,
        transaction: &'t RoTxn<'_, AnyTls>,
        edge: &[u8],
        reverse: bool,
    ) -> Result<Option<Row<'t>>, heed::Error> {
        if self.format == RowFormat::Checked {
            let (before, after) = self.around(transaction, edge)?;
            let found = if reverse { before } else { after };
            return found.map(|row| self.row(row)).transpose();
        }
        if reverse {
            self.database.get_lower_than(transaction, edge)
        } else {
            self.at_or_after(transaction, edge)
        }
    }

    /// The rows after `key`, up to the end of the file. In reverse, the rows before it, down to the
    /// beginning.
    pub(super) fn walk<'t>(
        &'t self,
        transaction: &'t RoTxn<'_, AnyTls>,
        key: &'t [u8],
        reverse: bool,
    ) -> Result<Walk<'t>, heed::Error> {
        let steps = if reverse {
            let bounds = (Bound::Unbounded, Bound::Excluded(key));
            Steps::Backwards(self.database.rev_range(transaction, &bounds)?)
        } else {
            let bounds = (Bound::Excluded(key), Bound::Unbounded);
            Steps::Forwards(self.database.range(transaction, &bounds)?)
        };
        Ok(Walk {
            rows: self,
            steps,
            last: Some(key),
        })
    }

    /// All rows, including the store's own.
    pub(super) fn all<'t>(
        &'t self,
        transaction: &'t RoTxn<'_, AnyTls>,
    ) -> Result<Walk<'t>, heed::Error> {
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
        Ok(Walk {
            rows: self,
            steps: Steps::Forwards(self.database.range(transaction, &bounds)?),
            last: None,
        })
    }

    /// Whether there are only the store's own rows.
    pub(super) fn is_empty(&self, environment: &Env<WithoutTls>) -> Result<bool, heed::Error> {
        let transaction = environment.read_txn()?;
        let first = self.next_to(&transaction, b"", false)?;
        Ok(first.is_none_or(|(key, _)| key >= OWN_KEYS))
    }

    /// The number of rows.
    pub(super) fn count(&self, transaction: &RoTxn<'_, AnyTls>) -> Result<u64, heed::Error> {
        self.database.len(transaction)
    }

    /// Statistics of the rows' pages.
    pub(super) fn stat(
        &self,
        transaction: &RoTxn<'_, AnyTls>,
    ) -> Result<DatabaseStat, heed::Error> {
        self.database.stat(transaction)
    }

    fn value<'t>(&self, key: &[u8], stored: &'t [u8]) -> Result<&'t [u8], heed::Error> {
        match self.format {
            RowFormat::Plain => Ok(stored),
            RowFormat::Checked => verified(key, stored).ok_or_else(|| self.log.damaged(key)),
        }
    }

    fn row<'t>(&self, stored: Row<'t>) -> Result<Row<'t>, heed::Error> {
        let (key, stored) = stored;
        Ok((key, self.value(key, stored)?))
    }

    fn at_or_after<'t>(
        &self,
        transaction: &'t RoTxn<'_, AnyTls>,
        edge: &[u8],
    ) -> Result<Option<Row<'t>>, heed::Error> {
        if edge.is_empty() {
            // LMDB does not accept an empty key.
            return self.database.first(transaction);
        }
        self.database
            .get_greater_than_or_equal_to(transaction, edge)
    }

    /// The stored rows on both sides of `edge`. Their keys prove that the search was correct.
    fn around<'t>(
        &self,
        transaction: &'t RoTxn<'_, AnyTls>,
        edge: &[u8],
    ) -> Result<Neighbours<'t>, heed::Error> {
        let after = self.at_or_after(transaction, edge)?;
        let before = if edge.is_empty() {
            None
        } else {
            self.database.get_lower_than(transaction, edge)?
        };
        for (row, is_in_place) in [
            (before, before.is_none_or(|(key, _)| key < edge)),
            (after, after.is_none_or(|(key, _)| key >= edge)),
        ] {
            if let Some((key, stored)) = row
                && !(is_in_place && has_its_key(key, stored))
            {
                return Err(self.log.damaged(key));
            }
        }
        Ok((before, after))
    }
}

/// Opens the unnamed database. A named one would cost one more page per commit.
pub(super) fn open_database(
    environment: &Env<WithoutTls>,
) -> Result<Database<'static, Raw, Raw>, heed::Error> {
    let transaction = environment.write_txn()?;
    let opened = environment.create_databases_and_commit(transaction, |opener, transaction| {
        opener
            .create_database::<Raw, Raw>(transaction, None)
            .map(CommitOrAbort::<_, heed::Error>::Commit)
    })?;
    opened.into()
}

/// Sets a row with its checksums.
pub(super) fn put_checked(
    database: &Database<'static, Raw, Raw>,
    transaction: &mut RwTxn<'_>,
    key: &[u8],
    value: &[u8],
) -> Result<(), heed::Error> {
    let checksums = checksums(key, value);
    database.put_reserved(transaction, key, value.len() + CHECKSUM_BYTES, |space| {
        space.write_all(&checksums)?;
        space.write_all(value)
    })
}

/// The format that a data file states. `None` if it states none, `Err` if the checksum of that row
/// is wrong.
pub(super) fn stored_format(
    environment: &Env<WithoutTls>,
    database: &Database<'static, Raw, Raw>,
) -> Result<Option<Result<u32, ()>>, heed::Error> {
    let transaction = environment.read_txn()?;
    let stored = database.get(&transaction, FORMAT_KEY)?;
    Ok(stored.map(|stored| {
        let number = verified(FORMAT_KEY, stored).and_then(|value| value.try_into().ok());
        number.map(u32::from_le_bytes).ok_or(())
    }))
}

enum Steps<'t> {
    Forwards(RoRange<'t, Raw, Raw>),
    Backwards(RoRevRange<'t, Raw, Raw>),
}

/// Rows in order, each verified. Ends with the first error.
pub(super) struct Walk<'t> {
    rows: &'t Rows,
    steps: Steps<'t>,
    last: Option<&'t [u8]>,
}

impl<'t> Iterator for Walk<'t> {
    type Item = Result<Row<'t>, heed::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let (row, is_forwards) = match &mut self.steps {
            Steps::Forwards(steps) => (steps.next()?, true),
            Steps::Backwards(steps) => (steps.next()?, false),
        };
        let row = row.and_then(|row| self.rows.row(row));
        let last = self.last;
        Some(row.and_then(|(key, value)| {
            // A whole page with correct rows may be in the wrong place.
            if last.is_some_and(|last| (last < key) != is_forwards || last == key) {
                return Err(self.rows.log.damaged(key));
            }
            self.last = Some(key);
            Ok((key, value))
        }))
    }
}
