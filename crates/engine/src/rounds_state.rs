//! What the next [rounds](super::rounds) will run, and what is too slow for them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::slow::Slow;
use super::call::Submission;
use quoin_data::unit::host::NO_CLIENT;

mod slow;

pub(super) use slow::SCRIPT_RUN_MAX;

/// A client that has made more consecutive submissions than this counts as alone.
pub(super) const ALONE_SUBMISSIONS_MIN: u32 = 8;

/// What the next rounds run, and the lock for running a batch.
#[derive(Default)]
pub(super) struct Rounds {
    /// Locked while a batch runs, here or in the write lane. Only one runs at a time.
    pub(super) turn: tokio::sync::Mutex<()>,
    pub(super) reads: Gathered,
    pub(super) writes: Gathered,
    latest: Latest,
    pub(super) slow: Slow,
}

/// Submissions for the next round.
#[derive(Default)]
pub(super) struct Gathered {
    submissions: Mutex<Vec<Submission>>,
}

/// Who has made the latest submissions, of both kinds.
#[derive(Default)]
struct Latest {
    client: AtomicU64,
    /// How many submissions it has made since another client made one.
    consecutive: AtomicU32,
}

impl Latest {
    /// Notes a submission of a client. Returns whether it is alone. Once in [`ALONE_SUBMISSIONS_MIN`] times it is not, so
    /// that it does not keep the thread from others that have come.
    fn note(&self, client: u64) -> bool {
        let is_same = self.client.swap(client, Ordering::Relaxed) == client && client != NO_CLIENT;
        let consecutive = match is_same {
            true => self.consecutive.load(Ordering::Relaxed).saturating_add(1),
            false => 1,
        };
        self.consecutive.store(consecutive, Ordering::Relaxed);
        consecutive > ALONE_SUBMISSIONS_MIN && !consecutive.is_multiple_of(ALONE_SUBMISSIONS_MIN)
    }
}

/// What the sender of a submission must do after adding it.
pub(super) enum Added {
    /// Others came before it, and have started the round.
    Joins,
    /// It is the first, so it must start the round.
    Begins,
    /// It must start the round, and a single client has made all of the latest submissions.
    BeginsAlone,
}

impl Gathered {
    fn lock(&self) -> MutexGuard<'_, Vec<Submission>> {
        self.submissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a submission. Returns how many there are.
    fn add(&self, submission: Submission) -> usize {
        let mut submissions = self.lock();
        submissions.push(submission);
        submissions.len()
    }

    /// Whether no submission waits for a round.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Takes the submissions for a round that begins.
    pub(super) fn take(&self) -> Vec<Submission> {
        std::mem::take(&mut *self.lock())
    }
}

/// Whether a submission reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Reads,
    Writes,
}

impl Rounds {
    /// Adds a submission.
    pub(super) fn add(&self, kind: Kind, submission: Submission) -> Added {
        let is_alone = self.latest.note(submission.client());
        match self.gathered(kind).add(submission) {
            1 if is_alone => Added::BeginsAlone,
            1 => Added::Begins,
            _ => Added::Joins,
        }
    }

    pub(super) fn gathered(&self, kind: Kind) -> &Gathered {
        match kind {
            Kind::Reads => &self.reads,
            Kind::Writes => &self.writes,
        }
    }
}
