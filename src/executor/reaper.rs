//! The background task that removes expired keys, clears trash and sweeps ghosts, through the
//! executor like any client: in small passes, with pauses in which clients have their turn.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::CommandError;
use crate::layout::name::HASH_BITS;
use crate::limits::{
    DATABASES, GHOST_PASSES_KEPT_MAX, GHOST_REST_MS, GHOST_SWEEP_INTERVAL_MS,
    GHOST_SWEEP_KEYS_PER_PASS, REAPER_FAILURE_PAUSE_MS, REAPER_INTERVAL_MS, REAPER_KEYS_PER_PASS,
    REAPER_PAUSE_MS, REAPER_ROWS_PER_PASS, STAGED_CLAIM_LAPSE_MS,
};
use crate::number::parse_i64;
use crate::reply::Reply;
use crate::store::StoreError;
use crate::types::ghosts::Ghost;
use crate::types::{ReadContext, WriteContext};

use super::{Claims, Executor, Work};

#[cfg(test)]
mod tests;

/// Why a pass did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ReaperError {
    /// The executor has stopped.
    #[error(transparent)]
    Stopped(#[from] StoreError),
    /// The pass was answered with an error; the next may fare better.
    #[error("background pass failed: {0}")]
    Failed(String),
}

/// The state of the background task.
#[derive(Debug)]
pub struct Reaper {
    expires_actively: Arc<AtomicBool>,
    ghosts_from: GhostPlace,
    /// What looks for ghosts have found, the oldest first, to be swept if nobody uses it for a while.
    ghosts: VecDeque<FoundGhosts>,
    /// Claims that a clock far ahead of this server's seems to have made, and when each was seen first.
    claims_ahead: HashMap<Bytes, Instant>,
}

/// What one look for ghosts has found.
#[derive(Debug)]
struct FoundGhosts {
    at_ms: i64,
    database: u32,
    ghosts: Vec<Ghost>,
}

/// Where the sweep for ghosts goes on.
#[derive(Debug, Clone, Copy)]
struct GhostPlace {
    database: u32,
    hash: u64,
}

impl Reaper {
    /// A task that sweeps ghosts from a random place on: several servers of one store should not
    /// all be at the same.
    pub fn new(executor: &Executor) -> Self {
        let random = &executor.environment().random;
        Self {
            expires_actively: Arc::new(AtomicBool::new(true)),
            ghosts_from: GhostPlace {
                database: u32::try_from(random.below(u64::from(DATABASES))).unwrap_or(0),
                hash: random.below(1 << HASH_BITS),
            },
            ghosts: VecDeque::new(),
            claims_ahead: HashMap::new(),
        }
    }

    /// Starts the task on the current tokio runtime.
    pub fn spawn(executor: Arc<Executor>) -> ReaperHandle {
        let reaper = Self::new(&executor);
        let expires_actively = Arc::clone(&reaper.expires_actively);
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(reaper.run(executor, stopped));
        ReaperHandle {
            stop,
            expires_actively,
            task,
        }
    }

    async fn run(mut self, executor: Arc<Executor>, mut stopped: watch::Receiver<bool>) {
        let sweeps_ghosts = !executor.environment().capabilities.single_writer;
        let sweep_interval = Duration::from_millis(GHOST_SWEEP_INTERVAL_MS);
        let mut next_sweep = Instant::now() + sweep_interval;
        loop {
            let sweeps = sweeps_ghosts && Instant::now() >= next_sweep;
            if sweeps {
                next_sweep = Instant::now() + sweep_interval;
            }
            let pause_ms = match self.round(&executor, sweeps).await {
                Ok(true) => REAPER_PAUSE_MS,
                Ok(false) => REAPER_INTERVAL_MS,
                Err(ReaperError::Stopped(_)) => return,
                Err(ReaperError::Failed(line)) => {
                    tracing::warn!("background work failed and is tried again: {line}");
                    REAPER_FAILURE_PAUSE_MS
                }
            };
            tokio::select! {
                _ = stopped.wait_for(|is_stopped| *is_stopped) => return,
                () = tokio::time::sleep(Duration::from_millis(pause_ms)) => {}
            }
        }
    }

