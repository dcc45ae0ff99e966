//! What all connections share.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::watch;

use crate::backup::Backups;
use crate::clock::Clock;
use crate::commands::flags::Flags;
use crate::commands::row::Row;
use crate::config::RuntimeConfig;
use crate::executor::{Executor, ReaperHandle};
use crate::store::Store;
use crate::types::signals::Subscribers;

use super::clients::{ClientRecord, ClientRegistry};
use super::disconnections::Disconnections;
use super::latency::LatencyMonitor;
use super::machine;
use super::pause::Pause;
use super::pubsub::PubSub;
use super::sampler::Samples;
use super::session::Session;
use super::slowlog::Slowlog;
use super::statistics::ServerStatistics;
use super::warnings::Warnings;

/// INFO's last count of keys.
#[derive(Debug, Default)]
pub(super) struct KeyspaceCount {
    /// Lines of the section `keyspace`.
    pub(super) lines: String,
    /// Until when these lines are shown instead of counting again.
    pub(super) shown_until: Option<Instant>,
}

impl KeyspaceCount {
    pub(super) fn is_due(&self) -> bool {
        self.shown_until.is_none_or(|until| until <= Instant::now())
    }
}

/// What all connections of a server share.
pub struct ServerState {
    /// Settings, with what CONFIG SET has changed.
    pub config: Arc<RuntimeConfig>,
    /// Runs the commands on data.
    pub executor: Arc<Executor>,
    /// The store, for what INFO tells of it.
    pub store: Arc<dyn Store>,
    /// Backups, where the store is the embedded one.
    pub backups: Option<Arc<Backups>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Who is connected.
    pub clients: ClientRegistry,
    /// Counters.
    pub statistics: ServerStatistics,
    /// Who was disconnected because of what the server had to hold.
    pub disconnections: Arc<Disconnections>,
    /// The memory that this process may use.
    pub(super) memory_bytes: u64,
    /// What the sampler has measured.
    pub samples: Samples,
    /// Commands that took long.
    pub slowlog: Slowlog,
    /// Events that took long.
    pub latency: LatencyMonitor,
    /// INFO's last count of keys.
    pub(super) keyspace: tokio::sync::Mutex<KeyspaceCount>,
    /// CLIENT PAUSE.
    pub pause: Pause,
    /// Who is subscribed to what.
    pub pubsub: Arc<PubSub>,
    /// When the server started, in milliseconds since the Unix epoch.
    pub started_ms: i64,
    /// 40 hexadecimal digits that no other server start has.
    pub run_id: String,
    /// What the log says of strangers.
    pub(super) warnings: Warnings,
    reaper: Mutex<Option<ReaperHandle>>,
    port: AtomicU16,
    shutdown: watch::Sender<bool>,
}

impl ServerState {
    /// The state of a server that starts now. `shutdown` is set to true when it shall stop.
    pub fn new(
        config: Arc<RuntimeConfig>,
        executor: Arc<Executor>,
        store: Arc<dyn Store>,
        backups: Option<Arc<Backups>>,
        clock: Arc<dyn Clock>,
        shutdown: watch::Sender<bool>,
    ) -> Self {
        let random = &executor.environment().random;
        let run_id: String = (0..5)
            .map(|_| format!("{:08x}", random.next_u64() >> 32))
            .collect();
        let started_ms = clock.now_ms();
        let clients = ClientRegistry::default();
        let disconnections = Arc::<Disconnections>::default();
        let pubsub = Arc::new(PubSub::new(
            Arc::clone(&config),
            Arc::clone(&clock),
            Arc::clone(clients.memory()),
            Arc::clone(&disconnections),
        ));
        let subscribers = Arc::clone(&pubsub) as Arc<dyn Subscribers>;
        let events = Arc::clone(config.keyspace_events());
        let environment = executor.environment();
        if environment.subscribers.set(subscribers).is_err()
            || environment.keyspace_events.set(events).is_err()
        {
            tracing::error!("another server already hears what this executor publishes");
        }
        Self {
            config,
            executor,
            store,
            backups,
            clients,
            disconnections,
            memory_bytes: machine::usable_memory_bytes(),
            statistics: ServerStatistics::default(),
            samples: Samples::default(),
            slowlog: Slowlog::default(),
            latency: LatencyMonitor::default(),
            keyspace: tokio::sync::Mutex::default(),
            pause: Pause::default(),
            pubsub,
            started_ms,
            run_id,
            warnings: Warnings::default(),
            reaper: Mutex::default(),
            port: AtomicU16::new(0),
            clock,
            shutdown,
        }
    }

    /// Whether a client may send commands that need authentication: it gave the password, or none
    /// is asked for.
    pub fn is_allowed(&self, session: &Session) -> bool {
        session.is_authenticated || self.config.requirepass().is_none()
    }

    /// The port that is listened on.
    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    pub(super) fn set_port(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
        self.config.set_bound_port(port);
    }

    /// Enters a command into the slow log.
    pub(super) fn note_slow(
        &self,
        row: &'static Row,
        duration_us: i64,
        arguments: &[Bytes],
        client: &ClientRecord,
    ) {
        if row.flags.contains(Flags::SKIP_SLOWLOG) {
            return;
        }
        let entries_max = self.config.slowlog_max_len();
        let time_s = self.clock.now_ms() / 1000;
        self.slowlog
            .record(arguments, client, time_s, duration_us, entries_max);
    }

    /// Enters a command into the latency monitor if it took long enough.
    pub(super) fn note_latency(&self, row: &'static Row, duration_us: i64, threshold_ms: u64) {
        let latency_ms = duration_us / 1000;
        if u64::try_from(latency_ms).unwrap_or(0) < threshold_ms {
            return;
        }
        let event = if row.flags.contains(Flags::FAST) {
            "fast-command"
        } else {
            "command"
        };
        let time_s = self.clock.now_ms() / 1000;
        self.latency.record(event, time_s, latency_ms);
    }

    /// Names the task that removes expired keys, for DEBUG SET-ACTIVE-EXPIRE and the end.
    pub(super) fn set_reaper(&self, reaper: ReaperHandle) {
        *self.reaper() = Some(reaper);
    }

    /// The task that removes expired keys, to be stopped.
    pub(super) fn take_reaper(&self) -> Option<ReaperHandle> {
        self.reaper().take()
    }

    /// DEBUG SET-ACTIVE-EXPIRE.
    pub fn set_active_expire(&self, is_active: bool) {
        if let Some(reaper) = &*self.reaper() {
            reaper.set_active_expire(is_active);
        }
    }

    fn reaper(&self) -> MutexGuard<'_, Option<ReaperHandle>> {
        self.reaper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the server shall stop.
    pub(super) async fn stopping(&self) {
        super::listener::stopping(&mut self.shutdown.subscribe()).await;
    }

    /// Whether the server shall stop.
    pub(super) fn is_stopping(&self) -> bool {
        *self.shutdown.borrow()
    }

    /// Asks the server to stop: no new connections, and each connection ends after the command
    /// that it is at.
    pub fn begin_shutdown(&self) {
        self.shutdown.send_replace(true);
    }
}
