//! What the next [rounds](super::rounds) will run, and what is too slow for them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::slow::Slow;
use super::call::Submission;

mod slow;

pub(super) use slow::SCRIPT_RUN_MAX;

/// A client that has had this many consecutive rounds to itself counts as alone.
const ALONE_ROUNDS_MIN: u32 = 8;

/// What the next rounds run, and the lock for running a batch.
#[derive(Default)]
pub(super) struct Rounds {
    /// Locked while a batch runs, here or in the write lane. Only one runs at a time.
    pub(super) turn: tokio::sync::Mutex<()>,
    pub(super) reads: Gathered,
    pub(super) writes: Gathered,
    pub(super) slow: Slow,
}

/// Submissions for the next round.
#[derive(Default)]
pub(super) struct Gathered {
    submissions: Mutex<Vec<Submission>>,
    /// How many more rounds with a single client must pass before a round begins at once. Until then, each round
    /// first gives other clients a chance to join.
    shared_lately: AtomicU32,
}

impl Gathered {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Submission>> {
        let locked = self.submissions.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a submission. Returns whether it is the first, in which case the caller must start a round.
    pub(super) fn add(&self, submission: Submission) -> bool {
        let mut submissions = self.lock();
        submissions.push(submission);
        submissions.len() == 1
    }

    /// Whether several clients have recently shared rounds.
    pub(super) fn is_shared(&self) -> bool {
        self.shared_lately.load(Ordering::Relaxed) > 0
    }

    /// Takes the submissions for a round that begins.
    pub(super) fn take(&self) -> Vec<Submission> {
        let taken = std::mem::take(&mut *self.lock());
        let lately = match taken.len() {
            0 | 1 => self.shared_lately.load(Ordering::Relaxed).saturating_sub(1),
            _ => ALONE_ROUNDS_MIN,
        };
        self.shared_lately.store(lately, Ordering::Relaxed);
        taken
    }
}

/// Whether a submission reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Reads,
    Writes,
}

impl Rounds {
    pub(super) fn gathered(&self, kind: Kind) -> &Gathered {
        match kind {
            Kind::Reads => &self.reads,
            Kind::Writes => &self.writes,
        }
    }
}
