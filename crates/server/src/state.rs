//! What all connections of a server share.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::runtime::Handle;

use crate::access::AccessControl;
use crate::addresses::{Face, Ports};
use crate::announced;
use crate::clients::{ClientRegistry, Delivery};
use crate::cluster::{Cluster, View};
use crate::error::ServerError;
use crate::links::Links;
use crate::monitors::Monitors;
use crate::pause::Pause;
use crate::procfs;
use crate::pubsub::PubSub;
use crate::sentinel::Sentinel;
use crate::shutdown::Shutdown;
use crate::slowlog::{SlowCommand, Slowlog};
use crate::statistics::{LatencyMonitor, Samples, ServerStatistics};
use crate::tls::Handshakes;
use crate::traces::Traces;
use crate::tracking::Tracking;
use crate::warnings::{Disconnections, Warnings};
use quoin_base::clock::Clock;
use quoin_base::redis_version::RedisVersion;
use quoin_config::RuntimeConfig;
use quoin_dashboard::History;
use quoin_data::command::flags::Flags;
use quoin_data::command::row::Row;
use quoin_data::table;
use quoin_data::unit::context::Environment;
use quoin_data::unit::host::{CallResult, Rights, ScriptCall, ScriptCalls, Trackers};
use quoin_data::unit::signals::Subscribers;
use quoin_data::unit::spans::SpanReceiver;
use quoin_engine::Owners;
use quoin_engine::roster::{Membership, Sightings};
use quoin_engine::{Executor, ExecutorOptions, ReaperHandle};
use quoin_store::Store;
use quoin_tools::backup::Backups;

/// INFO's last count of keys.
#[derive(Debug, Default)]
pub(super) struct KeyspaceCount {
    /// Databases with keys.
    pub(super) databases: Vec<DatabaseCount>,
    /// Keys are not counted again before this time.
    pub(super) shown_until: Option<Instant>,
}

impl KeyspaceCount {
    pub(super) fn is_due(&self) -> bool {
        self.shown_until.is_none_or(|until| until <= Instant::now())
    }
}

/// Number of keys in a database that is not empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatabaseCount {
    pub(super) database: u32,
    pub(super) keys: i64,
    /// Number of keys that expire.
    pub(super) expiring: i64,
}

/// What all connections of a server share.
pub(super) struct ServerState {
    /// Settings, as CONFIG SET has changed them.
    pub(super) config: Arc<RuntimeConfig>,
    /// Runs commands on data.
    pub(super) executor: Arc<Executor>,
    /// The store, for INFO and for whether it takes more data.
    pub(super) store: Arc<dyn Store>,
    /// This server's membership among those that share its store.
    pub(super) membership: Membership,
    /// What clients of the Sentinel port share.
    pub(super) sentinel: Sentinel,
    /// What clients of the cluster port share.
    pub(super) cluster: Cluster,
    /// Backups, if the store is the embedded one.
    pub(super) backups: Option<Arc<Backups>>,
    /// The time.
    pub(super) clock: Arc<dyn Clock>,
    /// The connected clients.
    pub(super) clients: Arc<ClientRegistry>,
    /// Counters.
    pub(super) statistics: Arc<ServerStatistics>,
    /// Counters of clients that were disconnected because too much was held for them.
    pub(super) disconnections: Arc<Disconnections>,
    /// The memory that this process may use. The limit of a container may change.
    pub(super) memory_bytes: AtomicU64,
    /// Rates and the peak of memory.
    pub(super) samples: Samples,
    /// The last hour, for the dashboard's charts.
    pub(super) history: Arc<History>,
    /// The slow log.
    pub(super) slowlog: Slowlog,
    /// The latency monitor.
    pub(super) latency: LatencyMonitor,
    /// INFO's last count of keys.
    pub(super) keyspace: tokio::sync::Mutex<KeyspaceCount>,
    /// CLIENT PAUSE.
    pub(super) pause: Arc<Pause>,
    /// Messages to clients.
    pub(super) delivery: Arc<Delivery>,
    /// Subscriptions.
    pub(super) pubsub: Arc<PubSub>,
    /// Users, and the log of what they were refused.
    pub(super) access: Arc<AccessControl>,
    /// Clients that track keys.
    pub(super) tracking: Arc<Tracking>,
    /// Clients that see all commands.
    pub(super) monitors: Arc<Monitors>,
    /// When the server started, in milliseconds since the Unix epoch.
    pub(super) started_ms: i64,
    /// Memory that the process had allocated at that time.
    pub(super) startup_bytes: u64,
    /// 40 random hexadecimal digits that identify this start.
    pub(super) run_id: String,
    /// Warnings in the log about clients.
    pub(super) warnings: Warnings,
    /// TLS handshakes, if anything uses TLS.
    pub(super) handshakes: Option<Arc<Handshakes>>,
    /// What is sent to a collector of traces, if there is one.
    pub(super) traces: Option<Arc<Traces>>,
    /// The stage of the shutdown.
    pub(super) shutdown: Shutdown,
    reaper: Mutex<Option<ReaperHandle>>,
    ports: Ports,
}

