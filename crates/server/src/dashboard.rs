//! The dashboard's address, and what it gets from the server: connections, users' rights, and what
//! clients wait for.

use std::cmp::Reverse;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, Response};
use rand::TryRng;
use rand::rngs::SysRng;
use tokio::sync::mpsc::{self, Sender};

use crate::addresses::{Listener, OfBrowser};
use crate::clients::ClientRecord;
use crate::error::ServerError;
use crate::http::{Bounds, HttpThread, Listening, Service};
use crate::procfs;
use crate::state::ServerState;
use quoin_base::limits::{
    DASHBOARD_CONNECTION_MAX, DASHBOARD_CONNECTIONS_MAX, DASHBOARD_REQUEST_BYTES_MAX,
    DASHBOARD_SESSIONS_MAX,
};
use quoin_base::secret::hex;
use quoin_config::DashboardAddress;
use quoin_dashboard::{Clients, Dashboard, Host, Sample, Wait};
use quoin_data::command::resolve;
use quoin_data::table;

/// Random bytes of a secret.
const SECRET_BYTES: usize = 32;

/// Serves the dashboard if it is configured. Returns its thread, and the source of its connections.
///
/// # Errors
/// If the server cannot listen on the configured address, or start the thread.
pub(super) fn start(
    state: &Arc<ServerState>,
) -> Result<Option<(HttpThread, Listener)>, ServerError> {
    let settings = state.config.settings();
    let Some(address) = settings.dashboard_place() else {
        return Ok(None);
    };
    let has_tls = settings.dashboard_tls;
    let scheme = if has_tls { "https" } else { "http" };
    let bounds = Bounds {
        connections: DASHBOARD_CONNECTIONS_MAX,
        duration: DASHBOARD_CONNECTION_MAX,
        head_bytes: DASHBOARD_REQUEST_BYTES_MAX,
        blocking_threads: DASHBOARD_CONNECTIONS_MAX,
    };
    let listening = match Listening::on(address, bounds) {
        Err(ServerError::Listen { address, source })
            if settings.dashboard_address == DashboardAddress::Auto =>
        {
            tracing::info!("cannot serve the dashboard at {address}: {source}");
            return Ok(None);
        }
        listening => listening?,
    };
    let address = listening.address;
    tracing::info!("the dashboard is at {scheme}://{address}/");
    let (browsers, made) = mpsc::channel(DASHBOARD_SESSIONS_MAX);
    let own = OwnServer {
        state: Arc::clone(state),
        browsers,
    };
    let dashboard = Dashboard::new(own, Arc::clone(&state.history), address.port(), has_tls);
    let served = Served(Arc::new(dashboard));
    let thread = listening.serve("quoin-dashboard", served, Arc::clone(state), has_tls)?;
    Ok(Some((thread, Listener::Dashboard(made.into()))))
}

/// The figures of this moment, for the charts.
pub(super) fn sample(state: &ServerState) -> Sample {
    let statistics = &state.statistics;
    let executor = state.executor.statistics();
    Sample {
        at_ms: state.clock.now_ms(),
        commands: statistics.commands_processed.get(),
        input_bytes: statistics.input_bytes.get(),
        output_bytes: statistics.output_bytes.get(),
        errors: statistics.error_replies.get(),
        commits: executor.commits.get(),
        commits_us: executor.commit_durations.sum_us(),
        commits_timed: executor.commit_durations.counts().iter().sum(),
        memory_bytes: procfs::memory().allocated_bytes,
        clients: state.clients.count() as u64,
    }
}

struct Served(Arc<Dashboard>);

impl Service for Served {
    const NAME: &'static str = "the dashboard";

    async fn answer(&self, from: SocketAddr, request: Request<Incoming>) -> Response<String> {
        self.0.answer(from, request).await
    }
}

/// This server.
struct OwnServer {
    state: Arc<ServerState>,
    /// A listener of the server has the other end.
    browsers: Sender<OfBrowser>,
}

impl Host for OwnServer {
    fn connect(&self, browser: SocketAddr) -> io::Result<UnixStream> {
        let (dashboard, server) = UnixStream::pair()?;
        let handed = self.browsers.try_send((server, browser));
        handed.map_err(|_| io::Error::other("the server is not accepting connections"))?;
        Ok(dashboard)
    }

    fn permits(&self, user: &[u8], words: &[&[u8]]) -> bool {
        let Some(user) = self.state.access.users.find(user) else {
            return false;
        };
        let words: Vec<Bytes> = words
            .iter()
            .map(|word| Bytes::copy_from_slice(word))
            .collect();
        resolve(&words).is_ok_and(|row| user.definition().check(row, &words).is_ok())
    }

    fn clients(&self, user: &[u8], searched: &str, shown_max: usize) -> Clients {
        let words = [b"CLIENT", &b"LIST"[..]].map(Bytes::from_static);
        let rights = { self.state.access.users.find(user) }.map(|user| user.definition());
        let (Some(rights), Ok(row)) = (rights, resolve(&words)) else {
            return Clients::default();
        };
        if rights.check(row, &words).is_err() {
            return Clients::default();
        }
        let all = self.state.clients.all();
        let mut clients = Clients {
            connected: all.len(),
            ..Clients::default()
        };
        let searched = searched.to_lowercase();
        let mut fitting = Vec::new();
        for client in all {
            let is_blocked = client.is_blocked();
            clients.waiting += usize::from(is_blocked);
            if fits(&client, &searched) {
                let last_ms = client.last_interaction_ms.load(Ordering::Relaxed);
                fitting.push((!is_blocked, Reverse(last_ms), client));
            }
        }
        clients.fitting = fitting.len();
        // Sorted by the values that were read, so that a client keeps its place even if it does
        // something meanwhile.
        fitting.sort_by_key(|(is_free, last_ms, _)| (*is_free, *last_ms));
        fitting.truncate(shown_max);
        let may_read = |key: &Bytes| rights.reads_key(row, &words, key);
        let shown = fitting.into_iter();
        let shown = shown.map(|(_, _, client)| (client.id, wait_of(&client, may_read)));
        clients.shown = shown.collect();
        clients
    }

    fn secret(&self) -> io::Result<String> {
        let mut secret = [0; SECRET_BYTES];
        let filled = SysRng.try_fill_bytes(&mut secret);
        filled.map_err(io::Error::other)?;
        Ok(hex(secret))
    }

    fn now_ms(&self) -> i64 {
        self.state.clock.now_ms()
    }
}

/// Whether a client is searched for. The text is in lower case.
fn fits(client: &ClientRecord, searched: &str) -> bool {
    let contains = |text: &str| text.to_lowercase().contains(searched);
    if searched.is_empty() || contains(&client.address.to_string()) {
        return true;
    }
    let command = table::of_all_ports().get(client.shown_command());
    let details = client.details();
    contains(&details.name)
        || contains(&details.library_name)
        || command.is_some_and(|row| contains(row.name))
        || contains(&String::from_utf8_lossy(client.user().name()))
}

/// What a client waits for, without the names of keys that the user may not read.
fn wait_of(client: &ClientRecord, may_read: impl Fn(&Bytes) -> bool) -> Option<Wait> {
    let waits_for = client.waits_for()?;
    let keys = waits_for.keys.iter().filter(|key| may_read(key));
    Some(Wait {
        since_ms: waits_for.since_ms,
        keys: keys.map(|key| key.to_vec()).collect(),
        key_count: waits_for.key_count,
        is_paused: waits_for.is_paused,
    })
}
