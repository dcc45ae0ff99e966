//! Records which clients wait for which key.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::cursor::Cursor;
use super::quiet::QuietKeys;
use super::waiter::Waiter;
use quoin_base::sparse::Sparse;
use quoin_data::command::waits::Wake;
use quoin_data::keyspace::key::ClientKey;
use quoin_layout::ValueType;

/// Clients that wait for a key of one type.
pub(super) struct Queue {
    value_type: ValueType,
    /// The waiters by position, the oldest first.
    pub(super) waiters: BTreeMap<u64, Arc<Waiter>>,
    /// How many of them are woken together ([`Wake::All`]).
    woken_together: usize,
    /// How many of them need the key ([`WaitSpec::needs_key`](quoin_data::command::waits::WaitSpec::needs_key)).
    needing_key: usize,
}

impl Queue {
    /// Whether any of them is woken even if the others find nothing.
    pub(super) fn wakes_all(&self) -> bool {
        self.woken_together > 0
    }

    /// Whether any of them gets an error when the key is removed.
    pub(super) fn needs_key(&self) -> bool {
        self.needing_key > 0
    }

    /// The type that they wait for.
    pub(super) fn value_type(&self) -> ValueType {
        self.value_type
    }
}

#[derive(Default)]
pub(super) struct Queues {
    /// The latest position given to a waiter.
    pub(super) last_position: u64,
    pub(super) by_key: HashMap<ClientKey, OfKey>,
    /// Keys whose waiters the write lane must wake, and where to begin.
    pub(super) scheduled: HashMap<ClientKey, Cursor>,
    /// What is known of keys without reading them.
    pub(super) quiet: QuietKeys,
}

/// The clients that wait for a key.
#[derive(Default)]
pub(super) struct OfKey {
    /// By type.
    pub(super) queues: Vec<Queue>,
    /// Whether a batch of this server has changed the key since the first of these clients came and may have left
    /// something in it. Otherwise, as far as this server knows, the key is as empty as they found it.
    is_suspect: bool,
}

impl Queues {
    pub(super) fn insert(&mut self, waiter: &Arc<Waiter>, position: u64) {
        let value_type = waiter.spec.value_type;
        for key in waiter.client_keys() {
            let queues = &mut self.by_key.entry(key).or_default().queues;
            if !queues.iter().any(|queue| queue.value_type == value_type) {
                queues.push(Queue {
                    value_type,
                    waiters: BTreeMap::new(),
                    woken_together: 0,
                    needing_key: 0,
                });
            }
            for queue in queues.iter_mut() {
                if queue.value_type == value_type {
                    queue.waiters.insert(position, Arc::clone(waiter));
                    queue.woken_together += usize::from(waiter.spec.wake == Wake::All);
                    queue.needing_key += usize::from(waiter.spec.needs_key);
                }
            }
        }
    }

    pub(super) fn remove(&mut self, waiter: &Waiter, position: u64) {
        for key in waiter.client_keys() {
            let Some(OfKey { queues, .. }) = self.by_key.get_mut(&key) else {
                continue;
            };
            for queue in queues.iter_mut() {
                if queue.waiters.remove(&position).is_some() {
                    queue.woken_together -= usize::from(waiter.spec.wake == Wake::All);
                    queue.needing_key -= usize::from(waiter.spec.needs_key);
                }
            }
            queues.retain(|queue| !queue.waiters.is_empty());
            if queues.is_empty() {
                self.by_key.remove(&key);
            }
        }
        self.by_key.shrink_if_sparse();
    }

    pub(super) fn queue(&self, key: &ClientKey, value_type: ValueType) -> Option<&Queue> {
        let mut queues = self.by_key.get(key)?.queues.iter();
        queues.find(|queue| queue.value_type == value_type)
    }

    /// Records that a batch is about to commit a change of a key.
    pub(super) fn note_change(&mut self, key: &ClientKey, is_empty: bool) {
        if let Some(of_key) = self.by_key.get_mut(key) {
            of_key.is_suspect = !is_empty;
        }
    }

    /// Whether a key may have something that was given to none of its clients.
    pub(super) fn is_suspect(&self, key: &ClientKey) -> bool {
        self.by_key.get(key).is_some_and(|of_key| of_key.is_suspect)
    }

    /// Schedules a wake-up of a key. It replaces those already scheduled.
    pub(super) fn schedule(&mut self, key: ClientKey, cursor: Cursor) {
        let scheduled = self.scheduled.entry(key);
        scheduled
            .and_modify(|other| *other = other.joined(cursor))
            .or_insert(cursor);
    }
}