impl ServerState {
    /// The version of Redis that clients see.
    pub(super) fn reported_version(&self) -> RedisVersion {
        self.executor.environment().reported_version
    }

    /// The state of a server that starts now, with an executor in this environment. Links to other
    /// servers are served by the runtime that this is called in.
    ///
    /// # Errors
    /// If a thread cannot be started, there is no runtime, or the collector of traces is invalid.
    pub(super) fn start(
        config: Arc<RuntimeConfig>,
        mut environment: Environment,
        store: Arc<dyn Store>,
        backups: Option<Arc<Backups>>,
        clock: Arc<dyn Clock>,
        handshakes: Option<Arc<Handshakes>>,
        ports: Ports,
    ) -> Result<Self, ServerError> {
        let random = &environment.random;
        let run_id: String = (0..5)
            .map(|_| format!("{:08x}", random.next_u64() >> 32))
            .collect();
        let started_ms = clock.now_ms();
        let clients = Arc::<ClientRegistry>::default();
        let disconnections = Arc::<Disconnections>::default();
        let delivery = Arc::new(Delivery::new(
            Arc::clone(&config),
            Arc::clone(&clock),
            Arc::clone(clients.memory()),
            Arc::clone(&disconnections),
        ));
        let pubsub = Arc::new(PubSub::new(Arc::clone(&delivery)));
        let tracking = Arc::new(Tracking::new(
            Arc::clone(&delivery),
            Arc::clone(&clients),
            Arc::clone(&config),
            Arc::clone(random),
        ));
        let monitors = Monitors::new(Arc::clone(&delivery), Arc::clone(&clock));
        let monitors = Arc::new(monitors);
        let statistics = Arc::<ServerStatistics>::default();
        let access = Arc::new(AccessControl::new(
            Arc::clone(&config),
            Arc::clone(&clock),
            Arc::clone(&clients),
            Arc::clone(&pubsub),
        ));
        let script_calls = Arc::new(CallCounter {
            statistics: Arc::clone(&statistics),
            monitors: Arc::clone(&monitors),
            access: Arc::clone(&access),
        });
        store.bound_data(Arc::clone(config.live.maxmemory_bytes()));
        environment.subscribers = Some(Arc::clone(&pubsub) as Arc<dyn Subscribers>);
        environment.trackers = Some(Arc::clone(&tracking) as Arc<dyn Trackers>);
        environment.rights = Some(Arc::clone(&access) as Arc<dyn Rights>);
        environment.script_calls = Some(script_calls);
        let traces = Traces::start(&config.settings(), &run_id, &clock)?;
        environment.span_receiver = traces.clone().map(|traces| traces as Arc<dyn SpanReceiver>);
        environment.keyspace_events = Arc::clone(config.live.keyspace_events());
        environment.hll_sparse_max_bytes = Arc::clone(config.live.hll_sparse_max_bytes());
        environment.stream_node_max_entries = Arc::clone(config.live.stream_node_max_entries());
        environment.stream_node_max_bytes = Arc::clone(config.live.stream_node_max_bytes());
        environment.stream_idmp_duration_s = Arc::clone(config.live.stream_idmp_duration_s());
        environment.stream_idmp_maxsize = Arc::clone(config.live.stream_idmp_maxsize());
        let sightings = Sightings::default();
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let owners = environment.link_secret.clone().map(|secret| {
            let (config, random) = (Arc::clone(&config), Arc::clone(random));
            let links = Links::new(sightings.watch(), runtime, config, random, secret);
            Arc::new(links) as Arc<dyn Owners>
        });
        let options = ExecutorOptions {
            owners,
            ..ExecutorOptions::default()
        };
        let executor = Arc::new(Executor::start(Arc::clone(&store), environment, options)?);
        let sentinel = Sentinel::new(config.settings().sentinel_masters.clone(), &delivery);
        let own_row = announced::own_row(&config.settings(), ports, &run_id);
        let environment = Arc::clone(executor.environment());
        let membership = Membership::start(Arc::clone(&store), environment, own_row, sightings)?;
        Ok(Self {
            config,
            executor,
            store,
            membership,
            sentinel,
            cluster: Cluster::default(),
            backups,
            clients,
            disconnections,
            memory_bytes: AtomicU64::new(procfs::usable_memory_bytes()),
            statistics,
            samples: Samples::default(),
            history: Arc::default(),
            slowlog: Slowlog::default(),
            latency: LatencyMonitor::default(),
            keyspace: tokio::sync::Mutex::default(),
            pause: Arc::default(),
            delivery,
            pubsub,
            access,
            tracking,
            monitors,
            started_ms,
            startup_bytes: procfs::memory().allocated_bytes,
            run_id,
            warnings: Warnings::default(),
            shutdown: Shutdown::default(),
            reaper: Mutex::default(),
            handshakes,
            traces,
            ports,
            clock,
        })
    }

