//! Admission: new connections become clients or are refused.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::addresses::{Endpoint, Face, Listener};
use crate::clients::{ClientRecord, Place};
use crate::connection::Connection;
use crate::protected_mode;
use crate::state::ServerState;
use crate::stream::{Socket, Stream};
use quoin_base::limits::{LINGERING_REFUSED_MAX, TLS_HANDSHAKE_MAX};

/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Number of bytes read from a refused client, so that it receives the reason.
const REFUSED_READ_BYTES: usize = 4 * 1024;
/// The longest time before a TCP keepalive probe that Linux accepts.
const KEEPALIVE_MAX_S: u32 = 32_767;

const TOO_MANY: &str = "-ERR max number of clients reached\r\n";

/// Decides on the connections of one listener.
pub(super) struct Admission {
    state: Arc<ServerState>,
    /// Whether clients must do a TLS handshake first.
    speaks_tls: bool,
    /// What clients talk to.
    face: Face,
    /// A spare file descriptor. It is closed if there is no other, so that a client can be accepted and
    /// told the reason.
    spare: Option<OwnedFd>,
    /// Limits the number of refused clients that may still send.
    lingering: Arc<Semaphore>,
}

impl Admission {
    pub(super) fn new(state: Arc<ServerState>, listener: &Listener) -> Self {
        Self {
            state,
            speaks_tls: listener.speaks_tls(),
            face: listener.face(),
            spare: open_spare(),
            lingering: Arc::new(Semaphore::new(LINGERING_REFUSED_MAX)),
        }
    }

    /// Turns a connection into a client, or refuses it with the reason. `None` if the connection
    /// should be closed at once.
    pub(super) fn admit(&mut self, socket: Socket, address: Endpoint) -> Option<Admitted> {
        if !self.has_spare() {
            // This connection has the last descriptor. If it became a client, later clients could
            // not be told why they are refused.
            self.say(&socket, TOO_MANY);
            drop(socket);
            self.spare = open_spare();
            return None;
        }
        let state = &self.state;
        // A TLS client is told after the handshake.
        if !self.speaks_tls
            && protected_mode::is_denied(&state.config, &state.access.users, &address)
        {
            state.warnings.protected(&address);
            return self.refuse(socket, protected_mode::DENIED);
        }
        let local_address = match &socket {
            Socket::Tcp(stream) => {
                // Replies are sent at once, as in Redis.
                stream.set_nodelay(true).ok()?;
                keep_alive(stream, state.config.live.tcp_keepalive_s()).ok()?;
                Endpoint::Tcp(stream.local_addr().ok()?)
            }
            Socket::Unix(_) => address.clone(),
        };
        let maxclients = state.config.live.maxclients();
        let registered = state.clients.register(
            address.clone(),
            local_address,
            socket.as_fd().as_raw_fd(),
            state.clock.now_ms(),
            usize::try_from(maxclients).unwrap_or(usize::MAX),
            state.access.users.default_user(),
        );
        let Some(client) = registered else {
            state.warnings.too_many(&address, maxclients);
            return self.refuse(socket, TOO_MANY);
        };
        let place = Place::new(client, &state.clients);
        let state = Arc::clone(state);
        Some(match (socket, self.speaks_tls) {
            (Socket::Tcp(stream), true) => Admitted::Handshaking(stream, place, self.face, state),
            (socket, _) => {
                state.statistics.connections_received.add(1);
                Admitted::Client(socket, place, self.face, state)
            }
        })
    }

