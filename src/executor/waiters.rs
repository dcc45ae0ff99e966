//! Clients that wait for something in a key.
//!
//! A blocking command that finds nothing is *parked* here by the batch that ran it. A batch that
//! puts something into a key runs the commands of the clients that wait for it, oldest first, in its
//! own transaction, right after the command that did it. So a push and the pop that it feeds are one
//! commit, and no client that comes later can get in between. Where other servers write too,
//! [wake watches](super::wake_watches) *schedule a wake-up* of keys that may have become ready: the
//! write lane then runs the commands of their waiters.
//!
//! | Stage | Who may run its command | Ends |
//! | --- | --- | --- |
//! | away | nothing: it is in no queue | parked: [`park`](Waiters::park) |
//! | parked | the batch that parked it: run again, its own first look may find something after all | waiting: [`settle`](Waiters::settle), when that batch is durable. Away: [`unpark`](Waiters::unpark), when that batch is run again |
//! | waiting | any batch | in service: [`begin_service`](Waiters::begin_service). Away: [`cancel`](Waiters::cancel) |
//! | in service | the batch that does | away: [`answer`](Waiters::answer), when that batch is durable. As before, at its old place: [`release`](Waiters::release), when there is nothing for it or the batch is run again |
//!
//! A batch that has something for a client which is parked or in service with another batch *misses*
//! it. A wake-up of its keys is then scheduled when the other batch lets go of it.

mod cursor;
mod queues;
mod wait;
mod waiter;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::commands::WaitSpec;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::sparse::Sparse;
use crate::types::key::ClientKey;

pub use cursor::Cursor;
use queues::{Queue, Queues};
pub use wait::Wait;
pub use waiter::{Outcome, Waiter};
use waiter::{Stage, State};

/// All clients of a server that wait, by what they wait for.
#[derive(Default)]
pub struct Waiters {
    queues: Mutex<Queues>,
    /// How many wait. Asked before anything is locked.
    count: AtomicUsize,
    scheduled: Notify,
    /// Whether [`Self::wait_changed`] is asked.
    has_wake_watches: bool,
    changed: Notify,
}

impl Waiters {
    /// No client waits. `has_wake_watches`: where other servers write too, watches follow which keys
    /// clients wait for.
    pub(super) fn new(has_wake_watches: bool) -> Self {
        Self {
            has_wake_watches,
            ..Self::default()
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no client waits for anything.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// How many keys clients wait for.
    pub fn key_count(&self) -> usize {
        self.queues().by_key.len()
    }

    /// Puts a waiter into the queues of its keys: after all others, or back to its place. Until
    /// it is [settled](Self::settle), only the batch in this slot can run its command.
    pub(super) fn park(&self, waiter: &Arc<Waiter>, slot: u64) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        if state.stage != Stage::Away || state.is_given_up {
            return;
        }
        let order = *state.order.get_or_insert_with(|| {
            queues.last_order += 1;
            queues.last_order
        });
        state.stage = Stage::Parked {
            slot,
            was_missed: false,
        };
        queues.insert(waiter, order);
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.has_wake_watches {
            queues.changed.extend(waiter.client_keys());
            self.changed.notify_one();
        }
    }

    /// Takes a waiter out again, whose batch is run again.
    pub(super) fn unpark(&self, waiter: &Waiter) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        self.take_out(&mut queues, waiter, &state);
        state.stage = Stage::Away;
    }

