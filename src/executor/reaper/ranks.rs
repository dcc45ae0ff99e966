//! The blocks of sorted sets in which commands find ranks.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::commands::KeyLocks;
use crate::executor::Executor;
use crate::executor::jobs::JobError;
use crate::types::key::ClientKey;
use crate::types::ranks::{RankShape, RankTending};

/// Transactions of one pass. Clients' commands run between them.
const TRANSACTIONS_PER_PASS: usize = 8;

/// The sets whose blocks are being worked on.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    /// Each with how far the work has come.
    begun: VecDeque<(ClientKey, RankTending)>,
}

impl Ranks {
    /// Makes a pass: does some of what commands have wanted. Returns whether there is more to do.
    pub(super) async fn pass(&mut self, executor: &Executor) -> Result<bool, JobError> {
        for key in executor.environment().rank_wants.take() {
            if self.begun.iter().all(|(begun, _)| *begun != key) {
                self.begun.push_back((key, RankTending::default()));
            }
        }
        for _ in 0..TRANSACTIONS_PER_PASS {
            // One that fails is left alone until a command wants it again.
            let Some((key, from)) = self.begun.pop_front() else {
                return Ok(false);
            };
            if let Some(next) = tend(executor, &key, from).await? {
                self.begun.push_back((key, next));
            }
        }
        Ok(!self.begun.is_empty())
    }
}

/// On a cluster the set is locked, so that commands of this server's clients wait and do not conflict.
async fn tend(
    executor: &Executor,
    key: &ClientKey,
    from: RankTending,
) -> Result<Option<RankTending>, JobError> {
    let locks = match executor.plans() {
        true => KeyLocks::Alone(vec![KeyLocks::hash_key(key.database, &key.key)]),
        false => KeyLocks::Nothing,
    };
    let (name, from) = (key.key.clone(), Arc::new(from));
    executor
        .transact(key.database, locks, move |context| {
            let (name, from) = (name.clone(), Arc::clone(&from));
            Box::pin(async move {
                Ok(context
                    .tend_ranks(&name, &from, &RankShape::DEFAULT)
                    .await?)
            })
        })
        .await
}
