//! The TLS handshake of a client, and the certificates that it uses.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::net::TcpStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};

use super::error::ServerError;
use super::handshake_places::Places;
use super::stream::Stream;
use quoin_config::{RuntimeConfig, Settings};
use quoin_tls::{AuthClients, ServerOptions, TlsError};

/// What CONFIG SET answers when certificates cannot be used (Redis: `applyTlsCfg`). The log says why.
const NOT_UPDATED: &str = "Unable to update TLS configuration. Check server logs.";

/// What clients shake hands with. Connections keep what they began with.
pub(super) struct Handshakes {
    configs: RwLock<Configs>,
    places: Places,
}

struct Configs {
    /// Of the TLS port.
    clients: Arc<ServerConfig>,
    /// Of the metrics, whose readers need no certificate.
    metrics: Arc<ServerConfig>,
}

impl Configs {
    fn read(settings: &Settings) -> Result<Self, TlsError> {
        let without_certificates = ServerOptions {
            auth_clients: AuthClients::No,
            ..settings.tls.clone()
        };
        let metrics = quoin_tls::server_config(&without_certificates)?;
        let clients = match settings.tls_port {
            0 => Arc::clone(&metrics),
            _ => quoin_tls::server_config(&settings.tls)?,
        };
        Ok(Self { clients, metrics })
    }
}

impl Handshakes {
    /// Reads the certificates of the settings, and reads them again when CONFIG SET changes a setting
    /// of TLS. `None` if nothing speaks TLS.
    ///
    /// # Errors
    /// If the certificates cannot be used.
    pub(super) fn prepare(config: &RuntimeConfig) -> Result<Option<Arc<Self>>, ServerError> {
        let settings = config.settings();
        if settings.tls_port == 0 && !settings.metrics_tls {
            return Ok(None);
        }
        let handshakes = Arc::new(Self {
            configs: RwLock::new(Configs::read(&settings)?),
            places: Places::new(),
        });
        let changed = Arc::clone(&handshakes);
        config.on_tls(move |settings| {
            let configs = Configs::read(settings).map_err(|error| {
                tracing::warn!("the TLS certificates stay as they were: {error}");
                NOT_UPDATED.to_owned()
            })?;
            let changed = Arc::clone(&changed);
            Ok(Box::new(move || changed.renew(configs)))
        });
        Ok(Some(handshakes))
    }

    /// Connections use these from now on.
    fn renew(&self, configs: Configs) {
        *self.configs.write().unwrap_or_else(PoisonError::into_inner) = configs;
        tracing::info!("read the TLS certificates again");
    }

    fn configs(&self) -> RwLockReadGuard<'_, Configs> {
        self.configs.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shakes hands with readers of metrics.
    pub(super) fn of_metrics(&self) -> TlsAcceptor {
        Arc::clone(&self.configs().metrics).into()
    }

    fn of_clients(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.configs().clients)
    }

    /// Shakes hands with a client of this address. The error says why not.
    pub(super) async fn shake(&self, stream: TcpStream, address: IpAddr) -> Result<Stream, String> {
        // A client takes a place once it has sent all of its first message. Otherwise those that send
        // a part of it could hold all places.
        let begun = LazyConfigAcceptor::new(Acceptor::default(), stream).await;
        let begun = begun.map_err(|error| error.to_string())?;
        let Some(_place) = self.places.take(address).await else {
            return Err("the server ends".to_owned());
        };
        let shaken = begun.into_stream(self.of_clients()).await;
        shaken
            .map(Stream::with_tls)
            .map_err(|error| error.to_string())
    }
}
