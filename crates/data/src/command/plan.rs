//! What a command will read, derived from its arguments.

use bytes::Bytes;

use crate::prefetch::Prefetch;
use quoin_base::limits::TAKEN_AHEAD_MAX;
use quoin_layout::ValueType;

/// Derives a command's plan from its arguments. `None` if they are invalid or if the command reads only the metadata of
/// its keys.
pub type PlanFunction = fn(&[Bytes]) -> Option<Plan>;

/// What a command will read of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// It reads this from each of its keys.
    Each(Prefetch),
    /// It reads this from its keys, in their order.
    Read(Vec<Prefetch>),
}

impl Plan {
    /// A command that pops up to `count` elements from one end of a queue. `None` if `count` is 0, which only asks
    /// whether there is anything, or above [`TAKEN_AHEAD_MAX`].
    pub fn pop(value_type: ValueType, from_end: bool, count: usize) -> Option<Self> {
        (1..=TAKEN_AHEAD_MAX).contains(&count).then_some({
            Plan::Each(Prefetch::End {
                value_type,
                from_end,
                count,
                with_length: false,
            })
        })
    }
}
