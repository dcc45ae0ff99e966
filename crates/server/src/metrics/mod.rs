//! Metrics over HTTP, for Prometheus and other readers of OpenMetrics, and health checks.
//!
//! A separate thread serves them from existing counters. So neither slow nor frequent readers delay
//! commands, and metrics do not depend on the store being reachable. Only `/readyz` asks the store. `/leader` tells what
//! this server knows of the others.

mod ages;
mod collector;
mod queues;
mod store;
mod writer;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::error::ServerError;
use crate::metrics::queues::WatchedKeys;
use crate::sentinel::ServerAddress;
use crate::state::ServerState;
use crate::tls::Handshakes;
use quoin_base::limits::{
    METRICS_CONNECTION_MAX, METRICS_CONNECTIONS_MAX, METRICS_REQUEST_BYTES_MAX, READY_ANSWER_MAX,
};
use quoin_base::log_throttle::LogThrottle;
use quoin_base::threads;
use quoin_data::command::access::KeyLocks;
use quoin_data::error::CommandError;

/// The path of the metrics.
const PATH: &str = "/metrics";
/// The path that says whether the process is alive.
const ALIVE_PATH: &str = "/healthz";
/// The path that says whether the server answers commands.
const READY_PATH: &str = "/readyz";
/// The path that says whether this server is the one that clients of a name should use.
const LEADER_PATH: &str = "/leader";
/// Their format (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The thread that serves metrics. It ends when the server shuts down.
pub(super) struct Metrics {
    thread: JoinHandle<()>,
}

impl Metrics {
    /// Waits until the thread has ended and has dropped the server's state.
    pub(super) fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("the thread that serves metrics had panicked");
        }
    }
}

/// Serves metrics if the settings name an address for them.
///
/// # Errors
/// If the server cannot listen on the address or start the thread.
pub(super) fn start(state: &Arc<ServerState>) -> Result<Option<Metrics>, ServerError> {
    let settings = state.config.settings();
    let Some(address) = settings.metrics_address else {
        return Ok(None);
    };
    let has_tls = settings.metrics_tls;
    let scheme = if has_tls { "https" } else { "http" };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let (listener, address) = runtime
        .block_on(listen(address))
        .map_err(|source| ServerError::Listen { address, source })?;
    tracing::info!("metrics are at {scheme}://{address}{PATH}");
    let state = Arc::clone(state);
    let thread = threads::spawn("quoin-metrics", move || {
        let handshakes = state.handshakes.clone().filter(|_| has_tls);
        let keys = Arc::<WatchedKeys>::default();
        let registry = collector::registry(Arc::clone(&state), Arc::clone(&keys));
        let served = Arc::new(Served {
            registry,
            state: Arc::clone(&state),
        });
        runtime.block_on(async {
            tokio::select! {
                () = state.shutdown.begun() => {}
                () = accept(&listener, &served, handshakes) => {}
                () = keys.run(&state) => {}
            }
        });
    })?;
    Ok(Some(Metrics { thread }))
}

/// What the thread serves.
struct Served {
    registry: Registry,
    state: Arc<ServerState>,
}

async fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

