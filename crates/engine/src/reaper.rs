//! Background work: removes expired keys, clears trash, runs timers, sweeps the metadata of empty keys, and ends
//! expired grants. It uses the executor as clients do, in small passes with pauses for the clients' commands. A job
//! that waits for the store, or for keys that clients use, does not delay the others.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;

use quoin_base::fatal_panic::vital;
use quoin_base::limits::{
    REAPER_FAILURE_PAUSE_MS, REAPER_INTERVAL_MS, REAPER_KEYS_PER_PASS, REAPER_PAUSE_MS,
    REAPER_ROWS_PER_PASS, RETAINED_SWEEP_INTERVAL_MS, SCRIPT_SWEEP_INTERVAL_MS,
};
use quoin_base::log_throttle::LogThrottle;
use quoin_data::command::access::KeyLocks;
use quoin_data::error::CommandError;
use quoin_data::taskqueue::timers;
use quoin_layout::Timers;
use quoin_store::StoreError;

use super::Executor;
use super::jobs::JobError;
use empty_keys::EmptyKeys;
use expired_grants::ExpiredGrants;
use ranks::Ranks;

mod empty_keys;
mod expired_grants;
mod ranks;
#[cfg(test)]
mod tests;

/// One kind of background work.
struct Job {
    /// Its name in logs.
    name: &'static str,
    /// Pause after a pass that found nothing to do.
    interval_ms: u64,
    /// Pause after a pass that did something.
    busy_interval_ms: u64,
    /// Whether it is needed only if several servers write to the store.
    is_for_cluster: bool,
    /// Makes one pass. Returns whether there was anything to do.
    run: for<'r> fn(&'r mut Reaper, &'r Executor) -> JobRun<'r>,
}

type JobRun<'r> = Pin<Box<dyn Future<Output = Result<bool, JobError>> + Send + 'r>>;

const JOBS: &[Job] = &[
    Job {
        name: "removal of expired keys and trash, and timers",
        interval_ms: REAPER_INTERVAL_MS,
        busy_interval_ms: REAPER_PAUSE_MS,
        is_for_cluster: false,
        run: |reaper, executor| Box::pin(reaper.pass(executor)),
    },
    Job {
        name: "removal of old scripts",
        interval_ms: SCRIPT_SWEEP_INTERVAL_MS,
        busy_interval_ms: REAPER_INTERVAL_MS,
        is_for_cluster: false,
        run: |reaper, executor| Box::pin(reaper.sweep_scripts(executor)),
    },
    Job {
        name: "blocks for ranks",
        interval_ms: REAPER_INTERVAL_MS,
        busy_interval_ms: REAPER_PAUSE_MS,
        is_for_cluster: false,
        run: |reaper, executor| Box::pin(reaper.maintain_ranks(executor)),
    },
    Job {
        name: "sweep of empty keys",
        interval_ms: RETAINED_SWEEP_INTERVAL_MS,
        busy_interval_ms: RETAINED_SWEEP_INTERVAL_MS,
        is_for_cluster: true,
        run: |reaper, executor| {
            Box::pin(async { Ok(reaper.sweep_empty_keys(executor).await? > 0) })
        },
    },
    Job {
        name: "return of grants that have expired",
        interval_ms: RETAINED_SWEEP_INTERVAL_MS,
        busy_interval_ms: RETAINED_SWEEP_INTERVAL_MS,
        is_for_cluster: true,
        run: |reaper, executor| {
            Box::pin(async { Ok(reaper.end_expired_grants(executor).await? > 0) })
        },
    },
];

/// Says whether data must stay unchanged by background work (CLIENT PAUSE).
pub trait Standstill: std::fmt::Debug + Send + Sync {
    /// Whether data must stay unchanged now.
    fn is_on(&self) -> bool;
}

/// The state of the background work.
#[derive(Debug)]
pub struct Reaper {
    expires_actively: Arc<AtomicBool>,
    standstill: Option<Arc<dyn Standstill>>,
    empty_keys: EmptyKeys,
    expired_grants: ExpiredGrants,
    ranks: Ranks,
}

