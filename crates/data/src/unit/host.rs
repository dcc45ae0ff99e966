//! What a server knows about its clients, for code that executes commands: which keys they track, their rights, and who
//! counts and shows the commands that scripts call. See docs/understand/decisions/023-tracking.md.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::keyspace::key::ClientKey;
use quoin_resp::wire::encode::Protocol;

/// The client number of the server's own work. Real clients are numbered from 1.
pub const NO_CLIENT: u64 = 0;

/// On whose behalf a command is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The client's number on this server, or [`NO_CLIENT`].
    pub client: u64,
    /// Whether the keys that it reads are remembered.
    pub tracks: bool,
    /// Whether it may not read keys that are named in values (SORT).
    pub lacks_named_keys: bool,
    /// Whether it may send the same command to several servers on one store (docs/understand/decisions/044-cluster-port.md).
    pub repeats: bool,
    /// The protocol in which another server that runs the command encodes the reply. `None` if the
    /// command must run on the client's own server, because the client gets messages about its
    /// effects.
    pub forwarded_as: Option<Protocol>,
}

impl Origin {
    /// The server's own work.
    pub const SERVER: Self = Self {
        client: NO_CLIENT,
        tracks: false,
        lacks_named_keys: false,
        repeats: false,
        forwarded_as: None,
    };
}

impl Default for Origin {
    fn default() -> Self {
        Self::SERVER
    }
}

/// A change of one or all keys, or a tracked read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A key changed.
    Key {
        /// The key.
        key: ClientKey,
        /// The client that changed it; 0 for none or several.
        client: u64,
    },
    /// A key changed, but WATCH must not be notified: the key did not exist for clients any more, or the change cannot
    /// matter to a transaction.
    Unwatched(Bytes),
    /// A key changed together with all others ([`Change::AllKeys`]). Only WATCH is notified of it individually.
    OnlyWatched(ClientKey),
    /// A database shows other keys.
    AllKeys,
    /// A client has read a key and is to be notified of its next change.
    Read {
        /// The key's name.
        key: Bytes,
        /// The client.
        client: u64,
    },
}

impl Change {
    /// The key that changed, if WATCH is to be notified.
    pub fn watched_key(&self) -> Option<&ClientKey> {
        match self {
            Change::Key { key, .. } | Change::OnlyWatched(key) => Some(key),
            Change::Unwatched(_) | Change::AllKeys | Change::Read { .. } => None,
        }
    }

    /// The name of the key that changed, if tracking clients are to be notified.
    pub fn tracked_key(&self) -> Option<&Bytes> {
        match self {
            Change::Key { key, .. } => Some(&key.key),
            Change::Unwatched(key) => Some(key),
            Change::OnlyWatched(_) | Change::AllKeys | Change::Read { .. } => None,
        }
    }
}

/// The clients of this server that track keys.
pub trait Trackers: Send + Sync {
    /// Whether there are any.
    fn is_any(&self) -> bool;

    /// Starts recording which keys change, until [`Self::close_window`]. Returns the window's number.
    fn open_window(&self) -> u64;

    /// Ends a window.
    fn close_window(&self, window: u64);

    /// Records committed changes and reads, in this order. If others have changed a key since `window` was opened, a
    /// read of it immediately counts as changed, because the client may have received the old value. Never waits for a
    /// client.
    fn note(&self, changes: &[Change], window: Option<u64>);
}

/// Knows the rights of this server's clients.
pub trait Rights: Send + Sync {
    /// The rights of a client; `None` if it may do everything, like [`NO_CLIENT`]. An unknown client number has no
    /// rights.
    fn of(&self, client: u64) -> Option<Arc<dyn ClientRights>>;
}

/// The rights of a client.
pub trait ClientRights: Send + Sync {
    /// Checks whether it may execute the command with this table index and these arguments.
    ///
    /// # Errors
    /// The reason for the refusal.
    fn check(&self, command_id: usize, arguments: &[Bytes]) -> Result<(), RefusedCall>;

    /// Whether its rights to execute the command cover the values of all keys.
    fn reads_all_keys(&self, command_id: usize, arguments: &[Bytes]) -> bool;
}

/// The part of a command that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedPart {
    /// The command itself.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
}

/// A command that a client may not execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCall {
    /// The part that is not allowed.
    pub part: RefusedPart,
    /// The command's name, the key or the channel.
    pub object: Bytes,
    /// The client's user.
    pub user: Bytes,
    /// The error message for the client, without the error code.
    pub message: String,
}

/// Most script calls that an attempt keeps until it is committed. Further calls are reported immediately, and again if
/// the attempt is repeated.
const CALLS_KEPT_MAX: usize = 1_000;

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallResult {
    /// It replied.
    Done,
    /// It replied with an error.
    Failed,
    /// It was refused before it was executed.
    Rejected,
}

/// A command that a script has called.
#[derive(Debug, Clone)]
pub struct ScriptCall {
    /// Its index in the command table; `None` if there is no such command.
    pub command_id: Option<usize>,
    /// How long it took.
    pub duration: Duration,
    /// Its result.
    pub result: CallResult,
    /// The error code, if it is to be counted. An error that ends the script is counted as the script's.
    pub error: Option<Box<str>>,
    /// Its database and arguments, if anyone wants to see them.
    pub shown: Option<(u32, Vec<Bytes>)>,
    /// If the script's client may not call it: the client's number and the reason.
    pub refused: Option<Box<(u64, RefusedCall)>>,
}

/// Counts and shows the commands that scripts call.
pub trait ScriptCalls: Send + Sync {
    /// Whether anyone wants to see them.
    fn are_shown(&self) -> bool;

    /// Reports a call of a script.
    fn tell(&self, call: &ScriptCall);
}

/// Script calls of one attempt at a batch.
#[derive(Debug, Default)]
pub struct CallsMade(RefCell<Vec<ScriptCall>>);

impl CallsMade {
    /// Keeps calls until they are taken. Returns those that exceed the limit.
    pub fn keep(&self, calls: Vec<ScriptCall>) -> Vec<ScriptCall> {
        let mut kept = self.0.borrow_mut();
        let room = CALLS_KEPT_MAX.saturating_sub(kept.len());
        let mut calls = calls.into_iter();
        kept.extend(calls.by_ref().take(room));
        calls.collect()
    }

    /// The calls so far.
    pub fn take(&self) -> Vec<ScriptCall> {
        std::mem::take(&mut *self.0.borrow_mut())
    }
}
