//! Metrics over HTTP, for Prometheus and other readers of OpenMetrics, and health checks.
//!
//! A separate thread serves them from existing counters. So slow or frequent readers do not delay
//! commands, and metrics do not depend on the store being reachable. Only `/readyz` asks the store.
//! `/leader` reports what this server knows of the others.

mod active;
mod ages;
mod collector;
mod queues;
mod store;
mod writer;

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use crate::error::ServerError;
use crate::http::{Bounds, HttpThread, Listening, Service};
use crate::metrics::queues::WatchedKeys;
use crate::sentinel::ServerAddress;
use crate::state::ServerState;
use quoin_base::limits::{
    METRICS_CONNECTION_MAX, METRICS_CONNECTIONS_MAX, METRICS_REQUEST_BYTES_MAX, READY_ANSWER_MAX,
};
use quoin_data::command::access::KeyLocks;
use quoin_data::error::CommandError;

/// The path of the metrics.
const PATH: &str = "/metrics";
/// The path that says whether the process is alive.
const ALIVE_PATH: &str = "/healthz";
/// The path that says whether the server answers commands.
const READY_PATH: &str = "/readyz";
/// The path that says whether clients of a name should use this server.
const LEADER_PATH: &str = "/leader";
/// Their format (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves metrics if the settings name an address for them.
///
/// # Errors
/// If the server cannot listen on the address or start the thread.
pub(super) fn start(state: &Arc<ServerState>) -> Result<Option<HttpThread>, ServerError> {
    let settings = state.config.settings();
    let Some(address) = settings.metrics_address else {
        return Ok(None);
    };
    let has_tls = settings.metrics_tls;
    let scheme = if has_tls { "https" } else { "http" };
    let bounds = Bounds {
        connections: METRICS_CONNECTIONS_MAX,
        duration: METRICS_CONNECTION_MAX,
        head_bytes: METRICS_REQUEST_BYTES_MAX,
        blocking_threads: 1,
    };
    let listening = Listening::on(address, bounds)?;
    let address = listening.address;
    tracing::info!("metrics are at {scheme}://{address}{PATH}");
    let keys = Arc::<WatchedKeys>::default();
    let served = Served {
        registry: collector::registry(Arc::clone(state), Arc::clone(&keys)),
        keys,
        state: Arc::clone(state),
    };
    let thread = listening.serve("quoin-metrics", served, Arc::clone(state), has_tls)?;
    Ok(Some(thread))
}

/// What the thread serves.
struct Served {
    registry: Registry,
    keys: Arc<WatchedKeys>,
    state: Arc<ServerState>,
}

impl Service for Served {
    const NAME: &'static str = "metrics";

    async fn answer(&self, _from: SocketAddr, request: Request<Incoming>) -> Response<String> {
        answer(request.method(), request.uri(), self).await
    }

    async fn work(&self) {
        self.keys.run(&self.state).await;
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
            not_ready(&format!("the store did not answer within {bound_ms} ms"))
        }
    }
}

/// Whether this server is the master of a name: `name=…`, otherwise the first of
/// `sentinel-masters`. At most one server says so, except for the seconds in which servers learn
/// that another has joined or died. A server that does not know who is alive never says so.
pub(super) fn leader(query: Option<&str>, state: &ServerState) -> (StatusCode, String) {
    let mut fields = query.unwrap_or_default().split('&');
    let given = fields.find_map(|field| field.strip_prefix("name="));
    let Some(name) = given.or_else(|| state.sentinel.names.first().map(String::as_str)) else {
        return not_ready("no name given");
    };
    if state.shutdown.has_begun() {
        return not_ready("the server is shutting down");
    }
    let Some(roster) = state.membership.roster() else {
        return not_ready("this server does not know which servers are alive");
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
