//! When a batch has other servers pop for it, and what it pops for them
//! ([`quoin_data::cluster::delegation`]).

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use futures_util::future::{join_all, try_join_all};

use super::call::{Call, Submission};
use super::shared::Shared;
use super::statistics::ExecutorStatistics;
use pops::{Pops, Request};
use quoin_base::random::Random;
use quoin_data::cluster::delegation::{Demands, Granted, MadeRequest};
use quoin_data::error::CommandError;
use quoin_data::prefetch::{Prefetch, PrefetchPlan};
use quoin_data::unit::Unit;
use quoin_data::unit::context::Environment;
use quoin_store::{Store, StoreError};

pub(super) mod contention;
mod pops;

/// Queues of one batch that are delegated. A batch with more runs as it is.
const QUEUES_PER_BATCH_MAX: usize = 16;
/// Queues of one batch that are all blamed for a conflict. A batch that pops from more runs again
/// with half of its commands.
const QUEUES_BLAMED_MAX: usize = 4;
/// Queues, those with the most pops, in which a batch looks for requests although this server has
/// found none there lately.
const BUSY_QUEUES_LOOKED_AT_MAX: usize = 4;
/// Queues, chosen at random, in which it looks besides.
const OTHER_QUEUES_LOOKED_AT_MAX: usize = 4;

/// The delegated pops of one batch, and what it pops for other servers.
pub(super) struct BatchDelegation<'s> {
    store: &'s dyn Store,
    environment: &'s Environment,
    statistics: &'s ExecutorStatistics,
    shared: &'s Shared,
    /// The pops that can be delegated.
    pops: Vec<Pops>,
    /// Requests that were made for them.
    requests: Vec<Request>,
    /// Requests of other servers that the latest attempt has granted.
    granted: u64,
    /// Whether it looks for any.
    may_grant: bool,
}

impl<'s> BatchDelegation<'s> {
    pub(super) fn new(
        store: &'s dyn Store,
        environment: &'s Environment,
        statistics: &'s ExecutorStatistics,
        shared: &'s Shared,
    ) -> Self {
        Self {
            store,
            environment,
            statistics,
            shared,
            pops: Vec::new(),
            requests: Vec::new(),
            granted: 0,
            may_grant: true,
        }
    }

    /// Notes which pops can be delegated. To be called before the first attempt, and when the batch
    /// has been made smaller.
    pub(super) fn plan(&mut self, submissions: &[Submission], commands_max: usize) {
        let contention = &self.shared.contention;
        let is_on = self.shared.delegates_pops.load(Ordering::Relaxed);
        if !self.environment.capabilities.has_other_writers || !is_on {
            return;
        }
        self.pops = pops::delegable(submissions, commands_max);
        let now = Instant::now();
        for pops in &mut self.pops {
            pops.expected = contention.expected(pops.lock, now);
        }
        spare_looks(&mut self.pops, &*self.environment.random);
    }

    /// Whether other servers were asked to pop.
    pub(super) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Whether the batch pops from so many queues that not all of them are blamed for a conflict.
    pub(super) fn has_many_queues(&self) -> bool {
        self.pops.len() > QUEUES_BLAMED_MAX
    }

    /// Delegates pops from queues of which other servers pop for this one anyway.
    pub(super) async fn delegate_granted_lately(&mut self) {
        let now = Instant::now();
        let contention = &self.shared.contention;
        let is_granted = |pops: &&Pops| contention.is_granted_lately(pops.lock, now);
        let contended = self.pops.iter().filter(is_granted).cloned().collect();
        self.delegate(contended).await;
    }

    /// The batch has conflicted: delegates the pops that have done so too often. Answers whether
    /// there were any.
    pub(super) async fn delegate_contended(&mut self) -> bool {
        if self.has_requests() {
            return false;
        }
        let now = Instant::now();
        let contention = &self.shared.contention;
        let is_contended = |pops: &&Pops| contention.note_conflict(pops.lock, now);
        let contended = self.pops.iter().filter(is_contended).cloned().collect();
        self.delegate(contended).await
    }

