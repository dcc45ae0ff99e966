//! Pops of a batch that other servers may do for it.

use std::time::Instant;

use crate::executor::heat::Asked;
use crate::types::key::ClientKey;
use crate::types::staging::{Demands, Fulfilled, StagedCall};

/// Pops of a batch's clients from one end of one queue.
#[derive(Debug, Clone)]
pub(super) struct Pops {
    pub(super) key: ClientKey,
    /// What they pop.
    pub(super) demands: Demands,
    /// The claim on the queue, as the lane knows it.
    pub(super) claim: u64,
    /// Where the batch looks for what others want of this server.
    pub(super) asked_for: Option<Asked>,
    /// What the latest attempt has popped for others.
    pub(super) fulfilled: Fulfilled,
}

/// A request that was made for pops.
pub(super) struct Request {
    pub(super) pops: Pops,
    pub(super) call: StagedCall,
    pub(super) made: Instant,
    /// The latest attempt has found the claim.
    pub(super) is_served: bool,
}

impl Pops {
    /// These and then those; `None` where they are not from the same end.
    pub(super) fn and_then(self, others: &Pops) -> Option<Pops> {
        if self.key != others.key {
            return None;
        }
        let demands = self.demands.and_then(&others.demands)?;
        Some(Pops { demands, ..self })
    }
}
