//! What the dashboard needs of the server.

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

/// The server, as the dashboard sees it.
pub trait Host: Send + Sync + 'static {
    /// A connection of a new client, which is at this address.
    ///
    /// # Errors
    /// If there can be none now.
    fn connect(&self, browser: SocketAddr) -> io::Result<UnixStream>;

    /// Whether the rights of a user allow a command. False if there is no such user or command.
    fn permits(&self, user: &[u8], words: &[&[u8]]) -> bool;

    /// Clients whose address, name, user, command or library contains a text, in any case. Clients that wait come first,
    /// then the most recently active ones. Shows up to `shown_max` of them. A user who may not run CLIENT LIST gets none.
    fn clients(&self, user: &[u8], searched: &str, shown_max: usize) -> Clients;

    /// 256 random bits that nobody can guess, as hexadecimal digits.
    ///
    /// # Errors
    /// If the system has no secrets.
    fn secret(&self) -> io::Result<String>;

    /// The time, in milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}

/// The clients of the server, of which a page shows some.
#[derive(Debug, Default)]
pub struct Clients {
    /// All that are connected.
    pub connected: usize,
    /// Those of them that wait.
    pub waiting: usize,
    /// Those of all that were searched for.
    pub fitting: usize,
    /// The first of these: their numbers, and what they wait for.
    pub shown: Vec<(u64, Option<Wait>)>,
}

/// What a client waits for.
#[derive(Debug, Default)]
pub struct Wait {
    /// In milliseconds since the Unix epoch.
    pub since_ms: i64,
    /// The first of the keys that it waits for, as far as the user may read them.
    pub keys: Vec<Vec<u8>>,
    /// The number of all these keys; 0 if it waits for something else.
    pub key_count: usize,
    /// Whether CLIENT PAUSE holds it back.
    pub is_paused: bool,
}
