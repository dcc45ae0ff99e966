//! Listening: accepts connections until the server stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use super::admission::Admission;
use super::error::ServerError;
use super::sampler;
use super::state::ServerState;
use crate::config::Settings;
use crate::fatal_panic::vital;
use crate::limits::LISTEN_BACKLOG;

/// Serves until SIGTERM, SIGINT or SHUTDOWN. Then connections have the time of the setting
/// `shutdown-timeout` to finish their current commands.
pub(super) async fn serve(
    state: Arc<ServerState>,
    addresses: Addresses,
) -> Result<(), ServerError> {
    let listeners = addresses.listen()?;
    // Before the announcement: its reader may stop the server at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    announce(&state);
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(vital("a listener", accept(listener, Arc::clone(&state))));
    }
    let sampling = sampler::run(&state);
    tokio::pin!(sampling);
    tokio::select! {
        () = &mut sampling => {}
        _ = terminate.recv() => tracing::info!("SIGTERM: shutting down"),
        _ = interrupt.recv() => tracing::info!("SIGINT: shutting down"),
        () = state.shutdown.begun() => tracing::info!("SHUTDOWN: shutting down"),
    }
    state.shutdown.begin();
    let limit = Duration::from_secs(state.config.shutdown_timeout_s().into());
    let all_done = async { while accepting.join_next().await.is_some() {} };
    if tokio::time::timeout(limit, all_done).await.is_err() {
        tracing::warn!("connections were still busy after {} s", limit.as_secs());
    }
    Ok(())
}

/// Addresses that this server has bound. Nobody can connect until it listens on them.
pub(super) struct Addresses {
    sockets: Vec<(SocketAddr, TcpSocket)>,
    /// The port of all of them.
    pub(super) port: u16,
}

impl Addresses {
    /// Binds the addresses of the settings.
    ///
    /// # Errors
    /// For example if another program uses one of them.
    pub(super) fn take(settings: &Settings) -> Result<Self, ServerError> {
        let mut port = settings.port;
        let mut sockets = Vec::new();
        for ip in &settings.bind {
            let address = SocketAddr::new(*ip, port);
            let bound = bind(address).map_err(|source| ServerError::Listen { address, source })?;
            // Port 0 takes any free port. The other addresses get the same one.
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

/// Logs where the server listens, where it stores data, and how to stop it.
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

async fn accept(listener: TcpListener, state: Arc<ServerState>) {
    let mut admission = Admission::new(Arc::clone(&state));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = state.shutdown.begun() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    if let Some(connection) = admission.admit(stream, address) {
                        connections.spawn(connection.serve());
                    }
                }
                Err(error) => admission.recover(&listener, error).await,
            },
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}
