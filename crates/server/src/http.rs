//! HTTP on a thread of its own, for metrics and for the dashboard: listening, TLS, and bounds.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use crate::error::ServerError;
use crate::state::ServerState;
use crate::tls::Handshakes;
use quoin_base::log_throttle::LogThrottle;
use quoin_base::threads;

/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time for unfinished work when the thread ends.
const END_MAX: Duration = Duration::from_secs(1);

/// Answers requests.
pub(super) trait Service: Send + Sync + 'static {
    /// What is served, for the log.
    const NAME: &'static str;

    /// Answers a request from this address. Cancelled when its time is over.
    fn answer(
        &self,
        from: SocketAddr,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<String>> + Send;

    /// Works until it is dropped, next to the answers.
    fn work(&self) -> impl Future<Output = ()> {
        std::future::pending()
    }
}

/// Limits for connections.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// Connections at once. Others wait to be accepted.
    pub(super) connections: usize,
    /// Maximum duration of a connection.
    pub(super) duration: Duration,
    /// Bytes of a request's head.
    pub(super) head_bytes: usize,
    /// Threads for work that blocks.
    pub(super) blocking_threads: usize,
}

/// An address on which a server listens, before it serves.
pub(super) struct Listening {
    runtime: Runtime,
    listener: TcpListener,
    /// The address, with the port that was taken.
    pub(super) address: SocketAddr,
    bounds: Bounds,
}

/// The thread that serves. It ends when the server shuts down.
pub(super) struct HttpThread {
    thread: JoinHandle<()>,
}

impl HttpThread {
    /// Waits until the thread has ended and has dropped the server's state.
    pub(super) fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("a thread that serves HTTP panicked");
        }
    }
}

impl Listening {
    /// Listens on an address.
    pub(super) fn on(address: SocketAddr, bounds: Bounds) -> Result<Self, ServerError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(bounds.blocking_threads)
            .build()?;
        let (listener, address) = runtime
            .block_on(listen(address))
            .map_err(|source| ServerError::Listen { address, source })?;
        Ok(Self {
            runtime,
            listener,
            address,
            bounds,
        })
    }

    /// Serves on a thread with this name until the server shuts down.
    pub(super) fn serve<S: Service>(
        self,
        thread_name: &str,
        service: S,
        state: Arc<ServerState>,
        has_tls: bool,
    ) -> io::Result<HttpThread> {
        let thread = threads::spawn(thread_name, move || {
            let Self {
                runtime,
                listener,
                bounds,
                ..
            } = self;
            let service = Arc::new(service);
            let handshakes = state.handshakes.clone().filter(|_| has_tls);
            runtime.block_on(async {
                tokio::select! {
                    () = state.shutdown.begun() => {}
                    () = accept(&listener, &service, bounds, handshakes) => {}
                    () = service.work() => {}
                }
            });
            runtime.shutdown_timeout(END_MAX);
        })?;
        Ok(HttpThread { thread })
    }
}

async fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

async fn accept<S: Service>(
    listener: &TcpListener,
    service: &Arc<S>,
    bounds: Bounds,
    handshakes: Option<Arc<Handshakes>>,
) {
    let places = Arc::new(Semaphore::new(bounds.connections));
    let cannot_accept = LogThrottle::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, from)) => {
                let service = Arc::clone(service);
                let tls = handshakes.as_ref().map(|handshakes| handshakes.of_https());
                tokio::spawn(async move {
                    let _place = place;
                    let answered = async {
                        match tls {
                            None => serve(stream, from, &*service, bounds).await,
                            Some(acceptor) => match acceptor.accept(stream).await {
                                Ok(stream) => serve(stream, from, &*service, bounds).await,
                                Err(error) => {
                                    tracing::debug!(
                                        %error,
                                        "the TLS handshake of an HTTPS client failed"
                                    );
                                }
                            },
                        }
                    };
                    // A client that takes longer is cut off, and can ask again.
                    let _ = tokio::time::timeout(bounds.duration, answered).await;
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: waiting helps, spinning does not.
                if let Some(more) = cannot_accept.pass() {
                    tracing::warn!(
                        "cannot accept a connection for {}, trying again: {error}{more}",
                        S::NAME
                    );
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Answers one request, then closes the connection, because there are few connections.
async fn serve<S: Service>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    from: SocketAddr,
    service: &S,
    bounds: Bounds,
) {
    let answered = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(bounds.head_bytes)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(|request| async move {
                Ok::<_, Infallible>(service.answer(from, request).await)
            }),
        )
        .await;
    if let Err(error) = answered {
        tracing::debug!(%error, "cannot answer a request for {}", S::NAME);
    }
}
