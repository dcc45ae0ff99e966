//! Applying the journal's records that the data file lacks.

use std::io;
use std::path::Path;

use heed::{Env, RwTxn, WithoutTls};

use super::journal::{self, APPLIED_KEY, Write};
use super::{Rows, drain};
use crate::limits;

/// Brings the data file up to the end of the journal; answers the number of the last record.
///
/// # Errors
/// When a file cannot be read or written, or where a record that is whole makes no sense.
pub(super) fn replay(
    folder: &Path,
    environment: &Env<WithoutTls>,
    rows: &Rows,
) -> Result<u64, heed::Error> {
    let first = last_applied(environment, rows)?;
    let mut replay = Replay {
        environment,
        rows,
        transaction: None,
        bytes: 0,
        applied: first,
    };
    let mut failure = None;
    let read = journal::read_all(folder, |sequence, body| {
        if sequence <= replay.applied {
            return Ok(());
        }
        if sequence != replay.applied + 1 {
            return Err(missing(replay.applied + 1));
        }
        replay.apply(sequence, body).map_err(|error| {
            failure = Some(error);
            io::Error::other("a record was not applied")
        })
    });
    if let Some(error) = failure {
        return Err(error);
    }
    read?;
    replay.commit()?;
    if replay.applied > first {
        tracing::info!(
            records = replay.applied - first,
            "applied what the journal had more than the data file"
        );
    }
    Ok(replay.applied)
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

struct Replay<'e> {
    environment: &'e Env<WithoutTls>,
    rows: &'e Rows,
    /// Has the records since the last commit; many, for a commit writes whole pages.
    transaction: Option<RwTxn<'e>>,
    /// Bytes of records in the transaction.
    bytes: usize,
    /// Number of the last record that was applied.
    applied: u64,
}

impl Replay<'_> {
    fn apply(&mut self, sequence: u64, body: &[u8]) -> Result<(), heed::Error> {
        let mut transaction = match self.transaction.take() {
            Some(transaction) => transaction,
            None => self.environment.write_txn()?,
        };
        for write in journal::writes(body) {
            match write {
                Some(Write::Set(key, value)) => self.rows.put(&mut transaction, key, value)?,
                Some(Write::Clear(key)) => {
                    self.rows.delete(&mut transaction, key)?;
                }
                Some(Write::ClearRange(begin, end)) => {
                    drain::delete(self.rows, &mut transaction, begin, end)?;
                }
                None => {
                    let kind = io::ErrorKind::InvalidData;
                    return Err(io::Error::new(kind, "a record makes no sense").into());
                }
            }
        }
        self.transaction = Some(transaction);
        self.applied = sequence;
        self.bytes += body.len();
        if self.bytes >= limits::EMBEDDED_REPLAY_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), heed::Error> {
        self.bytes = 0;
        let Some(mut transaction) = self.transaction.take() else {
            return Ok(());
        };
        let applied = self.applied.to_le_bytes();
        self.rows.put(&mut transaction, APPLIED_KEY, &applied)?;
        transaction.commit()
    }
}
