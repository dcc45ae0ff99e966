//! Clients that wait for something to pop.
//!
//! A blocking command that finds nothing is *parked* here by the batch that ran it. A batch that
//! puts something into a key runs the commands of those who wait for it, oldest first, in its own
//! transaction, right behind the command that did it: so a push and the pop that it feeds are one
//! commit, and nobody who comes later can get in between. While a batch is at a waiter it has
//! *claimed* it; when the batch has committed the waiter is *served* and gone, else it is
//! *released* and keeps its place. A batch that may still be run again keeps those whom it parked
//! to itself until it is durable: else another batch could serve a client whose command, run again,
//! pops something too.
//!
//! Where other servers write too, [bells](super::bells) *nudge* keys that may have become ready,
//! and the write lane runs the commands of those who wait for them.

mod wait;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};

use crate::commands::Invocation;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::sparse::Sparse;
use crate::types::key::ClientKey;
use crate::types::task_queue::Amounts;

pub use wait::Wait;

/// How a wait ended.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The command found something, or failed: its reply.
    Served(Reply),
    /// It was given up ([`Waiters::cancel`]) and has done nothing.
    Cancelled,
}

/// A blocking command of a client, ready to wait.
pub struct Waiter {
    /// The command.
    pub invocation: Invocation,
    /// The keys that it waits for, each once.
    keys: Vec<Bytes>,
    /// The type that they must be of.
    value_type: ValueType,
    /// What it can use of those, where not everything.
    wants: Option<Amounts>,
    state: Mutex<State>,
}

struct State {
    /// Its place among all; `None` before it is parked for the first time.
    order: Option<u64>,
    stage: Stage,
    /// Its client has gone or does not want to wait any more: no batch is to park it or to serve it.
    is_given_up: bool,
    outcome: Option<oneshot::Sender<Outcome>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Not in any queue.
    Away,
    /// In the queues of its keys, by a batch that is not over yet: run again, it may find
    /// something after all, so no other batch may serve it.
    Parked {
        /// Which batch.
        slot: u64,
        /// Another batch had something for it meanwhile.
        was_missed: bool,
    },
    /// In the queues of its keys.
    Waiting,
    /// In the queues, and a batch is at it.
    Claimed {
        /// The batch that parked it, where that is the one which is at it.
        parked_by: Option<u64>,
        /// Another batch had something for it meanwhile.
        was_missed: bool,
    },
}

/// Where a look at those who wait for a key goes on.
///
/// A look goes on to the end, however often the key is nudged meanwhile: those at the end would never
/// have their turn else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Resumption {
    /// From which place on.
    pub(super) from: u64,
    /// Behind that they are to be looked at from the first on.
    pub(super) begins_anew: bool,
}

impl Waiter {
    /// A command that is to wait for `keys` of a type, and where its outcome will arrive.
    pub fn new(
        invocation: Invocation,
        keys: Vec<Bytes>,
        value_type: ValueType,
        wants: Option<Amounts>,
    ) -> (Arc<Self>, oneshot::Receiver<Outcome>) {
        let (sender, receiver) = oneshot::channel();
        let mut seen = HashSet::new();
        let keys = keys
            .into_iter()
            .filter(|key| seen.insert(key.clone()))
            .collect();
        let waiter = Arc::new(Self {
            invocation,
            keys,
            value_type,
            wants,
            state: Mutex::new(State {
                order: None,
                stage: Stage::Away,
                is_given_up: false,
                outcome: Some(sender),
            }),
        });
        (waiter, receiver)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its place among all who have waited since the server started.
    pub(super) fn order(&self) -> u64 {
        self.state().order.unwrap_or(u64::MAX)
    }

    /// What it has for tasks to use, where it waits for one that fits.
    pub(super) fn wants(&self) -> Option<&Amounts> {
        self.wants.as_ref()
    }

    fn client_keys(&self) -> impl Iterator<Item = ClientKey> + '_ {
        self.keys.iter().map(|key| ClientKey {
            database: self.invocation.database,
            key: key.clone(),
        })
    }

