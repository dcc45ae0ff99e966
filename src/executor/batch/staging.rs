//! Pops that other servers do for a batch, and those that it does for them
//! ([`crate::types::staging`]).

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;

use super::pops::{Pops, Request};
use super::running::Attempt;
use super::{AttemptEnd, Batch};
use crate::commands::KeyLocks;
use crate::error::CommandError;
use crate::executor::call::Call;
use crate::executor::lock_set::BuildLockHasher;
use crate::limits::{
    STAGED_BUSY_KEYS_LOOKED_AT_MAX, STAGED_KEYS_BLAMED_MAX, STAGED_KEYS_PER_BATCH_MAX,
    STAGED_OTHER_KEYS_LOOKED_AT_MAX,
};
use crate::random::Random;
use crate::store::StoreError;
use crate::types::Unit;
use crate::types::prefetch::{Prefetch, PrefetchPlan};
use crate::types::staging::{Demands, Fulfilled, StagedCall};

impl Batch<'_> {
    /// Notes which of the batch's pops can be staged. To be called before the first attempt, and
    /// when the batch has been made smaller.
    ///
    /// What is staged takes effect before the rest of the batch. That is as good as any order among
    /// clients, whose commands came at the same time, but not among the commands of one: a
    /// queue is not staged where a client does anything else with it too.
    pub(super) fn note_pops(&mut self) {
        let mut calls = self.submissions.iter().flat_map(|one| &one.calls);
        if self.environment.capabilities.single_writer
            || calls.all(|call| call.access.pops.is_none())
        {
            return;
        }
        let mut all: HashMap<u64, Option<Pops>, BuildLockHasher> = HashMap::default();
        let mut left = self.commands_max;
        for submission in &self.submissions {
            let length = submission.calls.len().min(left);
            left -= length;
            let (first, rest) = submission.calls.split_at(length);
            let Some(mut uses) = self.uses_of(first) else {
                return;
            };
            // Where others of the batch break off early, those behind may be run too: what is
            // asked for must not be what they have pushed before.
            let Some(of_rest) = self.uses_of(rest) else {
                return;
            };
            for (claim, of_rest) in of_rest {
                match of_rest {
                    Uses::Others if !uses.contains_key(&claim) => {}
                    Uses::Pops(_) if matches!(uses.get(&claim), None | Some(Uses::Pops(_))) => {}
                    _ => {
                        uses.insert(claim, Uses::Mixed);
                    }
                }
            }
            for (claim, uses) in uses {
                let joined = match (all.remove(&claim), uses) {
                    (others, Uses::Others) => others,
                    (_, Uses::Mixed) | (Some(None), Uses::Pops(_)) => Some(None),
                    (None, Uses::Pops(pops)) => Some(Some(pops)),
                    (Some(Some(before)), Uses::Pops(pops)) => Some(before.and_then(&pops)),
                };
                if let Some(joined) = joined {
                    all.insert(claim, joined);
                }
            }
        }
        let now = Instant::now();
        self.pops = all.into_values().flatten().collect();
        for pops in &mut self.pops {
            pops.asked_for = self.shared.hot_keys.asked_for(pops.claim, now);
        }
        spare_looks(&mut self.pops, &*self.environment.random);
    }

    /// What commands of one client do with each of their keys; `None` where they may be at any.
    fn uses_of(&self, calls: &[Call]) -> Option<HashMap<u64, Uses, BuildLockHasher>> {
        let mut uses: HashMap<u64, Uses, BuildLockHasher> = HashMap::default();
        for call in calls {
            let claims = match &call.access.locks {
                KeyLocks::Keys(claims) | KeyLocks::Alone(claims) => claims.as_slice(),
                KeyLocks::Nothing => continue,
                KeyLocks::Everything => return None,
            };
            let popped = self.popped_by(call);
            for claim in claims {
                let of_call = match popped.as_ref().filter(|pops| pops.claim == *claim) {
                    Some(pops) => Uses::Pops(pops.clone()),
                    // It pops, or may pop, in a way that cannot be staged.
                    None if call.access.pops.is_some() => Uses::Mixed,
                    None => Uses::Others,
                };
                let joined = match (uses.remove(claim), of_call) {
                    (None, of_call) => of_call,
                    (Some(Uses::Others), Uses::Others) => Uses::Others,
                    (Some(Uses::Pops(before)), Uses::Pops(pops)) => {
                        before.and_then(&pops).map_or(Uses::Mixed, Uses::Pops)
                    }
                    _ => Uses::Mixed,
                };
                uses.insert(*claim, joined);
            }
        }
        Some(uses)
    }

    /// What a command pops, where it does nothing else to that queue.
    fn popped_by(&self, call: &Call) -> Option<Pops> {
        let (key, demand) = call.access.pops.clone()?;
        let claim = KeyLocks::hash_key(key.database, &key.key);
        let is_once = match &call.access.locks {
            KeyLocks::Keys(keys) => keys.iter().filter(|other| **other == claim).count() == 1,
            KeyLocks::Nothing | KeyLocks::Alone(_) | KeyLocks::Everything => false,
        };
        is_once.then(|| Pops {
            key,
            demands: Demands::from(demand),
            claim,
            asked_for: None,
            fulfilled: Fulfilled::default(),
        })
    }

    /// Stages pops from queues from which other servers pop for this one anyway.
    pub(super) async fn stage_hot(&mut self) {
        let now = Instant::now();
        let is_served = |pops: &&Pops| self.shared.hot_keys.is_served(pops.claim, now);
        let hot: Vec<Pops> = self.pops.iter().filter(is_served).cloned().collect();
        self.stage(hot).await;
    }

    /// Stages pops that have conflicted too often. Answers whether there were any.
    ///
    /// Which of its queues a batch has conflicted on is not known. One of many is made smaller
    /// first, which finds out, and lets those go on that had nothing to do with it.
    pub(super) async fn stage_contended(&mut self) -> bool {
        if !matches!(self.last_error, Some(StoreError::Conflict)) || !self.requests.is_empty() {
            return false;
        }
        if self.pops.len() > STAGED_KEYS_BLAMED_MAX {
            if self.halve() {
                self.note_pops();
            }
            return false;
        }
        let now = Instant::now();
        let is_hot = |pops: &&Pops| self.shared.hot_keys.note_conflict(pops.claim, now);
        let hot: Vec<Pops> = self.pops.iter().filter(is_hot).cloned().collect();
        self.stage(hot).await
    }

    /// Makes requests, and waits until they are fulfilled or patience ends. Answers whether any
    /// were made.
    async fn stage(&mut self, pops: Vec<Pops>) -> bool {
        if pops.is_empty() || pops.len() > STAGED_KEYS_PER_BATCH_MAX {
            return false;
        }
        match self.make_requests(pops).await {
            Ok(requests) => self.requests = requests,
            Err(error) => {
                tracing::debug!(%error, "pops could not be staged");
                return false;
            }
        }
        self.statistics
            .staged_requests
            .add(self.requests.len() as u64);
        let waits = self.requests.iter().map(|request| self.wait(request));
        join_all(waits).await;
        !self.requests.is_empty()
    }

    /// One transaction that conflicts with nobody.
    async fn make_requests(&self, pops: Vec<Pops>) -> Result<Vec<Request>, StoreError> {
        let transaction = self.store.begin_write()?;
        let made = Instant::now();
        let unit = Unit::new(&*transaction, self.environment);
        let mut plan = PrefetchPlan::default();
        for pops in &pops {
            plan.add(&pops.key, &Prefetch::Meta);
        }
        let context = unit.read_context(0);
        context.prefetch(&plan, &self.shared.locations).await;
        let mut requests = Vec::new();
        for pops in pops {
            let database = pops.key.database;
            let context = unit.write_context(database);
            // Serializable: a queue that gets another name meanwhile must not have a request under it.
            let Ok(Some(key)) = context.find(&pops.key.key, pops.demands.value_type).await else {
                // The commands themselves will say what is wrong.
                continue;
            };
            if key.meta.expire_at_ms.is_some() {
                continue;
            }
            let id = self.environment.ids.allocate();
            let request_row = context.stage_request(&key, id, &pops.demands);
            requests.push(Request {
                pops,
                call: StagedCall {
                    database,
                    key,
                    id,
                    request_row,
                },
                made,
                is_served: false,
            });
        }
        if requests.is_empty() {
            return Ok(requests);
        }
        match transaction.commit().await {
            // The claim will tell.
            Ok(()) | Err(StoreError::UnknownResult) => Ok(requests),
            Err(error) => Err(error),
        }
    }

    /// Returns when the request is gone, or has waited long enough. Servers that wait for the
    /// same queue do not lose patience together.
    async fn wait(&self, request: &Request) {
        let patience = self.shared.hot_keys.patience(request.pops.claim);
        let spread_ms = patience.as_millis() as u64 / 2;
        let longer_ms = self.environment.random.below(spread_ms.max(1));
        let patience = patience + std::time::Duration::from_millis(longer_ms);
        let gone = async {
            let told = match self.store.watch(&request.call.request_row).await {
                Ok(watched) if watched.value.is_some() => watched.changed.await,
                looked => looked.map(drop),
            };
            if told.is_err() {
                // Nothing will tell: patience has to end.
                std::future::pending::<()>().await;
            }
        };
        // In any case the next attempt looks.
        let _ = tokio::time::timeout(patience, gone).await;
    }

    /// Has the elements of claims, its own among them, go back to the queues for which an attempt
    /// has found that necessary.
    pub(super) async fn recall_claims(&mut self, attempt: &Attempt<'_>) -> Result<(), AttemptEnd> {
        let mut recalled = Ok(());
        for key in &self.recalls {
            recalled = attempt.unit.write_context(0).recall_claims(key).await;
            if recalled.is_err() {
                break;
            }
        }
        let error = match recalled {
            Ok(()) if !attempt.unit.is_too_large() => return Ok(()),
            // Too much for one transaction: they are fetched, or lapse, one behind the other.
            Ok(()) => CommandError::Store(StoreError::Conflict),
            Err(CommandError::Store(error)) if error.is_retryable() => {
                return Err(self.after_error(error));
            }
            Err(error) => error,
        };
        self.recalls.clear();
        match self.recalls_for.take() {
            Some(id) => {
                self.refused.insert(id, error);
                Err(AttemptEnd::Again { after_pause: false })
            }
            None => Err(self.after_error(StoreError::Conflict)),
        }
    }

    /// Fetches the claims of the batch's requests for its commands to pop from, and reads ahead
    /// what else they will look at.
    pub(super) async fn fetch_claims(&mut self, attempt: &Attempt<'_>) -> Result<(), AttemptEnd> {
        let fetched = {
            let fetches = self.requests.iter().map(|request| async {
                let context = attempt.unit.write_context(request.call.database);
                context
                    .fetch_claim(&request.call, &attempt.unit.staged)
                    .await
            });
            let (fetched, ()) = futures_util::join!(join_all(fetches), self.prefetch(attempt));
            fetched
        };
        for (request, fetched) in self.requests.iter_mut().zip(fetched) {
            match fetched {
                Ok(is_served) => request.is_served = is_served,
                Err(error) => return Err(self.after_error(error)),
            }
        }
        Ok(())
    }

    /// What comes from claims is not read from queues; what others may have asked for is.
    pub(super) fn plan_staging(&self, plan: &mut PrefetchPlan) {
        for request in &self.requests {
            plan.leave_out(&request.pops.key);
        }
        for pops in self.pops_to_look_at() {
            let Demands {
                value_type,
                from_end,
                ..
            } = pops.demands;
            if let Some(asked) = pops.asked_for {
                plan.add_requests(&pops.key, value_type, from_end, asked.elements);
            }
        }
    }

    /// In a batch with claims, whether a command must be left to the next batch: because its claim
    /// does not have what it wants though the queue may, or where it has none, because the
    /// transaction is full.
    pub(super) async fn must_wait(&self, call: &Call, attempt: &Attempt<'_>) -> bool {
        let Some((key, demand)) = &call.access.pops else {
            return attempt.commands_run > 0 && attempt.is_full();
        };
        let context = attempt.unit.read_context(key.database);
        let context = context.with_staged(&attempt.unit.staged);
        match context.find(&key.key, demand.value_type).await {
            Ok(Some(found)) => context.is_staged_short(&found, demand.count),
            // What is wrong the command will say.
            Ok(None) | Err(_) => false,
        }
    }

    /// After the batch's own commands: puts back what they have not taken of their claims, and
    /// pops for other servers.
    pub(super) async fn end_staging(&mut self, attempt: &Attempt<'_>) -> Result<(), AttemptEnd> {
        if !attempt.unit.staged.is_empty() {
            let context = attempt.unit.write_context(0);
            if let Err(error) = context.give_back_rest(&attempt.unit.staged).await {
                return Err(self.after_lost_rest(error, attempt));
            }
        }
        self.fulfilled = 0;
        for pops in &mut self.pops {
            pops.fulfilled = Fulfilled::default();
        }
        for pops in self.pops_to_look_at() {
            let context = attempt.unit.write_context(pops.key.database);
            let fulfilled = async {
                let value_type = pops.demands.value_type;
                match context.find(&pops.key.key, value_type).await {
                    Ok(Some(key)) => {
                        let has_room = || !attempt.is_full();
                        context
                            .fulfil_requests(&key, pops.demands.from_end, has_room)
                            .await
                    }
                    _ => Ok(Fulfilled::default()),
                }
            };
            let fulfilled = match fulfilled.await {
                Ok(fulfilled) => fulfilled,
                Err(StoreError::TooLarge) => return Err(self.fulfil_none()),
                Err(error) => return Err(self.after_error(error)),
            };
            self.fulfilled += fulfilled.requests;
            let mut of_batch = self.pops.iter_mut();
            if let Some(noted) = of_batch.find(|noted| noted.claim == pops.claim) {
                noted.fulfilled = fulfilled;
            }
            if attempt.unit.is_too_large() {
                return Err(self.fulfil_none());
            }
        }
        Ok(())
    }

    /// What was fetched and no command has taken cannot be put back: this transaction must not be
    /// committed. It is of no command of the batch in particular.
    fn after_lost_rest(&mut self, error: CommandError, attempt: &Attempt<'_>) -> AttemptEnd {
        match error {
            CommandError::Store(StoreError::TooLarge) => {
                self.leave_out(attempt, CommandError::TooLarge)
            }
            CommandError::Store(error) => self.after_error(error),
            error => AttemptEnd::Failed(StoreError::Unavailable(Arc::new(error))),
        }
    }

    /// What others want is too large to be popped together: they time out and pop alone.
    fn fulfil_none(&mut self) -> AttemptEnd {
        self.may_fulfil = false;
        AttemptEnd::Again { after_pause: false }
    }

    fn pops_to_look_at(&self) -> Vec<Pops> {
        if !self.may_fulfil {
            return Vec::new();
        }
        let is_served = |pops: &&Pops| {
            let mut requests = self.requests.iter();
            requests.any(|request| request.is_served && request.pops.claim == pops.claim)
        };
        self.pops
            .iter()
            .filter(|pops| {
                let has_waited = self.requests.iter().any(|one| one.pops.claim == pops.claim);
                (pops.asked_for.is_some() || has_waited) && !is_served(pops)
            })
            .cloned()
            .collect()
    }

    /// Learns from how the batch went.
    pub(super) fn note_heat(&self) {
        let now = Instant::now();
        let hot_keys = &self.shared.hot_keys;
        for pops in &self.pops {
            let mut requests = self.requests.iter();
            match requests.find(|one| one.pops.claim == pops.claim) {
                Some(request) if request.is_served => {
                    hot_keys.note_served(pops.claim, now, now - request.made);
                }
                Some(_) => {
                    hot_keys.note_waited_in_vain(pops.claim, now);
                    hot_keys.note_popped(pops.claim, now, pops.fulfilled);
                }
                None => hot_keys.note_popped(pops.claim, now, pops.fulfilled),
            }
        }
        let served = self.requests.iter().filter(|one| one.is_served).count();
        self.statistics.staged_served.add(served as u64);
        self.statistics.staged_fulfilled.add(self.fulfilled);
    }
}

