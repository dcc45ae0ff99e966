//! Running the commands of clients that wait for what a batch's commands have put somewhere.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::running::Attempt;
use super::{AttemptEnd, Batch, CommandId};
use crate::commands::call::{self, CallError, Mode};
use crate::error::CommandError;
use crate::executor::waiters::Waiter;
use crate::layout::ValueType;
use crate::limits::WAITERS_TRIED_PER_KEY_MAX;
use crate::reply::Reply;
use crate::types::key::ClientKey;
use crate::types::signals::Ready;
use crate::types::task_queue::Amounts;

/// Tasks with the same needs that have become ready in one queue.
struct ReadyTasks {
    needs: Amounts,
    /// Where each is ([`Signals::task_ready`](crate::types::signals::Signals::task_ready)).
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
                    // A later command of the same EXEC may have put something else there, which
                    // is no reason to tell those who wait that the key is of the wrong type.
                    if self.shared.waiters.is_awaited_since(&key, value_type, 0) {
                        self.wake_for_key(&key, Some((value_type, None)), attempt)
                            .await?;
                    }
                }
                Ready::Tasks(key, needs, places) => {
                    let value_type = ValueType::TaskQueue;
                    if self.shared.waiters.is_awaited_since(&key, value_type, 0) {
                        let tasks = ReadyTasks { needs, places };
                        self.wake_for_key(&key, Some((value_type, Some(&tasks))), attempt)
                            .await?;
                    }
                }
                Ready::Database(database) => {
                    for key in self.shared.waiters.keys_of(database) {
                        self.wake_for_key(&key, None, attempt).await?;
                    }
                }
            }
            ready.extend(self.note_ready(attempt));
        }
        attempt.unit.signals.forget_tasks();
        Ok(())
    }

    /// What has become ready since this was asked last. Where other batches are under way
    /// beside this one it is kept, to look after the commit for those who came meanwhile.
    fn note_ready(&mut self, attempt: &Attempt<'_>) -> VecDeque<Ready> {
        let ready = attempt.unit.signals.take_ready();
        if !self.environment.capabilities.single_writer {
            for one in &ready {
                // Who came meanwhile looks at all that is there.
                let key = match one {
                    Ready::Tasks(key, ..) => Ready::Key(key.clone(), ValueType::TaskQueue),
                    other => other.clone(),
                };
                if self.made_ready.last() != Some(&key) {
                    self.made_ready.push(key);
                }
            }
        }
        ready.into()
    }

    /// Carries a [`Work::WakeUp`](crate::executor::Work::WakeUp) out.
    pub(super) async fn wake_up(
        &mut self,
        key: &ClientKey,
        attempt: &Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        let waiters = &self.shared.waiters;
        // Once, however often the batch is tried.
        let begun = self.resumptions.entry(key.clone());
        begun.or_insert_with(|| waiters.take_resumption(key));
        self.wake_for_key(key, None, attempt).await
    }

    /// Serves those who wait for what is at a key now, where it is of the `wanted` type: all whom
    /// it can serve, or those for whom there are these tasks.
    async fn wake_for_key(
        &mut self,
        key: &ClientKey,
        wanted: Option<(ValueType, Option<&ReadyTasks>)>,
        attempt: &Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        let started = Instant::now();
        let context = attempt.unit.read_context(key.database);
        let found = context.find_any(&key.key).await;
        match call::check(found.map_err(CommandError::from)) {
            Ok(Ok(Some(found))) => {
                let value_type = found.meta.value_type;
                match wanted {
                    None => {
                        let begun = self.resumptions.get(key).copied().unwrap_or_default();
                        self.wake_waiters(key, value_type, begun.from, attempt)
                            .await
                    }
                    Some((wanted, _)) if wanted != value_type => Ok(()),
                    Some((_, Some(tasks))) => self.wake_for_tasks(key, tasks, attempt).await,
                    Some((_, None)) => self.wake_waiters(key, value_type, 0, attempt).await,
                }
            }
            // Rows that cannot be read wake nobody.
            Ok(Ok(None) | Err(_)) | Err(CallError::TooLarge) => Ok(()),
            Err(CallError::Store(error)) => {
                let id = CommandId::Waiter(u64::MAX);
                Err(self.store_failed(id, error, attempt, started))
            }
        }
    }

    /// Serves those who wait for a key, from the place `from` on, until there is nothing for the
    /// next of them; where they say what they want, until all have been tried, those who want the
    /// same only once.
    async fn wake_waiters(
        &mut self,
        key: &ClientKey,
        value_type: ValueType,
        from: u64,
        attempt: &Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        let slot = self.slot.number;
        let mut from = from;
        let mut in_vain: Vec<Amounts> = Vec::new();
        loop {
            if self.is_enough(attempt) || in_vain.len() >= WAITERS_TRIED_PER_KEY_MAX {
                self.leave_unserved(key, from);
                return Ok(());
            }
            let waiters = &self.shared.waiters;
            let claimed = waiters.claim_first(key, value_type, slot, from, |wants| {
                wants.is_none_or(|wants| !in_vain.contains(wants))
            });
            let Some(waiter) = claimed else {
                return Ok(());
            };
            from = waiter.order();
            match (self.run_waiter(&waiter, attempt).await?, waiter.wants()) {
                (Woken::Replied, _) => {}
                (Woken::Nothing, None) => return Ok(()),
                (Woken::Nothing, Some(wants)) => in_vain.push(wants.clone()),
                (Woken::NoRoom, _) => {
                    self.leave_unserved(key, from);
                    return Ok(());
                }
            }
        }
    }

    /// Serves those who wait for a key and have what tasks need that became ready there, the first
    /// first, until these tasks are taken or nobody is left for whom there is anything. There was
    /// nothing for any of them before.
    async fn wake_for_tasks(
        &mut self,
        key: &ClientKey,
        tasks: &ReadyTasks,
        attempt: &Attempt<'_>,
    ) -> Result<(), AttemptEnd> {
        let slot = self.slot.number;
        for place in &tasks.places {
            // Whoever has what it needs may take another task, which comes sooner: then it is
            // there for the next still. A search in vain where it is not costs conflicts.
            while attempt.unit.signals.is_task_there(place) {
                if self.is_enough(attempt) {
                    self.leave_unserved(key, 0);
                    return Ok(());
                }
                let waiters = &self.shared.waiters;
                let claimed = waiters.claim_first(key, ValueType::TaskQueue, slot, 0, |wants| {
                    wants.is_none_or(|having| tasks.needs.fit(having))
                });
                let Some(waiter) = claimed else {
                    return Ok(());
                };
                match self.run_waiter(&waiter, attempt).await? {
                    Woken::Replied => {}
                    // A client that has what they need and finds nothing shows that none is left.
                    Woken::Nothing => return Ok(()),
                    Woken::NoRoom => {
                        self.leave_unserved(key, 0);
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Leaves those who wait for a key to the next batch, from the place `from` on.
    fn leave_unserved(&mut self, key: &ClientKey, from: u64) {
        let place = self.unserved.entry(key.clone()).or_insert(from);
        *place = (*place).min(from);
    }

    /// Whether the batch should serve no more waiters.
    fn is_enough(&self, attempt: &Attempt<'_>) -> bool {
        self.woken.len() >= self.woken_max
            || (attempt.is_full() && !(attempt.only_wakes && self.woken.is_empty()))
    }

    /// Runs the command of a waiter that was claimed.
    async fn run_waiter(
        &mut self,
        waiter: &Arc<Waiter>,
        attempt: &Attempt<'_>,
    ) -> Result<Woken, AttemptEnd> {
        let id = CommandId::Waiter(waiter.order());
        self.claimed.push(Arc::clone(waiter));
        let ran = match self.refused.get(&id) {
            Some(error) => Ok(Reply::Error(error.to_line())),
            None => {
                let started = Instant::now();
                match call::call(&attempt.unit, &waiter.invocation, Mode::default()).await {
                    Ok(reply) => Ok(reply),
                    Err(CallError::TooLarge) => Err(CommandError::TooLarge),
                    Err(CallError::Store(error)) => {
                        return Err(self.store_failed(id, error, attempt, started));
                    }
                }
            }
        };
        self.claimed.pop();
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
