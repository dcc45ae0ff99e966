//! Ranks in large sorted sets and lists: how many elements come before a place, and which element has a rank, without
//! reading all elements in between.
//!
//! The rows of elements, in the order of their keys, are divided into *blocks*. For each block, one row counts its
//! elements. The row's key contains the place at which the block ends. Elements after the last block are not counted.
//! Blocks of level 2 consist of blocks of level 1, and so on. Next to each count is another row, its *mark*, which is
//! written when the block is made and not when its count changes.
//!
//! - A value has no blocks until a command has read many elements to find a rank ([`changes`]). Background work then
//!   makes them, and maintains them ([`maintenance`]).
//! - A command that adds or removes an element of a block adds to its counts without reading them ([`writing`]).
//!   Elements after the last block, where a queue grows, cost nothing.
//!
//! On a store with several writers, a command conflicts with background work that has made or removed the end of a
//! block between the command's element and the end that it has found. Counts cause no other conflicts between
//! commands. See decision 033.

mod changes;
mod checks;
mod maintenance;
mod reading;
#[cfg(test)]
mod tests;
mod writing;

pub use crate::rows::ranks::changes::RankWants;
pub use crate::rows::ranks::maintenance::RankMaintenance;
pub use changes::{RankChanges, RankChangesSavepoint};
pub use checks::{COUNTS, MARKS};

/// A command that passes more elements than this to find a rank asks for blocks. Background work leaves fewer
/// elements than this outside blocks.
const SCANNED_ELEMENTS_MAX: usize = 4_096;
/// Blocks are not used up to this many elements from the nearer end of a value.
pub(crate) const NEAR_ELEMENTS_MAX: usize = 512;
/// Maximum number of levels. The largest set needs fewer.
const LEVELS_MAX: u8 = 5;

/// The size of blocks. Commands find ranks with any shape.
#[derive(Debug, Clone)]
pub struct RankShape {
    /// Number of elements of a new block.
    pub block_elements: i64,
    /// A block with more elements than this is divided.
    pub block_elements_max: i64,
    /// Number of blocks of the level below in a new block of a higher level.
    pub fan: i64,
    /// How many times as many elements a block may have as one of the level below.
    pub fan_max: i64,
    /// If the highest level has more blocks than this, a level is added above it.
    pub top_blocks_max: usize,
    /// How many elements, or blocks of the level below, one transaction makes into blocks.
    pub parts_per_pass: usize,
}

impl RankShape {
    /// Finding a rank among 1,000,000 elements reads at most 1,000 counts and 2,000 elements, and half of that on
    /// average. A write changes one count. Smaller blocks could be read faster, but a batch of writes would change
    /// more counts.
    pub const DEFAULT: Self = Self {
        block_elements: 1_024,
        block_elements_max: 2_048,
        fan: 64,
        fan_max: 128,
        top_blocks_max: 2_048,
        parts_per_pass: SCANNED_ELEMENTS_MAX,
    };

    /// The same, one block at a time. The fewer elements a transaction makes into blocks, the less likely another
    /// server changes one of them meanwhile. There must be room for a block that ends within a run.
    pub const CLUSTER: Self = Self {
        parts_per_pass: 1_300,
        ..Self::DEFAULT
    };

    /// A block of this level with more elements than this is divided.
    fn elements_max(&self, level: u8) -> i64 {
        let times = self
            .fan_max
            .saturating_pow(u32::from(level.saturating_sub(1)));
        self.block_elements_max.saturating_mul(times)
    }

    /// A block of this level with at most this many elements is joined to the next one.
    fn elements_min(&self, level: u8) -> i64 {
        self.elements_max(level) / 16
    }
}