    fn end(&self, state: &mut State, outcome: Outcome) {
        state.stage = Stage::Away;
        if let Some(sender) = state.outcome.take() {
            // A client that is gone does not hear of it.
            let _ = sender.send(outcome);
        }
    }
}

/// All clients of a server that wait, by what they wait for.
#[derive(Default)]
pub struct Waiters {
    queues: Mutex<Queues>,
    /// How many wait; asked before anything is locked.
    count: AtomicUsize,
    nudged: Notify,
    /// Whether anybody asks [`Waiters::wait_changed`].
    has_bells: bool,
    changed: Notify,
}

/// Waiters by their places.
type Queue = BTreeMap<u64, Arc<Waiter>>;

#[derive(Default)]
struct Queues {
    next_order: u64,
    /// Who waits for a key, by type, oldest first.
    by_key: HashMap<ClientKey, Vec<(ValueType, Queue)>>,
    /// Keys to be looked at again by the write lane.
    nudged: HashSet<ClientKey>,
    /// Keys that somebody has begun to wait for, or that nobody waits for any more.
    changed: HashSet<ClientKey>,
    /// Of nudged keys where to go on; absent is at the first.
    resumptions: HashMap<ClientKey, Resumption>,
}

impl Queues {
    fn nudge(&mut self, key: ClientKey) {
        if let Some(resumption) = self.resumptions.get_mut(&key) {
            resumption.begins_anew = true;
        }
        self.nudged.insert(key);
    }

    fn insert(&mut self, waiter: &Arc<Waiter>, order: u64) {
        for key in waiter.client_keys() {
            let by_type = self.by_key.entry(key).or_default();
            match by_type
                .iter_mut()
                .find(|(value_type, _)| *value_type == waiter.value_type)
            {
                Some((_, queue)) => drop(queue.insert(order, Arc::clone(waiter))),
                None => {
                    let queue = BTreeMap::from([(order, Arc::clone(waiter))]);
                    by_type.push((waiter.value_type, queue));
                }
            }
        }
    }

    fn remove(&mut self, waiter: &Waiter, order: u64) {
        for key in waiter.client_keys() {
            let Some(by_type) = self.by_key.get_mut(&key) else {
                continue;
            };
            for (_, queue) in by_type.iter_mut() {
                queue.remove(&order);
            }
            by_type.retain(|(_, queue)| !queue.is_empty());
            if by_type.is_empty() {
                self.by_key.remove(&key);
            }
        }
        self.by_key.shrink_if_sparse();
    }

    fn queue(&self, key: &ClientKey, value_type: ValueType) -> Option<&Queue> {
        let by_type = self.by_key.get(key)?;
        let (_, queue) = by_type.iter().find(|(queued, _)| *queued == value_type)?;
        Some(queue)
    }
}

impl Waiters {
    /// Nobody waits. `has_bells`: where other servers write too, bells follow who waits.
    pub(super) fn new(has_bells: bool) -> Self {
        Self {
            has_bells,
            ..Self::default()
        }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody waits for anything.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// How many keys somebody waits for.
    pub fn key_count(&self) -> usize {
        self.queues().by_key.len()
    }

    /// Puts a waiter into the queues of its keys: behind all others, or back to its place. Until
    /// it is [settled](Self::settle), only the batch in this slot can serve it.
    pub(super) fn park(&self, waiter: &Arc<Waiter>, slot: u64) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        if state.stage != Stage::Away || state.is_given_up {
            return;
        }
        let order = *state.order.get_or_insert_with(|| {
            queues.next_order += 1;
            queues.next_order
        });
        state.stage = Stage::Parked {
            slot,
            was_missed: false,
        };
        queues.insert(waiter, order);
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.has_bells {
            queues.changed.extend(waiter.client_keys());
            self.changed.notify_one();
        }
    }