    /// A [`Self::pass`], and where it is time what is done now and then. What fails does not keep
    /// the others from their turn. Answers whether there was anything.
    async fn round(&mut self, executor: &Executor, sweeps: bool) -> Result<bool, ReaperError> {
        let passed = self.pass(executor).await;
        if !sweeps || matches!(passed, Err(ReaperError::Stopped(_))) {
            return passed;
        }
        let swept = self.sweep_ghosts(executor).await;
        let ended = self.end_lapsed_claims(executor).await;
        let had_work = passed?;
        swept.and(ended).map(|_| had_work)
    }

    /// One look for expired keys, trash and alarms, and one pass over each where there is any. Answers
    /// whether there was.
    ///
    /// # Errors
    /// Where the executor has stopped, or a pass has failed.
    pub async fn pass(&mut self, executor: &Executor) -> Result<bool, ReaperError> {
        let look = Work::Read(|context, _| Box::pin(look(context)));
        let (expired, others) = run(executor, look, 0, Vec::new()).await?;
        let (trash, alarms) = (others & TRASH, others & ALARMS);
        let expires = expired != 0 && self.expires_actively.load(Ordering::Relaxed);
        // Where one of them fails the others have their turn all the same.
        let expired = match expires {
            true => remove_expired(executor).await,
            false => Ok(()),
        };
        let cleared = match trash {
            0 => Ok(()),
            _ => {
                let clear_trash = Work::Write(|context, _| Box::pin(clear_trash(context)));
                run(executor, clear_trash, 0, Vec::new()).await.map(drop)
            }
        };
        let alarms_done = match alarms {
            0 => Ok(0),
            _ => go_after_alarms(executor).await,
        };
        expired.and(cleared)?;
        let alarms_done = alarms_done?;
        let had_work = expires || trash != 0 || alarms_done != 0;
        if had_work {
            tracing::trace!(
                expires,
                clears = trash != 0,
                alarms_done,
                "did background work"
            );
        }
        Ok(had_work)
    }

    /// One pass over what servers have popped for each other; answers how many claims had lapsed.
    ///
    /// # Errors
    /// Where the executor has stopped, or the pass has failed.
    pub async fn end_lapsed_claims(&mut self, executor: &Executor) -> Result<i64, ReaperError> {
        let look = Work::Read(|context, _| Box::pin(lapsed_claims(context)));
        let claims = match ask(executor, look, 0, Vec::new()).await? {
            Reply::Pairs(claims) => claims,
            reply => return Err(odd(&reply)),
        };
        let due = self.due_claims(claims, Instant::now());
        let (mut lapsed, mut elements) = (0, 0);
        for row in due {
            // Each by itself: one that cannot go back must not keep the others.
            let end = Work::Write(|context, arguments| Box::pin(end_claim(context, arguments)));
            match run(executor, end, 0, vec![row]).await {
                Ok((claims, returned)) => {
                    lapsed += claims;
                    elements += returned;
                }
                Err(ReaperError::Failed(line)) if line.starts_with("ERR ") => {
                    tracing::error!("elements of a claim that has lapsed do not go back: {line}");
                }
                // The store's failure: those behind it are to go back behind it.
                Err(error) => return Err(error),
            }
        }
        if lapsed > 0 {
            tracing::warn!(
                elements,
                "a server has not fetched elements that were popped for it: they went back"
            );
        }
        let remove = Work::Write(|context, _| Box::pin(remove_old_requests(context)));
        run(executor, remove, 0, Vec::new()).await?;
        Ok(lapsed)
    }

