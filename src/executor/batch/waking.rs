//! Running the commands of clients that wait for what a batch's commands have put somewhere.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::running::Attempt;
use super::{AttemptEnd, Batch, CommandId, WAITERS_TRIED_PER_KEY_MAX};
use crate::commands::Wake;
use crate::commands::call::{self, CallError, Mode};
use crate::error::CommandError;
use crate::executor::call::only_reads;
use crate::executor::waiters::{Cursor, Waiter};
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::key::ClientKey;
use crate::types::signals::Ready;
use crate::types::wants::{Offer, Wants};

/// Items that became ready in a key and are for the same of its clients.
struct ReadyItems {
    offer: Arc<dyn Offer>,
    /// Where each is ([`Signals::item_ready`](crate::types::signals::Signals::item_ready)).
    places: Vec<Bytes>,
}

/// What came of running a waiter's command.
enum Woken {
    /// It has its reply.
    Replied,
    /// There was nothing for it.
    Nothing,
    /// The transaction cannot hold it.
    NoRoom,
}

impl Batch<'_> {
    /// Runs the commands of clients that wait for keys which have become ready, as Redis does after
    /// each command: keys in the order in which they became ready, and for each key the oldest client
    /// first. A waiter's command may make further keys ready (BLMOVE).
    pub(super) async fn run_waiters(&mut self, attempt: &Attempt<'_>) -> Result<(), AttemptEnd> {
        let mut ready = self.note_ready(attempt);
        while let Some(next) = ready.pop_front() {
            if self.shared.waiters.is_empty() {
                continue;
            }
            match next {
                Ready::Key(key, value_type) => {
                    self.wake_for(&key, value_type, None, attempt).await?;
                }
                Ready::Items {
                    key,
                    value_type,
                    offer,
                    places,
                } => {
                    let items = ReadyItems { offer, places };
                    self.wake_for(&key, value_type, Some(&items), attempt)
                        .await?;
                }
                Ready::Database(database) => {
                    for key in self.shared.waiters.keys_of(database) {
                        self.wake_up(&key, Cursor::START, attempt).await?;
                    }
                }
            }
            ready.extend(self.note_ready(attempt));
        }
        attempt.unit.signals.forget_items();
        Ok(())
    }

    /// What has become ready since this was asked last. Where other batches are under way beside
    /// this one it is noted too: clients that begin to wait in those look at it after the commit.
    fn note_ready(&mut self, attempt: &Attempt<'_>) -> VecDeque<Ready> {
        let ready = attempt.unit.signals.take_ready();
        if !self.environment.capabilities.single_writer {
            for one in &ready {
                // Those clients look at everything that is there.
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

    /// Wakes clients that wait for a key into which a command has put something of a type.
    async fn wake_for(
        &mut self,
        key: &ClientKey,
        value_type: ValueType,
        items: Option<&ReadyItems>,
        attempt: &Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        // A later command of the same EXEC may have put something else there, which is no reason to
        // tell those clients that the key is of the wrong type.
        if self.shared.waiters.is_awaited_since(key, value_type, 0)
            && self.type_of(key, attempt).await? == Some(value_type)
        {
            self.wake_waiters(key, value_type, Cursor::START, items, attempt)
                .await?;
        }
        Ok(())
    }

    /// Wakes clients that wait for whatever is at a key now.
    pub(super) async fn wake_up(
        &mut self,
        key: &ClientKey,
        cursor: Cursor,
        attempt: &Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        match self.type_of(key, attempt).await? {
            Some(value_type) => {
                self.wake_waiters(key, value_type, cursor, None, attempt)
                    .await
            }
            None => Ok(()),
        }
    }

    /// The type of what is at a key. `None` where there is nothing, or rows that cannot be read: they
    /// wake no client.
    async fn type_of(
        &mut self,
        key: &ClientKey,
        attempt: &Attempt<'_>,
    ) -> Result<Option<ValueType>, AttemptEnd> {
        let started = Instant::now();
        let context = attempt.unit.read_context(key.database);
        let found = context.find_any(&key.key).await;
        match call::check(found.map_err(CommandError::from)) {
            Ok(Ok(found)) => Ok(found.map(|found| found.meta.value_type)),
            Ok(Err(_)) | Err(CallError::TooLarge) => Ok(None),
            Err(CallError::Store(error)) => {
                let id = CommandId::Waiter(u64::MAX);
                Err(self.store_failed(id, error, attempt, started))
            }
        }
    }

    /// Runs the commands of clients that wait for a key, from a cursor on: of all, or of those that
    /// can use these items, until the items are taken.
    ///
    /// Where one that is woken alone ([`Wake::One`]) finds nothing although it could use what there
    /// is, there is nothing for others of its kind. Of those that want different things each is
    /// tried, but those that want the same only once.
    async fn wake_waiters(
        &mut self,
        key: &ClientKey,
        value_type: ValueType,
        cursor: Cursor,
        items: Option<&ReadyItems>,
        attempt: &Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        let mut from = cursor.from;
        let mut places = items.map(|items| items.places.as_slice());
        let mut in_vain: Vec<Arc<dyn Wants>> = Vec::new();
        let mut tried_in_vain = 0;
        let mut is_all_taken = false;
        loop {
            // A client that can use an item may take another, which comes sooner. The item is then
            // there for the next client. A search for one that is not there costs conflicts.
            while let Some([place, rest @ ..]) = places
                && !attempt.unit.signals.is_item_there(place)
            {
                places = Some(rest);
            }
            if places.is_some_and(<[Bytes]>::is_empty) {
                break;
            }
            if self.is_enough(attempt) || tried_in_vain >= WAITERS_TRIED_PER_KEY_MAX {
                self.leave_waiting(key, cursor.at(from));
                return Ok(());
            }
            let waiters = &self.shared.waiters;
            let next = waiters.begin_service(key, value_type, self.slot.number, from, |spec| {
                (spec.wake == Wake::All || !is_all_taken)
                    && spec.wants.as_ref().is_none_or(|wants| {
                        items.is_none_or(|items| wants.accepts(&*items.offer))
                            && !in_vain.contains(wants)
                    })
            });
            let Some(waiter) = next else {
                break;
            };
            match self.run_waiter(&waiter, attempt).await? {
                Woken::Replied => {}
                Woken::Nothing => {
                    tried_in_vain += 1;
                    let spec = &waiter.spec;
                    let takes_any = spec.wants.is_none() || items.is_some();
                    if spec.wake == Wake::One && takes_any {
                        is_all_taken = true;
                        if !self.shared.waiters.wakes_all(key, value_type) {
                            break;
                        }
                    }
                    in_vain.extend(spec.wants.clone());
                }
                Woken::NoRoom => {
                    self.leave_waiting(key, cursor.at(waiter.order()));
                    return Ok(());
                }
            }
            from = waiter.order().saturating_add(1);
        }
        if cursor.restarts {
            self.leave_waiting(key, Cursor::START);
        }
        Ok(())
    }

    /// Leaves the waiters of a key to the next batch, from a cursor on.
    fn leave_waiting(&mut self, key: &ClientKey, cursor: Cursor) {
        let left = self.left_waiting.entry(key.clone()).or_insert(cursor);
        // All of them from there on are looked at, so one look does for both.
        left.from = left.from.min(cursor.from);
        left.restarts |= cursor.restarts;
    }

    /// Whether the batch should wake no more clients.
    fn is_enough(&self, attempt: &Attempt<'_>) -> bool {
        self.woken.len() >= self.woken_max
            || (attempt.is_full() && !(attempt.only_wakes && self.woken.is_empty()))
    }

    /// Runs the command of a waiter in service.
    async fn run_waiter(
        &mut self,
        waiter: &Arc<Waiter>,
        attempt: &Attempt<'_>,
    ) -> Result<Woken, AttemptEnd> {
        let id = CommandId::Waiter(waiter.order());
        self.in_service.push(Arc::clone(waiter));
        let ran = match self.refused.get(&id) {
            Some(error) => Ok(Reply::Error(error.to_line())),
            None => {
                let started = Instant::now();
                let mode = Mode {
                    // What it reads must be so when what it was woken by takes effect.
                    is_strict: only_reads(&waiter.invocation)
                        && !self.environment.capabilities.single_writer,
                    pops_staged: false,
                };
                match call::call(&attempt.unit, &waiter.invocation, mode).await {
                    Ok(reply) => Ok(reply),
                    Err(CallError::TooLarge) => Err(CommandError::TooLarge),
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
                // It gets a transaction of its own, and so do those that are woken after it.
                self.shared.waiters.release(waiter);
                self.woken_max = self.woken.len();
                return Ok(Woken::NoRoom);
            }
        };
        if reply.is_nothing() {
            self.shared.waiters.release(waiter);
            return Ok(Woken::Nothing);
        }
        self.woken.push((Arc::clone(waiter), reply));
        Ok(Woken::Replied)
    }
}