    /// The ports on which the server listens.
    pub(super) fn ports(&self) -> Ports {
        self.ports
    }

    /// The subscriptions of the clients of a face.
    pub(super) fn pubsub_of(&self, face: Face) -> &PubSub {
        match face {
            Face::Data | Face::Cluster { .. } => &self.pubsub,
            Face::Sentinel { speaks_tls } => self.sentinel.pubsub(speaks_tls),
        }
    }

    /// The nodes of the cluster, for clients of its ports. `None` for other clients, and while this
    /// server does not know who is alive.
    pub(super) fn view_of(&self, face: Face) -> Option<Arc<View>> {
        match face {
            Face::Data | Face::Sentinel { .. } => None,
            Face::Cluster { speaks_tls } => self.cluster.view(&self.membership, speaks_tls),
        }
    }

    /// Adds a command to the slow log, and to the traces if it belongs there.
    pub(super) fn note_slow(&self, command: &SlowCommand<'_>) {
        if command.row.flags.contains(Flags::SKIP_SLOWLOG) {
            return;
        }
        let entries_max = self.config.live.slowlog_max_len();
        let now_ms = self.clock.now_ms();
        self.slowlog.record(command, now_ms / 1000, entries_max);
        if let Some(traces) = &self.traces
            && self.config.live.trace_slow_commands()
        {
            traces.receive_command(command, now_ms);
        }
    }

    /// Adds a command to the latency monitor if it took long enough.
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

    /// Keeps the task that removes expired keys, for DEBUG SET-ACTIVE-EXPIRE and to stop it.
    pub(super) fn set_reaper(&self, reaper: ReaperHandle) {
        *self.reaper() = Some(reaper);
    }

    /// Takes the task that removes expired keys, to stop it.
    pub(super) fn take_reaper(&self) -> Option<ReaperHandle> {
        self.reaper().take()
    }

    /// DEBUG SET-ACTIVE-EXPIRE.
    pub(super) fn set_active_expire(&self, is_active: bool) {
        if let Some(reaper) = &*self.reaper() {
            reaper.set_active_expire(is_active);
        }
    }

    fn reaper(&self) -> MutexGuard<'_, Option<ReaperHandle>> {
        self.reaper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gets the calls of scripts from the executor.
struct CallCounter {
    statistics: Arc<ServerStatistics>,
    monitors: Arc<Monitors>,
    access: Arc<AccessControl>,
}

impl ScriptCalls for CallCounter {
    fn are_shown(&self) -> bool {
        !self.monitors.is_empty()
    }

    fn tell(&self, call: &ScriptCall) {
        if let Some(code) = &call.error {
            self.statistics.record_error(code);
        }
        let Some(command_id) = call.command_id else {
            return;
        };
        let is_failed = match call.result {
            CallResult::Rejected => {
                self.statistics.record_rejection(command_id);
                if let Some(refused) = &call.refused {
                    let (client, refused) = &**refused;
                    self.access.note_refused_call(*client, refused);
                }
                return;
            }
            result => result == CallResult::Failed,
        };
        self.statistics.commands_processed.add(1);
        self.statistics
            .record_call(command_id, call.duration, is_failed);
        if let (Some((database, arguments)), Some(row)) =
            (&call.shown, table::all().get(command_id))
        {
            self.monitors.note_script(row, *database, arguments);
        }
    }
}
