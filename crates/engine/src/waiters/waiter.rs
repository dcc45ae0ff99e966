//! A client that waits in a blocking command.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};

use crate::in_flight::Carried;
use quoin_data::command::call::Invocation;
use quoin_data::command::waits::WaitSpec;
use quoin_data::keyspace::key::ClientKey;
use quoin_data::unit::context::Environment;
use quoin_resp::reply::Reply;

/// How a wait ended.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// The command found something or failed. This is its reply.
    Replied(Reply),
    /// The client gave up while the command was in service, and the command had no effect. [`Wait`](super::Wait) also
    /// returns this if no outcome was sent.
    Cancelled,
}

/// A client's blocking command that can wait.
pub struct Waiter {
    /// The command.
    pub invocation: Invocation,
    /// What it waits for.
    pub(crate) spec: WaitSpec,
    /// Whether it waits without having read all of its keys.
    is_unseen: AtomicBool,
    /// Notified when it has a reply.
    answered: Notify,
    state: Mutex<State>,
}

pub(super) struct State {
    /// Its position among all waiters, in the order in which they were first parked. `None` before that.
    pub(super) position: Option<u64>,
    pub(super) stage: Stage,
    /// The command to run from now on, if its arguments were pinned when it began to wait.
    pinned: Option<Arc<Invocation>>,
    /// How long the command has run since it began to wait.
    run: Duration,
    /// Whether the client is gone or has given up. Then no batch may start to park it or run it.
    pub(super) is_given_up: bool,
    outcome: Option<oneshot::Sender<Outcome>>,
    /// Counts the reply in the outcome until the connection takes it over.
    carried: Option<Carried>,
}

/// See the table of the [module](super).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Away,
    Parked {
        /// The batch that parked it, by the number of its in-flight transaction.
        slot: u64,
        /// Whether another batch has passed over it meanwhile. There may be data for it.
        was_passed_over: bool,
    },
    Waiting,
    InService {
        /// The slot of the batch that parked it, if the same batch runs it.
        parked_by: Option<u64>,
        /// Whether another batch has passed over it meanwhile. There may be data for it.
        was_passed_over: bool,
    },
}

impl Waiter {
    /// Creates a waiter for a blocking command, and the receiver of its outcome.
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
            is_unseen: AtomicBool::new(false),
            answered: Notify::new(),
            state: Mutex::new(State {
                position: None,
                stage: Stage::Away,
                pinned: None,
                run: Duration::ZERO,
                is_given_up: false,
                outcome: Some(sender),
                carried: None,
            }),
        });
        (waiter, receiver)
    }

    /// Pins the arguments of the command, which is about to be parked.
    pub(crate) fn pin(&self, arguments: Vec<Bytes>) {
        self.state().pinned = Some(Arc::new(Invocation {
            arguments,
            ..self.invocation.clone()
        }));
    }

    /// The command to run when the client is woken, if it differs from the original.
    pub(crate) fn pinned(&self) -> Option<Arc<Invocation>> {
        self.state().pinned.clone()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it waits without having read all of its keys, because they are quiet. They must be
    /// read before the client is told that they are empty.
    pub fn is_unseen(&self) -> bool {
        self.is_unseen.load(Ordering::SeqCst)
    }

    pub(super) fn note_unseen(&self) {
        self.is_unseen.store(true, Ordering::SeqCst);
    }

    /// Adds the duration of a run of the command, whether or not it found something.
    pub(crate) fn note_run(&self, duration: Duration) {
        self.state().run += duration;
    }

    /// How long the command has run since it began to wait, excluding the waiting.
    pub fn run_duration(&self) -> Duration {
        self.state().run
    }

    /// The error line if its client may no longer run its command because its user's rights have changed.
    pub(crate) fn refusal(environment: &Environment, invocation: &Invocation) -> Option<String> {
        let rights = environment.rights.as_ref()?;
        let rights = rights.of(invocation.origin.client)?;
        let refused = rights
            .check(invocation.row.id, &invocation.arguments)
            .err()?;
        Some(format!("NOPERM {}", refused.message))
    }

    /// Records that its outcome is a reply, which `carried` counts.
    pub(super) fn note_answer(&self, state: &mut State, carried: Carried) {
        state.carried = Some(carried);
        self.answered.notify_waiters();
    }

    /// Waits until it has a reply that the connection has not taken over.
    pub async fn answered(&self) {
        loop {
            let mut answered = pin!(self.answered.notified());
            // Before the check, so that no notification is missed.
            answered.as_mut().enable();
            if self.state().carried.is_some() {
                return;
            }
            answered.await;
        }
    }

    /// Hands the reply over to the connection, which need not have received the outcome. Returns the bytes that were
    /// not taken over before.
    pub fn take_over(&self) -> usize {
        let carried = self.state().carried.take();
        carried.map_or(0, Carried::take_over)
    }

    /// Its position among all waiters since the server started.
    pub(crate) fn position(&self) -> u64 {
        self.state().position.unwrap_or(u64::MAX)
    }

    /// The keys that it waits for, each once.
    pub fn keys(&self) -> &[Bytes] {
        &self.spec.keys
    }

    pub(crate) fn client_keys(&self) -> impl Iterator<Item = ClientKey> + '_ {
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
            // Fails if the client is gone. It needs no outcome.
            let _ = sender.send(outcome);
        }
    }
}
