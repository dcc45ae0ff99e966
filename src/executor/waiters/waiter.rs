//! A client that waits in a blocking command.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::commands::{Invocation, WaitSpec};
use crate::reply::Reply;
use crate::types::key::ClientKey;

/// How a wait ended.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The command found something, or failed: its reply.
    Replied(Reply),
    /// It was given up ([`Waiters::cancel`](super::Waiters::cancel)) and has done nothing.
    Cancelled,
}

/// A blocking command of a client, ready to wait.
pub struct Waiter {
    /// The command.
    pub invocation: Invocation,
    /// What it waits for.
    pub(in crate::executor) spec: WaitSpec,
    state: Mutex<State>,
}

pub(super) struct State {
    /// Its place among all waiters, by when they came. `None` before it is parked for the first time.
    pub(super) order: Option<u64>,
    pub(super) stage: Stage,
    /// Its client has gone or has given up: no batch is to park it or to run its command.
    pub(super) is_given_up: bool,
    outcome: Option<oneshot::Sender<Outcome>>,
}

/// See the table of the [module](super).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Away,
    Parked {
        /// Of which batch.
        slot: u64,
        /// Another batch had something for it meanwhile.
        was_missed: bool,
    },
    Waiting,
    InService {
        /// The batch that parked it, if that is the one that runs it.
        parked_by: Option<u64>,
        /// Another batch had something for it meanwhile.
        was_missed: bool,
    },
}

impl Waiter {
    /// A command that is to wait, and where its outcome will arrive.
    pub fn new(
        invocation: Invocation,
        mut spec: WaitSpec,
    ) -> (Arc<Self>, oneshot::Receiver<Outcome>) {
        let (sender, receiver) = oneshot::channel();
        let mut seen = HashSet::new();
        spec.keys.retain(|key| seen.insert(key.clone()));
        let waiter = Arc::new(Self {
            invocation,
            spec,
            state: Mutex::new(State {
                order: None,
                stage: Stage::Away,
                is_given_up: false,
                outcome: Some(sender),
            }),
        });
        (waiter, receiver)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its place among all that have waited since the server started.
    pub(in crate::executor) fn order(&self) -> u64 {
        self.state().order.unwrap_or(u64::MAX)
    }

    pub(super) fn client_keys(&self) -> impl Iterator<Item = ClientKey> + '_ {
        self.spec.keys.iter().map(|key| ClientKey {
            database: self.invocation.database,
            key: key.clone(),
        })
    }
}

impl State {
    pub(super) fn end(&mut self, outcome: Outcome) {
        self.stage = Stage::Away;
        if let Some(sender) = self.outcome.take() {
            // A client that is gone does not hear of it.
            let _ = sender.send(outcome);
        }
    }
}
