//! Admission: new connections become clients or are refused.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};

use super::connection::Connection;
use super::exposure;
use super::state::ServerState;

/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Bytes that are read from a refused client, so that it receives the reason.
const REFUSED_READ_BYTES: usize = 4 * 1024;
/// The longest time before a TCP keepalive probe that Linux accepts.
const KEEPALIVE_MAX_S: u32 = 32_767;

const TOO_MANY: &str = "-ERR max number of clients reached\r\n";

/// Decides on the connections of one listener.
pub(super) struct Admission {
    state: Arc<ServerState>,
    /// A descriptor that is closed if there is no other, so that a client can be told the reason.
    spare: Option<File>,
}

impl Admission {
    pub(super) fn new(state: Arc<ServerState>) -> Self {
        Self {
            state,
            spare: open_spare(),
        }
    }

    /// Makes a client of a connection, or refuses it with the reason.
    pub(super) fn admit(&self, stream: TcpStream, address: SocketAddr) -> Option<Connection> {
        let state = &self.state;
        if exposure::is_denied(&state.config, &state.access.users, address) {
            state.warnings.protected(address);
            self.refuse(&stream, exposure::DENIED);
            return None;
        }
        let local_address = stream.local_addr().ok()?;
        // Replies leave at once, as in Redis.
        stream.set_nodelay(true).ok()?;
        keep_alive(&stream, state.config.tcp_keepalive_s()).ok()?;
        let maxclients = state.config.maxclients();
        let registered = state.clients.register(
            address,
            local_address,
            stream.as_raw_fd(),
            state.clock.now_ms(),
            usize::try_from(maxclients).unwrap_or(usize::MAX),
            state.access.users.default_user(),
        );
        let Some(client) = registered else {
            state.warnings.too_many(address, maxclients);
            self.refuse(&stream, TOO_MANY);
            return None;
        };
        state.statistics.connections_received.add(1);
        Some(Connection::new(stream, client, Arc::clone(state)))
    }

    /// Handles a connection that could not be accepted. No error ends a listener: a lack of resources
    /// may pass.
    pub(super) async fn recover(&mut self, listener: &TcpListener, error: io::Error) {
        if is_of_one_connection(&error) {
            return;
        }
        self.state.warnings.cannot_accept(&error);
        if lacks_descriptors(&error) && self.refuse_next(listener) {
            return;
        }
        // Waiting helps, spinning does not.
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }

    /// Accepts a connection with the spare descriptor, to say that there are too many. Whether that
    /// succeeded.
    fn refuse_next(&mut self, listener: &TcpListener) -> bool {
        let had_spare = self.spare.take().is_some();
        let accepted = match had_spare {
            true => listener.accept().now_or_never(),
            false => None,
        };
        let is_refused = matches!(accepted, Some(Ok(_)));
        if let Some(Ok((stream, _))) = accepted {
            self.refuse(&stream, TOO_MANY);
        }
        self.spare = open_spare();
        is_refused
    }

    /// Tells a client why it is refused, as far as its socket takes that at once.
    fn refuse(&self, stream: &TcpStream, line: &str) {
        self.state.statistics.connections_rejected.add(1);
        // By system calls: tokio does not know yet that the socket is writable.
        let socket = SockRef::from(stream);
        let _ = socket.send(line.as_bytes());
        // Closing a socket with unread bytes would discard what was sent.
        let mut unread = [std::mem::MaybeUninit::uninit(); REFUSED_READ_BYTES];
        let _ = socket.recv(&mut unread);
    }
}

fn open_spare() -> Option<File> {
    File::open("/dev/null").ok()
}

/// Whether an error concerns only the connection that was to be accepted (accept(2) names these). The
/// next one can be accepted at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EINTR
                | libc::ECONNABORTED
                | libc::EPROTO
                | libc::ENETDOWN
                | libc::ENOPROTOOPT
                | libc::EHOSTDOWN
                | libc::ENONET
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
        )
    )
}

fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Enables TCP keepalive as Redis does: the first probe after `interval_s` seconds without data, the
/// next after a third of that, the end after three without an answer.
fn keep_alive(stream: &TcpStream, interval_s: u32) -> io::Result<()> {
    if interval_s == 0 {
        return Ok(());
    }
    let interval = Duration::from_secs(interval_s.min(KEEPALIVE_MAX_S).into());
    let probes = TcpKeepalive::new()
        .with_time(interval)
        .with_interval((interval / 3).max(Duration::from_secs(1)))
        .with_retries(3);
    SockRef::from(stream).set_tcp_keepalive(&probes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aborted_connection_does_not_hold_up_the_next() {
        for code in [libc::EINTR, libc::ECONNABORTED, libc::EPROTO] {
            let error = io::Error::from_raw_os_error(code);
            assert!(is_of_one_connection(&error), "{error}");
        }
        for code in [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS] {
            let error = io::Error::from_raw_os_error(code);
            assert!(!is_of_one_connection(&error), "{error}");
        }
    }
}
