//! The TLS handshake of a client, and the certificates that it uses.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::error::ServerError;
use super::stream::Stream;
use crate::config::{RuntimeConfig, Settings};
use crate::limits::TLS_HANDSHAKES_MAX;
use crate::tls::{self, TlsError};

/// What CONFIG SET answers when certificates cannot be used (Redis: `applyTlsCfg`). The log says why.
const NOT_UPDATED: &str = "Unable to update TLS configuration. Check server logs.";

/// What clients of the TLS port shake hands with. Connections keep what they began with.
pub(super) struct Handshakes {
    config: RwLock<Arc<ServerConfig>>,
    places: Semaphore,
}

impl Handshakes {
    /// Reads the certificates of the settings, and reads them again when CONFIG SET changes a setting
    /// of TLS. `None` if there is no TLS port.
    ///
    /// # Errors
    /// If the certificates cannot be used.
    pub(super) fn prepare(config: &RuntimeConfig) -> Result<Option<Arc<Self>>, ServerError> {
        let settings = config.settings();
        if settings.tls_port == 0 {
            return Ok(None);
        }
        let handshakes = Arc::new(Self {
            config: RwLock::new(tls::server_config(&settings.tls)?),
            places: Semaphore::new(TLS_HANDSHAKES_MAX),
        });
        let changed = Arc::clone(&handshakes);
        config.on_tls(move |settings| {
            changed.renew(settings).map_err(|error| {
                tracing::warn!("the TLS certificates stay as they were: {error}");
                NOT_UPDATED.to_owned()
            })
        });
        Ok(Some(handshakes))
    }

    /// Reads the certificates of the settings for the connections from now on. After an error they
    /// stay as they were.
    fn renew(&self, settings: &Settings) -> Result<(), TlsError> {
        let config = tls::server_config(&settings.tls)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        tracing::info!("read the TLS certificates again");
        Ok(())
    }

    fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Shakes hands with a client. The error says why not.
    pub(super) async fn shake(&self, stream: TcpStream) -> Result<Stream, String> {
        // A client that sends nothing takes no place from others.
        let readable = stream.readable().await;
        readable.map_err(|error| error.to_string())?;
        let Ok(_place) = self.places.acquire().await else {
            return Err("the server ends".to_owned());
        };
        let shaken = TlsAcceptor::from(self.config()).accept(stream).await;
        shaken
            .map(Stream::with_tls)
            .map_err(|error| error.to_string())
    }
}
