//! Applies the journal's records that the data file lacks.

use std::io;
use std::path::Path;

use heed::{Env, WithoutTls};

use super::checkpoint::{Checkpoint, Checkpoints};
use super::dirty::Cleared;
use super::drain::Changes;
use super::error::{page_not_written, write_lacks_room};
use super::journal::{self, JournalDamage, JournalRefusal, Known, RecordHeader, Survey, Write};
use super::row::{Origin, Row};
use super::table::{APPLIED_KEY, Rows};
use super::tree::{Span, Tree};
use super::{drain, in_use};
use quoin_base::size::counted;

/// Bytes of journal records that a start applies before it makes a checkpoint. Fewer in tests, so that
/// they see several steps.
const STEP_BYTES: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// Minimum to which [`STEP_BYTES`] is reduced if there is no room for more. Each row may change a page of its own.
const STEP_BYTES_MIN: usize = 4 * 1024;

/// What a start does if the journal is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnDamage {
    /// Refuses to open the store, and changes nothing.
    Refuse,
    /// Opens the store without the commits from the damage on. The journal's files are kept.
    GoOn,
}

/// Refuses a store whose journal lacks a file: otherwise it would silently lose commits
/// acknowledged since its checkpoint. `has_checkpoint` says whether there was one. Returns `true`
/// if files are missing and the start goes on without them.
pub(super) fn check_journal(
    folder: &Path,
    environment: &Env<WithoutTls>,
    rows: &Rows,
    has_checkpoint: bool,
    on_damage: OnDamage,
) -> Result<bool, heed::Error> {
    let known = Known {
        is_in_use: in_use::is_noted(environment, rows)?,
        has_checkpoint,
        applied: last_applied(environment, rows)?,
    };
    let Some(lost) = journal::lost(folder, known)? else {
        if !journal::exists(folder)? {
            journal::make_file(folder)?;
        }
        return Ok(false);
    };
    match on_damage {
        OnDamage::Refuse => Err(refusal(JournalDamage::Files(lost))),
        OnDamage::GoOn => {
            tracing::error!(%lost, "going on without files of the journal");
            Ok(true)
        }
    }
}

fn refusal(damage: JournalDamage) -> heed::Error {
    io::Error::new(io::ErrorKind::InvalidData, JournalRefusal(damage)).into()
}

/// The result of a replay.
pub(super) struct Replayed {
    /// Number of the last record in the data file.
    pub(super) applied: u64,
    /// The checkpoint that contains it.
    pub(super) checkpoint: Checkpoint,
    /// There was damage, so the files must be kept.
    pub(super) is_damaged: bool,
}

/// Brings the data file from the state of a checkpoint to the end of the journal.
///
/// A checkpoint follows each step. Pages that the step freed may then be reused, so the file does
/// not grow by everything that the journal touched. If a start is killed or finds no room, the next
/// one continues from there. The journal is on the disk and is not changed.
///
/// # Errors
/// If a complete record is invalid, or acknowledged commits are missing ([`JournalRefusal`]). A
/// lack of room ([`write_lacks_room`]) loses nothing.
pub(super) fn replay(
    folder: &Path,
    environment: &Env<WithoutTls>,
    rows: &Rows,
    checkpoints: &Checkpoints,
    guard: Checkpoint,
    on_damage: OnDamage,
) -> Result<Replayed, heed::Error> {
    let first = last_applied(environment, rows)?;
    let survey = Survey::after(folder, first)?;
    let damage = JournalDamage::within(&survey, Some(first));
    let is_damaged = damage.is_some();
    match (damage, on_damage) {
        (Some(damage), OnDamage::Refuse) => return Err(refusal(damage)),
        (Some(damage), OnDamage::GoOn) => {
            tracing::error!(%damage, "going on without acknowledged commits");
        }
        (None, _) => {
            if let Some(gap) = survey.gap(Some(first)) {
                tracing::warn!(
                    %gap,
                    "the system ended before these commits were synced: going on without them"
                );
            }
        }
    }
    let mut replay = Replay {
        environment,
        rows,
        checkpoints,
        guard,
        is_guarded: true,
        step_bytes: STEP_BYTES,
        rows_set: Tree::default(),
        cleared: Cleared::default(),
        bytes: 0,
        applied: first,
    };
    loop {
        match replay.read(&survey) {
            // A smaller step changes fewer pages, so it needs less room.
            Err(error) if write_lacks_room(&error) && replay.step_bytes > STEP_BYTES_MIN => {
                replay.step_bytes /= 4;
                // Parts of the step may be written. A checkpoint frees the pages that they replaced.
                replay.guard = checkpoints.take(environment)?;
                replay.is_guarded = true;
                replay.applied = last_applied(environment, rows)?;
            }
            Err(error) => return Err(error),
            Ok(()) => break,
        }
    }
    if replay.applied > first {
        let commits = replay.applied - first;
        let commits = counted(commits, "commit", "commits");
        tracing::info!("recovered {commits} from the journal");
    }
    Ok(Replayed {
        applied: replay.applied,
        checkpoint: replay.guard,
        is_damaged,
    })
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
    checkpoints: &'e Checkpoints,
    /// The last checkpoint.
    guard: Checkpoint,
    /// Whether the checkpoint has everything that was committed.
    is_guarded: bool,
    /// A step ends after this many bytes of records.
    step_bytes: usize,
    /// What the records since the last step change. There are many, because a step writes whole pages.
    rows_set: Tree,
    cleared: Cleared,
    /// Bytes of these records.
    bytes: usize,
    /// Number of the last record that was applied.
    applied: u64,
}

