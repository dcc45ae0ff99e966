//! TLS handshakes of clients, and their certificates.
//!
//! The number of concurrent handshakes is bounded, in total and for each address, so that the
//! clients of one address cannot block all others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};

use crate::error::ServerError;
use crate::stream::Stream;
use quoin_base::limits::{TLS_HANDSHAKES_MAX, TLS_HANDSHAKES_PER_ADDRESS_MAX};
use quoin_config::{RuntimeConfig, Settings};
use quoin_tls::{AuthClients, ServerOptions, TlsError};

/// The error of CONFIG SET if certificates cannot be used (Redis: `applyTlsCfg`). The log has the reason.
const NOT_UPDATED: &str = "Unable to update TLS configuration. Check server logs.";

/// The TLS configurations for handshakes. A connection keeps the one that it began with.
pub(super) struct Handshakes {
    configs: RwLock<Configs>,
    places: Places,
}

struct Configs {
    /// For the TLS port.
    clients: Arc<ServerConfig>,
    /// For HTTPS, whose clients need no certificate.
    https: Arc<ServerConfig>,
}

impl Configs {
    fn read(settings: &Settings) -> Result<Self, TlsError> {
        let without_certificates = ServerOptions {
            auth_clients: AuthClients::No,
            ..settings.tls.clone()
        };
        let https = quoin_tls::server_config(&without_certificates)?;
        let ports = [
            settings.tls_port,
            settings.sentinel_tls_port,
            settings.cluster_tls_port,
        ];
        let clients = match ports {
            [0, 0, 0] => Arc::clone(&https),
            _ => quoin_tls::server_config(&settings.tls)?,
        };
        Ok(Self { clients, https })
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
        let ports = [
            settings.tls_port,
            settings.sentinel_tls_port,
            settings.cluster_tls_port,
        ];
        let has_port = ports.iter().any(|port| *port != 0);
        if !has_port && !settings.metrics_tls && !settings.dashboard_tls {
            return Ok(None);
        }
        let handshakes = Arc::new(Self {
            configs: RwLock::new(Configs::read(&settings)?),
            places: Places::new(),
        });
        let changed = Arc::clone(&handshakes);
        config.on_tls(move |settings| {
            let configs = Configs::read(settings).map_err(|error| {
                tracing::warn!(
                    "cannot reload the TLS certificates, the old ones stay in use: \
                                {error}"
                );
                NOT_UPDATED.to_owned()
            })?;
            let changed = Arc::clone(&changed);
            Ok(Box::new(move || changed.renew(configs)))
        });
        Ok(Some(handshakes))
    }

    /// Replaces the configurations for new connections.
    fn renew(&self, configs: Configs) {
        *self.configs.write().unwrap_or_else(PoisonError::into_inner) = configs;
        tracing::info!("reloaded the TLS certificates");
    }

    fn configs(&self) -> RwLockReadGuard<'_, Configs> {
        self.configs.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The acceptor for HTTPS.
    pub(super) fn of_https(&self) -> TlsAcceptor {
        Arc::clone(&self.configs().https).into()
    }

    fn of_clients(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.configs().clients)
    }

    /// Does the handshake with a client of this address. The error is the reason of a failure.
    pub(super) async fn shake(&self, stream: TcpStream, address: IpAddr) -> Result<Stream, String> {
        // A client takes a slot only after its whole first message. Otherwise clients that send
        // part of it could hold all slots.
        let begun = LazyConfigAcceptor::new(Acceptor::default(), stream).await;
        let begun = begun.map_err(|error| error.to_string())?;
        let Some(_place) = self.places.take(address).await else {
            return Err("the server is stopping".to_owned());
        };
        let shaken = begun.into_stream(self.of_clients()).await;
        shaken
            .map(Stream::with_tls)
            .map_err(|error| error.to_string())
    }
}

/// Bits of an IPv6 address that name a network. One host may have all addresses of a network.
const IPV6_NETWORK_BITS: u32 = 64;

/// Slots for handshakes in progress.
#[derive(Debug)]
struct Places {
    all: Semaphore,
    /// Slots for each address with clients that wait for a slot or have one.
    by_address: Mutex<HashMap<IpAddr, Arc<Semaphore>>>,
}

/// A slot, until it is dropped.
#[derive(Debug)]
pub(super) struct Place<'p> {
    _of_address: OfAddress<'p>,
    _of_all: SemaphorePermit<'p>,
}

/// A client's share in the places of its address. Forgets the address with the last of its clients.
#[derive(Debug)]
struct OfAddress<'p> {
    places: &'p Places,
    address: IpAddr,
    semaphore: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Places {
    fn new() -> Self {
        Self {
            all: Semaphore::new(TLS_HANDSHAKES_MAX),
            by_address: Mutex::default(),
        }
    }

    /// Waits for a slot for a client of this address. `None` if there are no more slots, because
    /// the server ends. Cancel-safe.
    async fn take(&self, address: IpAddr) -> Option<Place<'_>> {
        let address = network(address);
        let semaphore = match self.lock().entry(address) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(free) => {
                Arc::clone(free.insert(Arc::new(Semaphore::new(TLS_HANDSHAKES_PER_ADDRESS_MAX))))
            }
        };
        let mut of_address = OfAddress {
            places: self,
            address,
            semaphore: Some(Arc::clone(&semaphore)),
            permit: None,
        };
        of_address.permit = Some(semaphore.acquire_owned().await.ok()?);
        Some(Place {
            _of_address: of_address,
            _of_all: self.all.acquire().await.ok()?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Arc<Semaphore>>> {
        self.by_address
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OfAddress<'_> {
    fn drop(&mut self) {
        // Under the lock, so that no client arrives meanwhile.
        let mut by_address = self.places.lock();
        self.permit = None;
        self.semaphore = None;
        if let Entry::Occupied(known) = by_address.entry(self.address)
            && Arc::strong_count(known.get()) == 1
        {
            known.remove();
        }
    }
}

/// The address to which a limit applies: an IPv4 address or an IPv6 network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let host_bits = Ipv6Addr::BITS - IPV6_NETWORK_BITS;
            IpAddr::V6(Ipv6Addr::from_bits(
                address.to_bits() >> host_bits << host_bits,
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_does_not_get_all_places() {
        let places = Places::new();
        let take = |address| places.take(ip(address)).now_or_never();
        let mut taken: Vec<_> = (0..TLS_HANDSHAKES_PER_ADDRESS_MAX)
            .map(|_| take("192.0.2.1").unwrap())
            .collect();
        assert!(take("192.0.2.1").is_none());
        assert!(take("::ffff:192.0.2.1").is_none());
        let other = take("192.0.2.2").unwrap();
        taken.pop();
        assert!(take("192.0.2.1").is_some());
        drop((taken, other));
        assert!(places.lock().is_empty());
    }

    #[test]
    fn all_addresses_together_are_bounded() {
        let places = Places::new();
        let take = |number: usize| {
            let address = IpAddr::from([192, 0, 2, u8::try_from(number % 200).unwrap()]);
            places.take(address).now_or_never()
        };
        let taken: Vec<_> = (0..TLS_HANDSHAKES_MAX)
            .map(|number| take(number).unwrap())
            .collect();
        assert!(take(201).is_none());
        drop(taken);
        assert!(take(201).is_some());
        assert!(places.lock().is_empty());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        assert_eq!(network(ip("2001:db8:1:2:3:4:5:6")), ip("2001:db8:1:2::"));
        assert_ne!(network(ip("2001:db8:1:3::")), network(ip("2001:db8:1:2::")));
    }
}
