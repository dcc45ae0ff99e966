//! Where the server listens: TCP addresses with and without TLS, and a Unix socket.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};

use super::endpoint::Endpoint;
use super::error::ServerError;
use super::stream::Socket;
use super::unix_socket::{SocketPath, UnixSocket};
use quoin_base::limits::LISTEN_BACKLOG;
use quoin_config::Settings;

/// Addresses that this server has bound, and the path of its Unix socket. Nobody can connect until it
/// listens on them.
pub(super) struct Addresses {
    tcp: Vec<BoundTcp>,
    unix: Option<SocketPath>,
    /// The ports that clients can use.
    pub(super) ports: Ports,
}

/// The ports on which a server listens; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ports {
    /// Without TLS.
    pub(super) plain: u16,
    /// With TLS.
    pub(super) tls: u16,
}

impl Ports {
    /// The one that INFO shows as `tcp_port`: that of TLS if there is no other, as in Redis.
    pub(super) fn shown(self) -> u16 {
        match self.plain {
            0 => self.tls,
            port => port,
        }
    }
}

struct BoundTcp {
    address: SocketAddr,
    socket: TcpSocket,
    speaks_tls: bool,
}

impl Addresses {
    /// Binds the addresses of the settings. A Unix socket is made in [`Self::listen`].
    ///
    /// # Errors
    /// For example if another program uses one of them.
    pub(super) fn take(settings: &Settings) -> Result<Self, ServerError> {
        let mut tcp = Vec::new();
        let plain = match settings.tcp_port() {
            Some(port) => take_port(settings, port, false, &mut tcp)?,
            None => 0,
        };
        let tls = match settings.tls_port {
            0 => 0,
            port => take_port(settings, port, true, &mut tcp)?,
        };
        let unix = settings.unixsocket.as_deref();
        let unix = unix.map(|path| SocketPath::check(path, settings.unixsocketperm.0));
        Ok(Self {
            tcp,
            unix: unix.transpose()?,
            ports: Ports { plain, tls },
        })
    }

    /// Listens on all of them.
    pub(super) fn listen(self) -> Result<Vec<Listener>, ServerError> {
        let mut listeners = Vec::new();
        for bound in self.tcp {
            let BoundTcp {
                address,
                socket,
                speaks_tls,
            } = bound;
            let address = match socket.local_addr() {
                Ok(bound) => bound,
                Err(_) => address,
            };
            // Two programs may bind an address as long as neither listens.
            let socket = socket
                .listen(LISTEN_BACKLOG)
                .map_err(|source| ServerError::Listen { address, source })?;
            listeners.push(Listener::Tcp {
                socket,
                address,
                speaks_tls,
            });
        }
        if let Some(path) = self.unix {
            listeners.push(Listener::Unix(path.listen()?));
        }
        Ok(listeners)
    }
}

/// Binds a port on all addresses of the settings. Port 0 takes any free port, the same for all.
fn take_port(
    settings: &Settings,
    port: u16,
    speaks_tls: bool,
    taken: &mut Vec<BoundTcp>,
) -> Result<u16, ServerError> {
    let mut port = port;
    for ip in &settings.bind {
        let address = SocketAddr::new(*ip, port);
        let socket = bind(address).map_err(|source| ServerError::Listen { address, source })?;
        port = socket.local_addr()?.port();
        taken.push(BoundTcp {
            address,
            socket,
            speaks_tls,
        });
    }
    Ok(port)
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// A place where clients connect. Shown as the log names it.
pub(super) enum Listener {
    /// An address of TCP.
    Tcp {
        /// What listens.
        socket: TcpListener,
        /// Where.
        address: SocketAddr,
        /// Whether clients must shake hands first.
        speaks_tls: bool,
    },
    /// A Unix socket, which is removed with this value.
    Unix(UnixSocket),
}

impl Listener {
    /// Whether clients must shake hands first.
    pub(super) fn speaks_tls(&self) -> bool {
        matches!(
            self,
            Listener::Tcp {
                speaks_tls: true,
                ..
            }
        )
    }

    /// The next connection. Cancel-safe.
    pub(super) async fn accept(&self) -> io::Result<(Socket, Endpoint)> {
        match self {
            Listener::Tcp { socket, .. } => {
                let (stream, address) = socket.accept().await?;
                Ok((Socket::Tcp(stream), Endpoint::Tcp(address)))
            }
            Listener::Unix(socket) => {
                let stream = socket.accept().await?;
                let path = Arc::clone(socket.path());
                Ok((Socket::Unix(stream), Endpoint::Unix(path)))
            }
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listener::Tcp {
                address,
                speaks_tls: false,
                ..
            } => address.fmt(f),
            Listener::Tcp { address, .. } => write!(f, "{address} (TLS)"),
            Listener::Unix(socket) => f.write_str(socket.path()),
        }
    }
}
