//! Accepting connections, and stopping.

use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::connection::Connection;
use super::{ServerError, ServerState, sampler};
use crate::config::Settings;
use crate::limits::{ACCEPT_PAUSE_MS, KEEPALIVE_MAX_S, LISTEN_BACKLOG};

/// Serves until SIGTERM, SIGINT or SHUTDOWN; then gives connections the time that
/// `shutdown-timeout` sets to finish what they are at.
pub(super) async fn serve(
    state: Arc<ServerState>,
    addresses: Addresses,
    mut shutdown: watch::Receiver<bool>,
) -> Result<(), ServerError> {
    let listeners = addresses.listen()?;
    // Whoever reads the announcement may ask for the end at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    announce(&state);
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept(listener, Arc::clone(&state), shutdown.clone()));
    }
    let sampling = sampler::run(&state);
    tokio::pin!(sampling);
    tokio::select! {
        () = &mut sampling => {}
        _ = terminate.recv() => tracing::info!("SIGTERM: shutting down"),
        _ = interrupt.recv() => tracing::info!("SIGINT: shutting down"),
        () = stopping(&mut shutdown) => tracing::info!("SHUTDOWN: shutting down"),
    }
    state.begin_shutdown();
    let limit = Duration::from_secs(state.config.shutdown_timeout_s().into());
    let all_done = async { while accepting.join_next().await.is_some() {} };
    if tokio::time::timeout(limit, all_done).await.is_err() {
        tracing::warn!("connections were still busy after {} s", limit.as_secs());
    }
    Ok(())
}

/// Addresses that are this server's, and on which nobody can connect yet.
pub(super) struct Addresses {
    sockets: Vec<(SocketAddr, TcpSocket)>,
    /// The port of all of them.
    pub(super) port: u16,
}

impl Addresses {
    /// Takes the addresses of the settings.
    ///
    /// # Errors
    /// Where another program has one of them.
    pub(super) fn take(settings: &Settings) -> Result<Self, ServerError> {
        let mut port = settings.port;
        let mut sockets = Vec::new();
        for ip in &settings.bind {
            let address = SocketAddr::new(*ip, port);
            let bound = bind(address).map_err(|source| ServerError::Listen { address, source })?;
            // Port 0 takes any free one, and the same for the other addresses.
            port = bound.local_addr()?.port();
            sockets.push((address, bound));
        }
        Ok(Self { sockets, port })
    }

    fn listen(self) -> Result<Vec<TcpListener>, ServerError> {
        let listen = |(address, socket): (SocketAddr, TcpSocket)| {
            // Two programs may bind an address as long as neither listens.
            let listener = socket.listen(LISTEN_BACKLOG);
            listener.map_err(|source| ServerError::Listen { address, source })
        };
        self.sockets.into_iter().map(listen).collect()
    }
}

fn bind(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Tells a person where the server listens, what it stores where, and how to stop it.
fn announce(state: &ServerState) {
    let settings = state.config.settings();
    let store = state.store.capabilities().name;
    let addresses: Vec<String> = settings
        .bind
        .iter()
        .map(|ip| SocketAddr::new(*ip, state.port()).to_string())
        .collect();
    let place = match settings.store {
        crate::config::StoreKind::Embedded => format!(
            "{store} store in {} (fsync {})",
            settings.data_dir.display(),
            settings.fsync.name()
        ),
        crate::config::StoreKind::Fdb => format!("{store} store"),
    };
    tracing::info!(
        "quoin {} listens on {} with the {place}; stop it with Ctrl-C or SIGTERM (process {})",
        env!("CARGO_PKG_VERSION"),
        addresses.join(", "),
        std::process::id()
    );
}

async fn accept(
    listener: TcpListener,
    state: Arc<ServerState>,
    mut shutdown: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let for_connections = shutdown.clone();
    loop {
        tokio::select! {
            biased;
            () = stopping(&mut shutdown) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    if let Some(connection) = open(stream, address, &state).await {
                        connections.spawn(connection.serve(for_connections.clone()));
                    }
                }
                Err(error) => {
                    // Out of file descriptors, most likely: waiting helps, spinning does not.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(ACCEPT_PAUSE_MS)).await;
                }
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Waits until the server shall stop.
pub(super) async fn stopping(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, which is a stop too. The value that is returned
    // holds a lock and must not live on.
    let _ = shutdown.wait_for(|is_set| *is_set).await.map(|_| ());
}

async fn open(
    mut stream: TcpStream,
    address: SocketAddr,
    state: &Arc<ServerState>,
) -> Option<Connection> {
    let local_address = stream.local_addr().ok()?;
    // Replies leave at once, as in Redis.
    stream.set_nodelay(true).ok()?;
    keep_alive(&stream, state.config.tcp_keepalive_s()).ok()?;
    let maxclients = usize::try_from(state.config.maxclients()).unwrap_or(usize::MAX);
    let now_ms = state.clock.now_ms();
    match state.clients.register(
        address,
        local_address,
        stream.as_raw_fd(),
        now_ms,
        maxclients,
    ) {
        Some(client) => {
            state.statistics.connections_received.add(1);
            Some(Connection::new(stream, client, Arc::clone(state)))
        }
        None => {
            state.statistics.connections_rejected.add(1);
            // A courtesy: a client that does not read it loses nothing.
            let _ = stream.try_write(b"-ERR max number of clients reached\r\n");
            let _ = stream.shutdown().await;
            None
        }
    }
}

/// Has the system ask clients that say nothing whether they are still there, as Redis sets it: the
/// first probe after `interval_s`, more a third of it apart, gone after three.
fn keep_alive(stream: &TcpStream, interval_s: u32) -> std::io::Result<()> {
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