impl Replay<'_> {
    /// Applies the records that are not applied yet.
    fn read(&mut self, survey: &Survey) -> Result<(), heed::Error> {
        self.rows_set = Tree::default();
        self.cleared = Cleared::default();
        self.bytes = 0;
        let mut failure = None;
        let read = survey.read(self.applied, |header: &RecordHeader, body| {
            self.apply(header.sequence, body).map_err(|error| {
                failure = Some(error);
                io::Error::other("a record was not applied")
            })
        });
        if let Some(error) = failure {
            return Err(page_not_written(error));
        }
        read?;
        self.commit().map_err(page_not_written)
    }

    fn apply(&mut self, sequence: u64, body: &[u8]) -> Result<(), heed::Error> {
        let scratch = &mut Vec::new();
        for write in journal::writes(body) {
            match write {
                Some(Write::Set(key, value)) => {
                    self.rows_set
                        .insert(Row::new(scratch, key, value, Origin::DISK));
                }
                Some(Write::Clear(key)) => {
                    self.rows_set.remove(key);
                    let row = Row::new(scratch, key, b"", Origin::DISK);
                    self.cleared.keys.insert(row);
                }
                Some(Write::ClearRange(begin, end)) => {
                    let span = Span { begin, end };
                    for row in self.rows_set.rows_in(span) {
                        self.rows_set.remove(row.key());
                    }
                    self.cleared.ranges.add(span, |_| {});
                }
                None => {
                    let kind = io::ErrorKind::InvalidData;
                    return Err(io::Error::new(kind, "a record is invalid").into());
                }
            }
        }
        self.applied = sequence;
        self.bytes += body.len();
        if self.bytes >= self.step_bytes {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), heed::Error> {
        if std::mem::take(&mut self.bytes) > 0 {
            let rows_set = std::mem::take(&mut self.rows_set);
            let cleared = std::mem::take(&mut self.cleared);
            let changes = Changes {
                cleared: &cleared,
                sorted: rows_set.all(),
                sequence: self.applied,
            };
            self.is_guarded = false;
            let slice_bytes = drain::SLICE_BYTES.min(self.step_bytes);
            let is_short_of_room = self.step_bytes < STEP_BYTES;
            let (environment, checkpoints, guard) =
                (self.environment, self.checkpoints, &mut self.guard);
            changes.write(environment, self.rows, slice_bytes, || {
                // A single record may be larger than the room. If the start ends here, the next one applies the
                // record again.
                if is_short_of_room {
                    *guard = checkpoints.take(environment)?;
                }
                Ok(())
            })?;
        }
        if !self.is_guarded {
            // The previous checkpoint and its pages are released only once this succeeds.
            self.guard = self.checkpoints.take(self.environment)?;
            self.is_guarded = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