    /// Those of the claims that go back now: of those that a clock far ahead seems to have made, only
    /// what has been there for as long as claims are.
    fn due_claims(&mut self, claims: Vec<(Reply, Reply)>, now: Instant) -> Vec<Bytes> {
        let lapse = Duration::from_millis(STAGED_CLAIM_LAPSE_MS.unsigned_abs());
        let before = std::mem::take(&mut self.claims_ahead);
        let mut due = Vec::new();
        for claim in claims {
            match claim {
                (Reply::Bulk(row), Reply::Integer(0)) => due.push(row),
                (Reply::Bulk(row), _) => {
                    let seen_first = before.get(&row).copied().unwrap_or(now);
                    if now.duration_since(seen_first) >= lapse {
                        due.push(row.clone());
                    }
                    self.claims_ahead.insert(row, seen_first);
                }
                _ => {}
            }
        }
        due
    }

    /// One pass of the sweep for ghosts: sweeps what was found long enough ago, and looks for more.
    /// Answers how many were swept.
    ///
    /// # Errors
    /// Where the executor has stopped, or the pass has failed.
    pub async fn sweep_ghosts(&mut self, executor: &Executor) -> Result<i64, ReaperError> {
        let now_ms = executor.environment().clock.now_ms();
        let mut all_swept = Ok(0);
        let has_rested = |found: &FoundGhosts| now_ms.saturating_sub(found.at_ms) >= GHOST_REST_MS;
        while self.ghosts.front().is_some_and(has_rested) {
            let Some(found) = self.ghosts.pop_front() else {
                break;
            };
            let sweep = Work::Write(|context, rows| Box::pin(sweep(context, rows)));
            let ghosts = found.ghosts.into_iter();
            let rows = ghosts.flat_map(|ghost| [ghost.meta_key, ghost.counter]);
            let swept = run(executor, sweep, found.database, rows.collect()).await;
            all_swept = all_swept.and_then(|all| Ok(all + swept?.0));
        }
        self.look_for_ghosts(executor, now_ms).await?;
        all_swept
    }

    async fn look_for_ghosts(
        &mut self,
        executor: &Executor,
        at_ms: i64,
    ) -> Result<(), ReaperError> {
        let GhostPlace { database, hash } = self.ghosts_from;
        let look = Work::Read(|context, arguments| Box::pin(look_for_ghosts(context, arguments)));
        let arguments = vec![Bytes::from(hash.to_string())];
        let found = ask(executor, look, database, arguments).await?;
        let (next_hash, ghosts) = match &found {
            Reply::Array(parts) => match parts.as_slice() {
                [Reply::Integer(next_hash), Reply::Pairs(ghosts)] => (*next_hash, ghosts),
                _ => return Err(odd(&found)),
            },
            _ => return Err(odd(&found)),
        };
        let ghosts = ghosts.iter().filter_map(|ghost| match ghost {
            (Reply::Bulk(meta_key), Reply::Bulk(counter)) => Some(Ghost {
                meta_key: meta_key.clone(),
                counter: counter.clone(),
            }),
            _ => None,
        });
        let ghosts: Vec<Ghost> = ghosts.collect();
        if !ghosts.is_empty() {
            if self.ghosts.len() >= GHOST_PASSES_KEPT_MAX {
                self.ghosts.pop_front();
            }
            self.ghosts.push_back(FoundGhosts {
                at_ms,
                database,
                ghosts,
            });
        }
        self.ghosts_from = match u64::try_from(next_hash) {
            Ok(hash) if hash != 0 => GhostPlace { database, hash },
            _ => GhostPlace {
                database: (database + 1) % DATABASES,
                hash: 0,
            },
        };
        Ok(())
    }
}

/// A background task that runs.
#[derive(Debug)]
pub struct ReaperHandle {
    stop: watch::Sender<bool>,
    expires_actively: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl ReaperHandle {
    /// Switches the removal of expired keys on or off (DEBUG SET-ACTIVE-EXPIRE). Keys past their
    /// time do not exist for clients either way.
    pub fn set_active_expire(&self, is_active: bool) {
        self.expires_actively.store(is_active, Ordering::Relaxed);
    }

    /// Ends the task after the pass that it is at; then it holds the executor no more.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if self.task.await.is_err() {
            tracing::error!("the background task had panicked");
        }
    }
}

