//! Running the commands of those who wait for what a batch's commands have put somewhere.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::running::Pass;
use super::{Attempt, Batch, CallId};
use crate::error::CommandError;
use crate::executor::{Call, Waiter};
use crate::layout::ValueType;
use crate::limits::WAITERS_TRIED_PER_KEY_MAX;
use crate::reply::Reply;
use crate::types::signals::{ClientKey, Ready};
use crate::types::task_queue::Amounts;

/// Tasks with the same needs that have become ready in one queue.
struct ReadyTasks {
    needs: Amounts,
    /// Where each is ([`Signals::task_ready`](crate::types::signals::Signals::task_ready)).
    places: Vec<Bytes>,
}

impl Batch<'_> {
    /// Serves those who wait for keys that have become ready, as Redis does behind each command:
    /// keys in the order in which they became ready, and for each who came first. A waiter's
    /// command may make further keys ready (BLMOVE).
    pub(super) async fn serve_ready(&mut self, pass: &Pass<'_>) -> Result<(), Attempt> {
        let mut ready = self.note_ready(pass);
        while let Some(next) = ready.pop_front() {
            if self.shared.waiters.is_empty() {
                continue;
            }
            match next {
                Ready::Key(key, value_type) => {
                    // A later command of the same EXEC may have put something else there, which
                    // is no reason to tell those who wait that the key is of the wrong type.
                    if self.shared.waiters.is_awaited_since(&key, value_type, 0) {
                        self.serve_what_is_at(&key, Some((value_type, None)), pass)
                            .await?;
                    }
                }
                Ready::Tasks(key, needs, places) => {
                    let value_type = ValueType::TaskQueue;
                    if self.shared.waiters.is_awaited_since(&key, value_type, 0) {
                        let tasks = ReadyTasks { needs, places };
                        self.serve_what_is_at(&key, Some((value_type, Some(&tasks))), pass)
                            .await?;
                    }
                }
                Ready::Database(database) => {
                    for key in self.shared.waiters.keys_of(database) {
                        self.serve_what_is_at(&key, None, pass).await?;
                    }
                }
            }
            ready.extend(self.note_ready(pass));
        }
        pass.signals.forget_tasks();
        Ok(())
    }

    /// What has become ready since this was asked last. Where other batches are under way
    /// beside this one it is kept, to look after the commit for those who came meanwhile.
    fn note_ready(&mut self, pass: &Pass<'_>) -> VecDeque<Ready> {
        let ready = pass.signals.take_ready();
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

    /// Carries a [`Work::Serve`](crate::executor::Work::Serve) out.
    pub(super) async fn serve_call(&mut self, call: &Call, pass: &Pass<'_>) -> Result<(), Attempt> {
        for key in &call.arguments {
            let key = ClientKey {
                database: call.database,
                key: key.clone(),
            };
            let waiters = &self.shared.waiters;
            // Once, however often the batch is tried.
            let begun = self.resumptions.entry(key.clone());
            begun.or_insert_with(|| waiters.take_resumption(&key));
            self.serve_what_is_at(&key, None, pass).await?;
        }
        Ok(())
    }

    /// Serves those who wait for what is at a key now, where it is of the `wanted` type: all whom
    /// it can serve, or those for whom there are these tasks.
    async fn serve_what_is_at(
        &mut self,
        key: &ClientKey,
        wanted: Option<(ValueType, Option<&ReadyTasks>)>,
        pass: &Pass<'_>,
    ) -> Result<(), Attempt> {
        let before = (pass.transaction.mutation_count(), Instant::now());
        let found = pass.read_context(key.database).find_any(&key.key).await;
        match found {
            Ok(Some(found)) => {
                let value_type = found.meta.value_type;
                match wanted {
                    None => {
                        let begun = self.resumptions.get(key).copied().unwrap_or_default();
                        self.serve_key(key, value_type, begun.from, pass).await
                    }
                    Some((wanted, _)) if wanted != value_type => Ok(()),
                    Some((_, Some(tasks))) => self.serve_tasks(key, tasks, pass).await,
                    Some((_, None)) => self.serve_key(key, value_type, 0, pass).await,
                }
            }
            Ok(None) => Ok(()),
            Err(error) => {
                let id = CallId::Waiter(u64::MAX);
                self.judge(id, Err(error.into()), pass, before).map(drop)
            }
        }
    }

    /// Serves those who wait for a key, from the place `from` on, until there is nothing for the
    /// next of them; where they say what they want, until all have been tried, those who want the
    /// same only once.
    async fn serve_key(
        &mut self,
        key: &ClientKey,
        value_type: ValueType,
        from: u64,
        pass: &Pass<'_>,
    ) -> Result<(), Attempt> {
        let slot = self.slot.number;
        let mut from = from;
        let mut in_vain: Vec<Amounts> = Vec::new();
        loop {
            if self.is_enough(pass) || in_vain.len() >= WAITERS_TRIED_PER_KEY_MAX {
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
            if self.serve_one(&waiter, pass).await? {
                continue;
            }
            match waiter.wants() {
                None => return Ok(()),
                Some(wants) => in_vain.push(wants.clone()),
            }
        }
    }

    /// Serves those who wait for a key and have what tasks need that became ready there, the first
    /// first, until these tasks are taken or nobody is left for whom there is anything. There was
    /// nothing for any of them before.
    async fn serve_tasks(
        &mut self,
        key: &ClientKey,
        tasks: &ReadyTasks,
        pass: &Pass<'_>,
    ) -> Result<(), Attempt> {
        let slot = self.slot.number;
        for place in &tasks.places {
            // Whoever has what it needs may take another task, which comes sooner: then it is
            // there for the next still. A search in vain where it is not costs conflicts.
            while pass.signals.is_task_there(place) {
                if self.is_enough(pass) {
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
                // Who has what they need and finds nothing shows that none of them is left.
                if !self.serve_one(&waiter, pass).await? {
                    return Ok(());
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
    fn is_enough(&self, pass: &Pass<'_>) -> bool {
        self.served.len() >= self.served_max
            || (pass.is_full() && !(pass.only_serves && self.served.is_empty()))
    }

    /// Runs the command of a waiter that was claimed; false where there was nothing for it.
    async fn serve_one(&mut self, waiter: &Arc<Waiter>, pass: &Pass<'_>) -> Result<bool, Attempt> {
        let id = CallId::Waiter(waiter.order());
        self.claimed.push(Arc::clone(waiter));
        let reply = match self.rolled_back.get(&id) {
            Some(error) => Reply::Error(error.to_line()),
            None => {
                let before = (pass.transaction.mutation_count(), Instant::now());
                let context = pass.write_context(waiter.database);
                let result = (waiter.handler)(&context, &waiter.arguments).await;
                self.judge(id, result, pass, before)?
            }
        };
        let limit = self.environment.capabilities.transaction_bytes_max;
        if pass.transaction.size_bytes() > limit {
            return Err(self.leave_waiter_out(id, pass, CommandError::TooLarge));
        }
        self.claimed.pop();
        if reply.is_nothing() {
            self.shared.waiters.release(waiter);
            return Ok(false);
        }
        self.served.push((Arc::clone(waiter), reply));
        Ok(true)
    }

    /// A waiter's command is too much for this transaction: it gets one of its own, and where
    /// that is what this is, its error.
    pub(super) fn leave_waiter_out(
        &mut self,
        id: CallId,
        pass: &Pass<'_>,
        error: CommandError,
    ) -> Attempt {
        if !pass.only_serves {
            self.served_max = 0;
        } else if !pass.is_alone() {
            return self.leave_out(pass, error);
        } else if self.served.is_empty() {
            self.rolled_back.insert(id, error);
        } else {
            self.served_max = self.served.len();
        }
        Attempt::Again { after_pause: false }
    }
}
