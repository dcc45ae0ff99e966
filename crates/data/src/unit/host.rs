//! What a server knows of its clients, asked where commands run: which keys they track, what they may do, and who counts
//! and shows the commands that scripts call. See docs/understand/decisions/023-tracking.md.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::keyspace::key::ClientKey;

/// The number of no client: the server's own work. Clients are counted from 1.
pub const NO_CLIENT: u64 = 0;

/// On whose behalf a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The client's number on this server, or [`NO_CLIENT`].
    pub client: u64,
    /// Whether the keys that it reads are to be remembered.
    pub tracks: bool,
    /// Whether it may not read keys that it finds named in values (SORT).
    pub lacks_named_keys: bool,
}

impl Origin {
    /// The server's own work.
    pub const SERVER: Self = Self {
        client: NO_CLIENT,
        tracks: false,
        lacks_named_keys: false,
    };
}

impl Default for Origin {
    fn default() -> Self {
        Self::SERVER
    }
}

/// What a command did to a key, or to all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A key changed.
    Key {
        /// The key.
        key: ClientKey,
        /// The client that changed it; 0 is none, or several.
        client: u64,
    },
    /// A key changed of which WATCH must not hear: for clients it was gone before, or the change is
    /// none that a transaction could miss.
    Unwatched(Bytes),
    /// A key changed with all others ([`Change::AllKeys`]): only WATCH hears of it by itself.
    OnlyWatched(ClientKey),
    /// A database shows other keys.
    AllKeys,
    /// A client has read a key, and is to be told of its next change.
    Read {
        /// The key's name.
        key: Bytes,
        /// The client.
        client: u64,
    },
}

impl Change {
    /// The key, if its change is one for WATCH.
    pub fn watched_key(&self) -> Option<&ClientKey> {
        match self {
            Change::Key { key, .. } | Change::OnlyWatched(key) => Some(key),
            Change::Unwatched(_) | Change::AllKeys | Change::Read { .. } => None,
        }
    }

    /// The name of the key that changed, if it is one for clients that track keys.
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
    /// Whether there is any.
    fn is_any(&self) -> bool;

    /// From now on keeps which keys change, until [`Self::close_window`]. Returns the window's number.
    fn open_window(&self) -> u64;

    /// Ends a window.
    fn close_window(&self, window: u64);

    /// Takes note, in this order, of changes that are committed and of reads. A read of a key that
    /// others have changed since `window` was opened counts as changed at once: the client may have
    /// been given what was there before. Never waits for a client.
    fn note(&self, changes: &[Change], window: Option<u64>);
}

/// Who knows what clients may do: this server.
pub trait Rights: Send + Sync {
    /// The rights of a client of this number; `None` where it may do everything, as
    /// [`NO_CLIENT`](crate::unit::host::NO_CLIENT) may. A number that no client has may do nothing.
    fn of(&self, client: u64) -> Option<Arc<dyn ClientRights>>;
}

/// What a client may do.
pub trait ClientRights: Send + Sync {
    /// Whether it may run the command of this place in the table with these arguments.
    ///
    /// # Errors
    /// Why not.
    fn check(&self, command_id: usize, arguments: &[Bytes]) -> Result<(), RefusedCall>;

    /// Whether it may run the command by rights that cover the values of all keys.
    fn reads_all_keys(&self, command_id: usize, arguments: &[Bytes]) -> bool;
}

/// What is not allowed of a command that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedPart {
    /// The command itself.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
}

/// A command that a client may not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCall {
    /// What is not allowed of it.
    pub part: RefusedPart,
    /// The command's name, the key or the channel.
    pub object: Bytes,
    /// The client's user.
    pub user: Bytes,
    /// What the client is told, after the error's code.
    pub message: String,
}

/// Calls of scripts that an attempt keeps until it is committed. Later ones are told at once, and
/// again if the attempt is repeated.
const CALLS_KEPT_MAX: usize = 1_000;

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallResult {
    /// It replied.
    Done,
    /// It replied with an error.
    Failed,
    /// It was refused before it ran.
    Rejected,
}

/// A command that a script has called.
#[derive(Debug, Clone)]
pub struct ScriptCall {
    /// Its place in the command table; `None` if there is no such command.
    pub command_id: Option<usize>,
    /// How long it took.
    pub duration: Duration,
    /// What became of it.
    pub result: CallResult,
    /// The code of its error, if it is to be counted. One that the script ends with is counted as
    /// the script's.
    pub error: Option<Box<str>>,
    /// Its database and arguments, if somebody wants to see them.
    pub shown: Option<(u32, Vec<Bytes>)>,
    /// Why the script's client may not call it, if so, and the client's number.
    pub refused: Option<Box<(u64, RefusedCall)>>,
}

/// Who counts and shows the commands that scripts call: this server.
pub trait ScriptCalls: Send + Sync {
    /// Whether anybody wants to see them.
    fn are_shown(&self) -> bool;

    /// A script has called this.
    fn tell(&self, call: &ScriptCall);
}

/// The calls of an attempt at a batch.
#[derive(Debug, Default)]
pub struct CallsMade(RefCell<Vec<ScriptCall>>);

impl CallsMade {
    /// Keeps calls until they are taken. Returns those that are too many.
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
