//! Clients that wait for data in a key.
//!
//! A blocking command whose first run found nothing is *parked* here by the batch that ran it. A batch that puts data
//! into a key runs the commands of the key's waiters in its own transaction, directly after the command that added
//! the data. So a push and the pop that it feeds are one commit. The oldest waiter comes first, and no later client
//! can get in between. Only waiters that another batch holds are passed over (see below). If other servers also
//! write, the [relay](super::relay) reads their log and *schedules a wake-up* of keys that may have become ready. The
//! write lane then submits work that runs the commands of their waiters. Rounds leave their commands to the lane until such
//! work has ended. A *slot* is the number of one of the lane's in-flight transactions.
//!
//! | Stage | Who may run its command | Next stage |
//! | --- | --- | --- |
//! | away: in no queue | nobody | parked by [`park`](Waiters::park), when its command found nothing |
//! | parked | the batch that parked it, if a later command of that batch puts data into a key | waiting by [`settle`](Waiters::settle), when that batch is durable |
//! | | | in service by [`begin_service`](Waiters::begin_service) of that batch |
//! | | | away by [`unpark`](Waiters::unpark), when that batch is run again |
//! | | | away by [`cancel`](Waiters::cancel) |
//! | waiting | any batch | in service by [`begin_service`](Waiters::begin_service) |
//! | | | away by [`cancel`](Waiters::cancel) |
//! | in service | the batch that took it into service | away by [`answer`](Waiters::answer): that batch is durable, or whether it is stays unknown |
//! | | | parked or waiting as before, at the same position, by [`release`](Waiters::release): its command found nothing, or the batch is run again or failed |
//! | | | away by [`release`](Waiters::release), if its client has given up meanwhile |
//! | | | away by [`unpark`](Waiters::unpark), if the batch also parked it and is run again |
//!
//! No other batch may run the command of a parked waiter. The batch that parked it may run again, and its command may
//! then find data at once.
//!
//! A batch *passes over* a waiter that is parked or in service with another batch, and marks it. At that time nobody
//! knows whether there is data for it. When the other batch returns the waiter to the stage *waiting*, a wake-up of
//! all its keys is scheduled.
//!
//! If the owner of a key runs commands for this server ([`forwarding`](super::forwarding)), a waiter is in service with no
//! batch until the owner has answered. Its command cannot be withdrawn then.
//!
//! A waiter in service stays in service until its batch's commit. If the commit's result is unknown, the batch first
//! finds out whether it was applied. If that also fails, waiters with a reply get the error. If they kept waiting,
//! nobody would learn that data may have been popped for them.

mod cursor;
mod known;
mod queues;
mod quiet;
mod wait;
mod waiter;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::in_flight::Carried;
use quoin_base::sparse::Sparse;
use quoin_data::command::waits::WaitSpec;
use quoin_data::keyspace::key::ClientKey;
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

pub use cursor::Cursor;
use queues::{Queue, Queues};
pub use wait::Wait;
pub use waiter::{Outcome, Waiter};
use waiter::{Stage, State};

/// Keys of a key's waiters that are searched for those that may have something. The waiters of thousands of keys may
/// all be woken at once, key by key.
const OTHER_KEYS_SEARCHED_MAX: usize = 256;

/// All waiters of a server, by the keys that they wait for.
#[derive(Default)]
pub struct Waiters {
    queues: Mutex<Queues>,
    /// Number of waiters. Read without the lock.
    count: AtomicUsize,
    /// Notified when a wake-up is scheduled.
    scheduled: Notify,
    /// Number of wake-ups that the lane has taken and not finished.
    wake_ups: AtomicUsize,
    /// Whether other servers write too. The relay then follows their log.
    has_other_writers: bool,
    /// Notified when a client waits and the relay does not follow the log.
    log_wanted: Notify,
    /// See [`Self::parked_quietly`].
    parked_quietly: AtomicU64,
}

impl Waiters {
    /// Creates an empty registry. `has_other_writers`: whether other servers write too.
    pub(super) fn new(has_other_writers: bool) -> Self {
        Self {
            has_other_writers,
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

    /// Number of keys that clients wait for.
    pub fn key_count(&self) -> usize {
        self.queues().by_key.len()
    }

    /// Number of clients that wait for each of these keys.
    pub fn count_waiting<'k>(&self, keys: impl Iterator<Item = &'k ClientKey>) -> Vec<usize> {
        let queues = self.queues();
        let waiting = |key: &ClientKey| {
            let of_key = queues.by_key.get(key).map(|of_key| &of_key.queues);
            let of_each = of_key.into_iter().flatten();
            of_each.map(|queue| queue.waiters.len()).sum()
        };
        keys.map(waiting).collect()
    }

    /// Number of those keys that must exist for a client to keep waiting
    /// ([`WaitSpec::needs_key`](quoin_data::command::waits::WaitSpec::needs_key)).
    pub fn needed_key_count(&self) -> usize {
        let queues = self.queues();
        let keys = queues.by_key.values();
        keys.filter(|of_key| of_key.queues.iter().any(Queue::needs_key))
            .count()
    }

    /// Puts a waiter into the queues of its keys: at the end, or back at its position. Until it is
    /// [settled](Self::settle), only the batch in this slot may run its command. Does nothing if the client has given
    /// up.
    pub(super) fn park(&self, waiter: &Arc<Waiter>, slot: u64) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        if state.stage != Stage::Away || state.is_given_up {
            return;
        }
        let position = *state.position.get_or_insert_with(|| {
            queues.last_position += 1;
            queues.last_position
        });
        state.stage = Stage::Parked {
            slot,
            was_passed_over: false,
        };
        self.put_in(&mut queues, waiter, position);
    }

