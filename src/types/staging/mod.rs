//! Staging: servers that want to pop from one hot queue pop for each other.
//!
//! Pops of several servers from one queue conflict, and only one of them is done at a time. A
//! server whose pops have conflicted stages a *request* instead: a row that conflicts with nobody.
//! Whoever pops from that queue next takes the elements of the outstanding requests off together
//! with its own, and puts them down as *claims*. Each server fetches its claim in a transaction
//! that nobody conflicts with, and runs its clients' commands on what was in it. (The technique is
//! that of FoundationDB's recipes for high contention; docs/understand/decisions/012-delegated-pops.md says what is
//! different here, and why nothing is lost or handed out twice.)

use super::context::ReadContext;
use super::key::OpenKey;
use crate::layout::{PopRun, StagedElement, ValueType};

mod claims;
mod elements;
mod fulfil;
mod lapse;
mod staged;
#[cfg(test)]
mod tests;

pub use claims::{StagedCall, has_claims, read_claimed_elements};
pub(super) use elements::row_key;
pub use fulfil::Fulfilled;
pub use lapse::{Lapsed, remove_request};
pub use staged::{Staged, StagedSavepoint};

/// What a command would take off a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// The queue's type.
    pub value_type: ValueType,
    /// From the end of the queue with the last or highest elements.
    pub from_end: bool,
    /// Most elements.
    pub count: usize,
}

/// What commands would take off one end of a queue, one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demands {
    /// The queue's type.
    pub value_type: ValueType,
    /// From the end of the queue with the last or highest elements.
    pub from_end: bool,
    /// How many elements.
    pub runs: Vec<PopRun>,
}

impl From<Demand> for Demands {
    fn from(demand: Demand) -> Self {
        Self {
            value_type: demand.value_type,
            from_end: demand.from_end,
            runs: vec![PopRun {
                count: demand.count,
                commands: 1,
            }],
        }
    }
}

impl Demands {
    /// How many commands.
    pub fn commands(&self) -> usize {
        self.runs.iter().map(|run| run.commands).sum()
    }

    /// These and then those; `None` where they are not from the same end.
    pub fn and_then(mut self, others: &Demands) -> Option<Self> {
        if (self.value_type, self.from_end) != (others.value_type, others.from_end) {
            return None;
        }
        for run in &others.runs {
            match self.runs.last_mut() {
                Some(last) if last.count == run.count => last.commands += run.commands,
                _ => self.runs.push(*run),
            }
        }
        Some(self)
    }
}

impl ReadContext<'_> {
    /// A queue of which there is a claim, as it was when the elements were popped.
    pub(super) fn find_staged(&self, meta_key: &[u8]) -> Option<OpenKey> {
        let mut key = self.staged?.find(meta_key)?;
        key.database = Some(self.database);
        Some(key)
    }

    /// Whether there are elements for this transaction's commands, where there is a claim.
    pub(super) fn has_staged_elements(&self, key: &OpenKey) -> Option<bool> {
        let (left, _) = self.staged?.left(key.data())?;
        Some(left > 0)
    }

    /// Pops from what was popped for this transaction before; `None` where there is no claim.
    pub(super) fn take_staged(
        &self,
        key: &OpenKey,
        from_end: bool,
        count: usize,
    ) -> Option<Vec<StagedElement>> {
        self.staged?.take(key.data(), from_end, count)
    }

    /// Whether a claim on a queue does not hold what a command wants though the queue may: the
    /// command must wait for a claim of its own.
    pub fn is_staged_short(&self, key: &OpenKey, count: usize) -> bool {
        let left = self.staged.and_then(|staged| staged.left(key.data()));
        left.is_some_and(|(left, is_exhausted)| left < count && !is_exhausted)
    }
}
