//! Running the commands of those who wait for what a batch's commands have put somewhere.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::running::Pass;
use super::{Attempt, Batch, CallId};
use crate::error::CommandError;
use crate::executor::Call;
use crate::layout::ValueType;
use crate::reply::Reply;
use crate::types::signals::{ClientKey, Ready};

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
                        self.serve_what_is_at(&key, Some(value_type), pass).await?;
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
        Ok(())
    }

    /// What has become ready since this was asked last. Where other batches are under way
    /// beside this one it is kept, to look after the commit for those who came meanwhile.
    fn note_ready(&mut self, pass: &Pass<'_>) -> VecDeque<Ready> {
        let ready = pass.signals.take_ready();
        if !self.environment.capabilities.single_writer {
            self.made_ready.extend(ready.iter().cloned());
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
            self.serve_what_is_at(&key, None, pass).await?;
        }
        Ok(())
    }

    /// Serves those who wait for what is at a key now, where it is of the `wanted` type.
    async fn serve_what_is_at(
        &mut self,
        key: &ClientKey,
        wanted: Option<ValueType>,
        pass: &Pass<'_>,
    ) -> Result<(), Attempt> {
        let before = (pass.transaction.mutation_count(), Instant::now());
        let found = pass.read_context(key.database).find_any(&key.key).await;
        match found {
            Ok(Some(found)) if wanted.is_none_or(|wanted| wanted == found.meta.value_type) => {
                self.serve_key(key, found.meta.value_type, pass).await
            }
            Ok(_) => Ok(()),
            Err(error) => {
                let id = CallId::Waiter(u64::MAX);
                self.judge(id, Err(error.into()), pass, before).map(drop)
            }
        }
    }

    /// Serves those who wait for a key, until there is nothing for the next of them.
    async fn serve_key(
        &mut self,
        key: &ClientKey,
        value_type: ValueType,
        pass: &Pass<'_>,
    ) -> Result<(), Attempt> {
        let slot = self.slot.number;
        loop {
            let is_enough = self.served.len() >= self.served_max
                || (pass.is_full() && !(pass.only_serves && self.served.is_empty()));
            if is_enough {
                self.unserved.insert(key.clone());
                return Ok(());
            }
            let Some(waiter) = self.shared.waiters.claim_first(key, value_type, slot) else {
                return Ok(());
            };
            let id = CallId::Waiter(waiter.order());
            self.claimed.push(Arc::clone(&waiter));
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
                self.shared.waiters.release(&waiter);
                return Ok(());
            }
            self.served.push((waiter, reply));
        }
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
