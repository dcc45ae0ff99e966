//! What the data file does not have yet.
//!
//! Commits belong to a *generation*. When a generation has much to write it is closed, and another
//! begins. A row that is written again in its generation replaces the older one. A row that is
//! removed disappears from the generation, unless the data file may have it.

use super::ranges::Ranges;
use super::row::{LOADED, Row};
use super::tree::{Tree, common_bytes};

/// The open generation.
#[derive(Debug)]
pub(super) struct Dirty {
    generation: u32,
    /// Its rows, in any order. The slot of a removed row is reused.
    rows: Vec<Option<Row>>,
    free: Vec<u32>,
    bytes: usize,
}

/// Keys that a generation clears and that the data file may have. If the generation also has a row
/// for such a key, the row was written later. A clone shares its memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Cleared {
    /// Rows without values, for the keys that were cleared one by one. Most keys are.
    pub(super) keys: Tree,
    pub(super) ranges: Ranges,
}

impl Cleared {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty()
    }

    /// Whether a key is cleared.
    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.keys.get(key).is_some() || self.ranges.around(key).is_some()
    }
}

impl Default for Dirty {
    fn default() -> Self {
        Self {
            generation: LOADED + 1,
            rows: Vec::new(),
            free: Vec::new(),
            bytes: 0,
        }
    }
}

/// A generation that gets no more commits.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) generation: u32,
    /// In any order.
    pub(super) rows: Vec<Row>,
    pub(super) cleared: Cleared,
    /// Number of the last journal record in it.
    pub(super) sequence: u64,
    pub(super) bytes: usize,
}

impl Dirty {
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether a row was written in this generation.
    pub(super) fn has(&self, row: &Row) -> bool {
        row.origin().generation == self.generation
    }

    /// Estimated memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts the memory of a cleared key or range.
    pub(super) fn count_cleared(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Undoes [`Self::count_cleared`].
    pub(super) fn uncount_cleared(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Maximum number of its rows.
    pub(super) fn rows_max(&self) -> usize {
        self.rows.len()
    }

    /// A free slot for another row.
    pub(super) fn new_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.rows.push(None);
            // Memory runs out long before the numbers do.
            u32::try_from(self.rows.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Puts a row into its slot.
    pub(super) fn put(&mut self, row: &Row) {
        self.bytes += row.bytes();
        self.replace(row.origin().slot, Some(row.clone()));
    }

    /// Frees the slot of a row.
    pub(super) fn release(&mut self, row: &Row) {
        let slot = row.origin().slot;
        self.replace(slot, None);
        self.free.push(slot);
    }

    /// Undoes [`Self::release`]. Call it after undoing everything later.
    pub(super) fn put_back(&mut self, row: &Row) {
        let slot = row.origin().slot;
        // It is the last one, because everything later was undone.
        if self.free.last() == Some(&slot) {
            self.free.pop();
        } else {
            self.free.retain(|free| *free != slot);
        }
        self.put(row);
    }

    fn replace(&mut self, slot: u32, row: Option<Row>) {
        if let Some(place) = self.rows.get_mut(slot as usize) {
            let old = std::mem::replace(place, row);
            self.bytes = self.bytes.saturating_sub(old.map_or(0, |old| old.bytes()));
        }
    }

    /// Closes the generation and begins another. `None` if it is empty. `cleared` has what it
    /// clears, and `sequence` is the number of the last commit.
    pub(super) fn close(&mut self, cleared: Cleared, sequence: u64) -> Option<Closed> {
        let rows = std::mem::take(&mut self.rows);
        let rows: Vec<Row> = rows.into_iter().flatten().collect();
        let bytes = std::mem::take(&mut self.bytes);
        self.free.clear();
        if rows.is_empty() && cleared.is_empty() {
            return None;
        }
        let generation = self.generation;
        self.generation += 1;
        Some(Closed {
            generation,
            rows,
            cleared,
            sequence,
            bytes,
        })
    }
}

impl Closed {
    /// Its rows in the order of their keys.
    pub(super) fn sorted(&self) -> Vec<&Row> {
        // Comparing numbers next to each other is faster than comparing keys elsewhere in memory.
        let common = self.shared_bytes();
        let beginning = |row: &Row| {
            let mut bytes = [0; 16];
            let rest = row.key().get(common..).unwrap_or_default();
            for (to, from) in bytes.iter_mut().zip(rest) {
                *to = *from;
            }
            u128::from_be_bytes(bytes)
        };
        let mut numbered: Vec<(u128, &Row)> = Vec::with_capacity(self.rows.len());
        numbered.extend(self.rows.iter().map(|row| (beginning(row), row)));
        numbered.sort_unstable_by(|(one, row), (other, other_row)| {
            one.cmp(other).then_with(|| row.key().cmp(other_row.key()))
        });
        numbered.into_iter().map(|(_, row)| row).collect()
    }

    /// Number of leading bytes that all keys share.
    fn shared_bytes(&self) -> usize {
        let Some((first, others)) = self.rows.split_first() else {
            return 0;
        };
        let mut common = first.key();
        for row in others {
            let shared = common_bytes(common, row.key());
            common = common.get(..shared).unwrap_or_default();
        }
        common.len()
    }
}
