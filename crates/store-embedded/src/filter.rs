//! A filter for the keys that a layer may have.
//!
//! Most rows that a command looks up are in no layer, because they do not exist or did not change
//! recently. A search through the tree of a large layer waits for memory several times to find that
//! out. The filter waits once.
//!
//! This is a Bloom filter that keeps all bits of a key in one word (Putze, Sanders, Singler:
//! *Cache-, Hash- and Space-Efficient Bloom Filters*).

use std::sync::atomic::{AtomicU64, Ordering};

use super::key_hash::hash_of;

/// Number of words (256 KiB). A layer usually has at most about six keys for each word. With that
/// many, about one in fifty absent keys seems to be present.
const WORDS: usize = 1 << 15;
/// Bits that a key sets in its word.
const BITS: u32 = 5;

/// The keys that were added, and some that were not. A layer and its copies share one filter: a key
/// that one of them adds only causes another false positive for the others.
#[derive(Debug)]
pub(super) struct Filter {
    words: Box<[AtomicU64]>,
}

/// The index of a key's word, and the key's bits in that word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fingerprint {
    word: usize,
    bits: u64,
}

impl Fingerprint {
    pub(super) fn of(key: &[u8]) -> Self {
        let hash = hash_of(key);
        let mut bits = 0;
        for turn in 0..BITS {
            bits |= 1 << ((hash >> (6 * turn)) & 63);
        }
        Self {
            word: (hash >> 40) as usize % WORDS,
            bits,
        }
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            words: (0..WORDS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Filter {
    pub(super) fn add(&self, key: Fingerprint) {
        if let Some(word) = self.words.get(key.word) {
            word.fetch_or(key.bits, Ordering::Relaxed);
        }
    }

    /// Whether a key may have been added.
    pub(super) fn may_have(&self, key: Fingerprint) -> bool {
        let word = self.words.get(key.word);
        word.is_none_or(|word| word.load(Ordering::Relaxed) & key.bits == key.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Vec<u8> {
        format!("a key with the number {number}").into_bytes()
    }

    #[test]
    fn what_was_added_is_there() {
        let filter = Filter::default();
        for number in 0..10_000 {
            filter.add(Fingerprint::of(&key(number)));
        }
        assert!((0..10_000).all(|number| filter.may_have(Fingerprint::of(&key(number)))));
    }

    #[test]
    fn few_others_seem_to_be() {
        let filter = Filter::default();
        let count = u32::try_from(WORDS).unwrap() * 6;
        for number in 0..count {
            filter.add(Fingerprint::of(&key(number)));
        }
        let others = count..count + 100_000;
        let found = others.filter(|number| filter.may_have(Fingerprint::of(&key(*number))));
        assert!(found.count() < 4_000);
    }

    #[test]
    fn keys_that_differ_in_a_byte_differ() {
        let (one, other) = (
            Fingerprint::of(b"\x02quoin\x00\x15\x01"),
            Fingerprint::of(b"\x02quoin\x00\x15\x02"),
        );
        assert!(one.word != other.word || one.bits != other.bits);
    }
}
