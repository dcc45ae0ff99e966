//! Remembers which keys servers contend for.

use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustc_hash::FxHasher;

/// How long after a conflict a key counts as contended. Then the server tries again whether it has
/// the key for itself, which costs those that contend for it one conflict each.
const CONTENDED_FOR: Duration = Duration::from_secs(10);
/// How long after a client has begun to wait for a key, it does not count as contended. Servers
/// whose clients wait hand them what is pushed there, usually without conflicts. If a client asked
/// another server first, a push here would miss it.
pub(super) const AWAITED_FOR: Duration = Duration::from_secs(1);
/// Number of entries. Keys may share one: commands that conflict with nothing are then handed over
/// as well.
const ENTRIES: usize = 1 << ENTRIES_BITS;
const ENTRIES_BITS: u32 = 12;

/// The keys on which commits of this server have lately conflicted with those of others.
#[derive(Debug)]
pub(crate) struct Contention {
    begun: Instant,
    /// By hash of the key.
    entries: Box<[Entry]>,
}

/// Times in milliseconds since the beginning.
#[derive(Debug, Default)]
struct Entry {
    contended_until_ms: AtomicU64,
    awaited_until_ms: AtomicU64,
}

impl Default for Contention {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            entries: (0..ENTRIES).map(|_| Entry::default()).collect(),
        }
    }
}

impl Contention {
    /// Notes that a commit of a command on this key conflicted.
    pub(crate) fn note_conflict(&self, key: &Bytes) {
        if let Some(entry) = self.entry(key) {
            let until_ms = self.after(CONTENDED_FOR);
            entry.contended_until_ms.store(until_ms, Ordering::Relaxed);
        }
    }

    /// Notes that a client begins to wait for this key.
    pub(crate) fn note_wait(&self, key: &Bytes) {
        if let Some(entry) = self.entry(key) {
            let until_ms = self.after(AWAITED_FOR);
            entry.awaited_until_ms.store(until_ms, Ordering::Relaxed);
        }
    }

    /// Whether any of these keys is contended.
    pub(crate) fn has_any<'k>(&self, mut keys: impl Iterator<Item = &'k Bytes>) -> bool {
        let now_ms = self.after(Duration::ZERO);
        keys.any(|key| {
            self.entry(key).is_some_and(|entry| {
                now_ms < entry.contended_until_ms.load(Ordering::Relaxed)
                    && now_ms >= entry.awaited_until_ms.load(Ordering::Relaxed)
            })
        })
    }

    fn after(&self, duration: Duration) -> u64 {
        (self.begun.elapsed() + duration).as_millis() as u64
    }

    fn entry(&self, key: &Bytes) -> Option<&Entry> {
        let hash = BuildHasherDefault::<FxHasher>::default().hash_one(key);
        // The upper bits of this hash are the best.
        self.entries
            .get((hash >> (u64::BITS - ENTRIES_BITS)) as usize)
    }
}
