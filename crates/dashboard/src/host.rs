//! What the dashboard needs from the server.

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

/// The server, as the dashboard sees it.
pub trait Host: Send + Sync + 'static {
    /// A connection for a new client with this address.
    ///
    /// # Errors
    /// If there can be none now.
    fn connect(&self, browser: SocketAddr) -> io::Result<UnixStream>;

    /// Whether the rights of a user allow a command. False if there is no such user or command.
    fn permits(&self, user: &[u8], words: &[&[u8]]) -> bool;

    /// Clients whose address, name, user, command or library contains a text, ignoring case.
    /// Waiting clients come first, then the most recently active ones. Returns up to `shown_max` of
    /// them, and none to a user who may not run CLIENT LIST.
    fn clients(&self, user: &[u8], searched: &str, shown_max: usize) -> Clients;

    /// 256 random bits that nobody can guess, as hexadecimal digits.
    ///
    /// # Errors
    /// If the system cannot provide them.
    fn secret(&self) -> io::Result<String>;

    /// The time, in milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}

/// The clients of the server, some of which a page shows.
#[derive(Debug, Default)]
pub struct Clients {
    /// Number of connected clients.
    pub connected: usize,
    /// Number of waiting clients among them.
    pub waiting: usize,
    /// Number of clients that match the search.
    pub fitting: usize,
    /// The first matching clients: their ids, and what they wait for.
    pub shown: Vec<(u64, Option<Wait>)>,
}

/// What a client waits for.
#[derive(Debug, Default)]
pub struct Wait {
    /// In milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// The first of the keys that it waits for, if the user may read them.
    pub keys: Vec<Vec<u8>>,
    /// The number of all its keys. 0 if it waits for something else.
    pub key_count: usize,
    /// Whether CLIENT PAUSE holds it back.
    pub is_paused: bool,
}
