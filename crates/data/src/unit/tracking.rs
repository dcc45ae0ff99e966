//! Client-side caching (CLIENT TRACKING): what commands say of the keys that they read and change,
//! and who is told after the commit. See docs/understand/decisions/023-tracking.md.

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
