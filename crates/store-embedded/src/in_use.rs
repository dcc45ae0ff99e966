//! The row that says that the store has a journal, so that its data file is not all of it.
//!
//! It is in the data file, because that cannot go missing unnoticed. It is set before the first
//! commit, and removed by an orderly end. If it is there and a file of the journal is not, the
//! journal was lost ([`journal::lost`]).

use heed::{Env, WithoutTls};

use super::checkpoint::{Checkpoint, Checkpoints};
use super::error::{page_not_written, write_lacks_room};
use super::table::{JOURNAL_KEY, Rows};

/// The number of the journal's files.
const FILES: [u8; 1] = [2];

/// Whether the store has a journal, according to the data file.
pub(super) fn is_noted(environment: &Env<WithoutTls>, rows: &Rows) -> Result<bool, heed::Error> {
    let transaction = environment.read_txn()?;
    Ok(rows.get(&transaction, JOURNAL_KEY)?.is_some())
}

/// Notes that the store has a journal, whose files are on the disk. Returns the checkpoint that
/// contains the note: `last`, if it was there already, or there is no room for it.
pub(super) fn note(
    environment: &Env<WithoutTls>,
    rows: &Rows,
    checkpoints: &Checkpoints,
    last: Checkpoint,
) -> Result<Checkpoint, heed::Error> {
    if is_noted(environment, rows)? {
        return Ok(last);
    }
    let noted = change(environment, |transaction| {
        rows.put(transaction, JOURNAL_KEY, &FILES)
    });
    match noted.and_then(|()| checkpoints.take(environment)) {
        Err(error) if write_lacks_room(&error) => {
            tracing::warn!(
                %error,
                "no room to note that there is a journal: if its files were removed, that might not \
                 be noticed"
            );
            Ok(last)
        }
        taken => taken,
    }
}

/// Removes the note. To be called when the data file has everything, before the journal is removed.
pub(super) fn forget(environment: &Env<WithoutTls>, rows: &Rows) -> Result<(), heed::Error> {
    if !is_noted(environment, rows)? {
        return Ok(());
    }
    change(environment, |transaction| {
        rows.delete(transaction, JOURNAL_KEY).map(drop)
    })
}

fn change(
    environment: &Env<WithoutTls>,
    change: impl FnOnce(&mut heed::RwTxn<'_>) -> Result<(), heed::Error>,
) -> Result<(), heed::Error> {
    let mut transaction = environment.write_txn()?;
    change(&mut transaction)
        .and_then(|()| transaction.commit())
        .map_err(page_not_written)
}

#[cfg(test)]
mod tests;