/// A look for requests is a read: of many queues, a batch looks at those where requests were found
/// lately, at those with the most pops, since where many pop here others are likely to, and
/// at some by chance, so that each has its turn.
fn spare_looks(pops: &mut [Pops], random: &dyn Random) {
    let is_in_vain = |pops: &&mut Pops| pops.asked_for.is_some_and(|asked| !asked.lately);
    let mut in_vain: Vec<&mut Pops> = pops.iter_mut().filter(is_in_vain).collect();
    if in_vain.len() <= STAGED_BUSY_KEYS_LOOKED_AT_MAX + STAGED_OTHER_KEYS_LOOKED_AT_MAX {
        return;
    }
    in_vain.sort_by_cached_key(|pops| (Reverse(pops.demands.commands()), random.next_u64()));
    let mut others = in_vain.split_off(STAGED_BUSY_KEYS_LOOKED_AT_MAX);
    others.sort_by_cached_key(|_| random.next_u64());
    for pops in others.into_iter().skip(STAGED_OTHER_KEYS_LOOKED_AT_MAX) {
        pops.asked_for = None;
    }
}

/// What commands of one client do with a key.
enum Uses {
    /// They pop from one end of it.
    Pops(Pops),
    /// They do other things.
    Others,
    /// Both.
    Mixed,
}

#[cfg(test)]
mod tests;