    /// Handles a failed accept. No error ends a listener, because a lack of resources may be
    /// temporary.
    pub(super) async fn recover(&mut self, listener: &Listener, error: io::Error) {
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

    /// Whether there is a spare descriptor. Another thread may have taken it when it was last closed.
    fn has_spare(&mut self) -> bool {
        if self.spare.is_none() {
            self.spare = open_spare();
        }
        self.spare.is_some()
    }

    /// Accepts a connection with the spare descriptor, to reply that there are too many. Returns
    /// whether that succeeded.
    fn refuse_next(&mut self, listener: &Listener) -> bool {
        let has_spare = self.has_spare();
        self.spare = None;
        let accepted = match has_spare {
            true => listener.accept().now_or_never(),
            false => None,
        };
        let is_refused = matches!(accepted, Some(Ok(_)));
        if let Some(Ok((socket, _))) = accepted {
            // Its descriptor is needed at once.
            self.say(&socket, TOO_MANY);
        }
        self.spare = open_spare();
        is_refused
    }

    /// Tells a client why it is refused. If few others are being refused, the server also reads
    /// what the client still sends, so that the client receives the reason. A TLS client could not
    /// read it.
    fn refuse(&self, socket: Socket, line: &str) -> Option<Admitted> {
        self.say(&socket, line);
        if self.speaks_tls {
            return None;
        }
        let turn = Arc::clone(&self.lingering).try_acquire_owned().ok()?;
        Some(Admitted::Refused(socket, Arc::clone(&self.state), turn))
    }

    /// Tells a client why it is refused, if its socket accepts the text at once.
    fn say(&self, socket: &Socket, line: &str) {
        self.state.statistics.connections_rejected.add(1);
        if self.speaks_tls {
            return;
        }
        // By system calls: tokio does not know yet that the socket is writable.
        let socket = SockRef::from(socket);
        let _ = socket.send(line.as_bytes());
        // Closing a socket with unread bytes would discard what was sent.
        let mut unread = [std::mem::MaybeUninit::uninit(); REFUSED_READ_BYTES];
        let _ = socket.recv(&mut unread);
    }
}

/// A connection that should not be closed at once.
pub(super) enum Admitted {
    /// It is registered and can be served.
    Client(Socket, Place, Face, Arc<ServerState>),
    /// It must do a TLS handshake first.
    Handshaking(TcpStream, Place, Face, Arc<ServerState>),
    /// It was told why it is refused, and may still be sending.
    Refused(Socket, Arc<ServerState>, OwnedSemaphorePermit),
}

impl Admitted {
    /// Does the handshake if needed, and serves the client until it leaves.
    pub(super) async fn serve(self) {
        let connection = match self {
            Admitted::Client(socket, place, face, state) => {
                Some(Connection::new(socket.into(), place, face, state))
            }
            // Boxed: the future is large, and short-lived compared with the connection.
            Admitted::Handshaking(stream, place, face, state) => {
                Box::pin(handshake(stream, place, face, state)).await
            }
            Admitted::Refused(socket, state, _turn) => {
                linger(socket.into(), &state).await;
                None
            }
        };
        if let Some(connection) = connection {
            connection.serve().await;
        }
    }
}

/// Does the handshake with a TLS client. `None` if it fails, or if the client is refused.
async fn handshake(
    stream: TcpStream,
    place: Place,
    face: Face,
    state: Arc<ServerState>,
) -> Option<Connection> {
    let client = place.client();
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(TLS_HANDSHAKE_MAX, shake(stream, client, &state)) => shaken,
        () = client.wait_killed() => Ok(None),
        () = state.shutdown.begun() => Ok(None),
    };
    let stream = shaken.unwrap_or_else(|_| {
        note_failure(client, &state, "it took too long");
        None
    });
    state
        .statistics
        .connections_received
        .add(u64::from(stream.is_some()));
    Some(Connection::new(stream?, place, face, state))
}

/// Waits until a refused client has received the reason, unless the server stops.
async fn linger(mut stream: Stream, state: &ServerState) {
    tokio::select! {
        () = stream.linger() => {}
        () = state.shutdown.begun() => {}
    }
    stream.close();
}

async fn shake(stream: TcpStream, client: &ClientRecord, state: &ServerState) -> Option<Stream> {
    let Endpoint::Tcp(address) = &client.address else {
        return None;
    };
    let handshakes = state.handshakes.as_ref()?;
    let mut stream = match handshakes.shake(stream, address.ip()).await {
        Ok(stream) => stream,
        Err(reason) => {
            note_failure(client, state, &reason);
            return None;
        }
    };
    if protected_mode::is_denied(&state.config, &state.access.users, &client.address) {
        state.warnings.protected(&client.address);
        state.statistics.connections_rejected.add(1);
        let (_, mut writer) = stream.split();
        // It may be gone already.
        let _ = writer.write_all(protected_mode::DENIED.as_bytes()).await;
        linger(stream, state).await;
        return None;
    }
    Some(stream)
}

fn note_failure(client: &ClientRecord, state: &ServerState, reason: &str) {
    state.warnings.no_handshake(&client.address, reason);
    state.statistics.connections_rejected.add(1);
    state.statistics.failed_handshakes.add(1);
}

/// Any descriptor. A socket needs no file, so there is one without /dev too.
fn open_spare() -> Option<OwnedFd> {
    UnixDatagram::unbound().ok().map(OwnedFd::from)
}

/// Whether an error concerns only the connection being accepted (see accept(2)). The next one can
/// be accepted at once.
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

/// Enables TCP keepalive as Redis does: the first probe after `interval_s` seconds without data,
/// later ones after a third of that. Three unanswered probes end the connection.
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
