//! The counted queues, a bounded number of them.
//!
//! Each queue has a weight: the number of its changes, decayed every second. When the table is
//! full, the quarter with the lowest weights is evicted, and the highest evicted weight is
//! subtracted from all others (as in the Misra-Gries algorithm). So a weight is too low by at most
//! the decayed total of all changes, divided by three quarters of the number of places. A queue
//! with more changes than that is always in the table, however many others have a few each, and a
//! new queue gets a place at once.

use std::cmp::Ordering;
use std::time::Instant;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use quoin_base::limits::COUNTED_QUEUE_NAME_BYTES_MAX;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::flows::{Flow, FlowCounts};
use quoin_layout::ValueType;

/// What a weight is multiplied by each second. It halves in a minute.
const WEIGHT_DECAY: f64 = 0.988_514_020_352_896_2;
/// Rates are averaged over this many seconds.
const RATE_SECONDS: usize = 10;
/// One place in this many is freed at once.
const FREED_DIVISOR: usize = 4;

/// The counts of one queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueActivity {
    /// The queue.
    pub key: ClientKey,
    /// Its type at the latest change.
    pub value_type: ValueType,
    /// Counts since the server began to count the queue.
    pub counts: FlowCounts,
    /// Elements added per second, averaged over about the last ten seconds.
    pub in_per_second: f64,
    /// Elements removed per second, averaged over about the last ten seconds.
    pub out_per_second: f64,
    /// Number of recent changes. A change counts half after a minute. May be too low.
    pub weight: f64,
}

impl QueueActivity {
    /// Orders the more active queue first.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let rate = |of: &Self| of.in_per_second + of.out_per_second;
        let by_rate = rate(other).total_cmp(&rate(self));
        by_rate
            .then_with(|| other.weight.total_cmp(&self.weight))
            .then_with(|| other.counts.total().cmp(&self.counts.total()))
            .then_with(|| self.key.cmp(&other.key))
    }
}

/// The counted queues.
#[derive(Debug)]
pub(super) struct Table {
    /// There are few entries, so a fast hash is safe even if a client provokes collisions.
    queues: FxHashMap<ClientKey, Counted>,
    places: usize,
    /// The times of the last ticks, as a ring. Unused entries hold the time when counting began.
    ticks: [Instant; RATE_SECONDS],
    /// Index of the earliest tick in the ring.
    earliest: usize,
}

#[derive(Debug)]
struct Counted {
    value_type: ValueType,
    counts: FlowCounts,
    weight: f64,
    /// Elements in and out up to each of the last ticks.
    until: [(u64, u64); RATE_SECONDS],
}

impl Table {
    /// An empty table.
    pub(super) fn new(places: usize, now: Instant) -> Self {
        Self {
            queues: FxHashMap::default(),
            places,
            ticks: [now; RATE_SECONDS],
            earliest: 0,
        }
    }

    /// Counts changes of a queue. A queue with a long name is not counted.
    pub(super) fn note(&mut self, flow: &Flow) {
        let changes = flow.counts.total() as f64;
        if let Some(queue) = self.queues.get_mut(&flow.key) {
            queue.value_type = flow.value_type;
            queue.counts.add(flow.counts);
            queue.weight += changes;
            return;
        }
        if flow.key.key.len() > COUNTED_QUEUE_NAME_BYTES_MAX {
            return;
        }
        if self.queues.len() >= self.places {
            self.free_places();
        }
        let key = ClientKey {
            database: flow.key.database,
            // A copy, because the name is a slice of everything that its client sent.
            key: Bytes::copy_from_slice(&flow.key.key),
        };
        let counted = Counted {
            value_type: flow.value_type,
            counts: flow.counts,
            weight: changes,
            until: [(0, 0); RATE_SECONDS],
        };
        self.queues.insert(key, counted);
    }

    /// Removes the queues with the lowest weights.
    fn free_places(&mut self) {
        let mut weights: Vec<f64> = self.queues.values().map(|queue| queue.weight).collect();
        let freed = (self.places / FREED_DIVISOR).clamp(1, weights.len().max(1));
        if freed > weights.len() {
            return;
        }
        let (below, &mut highest, _) =
            weights.select_nth_unstable_by(freed - 1, |one, other| one.total_cmp(other));
        let below = below.iter().filter(|weight| **weight < highest).count();
        let mut equal = freed - below;
        self.queues.retain(|_, queue| {
            let is_freed = queue.weight < highest || (queue.weight == highest && equal > 0);
            equal -= usize::from(is_freed && queue.weight == highest);
            queue.weight -= highest;
            !is_freed
        });
    }

    /// Decays the weights, and records the counts for rates.
    pub(super) fn tick(&mut self, now: Instant) {
        for queue in self.queues.values_mut() {
            queue.weight *= WEIGHT_DECAY;
            if !queue.weight.is_normal() {
                queue.weight = 0.0;
            }
            let counts = (queue.counts.elements_in, queue.counts.elements_out);
            if let Some(until) = queue.until.get_mut(self.earliest) {
                *until = counts;
            }
        }
        if let Some(tick) = self.ticks.get_mut(self.earliest) {
            *tick = now;
        }
        self.earliest = (self.earliest + 1) % RATE_SECONDS;
    }

    /// All queues.
    pub(super) fn queues(&self, now: Instant) -> Vec<QueueActivity> {
        let since = self.ticks.get(self.earliest).copied().unwrap_or(now);
        // A server that has just started has no rates yet.
        let seconds = now.saturating_duration_since(since).as_secs_f64().max(1.0);
        let queues = self.queues.iter().map(|(key, queue)| {
            let (before_in, before_out) = { queue.until.get(self.earliest) }
                .copied()
                .unwrap_or_default();
            let rate = |count: u64, before: u64| count.saturating_sub(before) as f64 / seconds;
            QueueActivity {
                key: key.clone(),
                value_type: queue.value_type,
                counts: queue.counts,
                in_per_second: rate(queue.counts.elements_in, before_in),
                out_per_second: rate(queue.counts.elements_out, before_out),
                weight: queue.weight,
            }
        });
        queues.collect()
    }
}

#[cfg(test)]
mod tests;
