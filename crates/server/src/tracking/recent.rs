//! Keys that changed while clients read them: between a command's snapshot and the moment when its
//! keys are remembered.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bytes::Bytes;

use quoin_base::limits::TRACKED_RECENT_CHANGES_MAX;

/// Changes since the oldest open window was opened. Nothing is kept while there is none.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Number of the last change.
    last: u64,
    /// All keys changed last at this change.
    all_changed: u64,
    /// By number: the number of windows that were opened after it.
    windows: BTreeMap<u64, usize>,
    changes: VecDeque<(u64, Bytes)>,
    /// The last change of each key of `changes`.
    by_key: HashMap<Bytes, u64>,
}

impl Recent {
    /// Opens a window: it keeps the changes after this moment.
    pub(super) fn open(&mut self) -> u64 {
        *self.windows.entry(self.last).or_default() += 1;
        self.last
    }

    /// Closes a window, and drops changes that no other window needs.
    pub(super) fn close(&mut self, window: u64) {
        if let Some(count) = self.windows.get_mut(&window) {
            *count -= 1;
            if *count == 0 {
                self.windows.remove(&window);
            }
        }
        let Some((oldest, _)) = self.windows.first_key_value() else {
            self.changes = VecDeque::new();
            self.by_key = HashMap::new();
            return;
        };
        while let Some((number, key)) = self.changes.front()
            && number <= oldest
        {
            if self.by_key.get(key) == Some(number) {
                self.by_key.remove(key);
            }
            self.changes.pop_front();
        }
    }

    /// A key has changed.
    pub(super) fn note(&mut self, key: &Bytes) {
        self.last += 1;
        if self.windows.is_empty() {
            return;
        }
        if self.changes.len() >= TRACKED_RECENT_CHANGES_MAX {
            self.note_all();
            return;
        }
        // Copied, because the argument may keep a whole request in memory.
        let key = Bytes::copy_from_slice(key);
        self.changes.push_back((self.last, key.clone()));
        self.by_key.insert(key, self.last);
    }

    /// All keys have changed.
    pub(super) fn note_all(&mut self) {
        self.last += 1;
        self.all_changed = self.last;
        self.changes.clear();
        self.by_key.clear();
    }

    /// Whether a key has changed since a window was opened.
    pub(super) fn has_changed(&self, key: &[u8], window: u64) -> bool {
        self.all_changed > window || self.by_key.get(key).is_some_and(|last| *last > window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Bytes {
        number.to_string().into()
    }

    #[test]
    fn a_window_keeps_what_changes_while_it_is_open() {
        let mut recent = Recent::default();
        recent.note(&key(0));
        let first = recent.open();
        recent.note(&key(1));
        let second = recent.open();
        recent.note(&key(2));
        let seen = |recent: &Recent, window| {
            let keys = (0..3).filter(|number| recent.has_changed(&key(*number), window));
            keys.collect::<Vec<_>>()
        };
        assert_eq!(seen(&recent, first), [1, 2]);
        assert_eq!(seen(&recent, second), [2]);
        recent.close(first);
        assert_eq!(recent.changes.len(), 1);
        assert_eq!(seen(&recent, second), [2]);
        recent.note_all();
        assert_eq!(seen(&recent, second), [0, 1, 2]);
        recent.close(second);
        assert!(recent.changes.is_empty() && recent.windows.is_empty());
        let third = recent.open();
        assert!(seen(&recent, third).is_empty());
    }

    #[test]
    fn with_too_many_changes_all_keys_count_as_changed() {
        let mut recent = Recent::default();
        let window = recent.open();
        for number in 0..TRACKED_RECENT_CHANGES_MAX {
            recent.note(&key(number));
        }
        assert!(!recent.has_changed(b"other", window));
        recent.note(&key(0));
        assert!(recent.has_changed(b"other", window));
        assert!(recent.changes.is_empty());
    }
}
