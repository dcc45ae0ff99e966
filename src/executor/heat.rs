//! Which queues are hot: popped from by several servers at once, so that pops conflict.
//!
//! What is known here decides only how pops are done, never what they do, so it may be wrong and
//! may be forgotten.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::{
    STAGE_AFTER_CONFLICTS, STAGED_HOT, STAGED_HOT_KEYS_MAX, STAGED_NOT_AGAIN, STAGED_WAIT_MAX,
    STAGED_WAIT_MIN,
};
use crate::types::staging::Fulfilled;

/// A batch waits so many times as long as claims have taken lately before it pops by itself.
const WAIT_FACTOR: u32 = 3;

/// What is known of one queue's end.
#[derive(Debug, Clone, Copy, Default)]
struct Heat {
    /// Conflicts since this server's pops last went through.
    conflicts: u32,
    /// When this server last popped by itself.
    popped: Option<Instant>,
    /// When another server last popped for this one.
    served: Option<Instant>,
    /// How long that takes, on the average.
    latency: Duration,
    /// When this server last asked in vain.
    waited_in_vain: Option<Instant>,
    /// When this server last popped for others, and how many elements.
    found: Option<(Instant, usize)>,
}

/// What other servers may want of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// They have wanted something a moment ago.
    pub(super) lately: bool,
    /// About how many elements.
    pub(super) elements: usize,
}

/// Hot queues by the hash of their key.
#[derive(Debug, Default)]
pub(super) struct HotKeys {
    known: Mutex<HashMap<u64, Heat>>,
}

impl HotKeys {
    fn known(&self) -> MutexGuard<'_, HashMap<u64, Heat>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, key: u64, now: Instant, change: impl FnOnce(&mut Heat)) {
        let mut known = self.known();
        if known.len() >= STAGED_HOT_KEYS_MAX && !known.contains_key(&key) {
            known.retain(|_, heat| is_recent(heat.popped, now) || is_recent(heat.served, now));
            if known.len() >= STAGED_HOT_KEYS_MAX {
                return;
            }
        }
        change(known.entry(key).or_default());
    }

    /// Pops have conflicted. Answers whether they are to be staged from now on.
    pub(super) fn note_conflict(&self, key: u64, now: Instant) -> bool {
        let mut is_hot = false;
        self.change(key, now, |heat| {
            heat.conflicts = heat.conflicts.saturating_add(1);
            let waited = heat.waited_in_vain;
            let is_idle =
                waited.is_some_and(|at| now.saturating_duration_since(at) < STAGED_NOT_AGAIN);
            is_hot = heat.conflicts >= STAGE_AFTER_CONFLICTS && !is_idle;
        });
        is_hot
    }

    /// This server has popped by itself, and for others.
    pub(super) fn note_popped(&self, key: u64, now: Instant, fulfilled: Fulfilled) {
        self.change(key, now, |heat| {
            // Batches come faster than requests: that there was none now does not count.
            if fulfilled.requests > 0 {
                heat.found = Some((now, fulfilled.elements));
            }
            heat.conflicts = 0;
            heat.popped = Some(now);
            heat.served = None;
        });
    }

    /// No other server has popped for this one: it is not a queue from which somebody pops all the
    /// time.
    pub(super) fn note_waited_in_vain(&self, key: u64, now: Instant) {
        self.change(key, now, |heat| heat.waited_in_vain = Some(now));
    }

    /// Another server has popped for this one, which took so long.
    pub(super) fn note_served(&self, key: u64, now: Instant, latency: Duration) {
        self.change(key, now, |heat| {
            heat.served = Some(now);
            heat.latency = match heat.latency.is_zero() {
                true => latency,
                false => (heat.latency * 7 + latency) / 8,
            };
        });
    }

    /// Whether another server pops for this one at present.
    pub(super) fn is_served(&self, key: u64, now: Instant) -> bool {
        let known = self.known();
        known
            .get(&key)
            .is_some_and(|heat| is_recent(heat.served, now))
    }

    /// Where this server pops so often that others may have asked it to pop for them.
    pub(super) fn asked_for(&self, key: u64, now: Instant) -> Option<Asked> {
        let known = self.known();
        let heat = known.get(&key)?;
        let found = heat.found.filter(|(at, _)| is_recent(Some(*at), now));
        is_recent(heat.popped, now).then(|| Asked {
            lately: found.is_some(),
            elements: found.map_or(0, |(_, elements)| elements),
        })
    }

    /// How long to wait for a claim.
    pub(super) fn patience(&self, key: u64) -> Duration {
        let latency = self.known().get(&key).map(|heat| heat.latency);
        let patience = latency.unwrap_or_default() * WAIT_FACTOR;
        patience.clamp(STAGED_WAIT_MIN, STAGED_WAIT_MAX)
    }
}