/// What there is to do besides expired keys, bit by bit.
const TRASH: i64 = 1;
const ALARMS: i64 = 2;

/// Behind this a pass over alarms is told the queues that it has claimed.
const CLAIMED: Bytes = Bytes::from_static(b"claimed");

/// Runs one piece of work, which answers with two integers.
async fn run(
    executor: &Executor,
    work: Work,
    database: u32,
    arguments: Vec<Bytes>,
) -> Result<(i64, i64), ReaperError> {
    integers(&ask(executor, work, database, arguments).await?)
}

/// Runs one piece of work; an error that it answers is the pass's.
async fn ask(
    executor: &Executor,
    work: Work,
    database: u32,
    arguments: Vec<Bytes>,
) -> Result<Reply, ReaperError> {
    match executor.run(work, database, arguments).await? {
        Reply::Error(line) => Err(ReaperError::Failed(line)),
        reply => Ok(reply),
    }
}

fn odd(reply: &Reply) -> ReaperError {
    ReaperError::Failed(format!("odd reply {reply:?}"))
}

fn integers(reply: &Reply) -> Result<(i64, i64), ReaperError> {
    match reply {
        Reply::Array(parts) => match parts.as_slice() {
            [Reply::Integer(first), Reply::Integer(second)] => Ok((*first, *second)),
            _ => Err(odd(reply)),
        },
        Reply::Error(line) => Err(ReaperError::Failed(line.clone())),
        _ => Err(odd(reply)),
    }
}

fn pair(first: i64, second: i64) -> Reply {
    Reply::Array(vec![Reply::Integer(first), Reply::Integer(second)])
}

async fn look(context: &ReadContext<'_>) -> Result<Reply, CommandError> {
    let due = context.due_work().await?;
    let trash = if due.trash { TRASH } else { 0 };
    let alarms = if due.alarms { ALARMS } else { 0 };
    Ok(pair(i64::from(due.expired), trash | alarms))
}

/// The queues with alarms in which there is something to do, each its database and its name: what
/// clients of this server do with them waits, and so does not conflict with it.
async fn alarmed_queues(
    executor: &Executor,
    turn: Bytes,
) -> Result<Vec<(u32, Bytes)>, ReaperError> {
    let look = Work::Read(|context, arguments| {
        Box::pin(async {
            let queues = context.alarmed_queues(turn_of(arguments)).await?;
            let parts = queues.into_iter().map(|(database, name)| {
                Reply::Array(vec![Reply::Integer(i64::from(database)), Reply::Bulk(name)])
            });
            Ok(Reply::Array(parts.collect()))
        })
    });
    let queues = match ask(executor, look, 0, vec![turn]).await? {
        Reply::Array(queues) => queues,
        reply => return Err(odd(&reply)),
    };
    let queues = queues.into_iter().filter_map(|queue| match queue {
        Reply::Array(parts) => match <[Reply; 2]>::try_from(parts) {
            Ok([Reply::Integer(database), Reply::Bulk(name)]) => {
                Some((u32::try_from(database).ok()?, name))
            }
            _ => None,
        },
        _ => None,
    });
    Ok(queues.collect())
}

/// Answers how many alarms were looked at.
async fn go_after_alarms(executor: &Executor) -> Result<i64, ReaperError> {
    let heed = Work::Write(|context, arguments| Box::pin(heed_alarms(context, arguments)));
    let turn = Bytes::from(executor.environment().random.below(1 << 32).to_string());
    let mut arguments = vec![turn.clone()];
    let mut claims = Claims::Nothing;
    if executor.needs_claims() {
        let queues = alarmed_queues(executor, turn).await?;
        let hashes = queues
            .iter()
            .map(|(database, name)| Claims::hash_key(*database, name));
        claims = Claims::Alone(hashes.collect());
        arguments.push(CLAIMED);
        let named = queues
            .into_iter()
            .flat_map(|(database, name)| [Bytes::from(database.to_string()), name]);
        arguments.extend(named);
    }
    let reply = executor.run_claiming(heed, 0, arguments, claims).await?;
    integers(&reply).map(|(done, _)| done)
}