/// Whether an embedded store has failed permanently with this error. The store has logged that itself.
fn is_logged_by_store(error: &CommandError, executor: &Executor) -> bool {
    !executor.environment().capabilities.has_other_writers
        && matches!(error, CommandError::Store(StoreError::Fatal(_)))
}

impl Reaper {
    /// Creates the initial state.
    pub fn new(executor: &Executor) -> Self {
        Self {
            expires_actively: Arc::new(AtomicBool::new(true)),
            standstill: None,
            empty_keys: EmptyKeys::new(
                &*executor.environment().random,
                executor.environment().databases,
            ),
            expired_grants: ExpiredGrants::default(),
            ranks: Ranks::default(),
        }
    }

    /// Starts the work on the current tokio runtime.
    pub fn spawn(executor: Arc<Executor>, standstill: Option<Arc<dyn Standstill>>) -> ReaperHandle {
        let expires_actively = Arc::new(AtomicBool::new(true));
        let (stop, stopped) = watch::channel(false);
        let is_cluster = executor.environment().capabilities.has_other_writers;
        let jobs = JOBS.iter().filter(|job| is_cluster || !job.is_for_cluster);
        // Each job has its own state and uses its part of it.
        let runs: Vec<_> = jobs
            .map(|job| {
                let reaper = Self {
                    expires_actively: Arc::clone(&expires_actively),
                    standstill: standstill.clone(),
                    ..Self::new(&executor)
                };
                reaper.run(job, Arc::clone(&executor), stopped.clone())
            })
            .collect();
        drop(executor);
        let task = tokio::spawn(vital("background work", async {
            join_all(runs).await;
        }));
        ReaperHandle {
            stop,
            expires_actively,
            task,
        }
    }

    /// Makes passes of one job until the work is stopped.
    async fn run(mut self, job: &Job, executor: Arc<Executor>, mut stopped: watch::Receiver<bool>) {
        let log = LogThrottle::new();
        loop {
            // A failure of one job does not stop the others.
            let pause_ms = match (job.run)(&mut self, &executor).await {
                Ok(true) => job.busy_interval_ms,
                Ok(false) => job.interval_ms,
                Err(JobError::Stopped) => return,
                Err(JobError::Failed(error)) => {
                    if !is_logged_by_store(&error, &executor)
                        && let Some(more) = log.pass()
                    {
                        let name = job.name;
                        tracing::warn!(
                            %error,
                            "background work failed and will be retried: {name}{more}"
                        );
                    }
                    job.interval_ms.max(REAPER_FAILURE_PAUSE_MS)
                }
            };
            tokio::select! {
                _ = stopped.wait_for(|is_stopped| *is_stopped) => return,
                () = tokio::time::sleep(Duration::from_millis(pause_ms)) => {}
            }
        }
    }

    /// Checks for expired keys, trash and due timers, and makes one pass over each kind that it finds. Returns
    /// whether there was any.
    ///
    /// # Errors
    /// See [`JobError`].
    pub async fn pass(&mut self, executor: &Executor) -> Result<bool, JobError> {
        let due = executor
            .read(0, |context| {
                Box::pin(async { Ok(context.due_work().await?) })
            })
            .await?;
        let stands_still = self.standstill.as_ref().is_some_and(|still| still.is_on());
        let expires = due.expired && !stands_still && self.expires_actively.load(Ordering::Relaxed);
        // If one of them fails, the others still run.
        let expired = match expires {
            true => remove_expired(executor).await,
            false => Ok(()),
        };
        let cleared = match due.trash {
            true => clear_trash(executor).await,
            false => Ok(()),
        };
        let queues_run = match due.queue_timers && !stands_still {
            true => run_timers(executor, Timers::Queues).await,
            false => Ok(0),
        };
        let expires_fields = self.expires_actively.load(Ordering::Relaxed);
        let hashes_run = match due.hash_timers && !stands_still && expires_fields {
            true => run_timers(executor, Timers::Hashes).await,
            false => Ok(0),
        };
        expired.and(cleared)?;
        let timers_run = queues_run? + hashes_run?;
        let had_work = expires || due.trash || timers_run != 0;
        if had_work {
            let clears = due.trash;
            tracing::trace!(expires, clears, timers_run, "did background work");
        }
        Ok(had_work)
    }

