//! The two ends of a connection.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Where a client is, or what it connected to. Shown as Redis shows it: `ip:port`, or the path of
/// the Unix socket with the port 0 for both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Of TCP, with TLS or without.
    Tcp(SocketAddr),
    /// Of the Unix socket with this path.
    Unix(Arc<str>),
}

impl Endpoint {
    /// Whether only processes of this machine can be there.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            // IPv4 addresses that are mapped to IPv6 count too.
            Endpoint::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Endpoint::Unix(_) => true,
        }
    }

    /// The path of the Unix socket.
    pub(crate) fn unix_path(&self) -> Option<&str> {
        match self {
            Endpoint::Tcp(_) => None,
            Endpoint::Unix(path) => Some(path),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => address.fmt(f),
            Endpoint::Unix(path) => write!(f, "{path}:0"),
        }
    }
}
