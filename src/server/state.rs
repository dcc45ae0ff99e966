//! What all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::RuntimeConfig;
use crate::executor::Executor;
use crate::store::Store;

use super::clients::ClientRegistry;
use super::statistics::ServerStatistics;

/// What all connections of a server share.
pub struct ServerState {
    /// Settings, with what CONFIG SET has changed.
    pub config: Arc<RuntimeConfig>,
    /// Runs the commands on data.
    pub executor: Executor,
    /// The store, for what INFO tells of it.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Who is connected.
    pub clients: ClientRegistry,
    /// Counters.
    pub statistics: ServerStatistics,
    /// When the server started, in milliseconds since the Unix epoch.
    pub started_ms: i64,
    /// 40 hexadecimal digits that no other server start has.
    pub run_id: String,
    port: AtomicU16,
    shutdown: watch::Sender<bool>,
}

impl ServerState {
    /// The state of a server that starts now. `shutdown` is set to true when it shall stop.
    pub fn new(
        config: Arc<RuntimeConfig>,
        executor: Executor,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        shutdown: watch::Sender<bool>,
    ) -> Self {
        let random = &executor.environment().random;
        let run_id: String = (0..5)
            .map(|_| format!("{:08x}", random.next_u64() >> 32))
            .collect();
        let started_ms = clock.now_ms();
        Self {
            config,
            executor,
            store,
            clients: ClientRegistry::default(),
            statistics: ServerStatistics::default(),
            started_ms,
            run_id,
            port: AtomicU16::new(0),
            clock,
            shutdown,
        }
    }

    /// The port that is listened on.
    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    pub(super) fn set_port(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
        self.config.set_bound_port(port);
    }

    /// Asks the server to stop: no new connections, and each connection ends after the command
    /// that it is at.
    pub fn begin_shutdown(&self) {
        self.shutdown.send_replace(true);
    }
}
