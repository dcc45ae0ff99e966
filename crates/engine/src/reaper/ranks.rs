//! The blocks of elements that commands use to find ranks.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::Executor;
use crate::jobs::JobError;
use quoin_data::command::access::KeyLocks;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::rows::ranks::{RankMaintenance, RankShape};

/// Transactions per pass. Clients' commands run between them.
const TRANSACTIONS_PER_PASS: usize = 8;
/// How long a key rests after its work has failed. Other servers may change it too often.
const REST_MS: u64 = 60_000;
/// Maximum number of resting keys. Beyond it, all are tried again.
const RESTING_MAX: usize = 1_000;

/// The keys whose blocks are being worked on.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    /// Keys in progress, and where to continue.
    begun: VecDeque<(ClientKey, RankMaintenance)>,
    /// Resting keys, and until when they rest.
    resting: HashMap<ClientKey, Instant>,
}

impl Ranks {
    /// Makes a pass over the work that commands have asked for. Returns whether there is more to do.
    pub(super) async fn pass(&mut self, executor: &Executor) -> Result<bool, JobError> {
        let now = Instant::now();
        self.resting.retain(|_, until| *until > now);
        for key in executor.environment().rank_wants.take() {
            if !self.resting.contains_key(&key) && self.begun.iter().all(|(begun, _)| *begun != key)
            {
                self.begun.push_back((key, RankMaintenance::default()));
            }
        }
        for _ in 0..TRANSACTIONS_PER_PASS {
            let Some((key, from)) = self.begun.pop_front() else {
                return Ok(false);
            };
            match maintain(executor, &key, from).await {
                Ok(Some(next)) => self.begun.push_back((key, next)),
                Ok(None) => {}
                Err(error) => {
                    if self.resting.len() >= RESTING_MAX {
                        self.resting.clear();
                    }
                    let rest = Duration::from_millis(REST_MS);
                    self.resting.insert(key, Instant::now() + rest);
                    return Err(error);
                }
            }
        }
        Ok(!self.begun.is_empty())
    }
}

/// On a cluster, locks the key so that commands of this server's clients wait instead of conflicting.
async fn maintain(
    executor: &Executor,
    key: &ClientKey,
    from: RankMaintenance,
) -> Result<Option<RankMaintenance>, JobError> {
    let (locks, shape) = match executor.plans() {
        true => {
            let lock = KeyLocks::hash_key(key.database, &key.key);
            (KeyLocks::Alone(vec![lock]), &RankShape::CLUSTER)
        }
        false => (KeyLocks::Nothing, &RankShape::DEFAULT),
    };
    let (name, from) = (key.key.clone(), Arc::new(from));
    executor
        .transact(key.database, locks, move |context| {
            let (name, from) = (name.clone(), Arc::clone(&from));
            Box::pin(async move { Ok(context.maintain_ranks(&name, &from, shape).await?) })
        })
        .await
}
