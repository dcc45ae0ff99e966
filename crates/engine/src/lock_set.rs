//! Decides which batches may be in flight at the same time.

use rustc_hash::FxHashSet;

use quoin_base::sparse::Sparse;
use quoin_data::command::access::KeyLocks;

/// A set of locks, such as those of the batches in flight. A fast hash is safe here, because the locks are already
/// hashes with a secret that clients do not know.
#[derive(Debug, Default)]
pub(crate) struct LockSet {
    keys: FxHashSet<u64>,
    everything: bool,
}

impl LockSet {
    pub(crate) fn clear(&mut self) {
        // Before the set is emptied, so that its recent size decides.
        self.keys.shrink_if_sparse();
        self.keys.clear();
        self.everything = false;
    }

    fn is_empty(&self) -> bool {
        !self.everything && self.keys.is_empty()
    }

    /// Whether the set holds none of these locks.
    pub(crate) fn is_free(&self, locks: &KeyLocks) -> bool {
        match locks {
            KeyLocks::Nothing => true,
            KeyLocks::Keys(keys) | KeyLocks::Alone(keys) => {
                !self.everything && !keys.iter().any(|key| self.keys.contains(key))
            }
            KeyLocks::Everything => self.is_empty(),
        }
    }

    pub(crate) fn add(&mut self, locks: &KeyLocks) {
        match locks {
            KeyLocks::Nothing => {}
            KeyLocks::Keys(keys) | KeyLocks::Alone(keys) => self.keys.extend(keys),
            KeyLocks::Everything => self.everything = true,
        }
    }

    pub(crate) fn release(&mut self, locks: &KeyLocks) {
        match locks {
            KeyLocks::Nothing => {}
            KeyLocks::Keys(keys) | KeyLocks::Alone(keys) => {
                for key in keys {
                    self.keys.remove(key);
                }
                self.keys.shrink_if_sparse();
            }
            KeyLocks::Everything => self.everything = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_key_is_not_free_until_released() {
        let mut set = LockSet::default();
        let locks = KeyLocks::Keys(vec![1, 2]);
        set.add(&locks);
        assert!(!set.is_free(&KeyLocks::Keys(vec![2, 3])));
        assert!(set.is_free(&KeyLocks::Keys(vec![3])));
        set.release(&locks);
        assert!(set.is_free(&KeyLocks::Keys(vec![2, 3])));
    }

    #[test]
    fn everything_waits_for_every_key_and_holds_up_every_key() {
        let mut set = LockSet::default();
        set.add(&KeyLocks::Keys(vec![1]));
        assert!(!set.is_free(&KeyLocks::Everything));
        set.release(&KeyLocks::Keys(vec![1]));
        set.add(&KeyLocks::Everything);
        assert!(!set.is_free(&KeyLocks::Keys(vec![9])));
        assert!(set.is_free(&KeyLocks::Nothing));
    }
}