    fn put_in(&self, queues: &mut Queues, waiter: &Arc<Waiter>, position: u64) {
        queues.insert(waiter, position);
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.has_other_writers {
            for key in waiter.client_keys() {
                queues.quiet.expect(key);
            }
            if queues.quiet.log_reader().is_none() {
                self.log_wanted.notify_one();
            }
        }
    }

    /// Removes a waiter because the batch that parked it runs again.
    pub(super) fn unpark(&self, waiter: &Waiter) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        self.take_out(&mut queues, waiter, &state);
        state.stage = Stage::Away;
    }

    /// Lets any batch run a waiter's command, because the batch that parked it is durable. `fills`: the number of
    /// fills when that batch began. A key filled since then may have something that the batch has not seen. The
    /// others are as empty as the batch found them.
    pub(super) fn settle(&self, waiter: &Waiter, fills: u64) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        if let Stage::Parked {
            was_passed_over, ..
        } = state.stage
        {
            state.stage = Stage::Waiting;
            self.wake_if_passed_over(&mut queues, waiter, was_passed_over);
            if !self.has_other_writers {
                return;
            }
            for key in waiter.client_keys() {
                if queues.quiet.was_filled_since(&key, fills) {
                    queues.schedule(key, Cursor::START);
                    self.scheduled.notify_one();
                } else if waiter.spec.takes_first {
                    queues.quiet.note_empty(&key, fills);
                }
            }
        }
    }

    /// Schedules a wake-up of all keys of a waiter if another batch has passed over it.
    fn wake_if_passed_over(&self, queues: &mut Queues, waiter: &Waiter, was_passed_over: bool) {
        if was_passed_over {
            for key in waiter.client_keys() {
                queues.schedule(key, Cursor::START);
            }
            self.scheduled.notify_one();
        }
    }

    fn take_out(&self, queues: &mut Queues, waiter: &Waiter, state: &State) {
        if let (Some(position), true) = (state.position, state.stage != Stage::Away) {
            queues.remove(waiter, position);
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Takes a waiter into service for the batch in `slot`: the oldest one at or after the position `from` that waits
    /// for this key and type and satisfies `may_wake`. Waiters held by another batch are passed over and marked.
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
            let (parked_by, was_passed_over) = match &mut state.stage {
                Stage::Waiting => (None, false),
                Stage::Parked {
                    slot: own,
                    was_passed_over,
                } if *own == slot => (Some(slot), *was_passed_over),
                Stage::Parked {
                    was_passed_over, ..
                }
                | Stage::InService {
                    was_passed_over, ..
                } => {
                    *was_passed_over = true;
                    continue;
                }
                Stage::Away => continue,
            };
            state.stage = Stage::InService {
                parked_by,
                was_passed_over,
            };
            return Some(Arc::clone(waiter));
        }
        None
    }

    /// Ends the service of a waiter without a reply. The waiter returns to its previous stage and position. If its
    /// client has given up, ends the wait with [`Outcome::Cancelled`].
    pub(super) fn release(&self, waiter: &Waiter) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        let Stage::InService {
            parked_by,
            was_passed_over,
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
            state.stage = Stage::Parked {
                slot,
                was_passed_over,
            };
            return;
        }
        state.stage = Stage::Waiting;
        self.wake_if_passed_over(&mut queues, waiter, was_passed_over);
    }

    /// Whether the client of a waiter in service has given up. A batch checks this just before its commit
    /// ([`Batch::run`](super::batch::Batch::run)), and runs again without that waiter.
    pub(super) fn is_cancelled(&self, waiter: &Waiter) -> bool {
        waiter.state().is_given_up
    }

    /// Ends the wait of a waiter in service with a reply. Either its batch is durable, or the reply is the error that
    /// the batch's result is unknown. `carried` counts the reply until the connection takes it over.
    pub(super) fn answer(&self, waiter: &Waiter, reply: Reply, carried: Carried) {
        let mut queues = self.queues();
        let mut state = waiter.state();
        self.take_out(&mut queues, waiter, &state);
        waiter.note_answer(&mut state, carried);
        state.end(Outcome::Replied(reply));
    }

    /// Ends a wait without a reply. True if the waiter was parked or waiting: no outcome is sent.
    ///
    /// False if it is in service: its outcome arrives soon and must be received, because something may have been
    /// popped for it. Also false if it is away. Then its outcome was sent and must be received, unless the waiter was
    /// never parked, was just unparked or was already cancelled. In those cases none is sent.
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

    /// Whether a wait has ended or never began, so that no outcome will follow.
    pub fn is_ended(&self, waiter: &Waiter) -> bool {
        waiter.state().stage == Stage::Away
    }

    /// The awaited keys of a database.
    pub(super) fn keys_of(&self, database: u32) -> Vec<ClientKey> {
        let queues = self.queues();
        let keys = queues.by_key.keys();
        keys.filter(|key| key.database == database)
            .cloned()
            .collect()
    }

    /// Whether a client waits for a key of this type.
    pub(super) fn is_awaited_as(&self, key: &ClientKey, value_type: ValueType) -> bool {
        self.queues().queue(key, value_type).is_some()
    }

    /// Whether clients wait for the key.
    pub(super) fn is_awaited(&self, key: &ClientKey) -> bool {
        self.queues().by_key.contains_key(key)
    }

    /// The types that a key must have for its clients to keep waiting ([`WaitSpec::needs_key`]).
    pub(super) fn types_needed(&self, key: &ClientKey) -> Vec<ValueType> {
        let queues = self.queues();
        let of_key = queues.by_key.get(key).into_iter();
        let needed = of_key.flat_map(|of_key| &of_key.queues);
        let needed = needed.filter(|queue| queue.needs_key());
        needed.map(Queue::value_type).collect()
    }

    /// Whether a client that came after the waiter at `position` waits for a key of this type.
    pub(super) fn is_awaited_since(
        &self,
        key: &ClientKey,
        value_type: ValueType,
        position: u64,
    ) -> bool {
        let queues = self.queues();
        let queue = queues.queue(key, value_type);
        let last = queue.and_then(|queue| queue.waiters.last_key_value());
        last.is_some_and(|(last, _)| *last > position)
    }

    /// Whether any client that waits for a key of this type is woken even if others find nothing
    /// ([`Wake::All`](quoin_data::command::waits::Wake::All)).
    pub(super) fn wakes_all(&self, key: &ClientKey, value_type: ValueType) -> bool {
        let queues = self.queues();
        queues.queue(key, value_type).is_some_and(Queue::wakes_all)
    }

    /// The latest position given to a waiter.
    pub(super) fn last_position(&self) -> u64 {
        self.queues().last_position
    }

    /// Schedules a wake-up of the waiters of a key in the write lane. Does nothing if the key has none.
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

    /// Whether wake-ups are scheduled or unfinished.
    pub(super) fn has_wake_ups(&self) -> bool {
        if self.is_empty() {
            return false;
        }
        let queues = self.queues();
        !queues.scheduled.is_empty() || self.wake_ups.load(Ordering::SeqCst) > 0
    }

    /// Records that this many taken wake-ups have ended.
    pub(super) fn end_wake_ups(&self, count: usize) {
        let ended = |wake_ups: usize| Some(wake_ups.saturating_sub(count));
        let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
        // The closure always returns a value.
        let _ = self.wake_ups.fetch_update(success, failure, ended);
    }

    /// Takes up to `keys_max` scheduled wake-ups: the keys, and where to begin in their queues.
    pub(super) fn take_scheduled(&self, keys_max: usize) -> Vec<(ClientKey, Cursor)> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut queues = self.queues();
        let keys: Vec<ClientKey> = queues.scheduled.keys().take(keys_max).cloned().collect();
        let taken: Vec<_> = keys
            .into_iter()
            .filter_map(|key| queues.scheduled.remove_entry(&key))
            .collect();
        self.wake_ups.fetch_add(taken.len(), Ordering::SeqCst);
        queues.scheduled.shrink_if_sparse();
        if !queues.scheduled.is_empty() {
            self.scheduled.notify_one();
        }
        taken
    }

    /// Up to `keys_max` other keys that the oldest waiters of a key also wait for and that may have something, among
    /// the first [`OTHER_KEYS_SEARCHED_MAX`]. A wake-up locks them too. So while it runs, no other batch may wake
    /// younger waiters of these keys first.
    pub(super) fn other_keys_of_waiters(&self, key: &ClientKey, keys_max: usize) -> Vec<ClientKey> {
        let queues = self.queues();
        let of_key = queues.by_key.get(key);
        let waiters = of_key.into_iter().flat_map(|of_key| &of_key.queues);
        let waiters = waiters.flat_map(|queue| queue.waiters.values().take(keys_max));
        let keys = waiters.flat_map(|waiter| waiter.client_keys());
        keys.take(OTHER_KEYS_SEARCHED_MAX)
            .filter(|other| other != key && !queues.quiet.is_quiet(other))
            .take(keys_max)
            .collect()
    }

    /// Schedules wake-ups of all awaited keys of which `may_be_ready` is true.
    fn schedule_all(&self, queues: &mut Queues, may_be_ready: impl Fn(&ClientKey) -> bool) {
        let keys = queues.by_key.keys().filter(|key| may_be_ready(key));
        for key in keys.cloned().collect::<Vec<_>>() {
            queues.schedule(key, Cursor::START);
        }
        self.scheduled.notify_one();
    }

    /// All awaited keys.
    pub(super) fn awaited_keys(&self) -> Vec<ClientKey> {
        self.queues().by_key.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
