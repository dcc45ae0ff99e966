//! Which clients wait for which key.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::cursor::Cursor;
use super::waiter::Waiter;
use crate::commands::Wake;
use crate::layout::ValueType;
use crate::sparse::Sparse;
use crate::types::key::ClientKey;

/// Clients that wait for a key of one type.
pub(super) struct Queue {
    value_type: ValueType,
    /// By their places, the oldest first.
    pub(super) waiters: BTreeMap<u64, Arc<Waiter>>,
    /// How many of them are woken all together ([`Wake::All`]).
    woken_together: usize,
}

impl Queue {
    /// Whether any of them is woken whatever the others find.
    pub(super) fn wakes_all(&self) -> bool {
        self.woken_together > 0
    }
}

#[derive(Default)]
pub(super) struct Queues {
    /// The place that was given last.
    pub(super) last_order: u64,
    pub(super) by_key: HashMap<ClientKey, Vec<Queue>>,
    /// Keys whose waiters the write lane is to look at, and from where on.
    pub(super) scheduled: HashMap<ClientKey, Cursor>,
    /// Keys that a client has begun to wait for, or that none waits for any more.
    pub(super) changed: HashSet<ClientKey>,
}

impl Queues {
    pub(super) fn insert(&mut self, waiter: &Arc<Waiter>, order: u64) {
        let value_type = waiter.spec.value_type;
        for key in waiter.client_keys() {
            let queues = self.by_key.entry(key).or_default();
            if !queues.iter().any(|queue| queue.value_type == value_type) {
                queues.push(Queue {
                    value_type,
                    waiters: BTreeMap::new(),
                    woken_together: 0,
                });
            }
            for queue in queues.iter_mut() {
                if queue.value_type == value_type {
                    queue.waiters.insert(order, Arc::clone(waiter));
                    queue.woken_together += usize::from(waiter.spec.wake == Wake::All);
                }
            }
        }
    }

    pub(super) fn remove(&mut self, waiter: &Waiter, order: u64) {
        for key in waiter.client_keys() {
            let Some(queues) = self.by_key.get_mut(&key) else {
                continue;
            };
            for queue in queues.iter_mut() {
                if queue.waiters.remove(&order).is_some() {
                    queue.woken_together -= usize::from(waiter.spec.wake == Wake::All);
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
        let mut queues = self.by_key.get(key)?.iter();
        queues.find(|queue| queue.value_type == value_type)
    }

    /// Has the waiters of a key looked at.
    pub(super) fn schedule(&mut self, key: ClientKey, cursor: Cursor) {
        let scheduled = self.scheduled.entry(key);
        scheduled
            .and_modify(|other| *other = other.joined(cursor))
            .or_insert(cursor);
    }
}
