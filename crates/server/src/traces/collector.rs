//! The collector of traces: OTLP over HTTP, with a connection for each request.

use std::env;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::{BodyExt, Full, Limited};
use hyper::Uri;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::names::addresses_of;
use quoin_base::limits::{TRACE_ANSWER_BYTES_MAX, TRACE_REQUEST_MAX};
use quoin_tls::ClientOptions;

/// Failed requests of an export are retried within this many times the duration of one.
const ATTEMPTS_TIME: u32 = 2;
/// The name of the service, unless this variable has another.
const SERVICE: &str = "quoin";
const SERVICE_VARIABLE: &str = "OTEL_SERVICE_NAME";

/// A collector of traces.
pub(super) struct Collector {
    /// Sends spans to the collector. Retries failures for a bounded time.
    pub(super) exporter: SpanExporter,
    client: Arc<Client>,
}

impl Collector {
    /// The collector at a URL. `run_id` distinguishes this server from others.
    ///
    /// # Errors
    /// Why the collector is invalid.
    pub(super) fn new(endpoint: &str, run_id: &str) -> Result<Self, String> {
        let client = Arc::new(Client::new(endpoint)?);
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_shared_http_client(Arc::clone(&client) as Arc<dyn HttpClient>)
            .with_endpoint(endpoint)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(TRACE_REQUEST_MAX * ATTEMPTS_TIME)
            .build()
            .map_err(|error| error.to_string())?;
        let mut resource = Resource::builder().with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", run_id.to_owned()),
        ]);
        if env::var_os(SERVICE_VARIABLE).is_none() {
            resource = resource.with_service_name(SERVICE);
        }
        exporter.set_resource(&resource.build());
        Ok(Self { exporter, client })
    }

    /// Why the last request failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        self.client.failure().take()
    }
}

/// Sends requests to a collector.
struct Client {
    host: String,
    port: u16,
    /// For https.
    tls: Option<(TlsConnector, ServerName<'static>)>,
    /// Why the last request failed. The exporter does not say.
    failure: Mutex<Option<String>>,
}

impl Client {
    fn new(endpoint: &str) -> Result<Self, String> {
        let uri: Uri = { endpoint.parse() }.map_err(|error| format!("it is not a URL: {error}"))?;
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_encrypted = uri.scheme_str() == Some("https");
        let tls = match is_encrypted {
            false => None,
            true => {
                let config = ClientOptions::default().config();
                let config = config.map_err(|error| error.to_string())?;
                let name = ServerName::try_from(host.to_owned());
                let name = name.map_err(|error| error.to_string())?;
                Some((TlsConnector::from(Arc::new(config)), name))
            }
        };
        let port = if is_encrypted { 443 } else { 80 };
        Ok(Self {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(port),
            tls,
            failure: Mutex::default(),
        })
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let addresses = addresses_of(self.host.clone(), self.port).await?;
        let stream = TcpStream::connect(addresses.as_slice()).await?;
        match &self.tls {
            None => exchange(stream, request).await,
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await?;
                exchange(stream, request).await
            }
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({}:{})", self.host, self.port)
    }
}

// What `async_trait` expands the trait's method to.
impl HttpClient for Client {
    fn send_bytes<'this, 'future>(
        &'this self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'future>>
    where
        'this: 'future,
        Self: 'future,
    {
        Box::pin(async move {
            let answered = tokio::time::timeout(TRACE_REQUEST_MAX, self.post(request)).await;
            let answered = answered.unwrap_or_else(|_| Err("it did not answer in time".into()));
            *self.failure() = answered.as_ref().err().map(ToString::to_string);
            answered
        })
    }
}

/// Sends a request on a connection, and receives the answer.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let uri = request.uri();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = HeaderValue::from_str(authority)?;
    // The form of a request to a server, not to a proxy.
    let path = uri.path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(Uri::default, Uri::from);
    request.headers_mut().insert(HOST, host);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends when the sender is dropped, or with the runtime.
    tokio::spawn(connection);
    let answer = sender.send_request(request.map(Full::new)).await?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, TRACE_ANSWER_BYTES_MAX).collect().await?;
    Ok(Response::from_parts(head, body.to_bytes()))
}
