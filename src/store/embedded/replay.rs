//! Applying the journal's records that the data file lacks.

use std::io;
use std::ops::Bound;
use std::path::Path;

use heed::{Env, WithoutTls};

use super::Rows;
use super::journal::{self, APPLIED_KEY, Write};

/// Brings the data file up to the end of the journal; answers the number of the last record.
///
/// # Errors
/// When a file cannot be read or written, or where a record that is whole makes no sense.
pub(super) fn replay(
    folder: &Path,
    environment: &Env<WithoutTls>,
    rows: &Rows,
) -> Result<u64, heed::Error> {
    let mut applied = last_applied(environment, rows)?;
    let mut failure = None;
    let mut count = 0_u64;
    let read = journal::read_all(folder, |sequence, body| {
        if sequence <= applied {
            return Ok(());
        }
        if sequence != applied + 1 {
            return Err(missing(applied + 1));
        }
        match apply(environment, rows, sequence, body) {
            Ok(()) => {
                applied = sequence;
                count += 1;
                Ok(())
            }
            Err(error) => {
                failure = Some(error);
                Err(io::Error::other("a record was not applied"))
            }
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    read?;
    if count > 0 {
        tracing::info!(
            records = count,
            "applied what the journal had more than the data file"
        );
    }
    Ok(applied)
}

fn missing(sequence: u64) -> io::Error {
    let text = format!("the journal lacks record {sequence}: acknowledged writes would be lost");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn last_applied(environment: &Env<WithoutTls>, rows: &Rows) -> Result<u64, heed::Error> {
    let transaction = environment.read_txn()?;
    let stored = rows.get(&transaction, APPLIED_KEY)?;
    Ok(stored
        .and_then(|value| value.try_into().ok())
        .map_or(0, u64::from_le_bytes))
}

fn apply(
    environment: &Env<WithoutTls>,
    rows: &Rows,
    sequence: u64,
    body: &[u8],
) -> Result<(), heed::Error> {
    let mut transaction = environment.write_txn()?;
    for write in journal::writes(body) {
        match write {
            Some(Write::Set(key, value)) => rows.put(&mut transaction, key, value)?,
            Some(Write::Clear(key)) => {
                rows.delete(&mut transaction, key)?;
            }
            Some(Write::ClearRange(begin, end)) => {
                let begin = if begin.is_empty() {
                    Bound::Unbounded
                } else {
                    Bound::Included(begin)
                };
                rows.delete_range(&mut transaction, &(begin, Bound::Excluded(end)))?;
            }
            None => {
                let error = io::Error::new(io::ErrorKind::InvalidData, "a record makes no sense");
                return Err(error.into());
            }
        }
    }
    rows.put(&mut transaction, APPLIED_KEY, &sequence.to_le_bytes())?;
    transaction.commit()
}
