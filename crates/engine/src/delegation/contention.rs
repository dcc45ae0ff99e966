//! Tracks which queues are contended: several servers pop from them at once, so their pops conflict.
//!
//! This knowledge only decides how pops are done, never what they do. So it may be wrong, and may be forgotten.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quoin_data::cluster::delegation::Granted;

/// Pops from a queue are delegated after this many consecutive conflicts.
const CONFLICTS_MAX: u32 = 2;
/// How long a server does not delegate pops from a queue after waiting in vain for a grant.
const NOT_AGAIN: Duration = Duration::from_millis(500);
/// How long a queue stays contended. Meanwhile pops are delegated at once, and batches check for requests.
const CONTENDED: Duration = Duration::from_millis(200);
/// How many queues a server remembers.
const QUEUES_MAX: usize = 4_096;
/// Shortest and longest time that a batch waits for its grant before it pops by itself.
const PATIENCE_MIN: Duration = Duration::from_millis(20);
const PATIENCE_MAX: Duration = Duration::from_millis(500);
/// A batch waits this many times the recent average duration of grants.
const PATIENCE_FACTOR: u32 = 3;

/// What is known about one queue.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Conflicts since this server's last successful pop.
    conflicts: u32,
    /// When this server last popped by itself.
    popped_at: Option<Instant>,
    /// When another server last popped for this one.
    granted_at: Option<Instant>,
    /// How long such a grant takes on average.
    latency: Duration,
    /// When this server last waited for a grant in vain.
    waited_in_vain_at: Option<Instant>,
    /// When this server last popped for others, and how many elements.
    found: Option<(Instant, usize)>,
}

/// What other servers may have requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expected {
    /// Whether they have requested something recently.
    pub(super) lately: bool,
    /// The approximate number of elements.
    pub(super) elements: usize,
}

/// Contended queues by the hash of their key.
#[derive(Debug, Default)]
pub(crate) struct Contention {
    known: Mutex<HashMap<u64, Known>>,
}

impl Contention {
    fn known(&self) -> MutexGuard<'_, HashMap<u64, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, key: u64, now: Instant, change: impl FnOnce(&mut Known)) {
        let mut known = self.known();
        if known.len() >= QUEUES_MAX && !known.contains_key(&key) {
            known.retain(|_, queue| {
                is_recent(queue.popped_at, now) || is_recent(queue.granted_at, now)
            });
            if known.len() >= QUEUES_MAX {
                return;
            }
        }
        change(known.entry(key).or_default());
    }

    /// Records that pops conflicted. Returns whether to delegate them from now on.
    pub(super) fn note_conflict(&self, key: u64, now: Instant) -> bool {
        let mut is_contended = false;
        self.change(key, now, |queue| {
            queue.conflicts = queue.conflicts.saturating_add(1);
            let waited = queue.waited_in_vain_at;
            let is_idle = waited.is_some_and(|at| now.saturating_duration_since(at) < NOT_AGAIN);
            is_contended = queue.conflicts >= CONFLICTS_MAX && !is_idle;
        });
        is_contended
    }

    /// Records that this server popped by itself, and for others.
    pub(super) fn note_popped(&self, key: u64, now: Instant, granted: Granted) {
        self.change(key, now, |queue| {
            // Batches come faster than requests, so a single batch without requests does not count.
            if granted.requests > 0 {
                queue.found = Some((now, granted.elements));
            }
            queue.conflicts = 0;
            queue.popped_at = Some(now);
            queue.granted_at = None;
        });
    }

    /// Records that no other server popped for this one, so none pops from the queue constantly.
    pub(super) fn note_waited_in_vain(&self, key: u64, now: Instant) {
        self.change(key, now, |queue| queue.waited_in_vain_at = Some(now));
    }

    /// Records that another server popped for this one, and how long that took.
    pub(super) fn note_granted(&self, key: u64, now: Instant, latency: Duration) {
        self.change(key, now, |queue| {
            queue.granted_at = Some(now);
            queue.latency = match queue.latency.is_zero() {
                true => latency,
                false => (queue.latency * 7 + latency) / 8,
            };
        });
    }

    /// Whether another server currently pops for this one.
    pub(super) fn is_granted_lately(&self, key: u64, now: Instant) -> bool {
        let known = self.known();
        known
            .get(&key)
            .is_some_and(|queue| is_recent(queue.granted_at, now))
    }

    /// What other servers may have requested. `None` if this server pops from the queue too rarely for them to
    /// request anything.
    pub(super) fn expected(&self, key: u64, now: Instant) -> Option<Expected> {
        let known = self.known();
        let queue = known.get(&key)?;
        let found = queue.found.filter(|(at, _)| is_recent(Some(*at), now));
        is_recent(queue.popped_at, now).then(|| Expected {
            lately: found.is_some(),
            elements: found.map_or(0, |(_, elements)| elements),
        })
    }

    /// How long to wait for a grant.
    pub(super) fn patience(&self, key: u64) -> Duration {
        let latency = self.known().get(&key).map(|queue| queue.latency);
        let patience = latency.unwrap_or_default() * PATIENCE_FACTOR;
        patience.clamp(PATIENCE_MIN, PATIENCE_MAX)
    }
}