    /// Makes one pass over grants between servers. Returns how many had expired.
    ///
    /// # Errors
    /// See [`JobError`].
    pub async fn end_expired_grants(&mut self, executor: &Executor) -> Result<u64, JobError> {
        self.expired_grants.pass(executor).await
    }

    /// Makes one pass over the blocks of elements that commands use to find ranks. Returns whether there is more to
    /// do.
    ///
    /// # Errors
    /// See [`JobError`].
    pub async fn maintain_ranks(&mut self, executor: &Executor) -> Result<bool, JobError> {
        self.ranks.pass(executor).await
    }

    /// Removes EVAL scripts that newer ones have replaced. Returns whether there were any.
    ///
    /// # Errors
    /// See [`JobError`].
    pub async fn sweep_scripts(&mut self, executor: &Executor) -> Result<bool, JobError> {
        let removed = executor
            .transact(0, KeyLocks::Nothing, |context| {
                Box::pin(async { Ok(context.sweep_scripts().await?) })
            })
            .await?;
        Ok(removed > 0)
    }

    /// Makes one pass of the sweep for metadata of empty keys. Sweeps what was found long enough ago, and searches
    /// for more. Returns how many were swept.
    ///
    /// # Errors
    /// See [`JobError`].
    pub async fn sweep_empty_keys(&mut self, executor: &Executor) -> Result<u64, JobError> {
        self.empty_keys.pass(executor).await
    }
}

/// Controls the running background work.
#[derive(Debug)]
pub struct ReaperHandle {
    stop: watch::Sender<bool>,
    expires_actively: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl ReaperHandle {
    /// Switches the removal of expired keys on or off (DEBUG SET-ACTIVE-EXPIRE). Clients never see expired keys
    /// either way.
    pub fn set_active_expire(&self, is_active: bool) {
        self.expires_actively.store(is_active, Ordering::Relaxed);
    }

    /// Stops the work after the current pass and releases the executor.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if self.task.await.is_err() {
            tracing::error!("the background task panicked");
        }
    }
}

async fn remove_expired(executor: &Executor) -> Result<(), JobError> {
    let removed = executor
        .transact(0, KeyLocks::Nothing, |context| {
            Box::pin(async { Ok(context.expire_pass(REAPER_KEYS_PER_PASS).await?) })
        })
        .await?;
    let removed = u64::try_from(removed).unwrap_or(0);
    executor.statistics().expired_keys.add(removed);
    Ok(())
}

async fn clear_trash(executor: &Executor) -> Result<(), JobError> {
    executor
        .transact(0, KeyLocks::Nothing, |context| {
            Box::pin(async { Ok(context.trash_pass(REAPER_ROWS_PER_PASS).await?) })
        })
        .await
}

/// Runs due timers. Returns how many were examined. On a cluster it locks the keys that have work, so that commands of
/// this server's clients wait instead of conflicting with it.
async fn run_timers(executor: &Executor, of: Timers) -> Result<i64, JobError> {
    let turn = executor.environment().random.below(1 << 32);
    let mut locks = KeyLocks::Nothing;
    let mut locked = None;
    if executor.plans() {
        let queues = executor
            .read(0, move |context| {
                Box::pin(async move { Ok(timers::due_queues(context, of, turn).await?) })
            })
            .await?;
        let hashes = queues
            .iter()
            .map(|(database, name)| KeyLocks::hash_key(*database, name));
        locks = KeyLocks::Alone(hashes.collect());
        locked = Some(Arc::new(queues.into_iter().collect()));
    }
    executor
        .transact(0, locks, move |context| {
            let locked = locked.clone();
            Box::pin(
                async move { Ok(timers::run_due(context, of, turn, locked.as_deref()).await?) },
            )
        })
        .await
}