fn is_recent(at: Option<Instant>, now: Instant) -> bool {
    at.is_some_and(|at| now.saturating_duration_since(at) < STAGED_HOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Fulfilled = popped_for_others(0, 0);

    const fn popped_for_others(requests: u64, elements: usize) -> Fulfilled {
        Fulfilled { requests, elements }
    }

    #[test]
    fn a_queue_is_hot_after_conflicts_in_a_row() {
        let hot = HotKeys::default();
        let now = Instant::now();
        assert!(!hot.note_conflict(1, now));
        assert!(hot.note_conflict(1, now));
        hot.note_popped(1, now, NOTHING);
        assert!(!hot.note_conflict(1, now));
        assert!(!hot.note_conflict(2, now));
    }

    #[test]
    fn who_has_waited_in_vain_does_not_ask_again_for_a_while() {
        let hot = HotKeys::default();
        let now = Instant::now();
        hot.note_waited_in_vain(1, now);
        assert!(!hot.note_conflict(1, now));
        assert!(!hot.note_conflict(1, now));
        assert!(hot.note_conflict(1, now + STAGED_NOT_AGAIN));
    }

    #[test]
    fn a_queue_cools_down() {
        let hot = HotKeys::default();
        let now = Instant::now();
        hot.note_popped(1, now, NOTHING);
        hot.note_served(2, now, Duration::from_millis(9));
        assert!(hot.asked_for(1, now).is_some() && !hot.is_served(1, now));
        assert!(hot.is_served(2, now) && hot.asked_for(2, now).is_none());
        let later = now + STAGED_HOT;
        assert!(hot.asked_for(1, later).is_none() && !hot.is_served(2, later));
    }

    #[test]
    fn what_others_ask_for_is_expected_to_be_what_they_have_asked_for() {
        let hot = HotKeys::default();
        let now = Instant::now();
        hot.note_popped(1, now, popped_for_others(1, 70));
        // Batches come faster than requests.
        hot.note_popped(1, now, NOTHING);
        let asked = |elements| {
            Some(Asked {
                lately: true,
                elements,
            })
        };
        assert_eq!(hot.asked_for(1, now), asked(70));
        hot.note_popped(1, now, popped_for_others(2, 30));
        assert_eq!(hot.asked_for(1, now), asked(30));
        // They have asked, though there was nothing.
        hot.note_popped(1, now, popped_for_others(1, 0));
        assert_eq!(hot.asked_for(1, now), asked(0));
    }

    #[test]
    fn what_others_asked_for_long_ago_is_not_expected_however_often_this_server_pops() {
        let hot = HotKeys::default();
        let mut now = Instant::now();
        hot.note_popped(1, now, popped_for_others(1, 70));
        for _ in 0..10 {
            now += STAGED_HOT / 10;
            hot.note_popped(1, now, NOTHING);
        }
        let asked = Asked {
            lately: false,
            elements: 0,
        };
        assert_eq!(hot.asked_for(1, now), Some(asked));
    }

    #[test]
    fn a_server_that_pops_by_itself_again_is_not_served_any_more() {
        let hot = HotKeys::default();
        let now = Instant::now();
        hot.note_served(1, now, Duration::from_millis(9));
        hot.note_popped(1, now, NOTHING);
        assert!(!hot.is_served(1, now));
    }

    #[test]
    fn patience_follows_what_claims_take_within_bounds() {
        let hot = HotKeys::default();
        let now = Instant::now();
        assert_eq!(hot.patience(1), STAGED_WAIT_MIN);
        hot.note_served(1, now, Duration::from_millis(40));
        assert_eq!(hot.patience(1), Duration::from_millis(120));
        hot.note_served(2, now, Duration::from_secs(9));
        assert_eq!(hot.patience(2), STAGED_WAIT_MAX);
    }

    #[test]
    fn no_more_queues_are_remembered_than_the_bound_allows() {
        let hot = HotKeys::default();
        let now = Instant::now();
        for key in 0..2 * STAGED_HOT_KEYS_MAX as u64 {
            hot.note_popped(key, now, NOTHING);
        }
        assert_eq!(hot.known().len(), STAGED_HOT_KEYS_MAX);
        let later = now + STAGED_HOT;
        hot.note_popped(u64::MAX, later, NOTHING);
        assert_eq!(hot.known().len(), 1);
    }
}
