//! What is submitted to the executor, and what becomes of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::waiters::{Cursor, Waiter};
use super::watchers;
use crate::commands::row::HandlerFuture;
use crate::commands::{Access, Handler, Invocation, KeyLocks};
use crate::reply::Reply;
use crate::store::StoreError;
use crate::types::key::ClientKey;
use crate::types::{ReadContext, WriteContext};

/// Work that the server itself does in a snapshot, see [`Executor::read`](super::Executor::read).
pub type ReadJob = Box<dyn for<'c> Fn(&'c ReadContext<'c>) -> HandlerFuture<'c> + Send>;

/// Work that the server itself does in a transaction, see [`Executor::transact`](super::Executor::transact).
pub type WriteJob = Box<dyn for<'c> Fn(&'c WriteContext<'c>) -> HandlerFuture<'c> + Send>;

/// What is to be run.
pub enum Work {
    /// A command.
    Command(Invocation),
    /// EXEC: several commands in one store transaction, nothing of others between them. The reply
    /// is an array of theirs, or a null array where a watched key has changed.
    Transaction(Box<Bundle>),
    /// Runs the commands of clients that wait for a key, from a cursor on.
    WakeUp(ClientKey, Cursor),
    /// Work of the server itself that reads.
    ReadJob {
        /// The database that it sees.
        database: u32,
        /// Its code, which may run more than once.
        run: ReadJob,
    },
    /// Work of the server itself that writes.
    WriteJob {
        /// The database that it sees.
        database: u32,
        /// Its code, which may run more than once.
        run: WriteJob,
    },
}

impl Work {
    /// Whether it writes nothing.
    pub(super) fn only_reads(&self) -> bool {
        match self {
            Work::Command(invocation) => only_reads(invocation),
            Work::ReadJob { .. } => true,
            Work::Transaction(_) | Work::WakeUp(..) | Work::WriteJob { .. } => false,
        }
    }
}

/// Whether a command writes nothing.
pub(super) fn only_reads(invocation: &Invocation) -> bool {
    !matches!(invocation.row.handler, Handler::Write(_))
}

/// What EXEC carries out.
pub struct Bundle {
    /// The commands.
    pub invocations: Vec<Invocation>,
    /// The keys that must not have changed.
    pub watched: Vec<WatchedKey>,
    /// Set when this server has seen one of them change.
    pub touched: watchers::Touched,
}

impl Bundle {
    pub(super) fn is_touched(&self) -> bool {
        self.touched.load(Ordering::SeqCst)
    }
}

/// A key as WATCH found it.
#[derive(Debug, Clone)]
pub struct WatchedKey {
    /// The key.
    pub key: ClientKey,
    /// What [`ReadContext::fingerprint`] said.
    pub fingerprint: Option<Bytes>,
}

/// One piece of work, ready to be run.
pub struct Call {
    /// What is to be run.
    pub work: Work,
    /// What it will do to its keys, where the executor asked for that ([`Executor::plans`](super::Executor::plans)).
    pub access: Access,
    /// Where the command blocks and finds nothing, its waiter. Such a command must be the last of
    /// its submission.
    pub waiter: Option<Arc<Waiter>>,
}

impl Call {
    /// A command, of which the executor knows what it will do where it `plans`.
    pub fn command(invocation: Invocation, plans: bool) -> Self {
        let access = if plans {
            Access::of(invocation.row, invocation.database, &invocation.arguments)
        } else {
            Access::UNKNOWN
        };
        Self {
            work: Work::Command(invocation),
            access,
            waiter: None,
        }
    }

    /// EXEC, of which the executor knows what it will do where it `plans`.
    pub fn transaction(bundle: Bundle, plans: bool) -> Self {
        let access = if plans {
            Access::of_all(&bundle.invocations)
        } else {
            Access::UNKNOWN
        };
        Self {
            work: Work::Transaction(Box::new(bundle)),
            access,
            waiter: None,
        }
    }

    /// The arguments of a command.
    pub fn arguments(&self) -> Option<&[Bytes]> {
        match &self.work {
            Work::Command(invocation) => Some(&invocation.arguments),
            _ => None,
        }
    }

    /// Work of the server itself that reads, as it sees `database`.
    pub fn read_job(
        database: u32,
        run: impl for<'c> Fn(&'c ReadContext<'c>) -> HandlerFuture<'c> + Send + 'static,
    ) -> Self {
        let run = Box::new(run);
        Self::job(Work::ReadJob { database, run }, KeyLocks::Nothing)
    }

    /// Work of the server itself that writes, as it sees `database`.
    pub fn write_job(
        database: u32,
        locks: KeyLocks,
        run: impl for<'c> Fn(&'c WriteContext<'c>) -> HandlerFuture<'c> + Send + 'static,
    ) -> Self {
        let run = Box::new(run);
        Self::job(Work::WriteJob { database, run }, locks)
    }

    pub(super) fn job(work: Work, locks: KeyLocks) -> Self {
        Self {
            work,
            access: Access::locking(locks),
            waiter: None,
        }
    }
}

/// What became of a submission.
pub struct SubmissionResult {
    /// Replies of the first commands, in order; at least one unless there were none.
    pub replies: Vec<Reply>,
    /// The commands that those replies answer. Where it is shorter, the replies say why the store
    /// failed.
    pub done: Vec<Call>,
    /// Why the store failed, where it did: what the replies say.
    pub failure: Option<StoreError>,
    /// Commands that were not run yet, because replies or the batch had grown too large or because
    /// they belong into another transaction: to be submitted again when the replies are on their way
    /// to the client.
    pub rest: Vec<Call>,
    /// The last command of `done` has no reply yet: it waits, and its outcome will arrive where
    /// [`Waiter::new`] said.
    pub is_parked: bool,
}

/// A run of commands of one connection.
pub(super) struct Submission {
    pub(super) calls: Vec<Call>,
    /// `None` of a wake-up, which is the lane's own.
    pub(super) respond: Option<oneshot::Sender<SubmissionResult>>,
}

/// The executor has stopped.
pub(super) fn stopped() -> StoreError {
    StoreError::Unavailable(Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(
        "the server is shutting down",
    )))
}
