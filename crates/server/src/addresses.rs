//! Addresses on which the server listens: TCP with and without TLS, and a Unix socket with its file. Also
//! the two ends of a connection.

use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as Probe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs, io};

use socket2::{Domain, SockAddr, Type};
use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixStream};
use tokio::sync::Mutex;
use tokio::sync::mpsc::Receiver;

use crate::error::ServerError;
use crate::stream::Socket;
use quoin_base::limits::LISTEN_BACKLOG;
use quoin_config::Settings;

/// One end of a connection. Shown as Redis shows it: `ip:port`, or the path of the Unix socket with the
/// port 0 for both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A TCP address, with TLS or without.
    Tcp(SocketAddr),
    /// The Unix socket with this path.
    Unix(Arc<str>),
}

impl Endpoint {
    /// Whether only processes of this machine can have this address.
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

/// What the clients of an address talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    /// The server with its data.
    Data,
    /// A Redis Sentinel.
    Sentinel {
        /// Its clients speak TLS, and want the ports for TLS of servers.
        speaks_tls: bool,
    },
    /// A node of Redis Cluster: the server with its data, and where the others are.
    Cluster {
        /// Its clients speak TLS, and want the ports for TLS of servers.
        speaks_tls: bool,
    },
}

/// Addresses that this server has bound, and the path of its Unix socket. Clients cannot connect
/// before it listens.
pub(super) struct Addresses {
    tcp: Vec<BoundTcp>,
    unix: Option<SocketPath>,
    /// The ports that clients can use.
    pub(super) ports: Ports,
}

/// The ports on which a server listens. 0 means no port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ports {
    /// Without TLS.
    pub(super) plain: u16,
    /// With TLS.
    pub(super) tls: u16,
    /// Of Redis Sentinel's commands, without TLS.
    pub(super) sentinel: u16,
    /// Of Redis Sentinel's commands, with TLS.
    pub(super) sentinel_tls: u16,
    /// Of Redis Cluster's clients, without TLS.
    pub(super) cluster: u16,
    /// Of Redis Cluster's clients, with TLS.
    pub(super) cluster_tls: u16,
}

impl Ports {
    /// The port of a face.
    pub(super) fn of_face(self, face: Face) -> u16 {
        match face {
            Face::Data => self.shown(),
            Face::Sentinel { speaks_tls: false } => self.sentinel,
            Face::Sentinel { speaks_tls: true } => self.sentinel_tls,
            Face::Cluster { speaks_tls: false } => self.cluster,
            Face::Cluster { speaks_tls: true } => self.cluster_tls,
        }
    }

    /// The port that INFO shows as `tcp_port`: as in Redis, the TLS port if there is no other.
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
    face: Face,
}

