//! Determines which pops of a batch other servers can do for it.

use std::time::Instant;

use rustc_hash::FxHashMap;

use super::contention::Expected;
use crate::call::{Call, Submission};
use quoin_data::cluster::delegation::{Demands, Granted, MadeRequest};
use quoin_data::command::access::KeyLocks;
use quoin_data::keyspace::key::ClientKey;

/// Pops of a batch's clients from one end of one queue.
#[derive(Debug, Clone)]
pub(super) struct Pops {
    pub(super) key: ClientKey,
    /// What they pop.
    pub(super) demands: Demands,
    /// The lock on the queue.
    pub(super) lock: u64,
    /// What other servers may have requested, if the batch checks for that.
    pub(super) expected: Option<Expected>,
    /// What the latest attempt popped for others.
    pub(super) granted: Granted,
}

/// A request made for pops.
pub(super) struct Request {
    pub(super) pops: Pops,
    pub(super) made: MadeRequest,
    pub(super) made_at: Instant,
    /// Whether the latest attempt found the grant.
    pub(super) is_granted: bool,
}

impl Pops {
    /// Both, in this order. `None` if they do not pop from the same end.
    fn and_then(self, others: &Pops) -> Option<Pops> {
        if self.key != others.key {
            return None;
        }
        let demands = self.demands.and_then(&others.demands)?;
        Some(Pops { demands, ..self })
    }
}

type OfEachKey<T> = FxHashMap<u64, T>;

/// What the commands of one client do with a key.
enum Uses {
    /// They pop from one end of it.
    Pops(Pops),
    /// They do other things.
    Others,
    /// Both.
    Mixed,
}

/// The pops among the first `commands_max` commands of a batch that can be delegated.
///
/// Delegated pops take effect before the rest of the batch. Clients cannot tell, because their commands came at the
/// same time. But the order of one client's commands matters, so pops from a queue are not delegated if the same
/// client does anything else with it.
pub(super) fn delegable(submissions: &[Submission], commands_max: usize) -> Vec<Pops> {
    let mut calls = submissions.iter().flat_map(|one| &one.calls);
    if calls.all(|call| call.access.pops.is_none()) {
        return Vec::new();
    }
    let mut all: OfEachKey<Option<Pops>> = OfEachKey::default();
    let mut left = commands_max;
    for submission in submissions {
        let length = submission.calls.len().min(left);
        left -= length;
        let Some(uses) = uses_of(&submission.calls, length) else {
            return Vec::new();
        };
        for (lock, uses) in uses {
            let joined = match (all.remove(&lock), uses) {
                (others, Uses::Others) => others,
                (_, Uses::Mixed) | (Some(None), Uses::Pops(_)) => Some(None),
                (None, Uses::Pops(pops)) => Some(Some(pops)),
                (Some(Some(before)), Uses::Pops(pops)) => Some(before.and_then(&pops)),
            };
            if let Some(joined) = joined {
                all.insert(lock, joined);
            }
        }
    }
    let delegable = all.into_values().flatten();
    delegable
        .filter(|pops| pops.demands.commands() > 0)
        .collect()
}

/// What the commands of one client do with each of their keys. `None` if they may use any key. Pops after the first
/// `length` commands are not demanded. They are still considered, because they may run if the commands of other clients
/// end early, and a request must not receive what their client pushed before.
fn uses_of(calls: &[Call], length: usize) -> Option<OfEachKey<Uses>> {
    let mut uses: OfEachKey<Uses> = OfEachKey::default();
    for (at, call) in calls.iter().enumerate() {
        let locks = match &call.access.locks {
            KeyLocks::Keys(locks) | KeyLocks::Alone(locks) => locks.as_slice(),
            KeyLocks::Nothing => continue,
            KeyLocks::Everything => return None,
        };
        let mut popped = popped_by(call);
        if let Some(pops) = popped.as_mut().filter(|_| at >= length) {
            pops.demands.runs.clear();
        }
        for lock in locks {
            let of_call = match popped.as_ref().filter(|pops| pops.lock == *lock) {
                Some(pops) => Uses::Pops(pops.clone()),
                // It pops, or may pop, in a way that cannot be delegated.
                None if call.access.pops.is_some() => Uses::Mixed,
                None => Uses::Others,
            };
            let joined = match (uses.remove(lock), of_call) {
                (None, of_call) => of_call,
                (Some(Uses::Others), Uses::Others) => Uses::Others,
                (Some(Uses::Pops(before)), Uses::Pops(pops)) => {
                    before.and_then(&pops).map_or(Uses::Mixed, Uses::Pops)
                }
                _ => Uses::Mixed,
            };
            uses.insert(*lock, joined);
        }
    }
    Some(uses)
}

/// What a command pops, if it does nothing else to that queue.
fn popped_by(call: &Call) -> Option<Pops> {
    let (key, demand) = call.access.pops.clone()?;
    let lock = KeyLocks::hash_key(key.database, &key.key);
    let is_once = match &call.access.locks {
        KeyLocks::Keys(keys) => keys.iter().filter(|other| **other == lock).count() == 1,
        KeyLocks::Nothing | KeyLocks::Alone(_) | KeyLocks::Everything => false,
    };
    is_once.then(|| Pops {
        key,
        demands: Demands::from(demand),
        lock,
        expected: None,
        granted: Granted::default(),
    })
}
