//! Submissions to the executor, and their results.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::in_flight::Carried;
use super::timed::Timed;
use super::waiters::{Cursor, Waiter};
use super::watchers;
use quoin_data::command::access::{Access, KeyLocks};
use quoin_data::command::call::Invocation;
use quoin_data::command::flags::Flags;
use quoin_data::command::row::{Handler, HandlerFuture};
use quoin_data::keyspace::key::ClientKey;
use quoin_data::script;
use quoin_data::unit::context::{ReadContext, WriteContext};
use quoin_data::unit::host::NO_CLIENT;
use quoin_resp::reply::Reply;
use quoin_store::StoreError;

/// Work of the server itself on a snapshot. See [`Executor::read`](super::Executor::read).
pub type ReadJob = Box<dyn for<'c> Fn(&'c ReadContext<'c>) -> HandlerFuture<'c> + Send>;

/// Work of the server itself in a transaction. See [`Executor::transact`](super::Executor::transact).
pub type WriteJob = Box<dyn for<'c> Fn(&'c WriteContext<'c>) -> HandlerFuture<'c> + Send>;

/// Something to run.
pub enum Work {
    /// A command.
    Command(Invocation),
    /// EXEC: several commands in one store transaction, with no command of another client between them. The reply is
    /// an array of their replies, or a null array if a watched key has changed.
    Transaction(Box<Bundle>),
    /// A wake-up: runs the commands of clients that wait for a key, from a cursor on.
    WakeUp(ClientKey, Cursor),
    /// Work of the server itself that reads.
    ReadJob {
        /// The database that it uses.
        database: u32,
        /// The code. It may run more than once.
        run: ReadJob,
    },
    /// Work of the server itself that writes.
    WriteJob {
        /// The database that it uses.
        database: u32,
        /// The code. It may run more than once.
        run: WriteJob,
    },
}

impl Work {
    /// Whether to remember the keys that it reads.
    pub(super) fn tracks(&self) -> bool {
        match self {
            Work::Command(invocation) => invocation.origin.tracks,
            _ => false,
        }
    }

    /// The commands that it runs. `None` if it is work of the server itself.
    pub(super) fn invocations(&self) -> Option<&[Invocation]> {
        match self {
            Work::Command(invocation) => Some(std::slice::from_ref(invocation)),
            Work::Transaction(bundle) => Some(&bundle.invocations),
            Work::WakeUp(..) | Work::ReadJob { .. } | Work::WriteJob { .. } => None,
        }
    }

    /// The script that it runs, if any.
    pub(super) fn script(&self) -> Option<Timed> {
        match self {
            Work::Command(invocation) if script::runs_script(invocation.row) => {
                Some(Timed::of(invocation))
            }
            _ => None,
        }
    }

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
    match invocation.row.handler {
        Handler::Write(_) => false,
        Handler::Script(_) => {
            invocation.row.flags.contains(Flags::ON_SNAPSHOT) || script::only_reads(invocation)
        }
        _ => true,
    }
}

/// The commands and conditions of one EXEC.
pub struct Bundle {
    /// The commands.
    pub invocations: Vec<Invocation>,
    /// The watched keys. If one has changed, no command is run.
    pub watched: Vec<WatchedKey>,
    /// Set when a batch of this server has changed a watched key.
    pub touched: watchers::Touched,
}

impl Bundle {
    pub(super) fn is_touched(&self) -> bool {
        self.touched.load(Ordering::SeqCst)
    }
}

/// A key and its state at the time of WATCH.
#[derive(Debug, Clone)]
pub struct WatchedKey {
    /// The key.
    pub key: ClientKey,
    /// The result of [`ReadContext::fingerprint`] at the time of WATCH.
    pub fingerprint: Option<Bytes>,
}

/// One piece of work, ready to run.
pub struct Call {
    /// The work.
    pub work: Work,
    /// What it will do to its keys, if the executor uses that ([`Executor::plans`](super::Executor::plans)).
    pub access: Access,
    /// The waiter to park if the command finds nothing. Only a blocking command has one, and it must be the last of
    /// its submission.
    pub waiter: Option<Arc<Waiter>>,
}

impl Call {
    /// A command. If `plans` (see [`Executor::plans`](super::Executor::plans)), computes what it
    /// will do to its keys.
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

    /// An EXEC. If `plans`, computes what its commands will do to their keys.
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

    /// The commands that it runs. None if it is work of the server itself.
    pub(super) fn invocations(&self) -> &[Invocation] {
        self.work.invocations().unwrap_or_default()
    }

    /// The arguments, if this is a command.
    pub fn arguments(&self) -> Option<&[Bytes]> {
        match &self.work {
            Work::Command(invocation) => Some(&invocation.arguments),
            _ => None,
        }
    }

    /// Work of the server itself that reads in `database`.
    pub fn read_job(
        database: u32,
        run: impl for<'c> Fn(&'c ReadContext<'c>) -> HandlerFuture<'c> + Send + 'static,
    ) -> Self {
        let run = Box::new(run);
        Self::job(Work::ReadJob { database, run }, KeyLocks::Nothing)
    }

    /// Work of the server itself that writes in `database`.
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

/// The result of a submission.
pub struct SubmissionResult {
    /// Replies of the first commands, in order. There is at least one, unless the submission was empty or its only
    /// answered command was parked.
    pub replies: Vec<Reply>,
    /// The commands that those replies answer. If there are more commands than replies, the replies are the store's
    /// error.
    pub done: Vec<Call>,
    /// The store's error, if it failed. The replies say the same.
    pub failure: Option<StoreError>,
    /// Commands that have not run yet, because the replies or the batch had grown too large or because they belong in
    /// another transaction. The connection submits them again after it has sent the replies.
    pub rest: Vec<Call>,
    /// Whether the last command of `done` waits and has no reply yet. The receiver from [`Waiter::new`] gets its
    /// outcome.
    pub is_parked: bool,
    /// Counts the replies until the connection takes them over.
    pub carried: Carried,
}

/// Consecutive commands of one connection.
pub(super) struct Submission {
    pub(super) calls: Vec<Call>,
    /// Once the replies have this many bytes, the remaining commands are not run.
    pub(super) reply_bytes_max: usize,
    /// Receives the result. `None` for a wake-up, which the lane itself submits.
    pub(super) respond: Option<oneshot::Sender<SubmissionResult>>,
}

impl Submission {
    /// The number of the client that made it, or [`NO_CLIENT`].
    pub(super) fn client(&self) -> u64 {
        let invocations = self.calls.iter().find_map(|call| call.work.invocations());
        let first = invocations.and_then(<[Invocation]>::first);
        first.map_or(NO_CLIENT, |first| first.origin.client)
    }
}

/// The executor has stopped.
pub(super) fn stopped() -> StoreError {
    StoreError::Unavailable(Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(
        "the server is shutting down",
    )))
}