async fn remove_expired(executor: &Executor) -> Result<(), ReaperError> {
    let expire = Work::Write(|context, _| Box::pin(expire(context)));
    let (removed, _) = run(executor, expire, 0, Vec::new()).await?;
    let removed = u64::try_from(removed).unwrap_or(0);
    executor.statistics().expired_keys.add(removed);
    Ok(())
}

/// The number by which a pass over alarms chooses among many queues.
fn turn_of(arguments: &[Bytes]) -> u64 {
    let turn = arguments.first().and_then(|turn| parse_i64(turn));
    turn.and_then(|turn| u64::try_from(turn).ok()).unwrap_or(0)
}

async fn heed_alarms(
    context: &WriteContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let claimed = match arguments {
        [_, word, queues @ ..] if *word == CLAIMED => {
            let queues = queues.chunks_exact(2).filter_map(|queue| match queue {
                [database, name] => {
                    let database = u32::try_from(parse_i64(database)?).ok()?;
                    Some((database, name.clone()))
                }
                _ => None,
            });
            Some(queues.collect())
        }
        _ => None,
    };
    let looked_at = context.alarm_pass(turn_of(arguments), claimed.as_ref());
    Ok(pair(looked_at.await?, 0))
}

async fn lapsed_claims(context: &ReadContext<'_>) -> Result<Reply, CommandError> {
    let claims = context.lapsed_claims().await?.into_iter();
    let pairs = claims.map(|claim| {
        let is_far_ahead = Reply::Integer(claim.is_far_ahead.into());
        (Reply::Bulk(claim.row), is_far_ahead)
    });
    Ok(Reply::Pairs(pairs.collect()))
}

async fn end_claim(context: &WriteContext<'_>, rows: &[Bytes]) -> Result<Reply, CommandError> {
    let [row] = rows else {
        return Ok(pair(0, 0));
    };
    Ok(match context.end_lapsed_claim(row).await? {
        Some(elements) => pair(1, i64::try_from(elements).unwrap_or(i64::MAX)),
        None => pair(0, 0),
    })
}

async fn remove_old_requests(context: &WriteContext<'_>) -> Result<Reply, CommandError> {
    context.remove_old_requests().await?;
    Ok(pair(0, 0))
}

async fn expire(context: &WriteContext<'_>) -> Result<Reply, CommandError> {
    let removed = context.expire_pass(REAPER_KEYS_PER_PASS).await?;
    Ok(pair(removed, 0))
}

async fn clear_trash(context: &WriteContext<'_>) -> Result<Reply, CommandError> {
    context.trash_pass(REAPER_ROWS_PER_PASS).await?;
    Ok(pair(0, 0))
}

async fn sweep(context: &WriteContext<'_>, rows: &[Bytes]) -> Result<Reply, CommandError> {
    let mut swept = 0;
    for ghost in rows.chunks_exact(2) {
        if let [meta_key, counter] = ghost {
            let ghost = Ghost {
                meta_key: meta_key.clone(),
                counter: counter.clone(),
            };
            swept += i64::from(context.sweep_ghost(&ghost).await?);
        }
    }
    Ok(pair(swept, 0))
}

async fn look_for_ghosts(
    context: &ReadContext<'_>,
    arguments: &[Bytes],
) -> Result<Reply, CommandError> {
    let hash = arguments
        .first()
        .and_then(|hash| parse_i64(hash))
        .and_then(|hash| u64::try_from(hash).ok())
        .unwrap_or(0);
    let (next_hash, ghosts) = context.ghosts(hash, GHOST_SWEEP_KEYS_PER_PASS).await?;
    let pairs = ghosts
        .into_iter()
        .map(|ghost| (Reply::Bulk(ghost.meta_key), Reply::Bulk(ghost.counter)));
    Ok(Reply::Array(vec![
        Reply::Integer(i64::try_from(next_hash).unwrap_or(0)),
        Reply::Pairs(pairs.collect()),
    ]))
}