    /// The batch that parked a waiter is durable: now others can run its command too.
    pub(super) fn settle(&self, waiter: &Waiter) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        if let Stage::Parked { was_missed, .. } = state.stage {
            state.stage = Stage::Waiting;
            self.wake_if_missed(&mut queues, waiter, was_missed);
        }
    }

    fn wake_if_missed(&self, queues: &mut Queues, waiter: &Waiter, was_missed: bool) {
        if was_missed {
            for key in waiter.client_keys() {
                queues.schedule(key, Cursor::START);
            }
            self.scheduled.notify_one();
        }
    }

    fn take_out(&self, queues: &mut Queues, waiter: &Waiter, state: &State) {
        if let (Some(order), true) = (state.order, state.stage != Stage::Away) {
            queues.remove(waiter, order);
            self.count.fetch_sub(1, Ordering::SeqCst);
            if self.has_wake_watches {
                let left = waiter.client_keys();
                let left = left.filter(|key| !queues.by_key.contains_key(key));
                queues.changed.extend(left.collect::<Vec<_>>());
                self.changed.notify_one();
            }
        }
    }

    /// The oldest from the place `from` on that waits for a key of this type and `may_wake`. It is in
    /// service by the batch in a slot from then on.
    pub(super) fn begin_service(
        &self,
        key: &ClientKey,
        value_type: ValueType,
        slot: u64,
        from: u64,
        may_wake: impl Fn(&WaitSpec) -> bool,
    ) -> Option<Arc<Waiter>> {
        let queues = self.queues();
        let queue = queues.queue(key, value_type)?;
        for (_, waiter) in queue.waiters.range(from..) {
            if !may_wake(&waiter.spec) {
                continue;
            }
            let mut state = waiter.state();
            let (parked_by, was_missed) = match &mut state.stage {
                Stage::Waiting => (None, false),
                Stage::Parked {
                    slot: own,
                    was_missed,
                } if *own == slot => (Some(slot), *was_missed),
                Stage::Parked { was_missed, .. } | Stage::InService { was_missed, .. } => {
                    *was_missed = true;
                    continue;
                }
                Stage::Away => continue,
            };
            state.stage = Stage::InService {
                parked_by,
                was_missed,
            };
            return Some(Arc::clone(waiter));
        }
        None
    }

    /// Ends the service of a waiter, which keeps its place.
    pub(super) fn release(&self, waiter: &Waiter) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        let Stage::InService {
            parked_by,
            was_missed,
        } = state.stage
        else {
            return;
        };
        if state.is_given_up {
            self.take_out(&mut queues, waiter, &state);
            state.end(Outcome::Cancelled);
            return;
        }
        if let Some(slot) = parked_by {
            state.stage = Stage::Parked { slot, was_missed };
            return;
        }
        state.stage = Stage::Waiting;
        self.wake_if_missed(&mut queues, waiter, was_missed);
    }

    /// Whether the client of a waiter in service has given up.
    pub(super) fn is_cancelled(&self, waiter: &Waiter) -> bool {
        waiter.state().is_given_up
    }

    /// Hands a waiter in service its reply: the batch that made it is durable.
    pub(super) fn answer(&self, waiter: &Waiter, reply: Reply) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        self.take_out(&mut queues, waiter, &state);
        state.end(Outcome::Replied(reply));
    }

    /// Ends a wait without a reply. False where the waiter is in service: its outcome arrives in a
    /// moment and must be looked at, since something may have been popped. False too where it has
    /// ended already, with an outcome that must be looked at.
    pub fn cancel(&self, waiter: &Waiter) -> bool {
        let mut queues = self.queues();
        let mut state = waiter.state();
        state.is_given_up = true;
        if matches!(state.stage, Stage::InService { .. }) {
            return false;
        }
        let was_there = state.stage != Stage::Away;
        self.take_out(&mut queues, waiter, &state);
        state.stage = Stage::Away;
        was_there
    }

    /// Whether a wait has ended, or never began: nothing more is done for it.
    pub fn is_ended(&self, waiter: &Waiter) -> bool {
        waiter.state().stage == Stage::Away
    }

    /// The keys of a database that clients wait for.
    pub(super) fn keys_of(&self, database: u32) -> Vec<ClientKey> {
        let queues = self.queues();
        let keys = queues.by_key.keys();
        keys.filter(|key| key.database == database)
            .cloned()
            .collect()
    }

    /// Whether a client waits for a key.
    pub(super) fn is_awaited(&self, key: &ClientKey) -> bool {
        self.queues().by_key.contains_key(key)
    }

    /// Whether a client that was parked after the place `order` waits for a key of this type.
    pub(super) fn is_awaited_since(
        &self,
        key: &ClientKey,
        value_type: ValueType,
        order: u64,
    ) -> bool {
        let queues = self.queues();
        let queue = queues.queue(key, value_type);
        let last = queue.and_then(|queue| queue.waiters.last_key_value());
        last.is_some_and(|(last, _)| *last > order)
    }

    /// Whether any client that waits for a key of this type is woken whatever the others find.
    pub(super) fn wakes_all(&self, key: &ClientKey, value_type: ValueType) -> bool {
        let queues = self.queues();
        queues.queue(key, value_type).is_some_and(Queue::wakes_all)
    }

    /// The place of the waiter that was parked last.
    pub(super) fn last_order(&self) -> u64 {
        self.queues().last_order
    }

    /// Has the write lane look at the waiters of a key.
    pub(super) fn schedule_wake_up(&self, key: ClientKey, cursor: Cursor) {
        let mut queues = self.queues();
        if queues.by_key.contains_key(&key) {
            queues.schedule(key, cursor);
            self.scheduled.notify_one();
        }
    }

    /// Waits until a wake-up is scheduled.
    pub(super) async fn wait_scheduled(&self) {
        self.scheduled.notified().await;
    }

    /// The keys whose waiters are to be looked at, up to `keys_max`, and where from.
    pub(super) fn take_scheduled(&self, keys_max: usize) -> Vec<(ClientKey, Cursor)> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut queues = self.queues();
        let keys: Vec<ClientKey> = queues.scheduled.keys().take(keys_max).cloned().collect();
        let taken = keys
            .into_iter()
            .filter_map(|key| queues.scheduled.remove_entry(&key))
            .collect();
        queues.scheduled.shrink_if_sparse();
        if !queues.scheduled.is_empty() {
            self.scheduled.notify_one();
        }
        taken
    }

    /// What else the first waiters of a key wait for, up to `keys_max`.
    pub(super) fn keys_beside(&self, key: &ClientKey, keys_max: usize) -> Vec<ClientKey> {
        let queues = self.queues();
        let of_key = queues.by_key.get(key).map(Vec::as_slice);
        let waiters = of_key.unwrap_or_default().iter();
        let waiters = waiters.flat_map(|queue| queue.waiters.values().take(keys_max));
        let keys = waiters.flat_map(|waiter| waiter.client_keys());
        keys.filter(|other| other != key).take(keys_max).collect()
    }

    /// Waits until a client begins to wait, or the last of a key leaves, and answers for which keys.
    pub(super) async fn wait_changed(&self) -> Vec<ClientKey> {
        loop {
            let changed = std::mem::take(&mut self.queues().changed);
            if !changed.is_empty() {
                return changed.into_iter().collect();
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests;
