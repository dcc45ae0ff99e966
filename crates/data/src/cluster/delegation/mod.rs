//! Delegated pops: servers that want to pop from one contended queue pop for each other.
//!
//! Pops of several servers from one queue conflict, and only one of them is done at a time. A
//! server whose pops have conflicted makes a *request* instead: a row that conflicts with nothing.
//! The next server that pops from that queue takes the requested elements together with its own, and
//! stores them as *grants*. Each server fetches its grant in a transaction without conflicts, and
//! runs its clients' commands on what was in it. (The technique is that of FoundationDB's recipes for
//! high contention. docs/understand/decisions/012-delegated-pops.md says what is different here, and
//! why nothing is lost or popped twice.)
//!
//! Delegation wraps what each type of queue does by itself, [`QueueKind`]. Other code knows it by
//! these hooks: [`Unit`] holds the grants of its commands ([`HeldGrants`]); the look-up of a key asks
//! [`ReadContext::find_granted`] and [`ReadContext::has_granted`]; the types pop by
//! [`WriteContext::pop_elements`]; RENAME, MOVE and EXPIRE call [`WriteContext::return_grants`] first,
//! and what replaces an empty key calls [`WriteContext::before_replacing`].
//!
//! [`QueueKind`]: crate::keyspace::kind::QueueKind
//! [`Unit`]: crate::unit::Unit
//! [`ReadContext::find_granted`]: crate::unit::context::ReadContext::find_granted
//! [`ReadContext::has_granted`]: crate::unit::context::ReadContext::has_granted
//! [`WriteContext::pop_elements`]: crate::unit::context::WriteContext::pop_elements
//! [`WriteContext::return_grants`]: crate::unit::context::WriteContext::return_grants
//! [`WriteContext::before_replacing`]: crate::unit::context::WriteContext::before_replacing

use quoin_layout::{Grant, PoppedElement};
use quoin_layout::{PopRun, ValueType};

mod granting;
mod held;
mod returning;
#[cfg(test)]
mod tests;

pub(crate) use crate::cluster::delegation::granting::row_key;
pub use crate::cluster::delegation::granting::{
    FoundGrants, GRANT_EXPIRY_MS, REQUEST_AGE_MAX_MS, remove_request,
};
pub use crate::cluster::delegation::granting::{MadeRequest, read_granted_elements};
pub use granting::Granted;
pub use held::{GrantsSavepoint, HeldGrants};
pub use returning::has_grants;

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

/// What commands would take off one end of a queue, one after the other.
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