fn is_recent(at: Option<Instant>, now: Instant) -> bool {
    at.is_some_and(|at| now.saturating_duration_since(at) < CONTENDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Granted = popped_for_others(0, 0);

    const fn popped_for_others(requests: u64, elements: usize) -> Granted {
        Granted { requests, elements }
    }

    #[test]
    fn a_queue_is_contended_after_conflicts_in_a_row() {
        let contention = Contention::default();
        let now = Instant::now();
        assert!(!contention.note_conflict(1, now));
        assert!(contention.note_conflict(1, now));
        contention.note_popped(1, now, NOTHING);
        assert!(!contention.note_conflict(1, now));
        assert!(!contention.note_conflict(2, now));
    }

    #[test]
    fn a_server_that_waited_in_vain_does_not_delegate_for_a_while() {
        let contention = Contention::default();
        let now = Instant::now();
        contention.note_waited_in_vain(1, now);
        assert!(!contention.note_conflict(1, now));
        assert!(!contention.note_conflict(1, now));
        assert!(contention.note_conflict(1, now + NOT_AGAIN));
    }

    #[test]
    fn contention_is_forgotten() {
        let contention = Contention::default();
        let now = Instant::now();
        contention.note_popped(1, now, NOTHING);
        contention.note_granted(2, now, Duration::from_millis(9));
        assert!(contention.expected(1, now).is_some() && !contention.is_granted_lately(1, now));
        assert!(contention.is_granted_lately(2, now) && contention.expected(2, now).is_none());
        let later = now + CONTENDED;
        assert!(contention.expected(1, later).is_none() && !contention.is_granted_lately(2, later));
    }

    #[test]
    fn what_others_ask_for_is_expected_to_be_what_they_have_expected() {
        let contention = Contention::default();
        let now = Instant::now();
        contention.note_popped(1, now, popped_for_others(1, 70));
        // Batches come faster than requests.
        contention.note_popped(1, now, NOTHING);
        let expected = |elements| {
            Some(Expected {
                lately: true,
                elements,
            })
        };
        assert_eq!(contention.expected(1, now), expected(70));
        contention.note_popped(1, now, popped_for_others(2, 30));
        assert_eq!(contention.expected(1, now), expected(30));
        // The others made requests, but the queue was empty.
        contention.note_popped(1, now, popped_for_others(1, 0));
        assert_eq!(contention.expected(1, now), expected(0));
    }

    #[test]
    fn what_others_expected_long_ago_is_not_expected_however_often_this_server_pops() {
        let contention = Contention::default();
        let mut now = Instant::now();
        contention.note_popped(1, now, popped_for_others(1, 70));
        for _ in 0..10 {
            now += CONTENDED / 10;
            contention.note_popped(1, now, NOTHING);
        }
        let expected = Expected {
            lately: false,
            elements: 0,
        };
        assert_eq!(contention.expected(1, now), Some(expected));
    }

    #[test]
    fn a_server_that_pops_by_itself_again_is_not_granted_to_any_more() {
        let contention = Contention::default();
        let now = Instant::now();
        contention.note_granted(1, now, Duration::from_millis(9));
        contention.note_popped(1, now, NOTHING);
        assert!(!contention.is_granted_lately(1, now));
    }

    #[test]
    fn patience_follows_what_grants_take_within_bounds() {
        let contention = Contention::default();
        let now = Instant::now();
        assert_eq!(contention.patience(1), PATIENCE_MIN);
        contention.note_granted(1, now, Duration::from_millis(40));
        assert_eq!(contention.patience(1), Duration::from_millis(120));
        contention.note_granted(2, now, Duration::from_secs(9));
        assert_eq!(contention.patience(2), PATIENCE_MAX);
    }

    #[test]
    fn no_more_queues_are_remembered_than_the_bound_allows() {
        let contention = Contention::default();
        let now = Instant::now();
        for key in 0..2 * QUEUES_MAX as u64 {
            contention.note_popped(key, now, NOTHING);
        }
        assert_eq!(contention.known().len(), QUEUES_MAX);
        let later = now + CONTENDED;
        contention.note_popped(u64::MAX, later, NOTHING);
        assert_eq!(contention.known().len(), 1);
    }
}