    /// Takes a waiter out again whose batch is run anew.
    pub(super) fn unpark(&self, waiter: &Waiter) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        self.take_out(&mut queues, waiter, &state);
        state.stage = Stage::Away;
    }

    /// The batch that parked a waiter is durable: now others can serve it too.
    pub(super) fn settle(&self, waiter: &Waiter) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        if let Stage::Parked { was_missed, .. } = state.stage {
            state.stage = Stage::Waiting;
            self.make_good(&mut queues, waiter, was_missed);
        }
    }

    /// Has the keys of a waiter that was passed over looked at again.
    fn make_good(&self, queues: &mut Queues, waiter: &Waiter, was_missed: bool) {
        if was_missed {
            for key in waiter.client_keys() {
                queues.nudge(key);
            }
            self.nudged.notify_one();
        }
    }

    fn take_out(&self, queues: &mut Queues, waiter: &Waiter, state: &State) {
        if let (Some(order), true) = (state.order, state.stage != Stage::Away) {
            queues.remove(waiter, order);
            self.count.fetch_sub(1, Ordering::SeqCst);
            if self.has_bells {
                let left = waiter.client_keys();
                let left = left.filter(|key| !queues.by_key.contains_key(key));
                queues.changed.extend(left.collect::<Vec<_>>());
                self.changed.notify_one();
            }
        }
    }

    /// The oldest from the place `from` on who waits for a key of this type and may be served by
    /// what it wants, claimed for the batch in a slot.
    pub(super) fn claim_first(
        &self,
        key: &ClientKey,
        value_type: ValueType,
        slot: u64,
        from: u64,
        may_serve: impl Fn(Option<&Amounts>) -> bool,
    ) -> Option<Arc<Waiter>> {
        let queues = self.queues();
        for (_, waiter) in queues.queue(key, value_type)?.range(from..) {
            if !may_serve(waiter.wants()) {
                continue;
            }
            let mut state = waiter.state();
            let parked_by = match &mut state.stage {
                Stage::Waiting => None,
                Stage::Parked { slot: own, .. } if *own == slot => Some(slot),
                Stage::Parked { was_missed, .. } | Stage::Claimed { was_missed, .. } => {
                    *was_missed = true;
                    continue;
                }
                Stage::Away => continue,
            };
            let was_missed = matches!(
                state.stage,
                Stage::Parked {
                    was_missed: true,
                    ..
                }
            );
            state.stage = Stage::Claimed {
                parked_by,
                was_missed,
            };
            return Some(Arc::clone(waiter));
        }
        None
    }

    /// Gives a claimed waiter back, which keeps its place.
    pub(super) fn release(&self, waiter: &Waiter) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        let Stage::Claimed {
            parked_by,
            was_missed,
        } = state.stage
        else {
            return;
        };
        if state.is_given_up {
            self.take_out(&mut queues, waiter, &state);
            waiter.end(&mut state, Outcome::Cancelled);
            return;
        }
        if let Some(slot) = parked_by {
            state.stage = Stage::Parked { slot, was_missed };
            return;
        }
        state.stage = Stage::Waiting;
        self.make_good(&mut queues, waiter, was_missed);
    }

    /// Whether the client of a claimed waiter does not want to wait any more.
    pub(super) fn is_cancelled(&self, waiter: &Waiter) -> bool {
        waiter.state().is_given_up
    }

    /// Hands a claimed waiter its reply; the batch that made it is durable.
    pub(super) fn serve(&self, waiter: &Waiter, reply: Reply) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        self.take_out(&mut queues, waiter, &state);
        waiter.end(&mut state, Outcome::Served(reply));
    }

    /// Ends a wait without a reply. False where a batch is at the waiter just now: then its
    /// outcome arrives in a moment, and must be looked at, since something may have been popped; or
    /// where it has ended already, with an outcome that must be looked at too.
    pub fn cancel(&self, waiter: &Waiter) -> bool {
        let mut queues = self.queues();
        let mut state = waiter.state();
        state.is_given_up = true;
        if matches!(state.stage, Stage::Claimed { .. }) {
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

    /// The keys of a database that somebody waits for.
    pub(super) fn keys_of(&self, database: u32) -> Vec<ClientKey> {
        let queues = self.queues();
        let keys = queues.by_key.keys();
        keys.filter(|key| key.database == database)
            .cloned()
            .collect()
    }

    /// Whether somebody waits for a key.
    pub(super) fn is_awaited(&self, key: &ClientKey) -> bool {
        self.queues().by_key.contains_key(key)
    }

    /// Whether anybody who was parked behind the place `order` waits for a key.
    pub(super) fn is_awaited_since(
        &self,
        key: &ClientKey,
        value_type: ValueType,
        order: u64,
    ) -> bool {
        let queues = self.queues();
        queues
            .queue(key, value_type)
            .is_some_and(|queue| queue.range(order.saturating_add(1)..).next().is_some())
    }

    /// The place of whoever was parked last.
    pub(super) fn last_order(&self) -> u64 {
        self.queues().next_order
    }

    /// Has the write lane look at keys for those who wait for them.
    pub(super) fn nudge(&self, keys: impl IntoIterator<Item = ClientKey>) {
        let mut queues = self.queues();
        for key in keys {
            if queues.by_key.contains_key(&key) {
                queues.nudge(key);
            }
        }
        if !queues.nudged.is_empty() {
            self.nudged.notify_one();
        }
    }

    /// [`Self::nudge`] of a key of whose waiters some have been looked after.
    pub(super) fn nudge_from(&self, key: ClientKey, resumption: Resumption) {
        let mut queues = self.queues();
        if !queues.by_key.contains_key(&key) {
            return;
        }
        let is_new = queues.nudged.insert(key.clone());
        let resumption = Resumption {
            begins_anew: resumption.begins_anew || !is_new,
            ..resumption
        };
        queues.resumptions.insert(key, resumption);
        self.nudged.notify_one();
    }

    /// Where a look at a key's waiters is to go on in the middle, has them looked at from the first on
    /// behind that.
    pub(super) fn begin_anew(&self, key: &ClientKey) {
        if let Some(resumption) = self.queues().resumptions.get_mut(key) {
            resumption.begins_anew = true;
        }
    }

    /// Which waiters of a nudged key are to be looked at.
    pub(super) fn take_resumption(&self, key: &ClientKey) -> Resumption {
        let mut queues = self.queues();
        let resumption = queues.resumptions.remove(key);
        queues.resumptions.shrink_if_sparse();
        resumption.unwrap_or_default()
    }

    /// Waits for a nudge.
    pub(super) async fn wait_nudged(&self) {
        self.nudged.notified().await;
    }

    /// The keys that were nudged, up to `keys_max`.
    pub(super) fn take_nudged(&self, keys_max: usize) -> Vec<ClientKey> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut queues = self.queues();
        let taken: Vec<ClientKey> = queues.nudged.iter().take(keys_max).cloned().collect();
        for key in &taken {
            queues.nudged.remove(key);
        }
        queues.nudged.shrink_if_sparse();
        if !queues.nudged.is_empty() {
            self.nudged.notify_one();
        }
        taken
    }

    /// What else the first of those who wait for a key wait for, up to `keys_max`.
    pub(super) fn keys_beside(&self, key: &ClientKey, keys_max: usize) -> Vec<ClientKey> {
        let queues = self.queues();
        let by_type = queues.by_key.get(key).map(Vec::as_slice);
        let waiters = by_type.unwrap_or_default().iter();
        let waiters = waiters.flat_map(|(_, queue)| queue.values().take(keys_max));
        let keys = waiters.flat_map(|waiter| waiter.client_keys());
        keys.filter(|other| other != key).take(keys_max).collect()
    }

    /// Waits until somebody begins to wait, or the last leaves, and answers for which keys.
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
