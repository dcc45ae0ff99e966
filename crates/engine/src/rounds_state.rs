//! What the next [rounds](super::rounds) will run, and what is too slow for them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use self::slow::Slow;
use super::call::Submission;
use quoin_data::unit::host::NO_CLIENT;

mod slow;

pub(super) use slow::SCRIPT_RUN_MAX;

/// A client that has made this many consecutive submissions counts as alone.
pub(super) const ALONE_SUBMISSIONS_MIN: u32 = 8;

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
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    submissions: Vec<Submission>,
    /// The client of the latest submission.
    client: u64,
    /// How many submissions it has made since another client made one.
    consecutive: u32,
}

/// What a submission that was added has to do.
pub(super) enum Added {
    /// Others came before it, and have started the round.
    Joins,
    /// It is the first, so it must start the round.
    Begins,
    /// It must start the round, and a single client has made all of the latest submissions.
    BeginsAlone,
}

impl Gathered {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a submission.
    pub(super) fn add(&self, submission: Submission) -> Added {
        let mut state = self.lock();
        let client = submission.client();
        state.consecutive = match client == state.client && client != NO_CLIENT {
            true => state.consecutive.saturating_add(1),
            false => 1,
        };
        state.client = client;
        state.submissions.push(submission);
        match state.submissions.len() {
            1 if state.consecutive >= ALONE_SUBMISSIONS_MIN => Added::BeginsAlone,
            1 => Added::Begins,
            _ => Added::Joins,
        }
    }

    /// Whether nothing waits for a round.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().submissions.is_empty()
    }

    /// Takes the submissions for a round that begins.
    pub(super) fn take(&self) -> Vec<Submission> {
        std::mem::take(&mut self.lock().submissions)
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