impl Addresses {
    /// Binds the addresses of the settings. A Unix socket is made in [`Self::listen`].
    ///
    /// # Errors
    /// For example if another program uses one of them.
    pub(super) fn take(settings: &Settings) -> Result<Self, ServerError> {
        let mut tcp = Vec::new();
        let mut take = |port: u16, speaks_tls: bool, face: Face| {
            take_port(settings, port, speaks_tls, face, &mut tcp)
        };
        let plain = match settings.tcp_port() {
            Some(port) => take(port, false, Face::Data)?,
            None => 0,
        };
        let mut take_unless_0 = |port: u16, speaks_tls: bool, face: Face| match port {
            0 => Ok(0),
            port => take(port, speaks_tls, face),
        };
        let tls = take_unless_0(settings.tls_port, true, Face::Data)?;
        let [sentinel, sentinel_tls] = [
            (settings.sentinel_port, false),
            (settings.sentinel_tls_port, true),
        ]
        .map(|(port, speaks_tls)| take_unless_0(port, speaks_tls, Face::Sentinel { speaks_tls }));
        let [cluster, cluster_tls] = [
            (settings.cluster_port, false),
            (settings.cluster_tls_port, true),
        ]
        .map(|(port, speaks_tls)| take_unless_0(port, speaks_tls, Face::Cluster { speaks_tls }));
        let unix = settings.unixsocket.as_deref();
        let unix = unix.map(|path| SocketPath::check(path, settings.unixsocketperm.0));
        Ok(Self {
            tcp,
            unix: unix.transpose()?,
            ports: Ports {
                plain,
                tls,
                sentinel: sentinel?,
                sentinel_tls: sentinel_tls?,
                cluster: cluster?,
                cluster_tls: cluster_tls?,
            },
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
                face,
            } = bound;
            let address = match socket.local_addr() {
                Ok(bound) => bound,
                Err(_) => address,
            };
            // Two programs may bind an address while neither listens.
            let socket = socket
                .listen(LISTEN_BACKLOG)
                .map_err(|source| ServerError::Listen { address, source })?;
            listeners.push(Listener::Tcp {
                socket,
                address,
                speaks_tls,
                face,
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
    face: Face,
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
            face,
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

/// A listening address. Shown as in the log.
pub(super) enum Listener {
    /// An address of TCP.
    Tcp {
        /// The listening socket.
        socket: TcpListener,
        /// Its address.
        address: SocketAddr,
        /// Whether clients must do a TLS handshake first.
        speaks_tls: bool,
        /// What clients talk to.
        face: Face,
    },
    /// A Unix socket. Its file is removed when this value is dropped.
    Unix(UnixSocket),
    /// Connections that the dashboard makes for browsers.
    Dashboard(Mutex<Receiver<OfBrowser>>),
}

/// The server's end of a connection within the process, and the address of the browser that it is for.
pub(super) type OfBrowser = (Probe, SocketAddr);

impl Listener {
    /// Whether clients must do a TLS handshake first.
    pub(super) fn speaks_tls(&self) -> bool {
        matches!(
            self,
            Listener::Tcp {
                speaks_tls: true,
                ..
            }
        )
    }

    /// What clients talk to.
    pub(super) fn face(&self) -> Face {
        match self {
            Listener::Tcp { face, .. } => *face,
            Listener::Unix(_) | Listener::Dashboard(_) => Face::Data,
        }
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
            Listener::Dashboard(made) => match made.lock().await.recv().await {
                Some((stream, browser)) => {
                    stream.set_nonblocking(true)?;
                    let stream = UnixStream::from_std(stream)?;
                    Ok((Socket::Unix(stream), Endpoint::Tcp(browser)))
                }
                // The dashboard has ended.
                None => std::future::pending().await,
            },
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listener::Tcp {
                address,
                speaks_tls,
                face,
                ..
            } => {
                address.fmt(f)?;
                f.write_str(match (speaks_tls, face) {
                    (false, Face::Data) => "",
                    (true, Face::Data) => " (TLS)",
                    (false, Face::Sentinel { .. }) => " (Sentinel)",
                    (true, Face::Sentinel { .. }) => " (Sentinel, TLS)",
                    (false, Face::Cluster { .. }) => " (Cluster)",
                    (true, Face::Cluster { .. }) => " (Cluster, TLS)",
                })
            }
            Listener::Unix(socket) => f.write_str(socket.path()),
            Listener::Dashboard(_) => f.write_str("the dashboard"),
        }
    }
}

/// The path of a Unix socket that does not exist yet. Its file is created only when the server listens:
/// another start would treat a file without a listener as left by a dead server.
struct SocketPath {
    path: PathBuf,
    permissions: u32,
}

impl SocketPath {
    /// Checks that the path can be used. Changes nothing.
    ///
    /// # Errors
    /// If a server listens there, or the path is not a socket.
    fn check(path: &Path, permissions: u32) -> Result<Self, ServerError> {
        let free = Self {
            path: path.to_owned(),
            permissions,
        };
        match is_stale(path) {
            Ok(_) => Ok(free),
            Err(source) => Err(free.error(source)),
        }
    }

    /// Creates the socket's file and listens. Replaces a file that a dead server left.
    ///
    /// # Errors
    /// If a server listens there, or the path is not a socket.
    fn listen(self) -> Result<UnixSocket, ServerError> {
        self.try_listen().map_err(|source| self.error(source))
    }

    fn try_listen(&self) -> io::Result<UnixSocket> {
        let path = &self.path;
        if is_stale(path)? {
            fs::remove_file(path)?;
        }
        let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.bind(&SockAddr::unix(path)?)?;
        let file = SocketFile::of(path)?;
        // Before it listens, so that nobody can connect with other permissions.
        if self.permissions != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(self.permissions))?;
        }
        let backlog = i32::try_from(LISTEN_BACKLOG).unwrap_or(i32::MAX);
        socket.listen(backlog)?;
        Ok(UnixSocket {
            path: path.display().to_string().into(),
            listener: UnixListener::from_std(socket.into())?,
            _file: file,
        })
    }

    fn error(&self, source: io::Error) -> ServerError {
        ServerError::UnixSocket {
            path: self.path.clone(),
            source,
        }
    }
}

/// A Unix socket on which the server listens. Its file is removed with this value.
pub(super) struct UnixSocket {
    listener: UnixListener,
    path: Arc<str>,
    _file: SocketFile,
}

impl UnixSocket {
    /// Its path in the settings.
    pub(super) fn path(&self) -> &Arc<str> {
        &self.path
    }

    /// The next connection. Cancel-safe.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

/// A socket's file. It is removed when this value is dropped, unless another file has replaced it.
struct SocketFile {
    path: PathBuf,
    /// Device and inode number.
    identity: (u64, u64),
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            identity: identity(path)?,
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // Removal may fail, for example in a read-only folder. The next start removes it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Whether the path is a socket that nobody listens on. An error if it is not a socket.
fn is_stale(path: &Path) -> io::Result<bool> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "a file that is not a socket exists there",
        ));
    }
    match Probe::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
        Err(error) => Err(error),
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(path: &Path, permissions: u32) -> Result<UnixSocket, ServerError> {
        SocketPath::check(path, permissions)?.listen()
    }

    #[tokio::test]
    async fn a_socket_that_is_left_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quoin.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let listening = listen(&path, 0o700).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(listening);
        assert!(!path.exists());

        let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = listen(&path, 0).err().unwrap().to_string();
        assert!(error.contains("another program"), "{error}");
        assert!(path.exists());
        fs::remove_file(&path).unwrap();

        fs::write(&path, "precious").unwrap();
        assert!(listen(&path, 0).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[tokio::test]
    async fn a_start_that_fails_leaves_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quoin.sock");
        drop(SocketPath::check(&path, 0).unwrap());
        assert!(!path.exists());
        let first = SocketPath::check(&path, 0).unwrap();
        let second = SocketPath::check(&path, 0).unwrap();
        let listening = first.listen().unwrap();
        let error = second.listen().err().unwrap().to_string();
        assert!(error.contains("another program"), "{error}");
        assert!(Probe::connect(&path).is_ok());
        drop(listening);
    }

    #[tokio::test]
    async fn the_file_of_a_successor_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quoin.sock");
        let listening = listen(&path, 0).unwrap();
        fs::rename(&path, folder.path().join("old")).unwrap();
        let successor = listen(&path, 0).unwrap();
        drop(listening);
        assert!(path.exists());
        drop(successor);
        assert!(!path.exists());
    }
}
