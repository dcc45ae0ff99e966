//! A row that says that the store has a journal, so that the data file alone is incomplete.
//!
//! It is in the data file, which cannot go missing unnoticed. It is set before the first commit,
//! and removed by a clean close. If the row exists but a file of the journal does not, the journal
//! was lost ([`lost`](super::journal::lost)).

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

/// Notes that the store has a journal. The journal's files must be on the disk. Returns the
/// checkpoint that contains the note. This is `last` if the note existed already or if there is no
/// room for it.
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
                "no room to record that there is a journal: if its files were removed, that might \
                 not be noticed"
            );
            Ok(last)
        }
        taken => taken,
    }
}

/// Removes the note. Call this when the data file has everything, before the journal is removed.
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