    /// Makes requests, and waits until they are granted or patience ends. Answers whether any were
    /// made.
    async fn delegate(&mut self, pops: Vec<Pops>) -> bool {
        if pops.is_empty() || pops.len() > QUEUES_PER_BATCH_MAX {
            return false;
        }
        match self.make_requests(pops).await {
            Ok(requests) => self.requests = requests,
            Err(error) => {
                tracing::debug!(%error, "pops could not be delegated");
                return false;
            }
        }
        let requests = self.requests.len() as u64;
        self.statistics.delegation_requests.add(requests);
        let waits = self.requests.iter().map(|request| self.wait(request));
        join_all(waits).await;
        self.has_requests()
    }

    /// One transaction that causes no conflicts.
    async fn make_requests(&self, pops: Vec<Pops>) -> Result<Vec<Request>, StoreError> {
        let transaction = self.store.begin_write()?;
        let made_at = Instant::now();
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
            let row = context.make_request(&key, id, &pops.demands);
            requests.push(Request {
                pops,
                made: MadeRequest {
                    database,
                    key,
                    id,
                    row,
                },
                made_at,
                is_granted: false,
            });
        }
        if requests.is_empty() {
            return Ok(requests);
        }
        match transaction.commit().await {
            // The grant will tell.
            Ok(()) | Err(StoreError::UnknownResult) => Ok(requests),
            Err(error) => Err(error),
        }
    }

    /// Returns when the request is gone, or has waited long enough.
    async fn wait(&self, request: &Request) {
        let patience = self.shared.contention.patience(request.pops.lock);
        let gone = async {
            let told = match self.store.watch(&request.made.row).await {
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

    /// Fetches the grants of the batch's requests for its commands to pop from, and answers of each
    /// request whether it was granted.
    pub(super) async fn fetch(&self, unit: &Unit<'_>) -> Result<Vec<bool>, StoreError> {
        let fetches = self.requests.iter().map(|request| {
            let context = unit.write_context(request.made.database);
            async move { context.fetch_grant(&request.made, &unit.grants).await }
        });
        try_join_all(fetches).await
    }

    /// Notes the answer of [`Self::fetch`].
    pub(super) fn note_fetched(&mut self, are_granted: &[bool]) {
        for (request, is_granted) in self.requests.iter_mut().zip(are_granted) {
            request.is_granted = *is_granted;
        }
    }

    /// What comes from grants is not read from queues. What other servers may have requested is.
    pub(super) fn plan_prefetch(&self, plan: &mut PrefetchPlan) {
        for request in &self.requests {
            plan.leave_out(&request.pops.key);
        }
        for pops in self.pops_to_look_at() {
            let Demands {
                value_type,
                from_end,
                ..
            } = pops.demands;
            if let Some(expected) = pops.expected {
                plan.add_requests(&pops.key, value_type, from_end, expected.elements);
            }
        }
    }

    /// In a batch with grants, whether a command must be left to the next batch: because its grant
    /// does not have what it wants though the queue may, or, without a grant, because the
    /// transaction has no room.
    pub(super) async fn must_wait(&self, call: &Call, unit: &Unit<'_>, has_room: bool) -> bool {
        let Some((key, demand)) = &call.access.pops else {
            return !has_room;
        };
        let context = unit.read_context(key.database).popping_grants();
        match context.find(&key.key, demand.value_type).await {
            Ok(Some(found)) => context.is_granted_too_little(&found, demand.count),
            // What is wrong the command will say.
            Ok(None) | Err(_) => false,
        }
    }

    /// To be called after the batch's own commands: puts back what they have not popped of their
    /// grants.
    ///
    /// # Errors
    /// This transaction must not be committed. The error is of no command in particular.
    pub(super) async fn return_rest(&self, unit: &Unit<'_>) -> Result<(), StoreError> {
        match unit.write_context(0).return_rest().await {
            Ok(()) => Ok(()),
            Err(CommandError::Store(error)) => Err(error),
            Err(error) => Err(StoreError::Unavailable(Arc::new(error))),
        }
    }

    /// To be called at last: pops for other servers.
    ///
    /// # Errors
    /// `TooLarge` if what they want is too large to be popped together. The batch runs again without
    /// that, and the others lose patience and pop alone.
    pub(super) async fn grant(
        &mut self,
        unit: &Unit<'_>,
        has_room: impl Fn() -> bool,
    ) -> Result<(), StoreError> {
        self.granted = 0;
        for pops in &mut self.pops {
            pops.granted = Granted::default();
        }
        for pops in self.pops_to_look_at() {
            let context = unit.write_context(pops.key.database);
            let Ok(Some(key)) = context.find(&pops.key.key, pops.demands.value_type).await else {
                continue;
            };
            let from_end = pops.demands.from_end;
            let granted = context.grant_requests(&key, from_end, &has_room).await;
            let is_too_large = matches!(granted, Err(StoreError::TooLarge)) || unit.is_too_large();
            if is_too_large {
                self.may_grant = false;
                return Err(StoreError::TooLarge);
            }
            let granted = granted?;
            self.granted += granted.requests;
            let mut of_batch = self.pops.iter_mut();
            if let Some(noted) = of_batch.find(|noted| noted.lock == pops.lock) {
                noted.granted = granted;
            }
        }
        Ok(())
    }

    fn pops_to_look_at(&self) -> Vec<Pops> {
        if !self.may_grant {
            return Vec::new();
        }
        let looks = |pops: &&Pops| match self.request_for(pops) {
            Some(request) => !request.is_granted,
            None => pops.expected.is_some(),
        };
        self.pops.iter().filter(looks).cloned().collect()
    }

    fn request_for(&self, pops: &Pops) -> Option<&Request> {
        let mut requests = self.requests.iter();
        requests.find(|request| request.pops.lock == pops.lock)
    }

    /// Learns from how the batch went, which was committed.
    pub(super) fn note_outcome(&self) {
        let now = Instant::now();
        let contention = &self.shared.contention;
        for pops in &self.pops {
            match self.request_for(pops) {
                Some(request) if request.is_granted => {
                    contention.note_granted(pops.lock, now, now - request.made_at);
                    continue;
                }
                Some(_) => contention.note_waited_in_vain(pops.lock, now),
                None => {}
            }
            contention.note_popped(pops.lock, now, pops.granted);
        }
        let served = self.requests.iter().filter(|one| one.is_granted).count();
        self.statistics
            .delegation_requests_granted
            .add(served as u64);
        self.statistics.delegation_grants.add(self.granted);
    }
}

/// A look for requests is a read: of many queues, a batch looks at those where requests were found
/// lately, at those with the most pops, since where many pop here others are likely to, and
/// at some by chance, so that each has its turn.
fn spare_looks(pops: &mut [Pops], random: &dyn Random) {
    let is_in_vain = |pops: &&mut Pops| pops.expected.is_some_and(|expected| !expected.lately);
    let mut in_vain: Vec<&mut Pops> = pops.iter_mut().filter(is_in_vain).collect();
    if in_vain.len() <= BUSY_QUEUES_LOOKED_AT_MAX + OTHER_QUEUES_LOOKED_AT_MAX {
        return;
    }
    in_vain.sort_by_cached_key(|pops| (Reverse(pops.demands.commands()), random.next_u64()));
    let mut others = in_vain.split_off(BUSY_QUEUES_LOOKED_AT_MAX);
    others.sort_by_cached_key(|_| random.next_u64());
    for pops in others.into_iter().skip(OTHER_QUEUES_LOOKED_AT_MAX) {
        pops.expected = None;
    }
}

#[cfg(test)]
mod tests;
