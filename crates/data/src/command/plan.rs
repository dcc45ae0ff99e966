//! What a command will read and pop, derived from its arguments.

use bytes::Bytes;

use crate::cluster::delegation::Demand;
use crate::prefetch::Prefetch;
use quoin_base::limits::DELEGATED_COUNT_MAX;
use quoin_layout::ValueType;

/// Derives a command's plan from its arguments. `None` if they are invalid or if the command reads only the metadata of
/// its keys.
pub type PlanFunction = fn(&[Bytes]) -> Option<Plan>;

/// What a command will do to the values of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// It pops this from the first of its keys that has anything, and does nothing else.
    Pop(Demand),
    /// It reads this from its keys, in their order.
    Read(Vec<Prefetch>),
}

impl Plan {
    /// A command that pops up to `count` elements from one end of a queue. `None` if `count` is 0, which only asks
    /// whether there is anything, or above [`DELEGATED_COUNT_MAX`], the most that other servers pop for one command.
    pub fn pop(value_type: ValueType, from_end: bool, count: usize) -> Option<Self> {
        let demand = Demand {
            value_type,
            from_end,
            count,
        };
        (1..=DELEGATED_COUNT_MAX)
            .contains(&count)
            .then_some(Plan::Pop(demand))
    }
}