async fn accept(listener: &TcpListener, served: &Arc<Served>, handshakes: Option<Arc<Handshakes>>) {
    let places = Arc::new(Semaphore::new(METRICS_CONNECTIONS_MAX));
    let cannot_accept = LogThrottle::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let served = Arc::clone(served);
                let tls = handshakes
                    .as_ref()
                    .map(|handshakes| handshakes.of_metrics());
                tokio::spawn(async move {
                    let _place = place;
                    let answered = async {
                        match tls {
                            None => serve(stream, &served).await,
                            Some(acceptor) => match acceptor.accept(stream).await {
                                Ok(stream) => serve(stream, &served).await,
                                Err(error) => {
                                    tracing::debug!(%error, "a reader of metrics did not shake hands");
                                }
                            },
                        }
                    };
                    // A reader that takes longer is cut off. It can ask again.
                    let _ = tokio::time::timeout(METRICS_CONNECTION_MAX, answered).await;
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: waiting helps, spinning does not.
                if let Some(more) = cannot_accept.pass() {
                    tracing::warn!(
                        "cannot accept a connection that asks for metrics, trying again: \
                         {error}{more}"
                    );
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Answers one request. The connection is then closed, because there are few.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, served: &Served) {
    let service = service_fn(async |request: Request<Incoming>| {
        Ok::<_, Infallible>(answer(request.method(), request.uri(), served).await)
    });
    let answered = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(METRICS_REQUEST_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = answered {
        tracing::debug!(%error, "a request for metrics was not answered");
    }
}

async fn answer(method: &Method, uri: &Uri, served: &Served) -> Response<String> {
    let mut response = Response::new(String::new());
    let path = uri.path();
    if ![PATH, ALIVE_PATH, READY_PATH, LEADER_PATH].contains(&path) {
        *response.status_mut() = StatusCode::NOT_FOUND;
        *response.body_mut() = format!("metrics are at {PATH}\n");
        return response;
    }
    if method != Method::GET && method != Method::HEAD {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    }
    let (status, text) = match path {
        ALIVE_PATH => alive(),
        READY_PATH => ready(&served.state).await,
        LEADER_PATH => leader(uri.query(), &served.state),
        _ => return metrics(response, &served.registry),
    };
    *response.status_mut() = status;
    *response.body_mut() = text;
    response
}

fn metrics(mut response: Response<String>, registry: &Registry) -> Response<String> {
    match text::encode(response.body_mut(), registry) {
        Ok(()) => {
            let kind = HeaderValue::from_static(OPEN_METRICS);
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
        Err(error) => {
            tracing::warn!(%error, "cannot write metrics");
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response.body_mut().clear();
        }
    }
    response
}

/// Whether the process is alive. If this thread answers, it is: a panic in a thread that clients wait for
/// ends the process.
fn alive() -> (StatusCode, String) {
    (StatusCode::OK, "ok\n".to_owned())
}

/// Whether commands are answered: a read-only transaction takes the path of a client's writes, and must
/// end in time.
async fn ready(state: &ServerState) -> (StatusCode, String) {
    if state.shutdown.has_begun() {
        return not_ready("the server is shutting down");
    }
    let read = state.executor.transact(0, KeyLocks::Nothing, |context| {
        Box::pin(async { Ok(context.namespace().await?) })
    });
    match tokio::time::timeout(READY_ANSWER_MAX, read).await {
        Ok(Ok(_)) => match CommandError::of_growth(state.store.growth()) {
            None => (StatusCode::OK, "ok\n".to_owned()),
            Some(refusal) => {
                let line = refusal.to_line();
                not_ready(&format!("commands that add data are refused: {line}"))
            }
        },
        Ok(Err(error)) => not_ready(&format!("the store does not answer: {error}")),
        Err(_) => {
            let bound_ms = READY_ANSWER_MAX.as_millis();
            not_ready(&format!("the store has not answered in {bound_ms} ms"))
        }
    }
}

/// Whether this server is the master of a name: `name=…`, or else the first of `sentinel-masters`. At most one server
/// says so, except for the seconds in which servers learn that another has joined or died. None does while it does not
/// know who lives.
pub(super) fn leader(query: Option<&str>, state: &ServerState) -> (StatusCode, String) {
    let mut fields = query.unwrap_or_default().split('&');
    let given = fields.find_map(|field| field.strip_prefix("name="));
    let Some(name) = given.or_else(|| state.sentinel.names.first().map(String::as_str)) else {
        return not_ready("no name is given");
    };
    if state.shutdown.has_begun() {
        return not_ready("the server is shutting down");
    }
    let Some(roster) = state.membership.roster() else {
        return not_ready("this server does not know which servers live");
    };
    match roster.master_of(name.as_bytes()) {
        Some(master) if roster.is_own(master) => (StatusCode::OK, "ok\n".to_owned()),
        Some(master) => {
            let address = ServerAddress::of_data(&master.row, false);
            not_ready(&format!("another server is the leader: {address}"))
        }
        None => not_ready("the last server is shutting down"),
    }
}

fn not_ready(why: &str) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"))
}
