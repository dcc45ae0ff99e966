//! Ranks in large sorted sets and lists: how many elements come before a place, and which element has
//! a rank, without reading all elements in between.
//!
//! The rows of elements, in the order of their keys, are divided into *blocks*. A row counts the
//! elements of each block, and has the place at which the block ends in its key. What follows the
//! last block is not counted. Blocks of level 2 consist of blocks of level 1, and so on. Another row
//! beside each count, its *mark*, is written when the block comes to be, and not when it is counted.
//!
//! - A value has no blocks until a command has read many elements to find a rank ([`wants`]).
//!   Background work then makes them, and keeps them in shape ([`tending`]).
//! - A command that adds or removes an element of a block adds to its counts, without reading them
//!   ([`writing`]). Elements after the last block, where a queue grows, cost nothing.
//!
//! On a store with several writers a command conflicts with background work that has made or
//! removed the end of a block between its element and the end that it has found. It conflicts with
//! no other command on account of counts. Decision 033.

mod changes;
mod checks;
mod maintenance;
mod reading;
#[cfg(test)]
mod tests;
mod writing;

pub use crate::rows::ranks::changes::RankWants;
pub use crate::rows::ranks::maintenance::RankTending;
pub use changes::{RankChanges, RankChangesSavepoint};
pub use checks::{COUNTS, MARKS};

/// Elements that commands pass to find a rank before they want blocks, and more than background work
/// leaves in none.
const SCANNED_ELEMENTS_MAX: usize = 4_096;
/// Elements from the nearer end of a value up to which blocks are not looked at.
pub(crate) const NEAR_ELEMENTS_MAX: usize = 512;
/// The most levels: more than the largest set needs.
const LEVELS_MAX: u8 = 5;

/// How large blocks are. Commands find ranks whatever it says.
#[derive(Debug, Clone)]
pub struct RankShape {
    /// Elements of a new block.
    pub block_elements: i64,
    /// Elements of a block beyond which it is divided.
    pub block_elements_max: i64,
    /// Blocks of the level below in a new block of a higher level.
    pub fan: i64,
    /// How many times as many elements a block may have as one of the level below.
    pub fan_max: i64,
    /// Blocks of the highest level beyond which there is a level above it.
    pub top_blocks_max: usize,
    /// Elements, or blocks of the level below, that one transaction makes blocks of.
    pub parts_per_pass: usize,
}

impl RankShape {
    /// A rank among 1,000,000 elements reads 1,000 counts and 2,000 elements at most, and half of that
    /// on average; a write changes one count. Smaller blocks would be read faster, but a batch of writes
    /// would change more counts.
    pub const DEFAULT: Self = Self {
        block_elements: 1_024,
        block_elements_max: 2_048,
        fan: 64,
        fan_max: 128,
        top_blocks_max: 2_048,
        parts_per_pass: SCANNED_ELEMENTS_MAX,
    };

    /// The same, one block at a time: the fewer elements a transaction makes blocks of, the less likely
    /// another server changes one of them meanwhile. A block has to fit that ends within a run.
    pub const CLUSTER: Self = Self {
        parts_per_pass: 1_300,
        ..Self::DEFAULT
    };

    /// Elements of a block of a level beyond which it is divided.
    fn elements_max(&self, level: u8) -> i64 {
        let times = self
            .fan_max
            .saturating_pow(u32::from(level.saturating_sub(1)));
        self.block_elements_max.saturating_mul(times)
    }

    /// Elements of a block of a level up to which it is joined to the next one.
    fn elements_min(&self, level: u8) -> i64 {
        self.elements_max(level) / 16
    }
}
