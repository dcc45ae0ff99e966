//! Tables that shrink after a burst. A standard table keeps its largest size.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

use super::limits::IDLE_TABLE_ENTRIES_MAX;

/// A table with this many places per entry is shrunk to two per entry.
const SPARSE_PLACES: usize = 8;

/// A table that can shrink.
pub trait Sparse {
    /// Must be called after entries were removed. The cost is amortized over the removals.
    fn shrink_if_sparse(&mut self);
}

fn is_sparse(entries: usize, places: usize) -> bool {
    places > IDLE_TABLE_ENTRIES_MAX && entries < places / SPARSE_PLACES
}

impl<K: Eq + Hash, V, S: BuildHasher> Sparse for HashMap<K, V, S> {
    fn shrink_if_sparse(&mut self) {
        if is_sparse(self.len(), self.capacity()) {
            self.shrink_to(self.len() * 2);
        }
    }
}

impl<K: Eq + Hash, S: BuildHasher> Sparse for HashSet<K, S> {
    fn shrink_if_sparse(&mut self) {
        if is_sparse(self.len(), self.capacity()) {
            self.shrink_to(self.len() * 2);
        }
    }
}

impl<T> Sparse for Vec<T> {
    fn shrink_if_sparse(&mut self) {
        if is_sparse(self.len(), self.capacity()) {
            self.shrink_to(self.len() * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shrinks_with_what_is_left_in_it() {
        let mut table: HashMap<usize, usize> = (0..100_000).map(|n| (n, n)).collect();
        let full = table.capacity();
        table.retain(|n, _| *n < 50_000);
        table.shrink_if_sparse();
        assert!(table.capacity() > full / 2);
        table.retain(|n, _| *n < 1_000);
        table.shrink_if_sparse();
        assert!((1_000..8_000).contains(&table.capacity()));
        assert_eq!(table.len(), 1_000);
        let small = table.capacity();
        table.clear();
        table.shrink_if_sparse();
        assert!(table.capacity() < small);
    }

    #[test]
    fn a_small_table_is_left_alone() {
        let mut table: HashSet<usize> = HashSet::with_capacity(500);
        let before = table.capacity();
        table.shrink_if_sparse();
        assert_eq!(table.capacity(), before);
    }
}
