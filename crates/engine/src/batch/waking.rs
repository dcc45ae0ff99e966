//! Wakes clients for which a batch's commands have produced data.
//!
//! Waking a client means running its waiting command. A command that finds nothing keeps waiting.
//!
//! - [`wake_ready_keys`](Batch::wake_ready_keys) runs after each command of the batch. It wakes the waiters of all
//!   keys that have become ready.
//! - [`wake_key_of_type`](Batch::wake_key_of_type) wakes the waiters of a key that a command has just written, if the
//!   key still has the type that was written.
//! - [`wake_key`](Batch::wake_key) wakes the waiters of a key that wait for its current type. Scheduled wake-ups use
//!   it ([`Work::WakeUp`](crate::Work::WakeUp)).
//! - [`wake_waiters`](Batch::wake_waiters), which both use, goes through the waiters of a key.
//! - [`run_waiter`](Batch::run_waiter) runs the command of one waiter.
//!
//! Woken clients stay in service until the commit. Then they get their replies ([`Batch::run`]). If the batch runs
//! again, they are released first, and may be woken again. A scheduled wake-up is part of its batch, so it survives
//! conflicts like any other command. If the batch fails, the wake-up is scheduled again a little later.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::checks::Check;
use super::running::Attempt;
use super::{AttemptEnd, Batch, CommandId, WAITERS_TRIED_PER_KEY_MAX};
use crate::call::only_reads;
use crate::waiters::{Cursor, Waiter};
use quoin_data::command::call;
use quoin_data::command::call::{CallError, Mode};
use quoin_data::command::waits::Wake;
use quoin_data::error::CommandError;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::signals::{Offer, Ready, Wants};
use quoin_layout::ValueType;
use quoin_resp::reply::Reply;

/// Items that became ready in a key and suit the same clients.
struct ReadyItems {
    offer: Arc<dyn Offer>,
    /// The location of each ([`Signals::item_ready`](quoin_data::unit::signals::Signals::item_ready)).
    locations: Vec<Bytes>,
}

/// Why waiters of a key are woken.
#[derive(Clone, Copy)]
enum WokenBy<'i> {
    /// There may be something for them. The items, if known.
    Data(Option<&'i ReadyItems>),
    /// The key is gone or has another type. Only waiters that need the key are woken.
    Loss,
}

/// The result of running a waiter's command.
enum Woken {
    /// The command has a reply. The waiter stays in service until the commit.
    Replied,
    /// The command found nothing.
    Nothing,
    /// The command does not fit in this transaction.
    NoRoom,
}

/// Adds the keys that have become ready.
fn note_keys(keys: &mut HashSet<ClientKey>, ready: &VecDeque<Ready>) {
    keys.extend(ready.iter().filter_map(|one| match one {
        Ready::Key(key, _) | Ready::Gone(key, _) | Ready::Items { key, .. } => Some(key.clone()),
        Ready::Database(_) | Ready::Anywhere => None,
    }));
}

