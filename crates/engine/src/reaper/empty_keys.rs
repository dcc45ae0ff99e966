//! The sweep for metadata of empty, unused keys. On a cluster, metadata remains after the last pop.

use std::collections::VecDeque;

use crate::Executor;
use crate::jobs::JobError;
use quoin_base::limits::{
    RETAINED_PASSES_KEPT_MAX, RETAINED_REST_MS, RETAINED_SWEEP_KEYS_PER_PASS,
};
use quoin_base::random::Random;
use quoin_data::command::access::KeyLocks;
use quoin_data::keyspace::retained::RetainedMeta;
use quoin_layout::name::HASH_BITS;

/// The state of the sweep.
#[derive(Debug)]
pub(super) struct EmptyKeys {
    /// Where the next pass continues.
    next: Position,
    /// Empty keys that passes have found, the oldest pass first. They are swept if they stay unused for a while.
    found: VecDeque<Found>,
}

/// The empty keys that one pass found.
#[derive(Debug)]
struct Found {
    at_ms: i64,
    database: u32,
    keys: Vec<RetainedMeta>,
}

/// A position in the scan over all keys of all databases.
#[derive(Debug, Clone, Copy)]
struct Position {
    database: u32,
    hash: u64,
}

impl EmptyKeys {
    /// Creates a sweep that begins at a random position, so that the servers of one store do not all work on the same
    /// keys.
    pub(super) fn new(random: &dyn Random, databases: u32) -> Self {
        Self {
            next: Position {
                database: u32::try_from(random.below(u64::from(databases))).unwrap_or(0),
                hash: random.below(1 << HASH_BITS),
            },
            found: VecDeque::new(),
        }
    }

    /// Sweeps what was found long enough ago, and searches for more. Returns how many were swept.
    pub(super) async fn pass(&mut self, executor: &Executor) -> Result<u64, JobError> {
        let now_ms = executor.environment().clock.now_ms();
        let has_rested = |found: &Found| now_ms.saturating_sub(found.at_ms) >= RETAINED_REST_MS;
        let mut all_swept = Ok(0);
        while self.found.front().is_some_and(has_rested) {
            let Some(found) = self.found.pop_front() else {
                break;
            };
            let swept = sweep(executor, found).await;
            all_swept = all_swept.and_then(|all| Ok(all + swept?));
        }
        self.search(executor, now_ms).await?;
        all_swept
    }

    async fn search(&mut self, executor: &Executor, at_ms: i64) -> Result<(), JobError> {
        let Position { database, hash } = self.next;
        let (next_hash, keys) = executor
            .read(database, move |context| {
                Box::pin(
                    async move { Ok(context.retained(hash, RETAINED_SWEEP_KEYS_PER_PASS).await?) },
                )
            })
            .await?;
        if !keys.is_empty() {
            if self.found.len() >= RETAINED_PASSES_KEPT_MAX {
                self.found.pop_front();
            }
            self.found.push_back(Found {
                at_ms,
                database,
                keys,
            });
        }
        self.next = match next_hash {
            0 => Position {
                database: (database + 1) % executor.environment().databases.max(1),
                hash: 0,
            },
            hash => Position { database, hash },
        };
        Ok(())
    }
}

async fn sweep(executor: &Executor, found: Found) -> Result<u64, JobError> {
    let keys = std::sync::Arc::new(found.keys);
    executor
        .transact(found.database, KeyLocks::Nothing, move |context| {
            let keys = std::sync::Arc::clone(&keys);
            Box::pin(async move {
                let mut swept = 0;
                for key in keys.iter() {
                    swept += u64::from(context.sweep_retained(key).await?);
                }
                Ok(swept)
            })
        })
        .await
}
