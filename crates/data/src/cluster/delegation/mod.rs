//! Delegated pops: servers that want to pop from one contended queue pop for each other.
//!
//! Pops of several servers from one queue conflict, and only one of them succeeds at a time. A server whose pops have
//! conflicted instead makes a *request*: a row that conflicts with nothing. The next server that pops from that queue
//! takes the requested elements together with its own, and stores them as *grants*. Each server fetches its grant in
//! a transaction without conflicts, and runs its clients' commands on the grant's elements. (The technique is from
//! FoundationDB's recipes for high contention. docs/understand/decisions/012-delegated-pops.md says what is different
//! here, and why nothing is lost or popped twice.)
//!
//! Delegation wraps what each type of queue does by itself, [`QueueKind`]. Other code uses it through these hooks:
//!
//! - [`Unit`] holds the grants of its commands ([`HeldGrants`]).
//! - The lookup of a key asks [`ReadContext::find_granted`] and [`ReadContext::has_granted`].
//! - The types pop with [`WriteContext::pop_elements`].
//! - RENAME, MOVE and EXPIRE first call [`WriteContext::return_grants`].
//! - Code that replaces an empty key calls [`WriteContext::before_replacing`].
//!
//! [`QueueKind`]: crate::keyspace::kind::QueueKind
//! [`Unit`]: crate::unit::Unit
//! [`ReadContext::find_granted`]: crate::unit::context::ReadContext::find_granted
//! [`ReadContext::has_granted`]: crate::unit::context::ReadContext::has_granted
//! [`WriteContext::pop_elements`]: crate::unit::context::WriteContext::pop_elements
//! [`WriteContext::return_grants`]: crate::unit::context::WriteContext::return_grants
//! [`WriteContext::before_replacing`]: crate::unit::context::WriteContext::before_replacing

use quoin_layout::{Grant, PopRun, PoppedElement, ValueType};

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

/// What a command would pop from a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// The queue's type.
    pub value_type: ValueType,
    /// Whether it pops from the end with the last or highest elements.
    pub from_end: bool,
    /// Maximum number of elements.
    pub count: usize,
}

/// What consecutive commands would pop from one end of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demands {
    /// The queue's type.
    pub value_type: ValueType,
    /// Whether they pop from the end with the last or highest elements.
    pub from_end: bool,
    /// How many elements they pop.
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
    /// Number of commands.
    pub fn commands(&self) -> usize {
        self.runs.iter().map(|run| run.commands).sum()
    }

    /// Both, in this order. `None` if they do not pop from the same end.
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