impl Batch<'_> {
    /// Whether ready keys can be ignored: no client waits, and none can begin to wait in a concurrent batch.
    pub(super) fn wakes_nobody(&self) -> bool {
        !self.environment.capabilities.has_other_writers && self.shared.waiters.is_empty()
    }

    /// Wakes the waiters of keys that have become ready, as Redis does after each command. Keys come in the order in
    /// which they became ready, and the oldest waiter of a key comes first. A waiter's command may make further keys
    /// ready (BLMOVE).
    pub(super) async fn wake_ready_keys(
        &mut self,
        attempt: &Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        let mut ready = self.note_ready(attempt);
        let mut ready_keys = HashSet::new();
        note_keys(&mut ready_keys, &ready);
        while let Some(next) = ready.pop_front() {
            let check = Check::Ready(&ready_keys);
            if self.shared.waiters.is_empty() {
                continue;
            }
            match next {
                Ready::Key(key, value_type) => {
                    self.wake_key_of_type(&key, value_type, None, check, attempt)
                        .await?;
                }
                Ready::Gone(key, value_type) => {
                    if self.shared.waiters.is_awaited_as(&key, value_type) {
                        self.wake_key(&key, Cursor::START, check, attempt).await?;
                    }
                }
                Ready::Items {
                    key,
                    value_type,
                    offer,
                    locations,
                } => {
                    let items = ReadyItems { offer, locations };
                    self.wake_key_of_type(&key, value_type, Some(&items), check, attempt)
                        .await?;
                }
                // Their wake-ups are scheduled after the commit.
                Ready::Anywhere => {}
                Ready::Database(database) => {
                    for key in self.shared.waiters.keys_of(database) {
                        self.wake_key(&key, Cursor::START, Check::All, attempt)
                            .await?;
                    }
                }
            }
            let more = self.note_ready(attempt);
            note_keys(&mut ready_keys, &more);
            ready.extend(more);
        }
        attempt.unit.signals.forget_items();
        Ok(())
    }

    /// Takes what has become ready since the last call. If other batches may run concurrently, also records it in
    /// `made_ready`, which is read after the commit. Clients that began to wait in those batches have not seen it, so
    /// wake-ups are scheduled for them ([`Batch::publish_effects`]).
    fn note_ready(&mut self, attempt: &Attempt<'_>) -> VecDeque<Ready> {
        let ready = attempt.unit.signals.take_ready();
        if self.environment.capabilities.has_other_writers {
            for one in &ready {
                // A scheduled wake-up covers all data of the key, so the items do not matter.
                let key = match one {
                    Ready::Items {
                        key, value_type, ..
                    } => Ready::Key(key.clone(), *value_type),
                    other => other.clone(),
                };
                if self.made_ready.last() != Some(&key) {
                    self.made_ready.push(key);
                }
            }
        }
        ready.into()
    }

    /// Wakes the waiters of a key to which a command has added data of a type.
    async fn wake_key_of_type(
        &mut self,
        key: &ClientKey,
        value_type: ValueType,
        items: Option<&ReadyItems>,
        check: Check<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        // The same EXEC may later have replaced the key with another type. These clients must not get WRONGTYPE for
        // that.
        if self.shared.waiters.is_awaited_as(key, value_type)
            && self.type_of(key, attempt).await? == Some(value_type)
        {
            let by = WokenBy::Data(items);
            self.wake_waiters(key, value_type, Cursor::START, by, check, attempt)
                .await?;
        }
        Ok(())
    }

    /// Wakes the waiters of a key from a cursor on: those that wait for its current type, and those that need the key
    /// to have another type.
    pub(super) async fn wake_key(
        &mut self,
        key: &ClientKey,
        cursor: Cursor,
        check: Check<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        let current = self.type_of(key, attempt).await?;
        for value_type in self.shared.waiters.types_needed(key) {
            if current != Some(value_type) {
                self.wake_waiters(key, value_type, cursor, WokenBy::Loss, check, attempt)
                    .await?;
            }
        }
        match current {
            Some(value_type) => {
                if matches!(check, Check::Key(_)) {
                    self.read_keys_of_woken(key, &attempt.unit).await;
                }
                let by = WokenBy::Data(None);
                self.wake_waiters(key, value_type, cursor, by, check, attempt)
                    .await
            }
            None => Ok(()),
        }
    }

    /// The type of a key. `None` if there is no key. Also `None` if the rows that decide whether it exists (its
    /// metadata, and for some types its length) cannot be read. Such a key wakes no client.
    async fn type_of(
        &mut self,
        key: &ClientKey,
        attempt: &Attempt<'_>,
    ) -> Result<Option<ValueType>, AttemptEnd> {
        let started = Instant::now();
        let context = attempt.unit.read_context(key.database);
        let found = context.find_any(&key.key).await;
        match call::check(found.map_err(CommandError::from)) {
            Ok(Ok(Some(found))) => Ok(Some(found.meta.value_type)),
            Ok(Ok(None)) => {
                self.note_found_empty([key.clone()]);
                Ok(None)
            }
            Ok(Err(_))
            | Err(CallError::TooLarge | CallError::MustReturn(_) | CallError::OutOfTime) => {
                Ok(None)
            }
            Err(CallError::Store(error)) => {
                // No particular waiter.
                let id = CommandId::Waiter(u64::MAX);
                Err(self.store_failed(id, error, attempt, started))
            }
        }
    }

    /// Notes keys that the attempt has found empty. Does nothing if no other server writes, because
    /// nobody needs it then.
    fn note_found_empty(&mut self, keys: impl IntoIterator<Item = ClientKey>) {
        if self.environment.capabilities.has_other_writers {
            self.found_empty.extend(keys);
        }
    }

    /// Runs the commands of the waiters of a key, from a cursor on. With `items`, runs only those that can use the
    /// items, and stops when the items are taken.
    ///
    /// A waiter with [`Wake::One`] takes what it finds. If it finds nothing although it could use what there is,
    /// nothing is left for other such waiters. A waiter with [`Wake::All`] leaves what it finds to the others, so all
    /// of these run.
    ///
    /// [`Wants`] says what a waiter can use, if that is not everything. Among waiters with equal wants, only one is
    /// tried in vain.
    async fn wake_waiters(
        &mut self,
        key: &ClientKey,
        value_type: ValueType,
        cursor: Cursor,
        by: WokenBy<'_>,
        check: Check<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        let (items, is_lost) = match by {
            WokenBy::Data(items) => (items, false),
            WokenBy::Loss => (None, true),
        };
        let mut from = cursor.from;
        let mut locations = items.map(|items| items.locations.as_slice());
        let mut unmet_wants: Vec<Arc<dyn Wants>> = Vec::new();
        let mut found_nothing = 0;
        let mut nothing_left = false;
        loop {
            // A woken client may take an earlier item than the announced one, so items that are already taken are
            // skipped. Reading a missing item would add needless read conflicts.
            while let Some([location, rest @ ..]) = locations
                && !attempt.unit.signals.is_item_there(location)
            {
                locations = Some(rest);
            }
            if locations.is_some_and(<[Bytes]>::is_empty) {
                break;
            }
            if self.should_stop(attempt) || found_nothing >= WAITERS_TRIED_PER_KEY_MAX {
                self.defer(key, cursor.at(from));
                return Ok(());
            }
            let waiters = &self.shared.waiters;
            let next = waiters.begin_service(key, value_type, self.slot.number, from, |spec| {
                (spec.needs_key || !is_lost)
                    && (spec.wake == Wake::All || !nothing_left)
                    && spec.wants.as_ref().is_none_or(|wants| {
                        items.is_none_or(|items| wants.accepts(&*items.offer))
                            && !unmet_wants.contains(wants)
                    })
            });
            let Some(waiter) = next else {
                break;
            };
            match self.run_waiter(&waiter, check, attempt).await? {
                Woken::Replied => {}
                Woken::Nothing => {
                    found_nothing += 1;
                    let spec = &waiter.spec;
                    let takes_any = spec.wants.is_none() || items.is_some();
                    if spec.wake == Wake::One && takes_any {
                        nothing_left = true;
                        if !self.shared.waiters.wakes_all(key, value_type) {
                            break;
                        }
                    }
                    unmet_wants.extend(spec.wants.clone());
                }
                Woken::NoRoom => {
                    self.defer(key, cursor.at(waiter.position()));
                    return Ok(());
                }
            }
            from = waiter.position().saturating_add(1);
        }
        // More data has arrived since this wake-up began, and waiters before the cursor have not seen it. Another
        // batch begins again with the oldest waiter.
        if cursor.restarts {
            self.defer(key, Cursor::START);
        }
        Ok(())
    }

    /// Leaves the waiters of a key to a later batch, from a cursor on. Their wake-up is scheduled after the commit
    /// ([`Batch::publish_effects`]).
    fn defer(&mut self, key: &ClientKey, cursor: Cursor) {
        let deferred = self.deferred.entry(key.clone()).or_insert(cursor);
        // A wake-up continues to the end, so one from the earlier position covers both.
        deferred.from = deferred.from.min(cursor.from);
        deferred.restarts |= cursor.restarts;
    }

    /// Whether the batch should stop waking clients. A batch that only wakes clients wakes at least one, even if it
    /// is full.
    fn should_stop(&self, attempt: &Attempt<'_>) -> bool {
        self.woken.len() >= self.woken_max
            || (attempt.is_full() && !(attempt.only_wakes && self.woken.is_empty()))
    }

    /// Runs the command of a waiter in service. If it has a reply, the waiter moves to `woken` and stays in service.
    /// Otherwise it is released.
    async fn run_waiter(
        &mut self,
        waiter: &Arc<Waiter>,
        check: Check<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<Woken, AttemptEnd> {
        let id = CommandId::Waiter(waiter.position());
        self.in_service.push(Arc::clone(waiter));
        let pinned = waiter.pinned();
        let invocation = pinned.as_deref().unwrap_or(&waiter.invocation);
        let refused = self.refused.get(&id).map(CommandError::to_line);
        // The client may no longer have the right to run it.
        let refused = refused.or_else(|| Waiter::refusal(self.environment, invocation));
        let ran = match refused {
            Some(line) => Ok(Reply::Error(line)),
            None => {
                let started = Instant::now();
                // Messages that the waiter publishes must not be attributed to the client that woke it.
                attempt.unit.signals.begin_call();
                let keys = self.keys_to_check(waiter, check, &attempt.unit);
                let mode = Mode {
                    known_keys: keys.known(),
                    // Its reads must still hold at the commit.
                    is_strict: only_reads(invocation)
                        && self.environment.capabilities.has_other_writers,
                    ..Mode::default()
                };
                let called = call::call(&attempt.unit, invocation, mode).await;
                waiter.note_run(started.elapsed());
                match called {
                    Ok(reply) => Ok(reply),
                    Err(CallError::TooLarge | CallError::MustReturn(_) | CallError::OutOfTime) => {
                        Err(CommandError::TooLarge)
                    }
                    Err(CallError::Store(error)) => {
                        return Err(self.store_failed(id, error, attempt, started));
                    }
                }
            }
        };
        self.in_service.pop();
        let is_only_one = attempt.only_wakes && attempt.is_alone() && self.woken.is_empty();
        let reply = match ran {
            Ok(reply) => reply,
            Err(error) if is_only_one => Reply::Error(error.to_line()),
            Err(_) => {
                // The waiter gets a transaction of its own. This batch wakes no more clients than it already has, in
                // this attempt and when it runs again.
                self.shared.waiters.release(waiter);
                if attempt.only_wakes && !attempt.is_alone() {
                    // The next batch begins with this wake-up.
                    self.commands_max = attempt.commands_run - 1;
                    return Err(AttemptEnd::Again { after_pause: false });
                }
                self.woken_max = self.woken.len();
                if attempt.unit.is_too_large() {
                    // What the command read stays in the transaction, so run again without it.
                    return Err(AttemptEnd::Again { after_pause: false });
                }
                return Ok(Woken::NoRoom);
            }
        };
        if reply.is_nothing() {
            if waiter.spec.takes_first {
                self.note_found_empty(waiter.client_keys());
            }
            self.shared.waiters.release(waiter);
            return Ok(Woken::Nothing);
        }
        attempt.note_reply(&reply);
        self.woken.push((Arc::clone(waiter), reply));
        Ok(Woken::Replied)
    }
}
