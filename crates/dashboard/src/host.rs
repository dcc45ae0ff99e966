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

    /// 256 random bits that nobody can guess, as hexadecimal digits.
    ///
    /// # Errors
    /// If the system has no secrets.
    fn secret(&self) -> io::Result<String>;

    /// The time, in milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}
