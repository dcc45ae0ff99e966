//! Decides when a batch has other servers pop for it, and what it pops for them
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

/// How many queues of one batch may be delegated. A batch with more runs without delegation.
const QUEUES_PER_BATCH_MAX: usize = 16;
/// How many queues may all be blamed for a batch's conflict. A batch that pops from more runs again with half of its
/// commands.
const QUEUES_BLAMED_MAX: usize = 4;
/// How many of the busiest queues a batch checks for requests although this server found none there recently.
const BUSY_QUEUES_LOOKED_AT_MAX: usize = 4;
/// How many further queues, chosen at random, it checks.
const OTHER_QUEUES_LOOKED_AT_MAX: usize = 4;

/// The delegated pops of one batch, and what it pops for other servers.
pub(super) struct BatchDelegation<'s> {
    store: &'s dyn Store,
    environment: &'s Environment,
    statistics: &'s ExecutorStatistics,
    shared: &'s Shared,
    /// The pops that can be delegated.
    pops: Vec<Pops>,
    /// Requests made for them.
    requests: Vec<Request>,
    /// Number of other servers' requests that the latest attempt granted.
    granted: u64,
    /// Whether the batch checks for requests of other servers.
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

    /// Notes which pops can be delegated. Call it before the first attempt, and after the batch has become smaller.
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

    /// Whether the batch pops from too many queues to blame all of them for a conflict.
    pub(super) fn has_many_queues(&self) -> bool {
        self.pops.len() > QUEUES_BLAMED_MAX
    }

    /// Delegates pops from queues for which other servers have recently granted this server's requests.
    pub(super) async fn delegate_granted_lately(&mut self) {
        let now = Instant::now();
        let contention = &self.shared.contention;
        let is_granted = |pops: &&Pops| contention.is_granted_lately(pops.lock, now);
        let contended = self.pops.iter().filter(is_granted).cloned().collect();
        self.delegate(contended).await;
    }

    /// Delegates the pops that have conflicted too often, after a conflict of the batch. Returns whether there were
    /// any.
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

    /// Makes requests, and waits until they are granted or patience runs out. Returns whether any were made.
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

    /// Makes requests in one transaction that causes no conflicts.
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
            // Serializable: if the queue is renamed meanwhile, no request must remain under its old name.
            let Ok(Some(key)) = context.find(&pops.key.key, pops.demands.value_type).await else {
                // The commands themselves will report what is wrong.
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
            // The grant will show whether it was applied.
            Ok(()) | Err(StoreError::UnknownResult) => Ok(requests),
            Err(error) => Err(error),
        }
    }

    /// Returns when the request is gone or has waited long enough.
    async fn wait(&self, request: &Request) {
        let patience = self.shared.contention.patience(request.pops.lock);
        let gone = async {
            let told = match self.store.watch(&request.made.row).await {
                Ok(watched) if watched.value.is_some() => watched.changed.await,
                looked => looked.map(drop),
            };
            if told.is_err() {
                // No notification will come, so wait until patience runs out.
                std::future::pending::<()>().await;
            }
        };
        // The next attempt checks the request in any case.
        let _ = tokio::time::timeout(patience, gone).await;
    }

    /// Fetches the grants of the batch's requests, so that its commands can pop from them. Returns for each request
    /// whether it was granted.
    pub(super) async fn fetch(&self, unit: &Unit<'_>) -> Result<Vec<bool>, StoreError> {
        let fetches = self.requests.iter().map(|request| {
            let context = unit.write_context(request.made.database);
            async move { context.fetch_grant(&request.made, &unit.grants).await }
        });
        try_join_all(fetches).await
    }

    /// Records the result of [`Self::fetch`].
    pub(super) fn note_fetched(&mut self, are_granted: &[bool]) {
        for (request, is_granted) in self.requests.iter_mut().zip(are_granted) {
            request.is_granted = *is_granted;
        }
    }

    /// Plans the prefetch: elements that grants provide are not read from queues, but requests of other servers are.
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

    /// In a batch with grants, whether a command must wait for the next batch. That is so if its grant lacks what it
    /// wants but the queue may have it. A command without a grant waits if the transaction has no room.
    pub(super) async fn must_wait(&self, call: &Call, unit: &Unit<'_>, has_room: bool) -> bool {
        let Some((key, demand)) = &call.access.pops else {
            return !has_room;
        };
        let context = unit.read_context(key.database).popping_grants();
        match context.find(&key.key, demand.value_type).await {
            Ok(Some(found)) => context.is_granted_too_little(&found, demand.count),
            // The command itself will report what is wrong.
            Ok(None) | Err(_) => false,
        }
    }

    /// Puts back what the batch's own commands did not pop from their grants. Call it after them.
    ///
    /// # Errors
    /// After an error, this transaction must not be committed. The error concerns no particular command.
    pub(super) async fn return_rest(&self, unit: &Unit<'_>) -> Result<(), StoreError> {
        match unit.write_context(0).return_rest().await {
            Ok(()) => Ok(()),
            Err(CommandError::Store(error)) => Err(error),
            Err(error) => Err(StoreError::Unavailable(Arc::new(error))),
        }
    }

    /// Pops for other servers. Call it last.
    ///
    /// # Errors
    /// `TooLarge` if their requests are too large to be granted together. The batch runs again without granting them,
    /// and the other servers lose patience and pop by themselves.
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

    /// Learns from the outcome of a committed batch.
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

/// Checking for requests costs a read. A batch that pops from many queues checks those with recent requests, those
/// with the most pops (other servers probably use them too), and a few random ones, so that each queue gets its turn.
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
