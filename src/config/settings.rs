//! The typed settings of a server.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use tracing::level_filters::LevelFilter;

use crate::events::EventClasses;
use crate::limits::{
    DATABASES, HLL_SPARSE_BYTES_MAX, STREAM_NODE_BYTES_MAX, STREAM_NODE_ENTRIES_MAX,
};
use crate::tls;

/// Everything that a person may set. [`super::table::SETTINGS`] says what each one means, its
/// default and what it accepts.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// Addresses to listen on.
    pub bind: Vec<IpAddr>,
    /// TCP port. 0 is none where there is a TLS port, and any free one otherwise.
    pub port: u16,
    /// TCP port of clients that speak TLS; 0 is none.
    pub tls_port: u16,
    /// What the server shows to these clients and asks of them.
    pub tls: tls::ServerOptions,
    /// Path of the Unix socket; `None` is none.
    pub unixsocket: Option<PathBuf>,
    /// Its permissions; 0 leaves those of the process's mask.
    pub unixsocketperm: u32,
    /// Where metrics can be read over HTTP; `None` is nowhere.
    pub metrics_address: Option<SocketAddr>,
    /// Keys whose lengths are among the metrics.
    pub metrics_keys: Vec<KeysPattern>,
    /// Whether they are read with TLS.
    pub metrics_tls: bool,
    /// Folder of the embedded store.
    pub data_dir: PathBuf,
    /// Whether a copy of a folder that was not closed in order is opened.
    pub accept_copied_data_dir: bool,
    /// Store that holds the data.
    pub store: StoreKind,
    /// FoundationDB's cluster file; `None` is FoundationDB's own default.
    pub cluster_file: Option<PathBuf>,
    /// TLS between this server and a FoundationDB cluster.
    pub fdb_tls: FdbTls,
    /// Prefix under which the store holds everything of Quoin.
    pub root_prefix: String,
    /// Whether servers of a FoundationDB cluster pop for each other from contended queues.
    pub delegated_pops: bool,
    /// When the embedded store makes writes durable.
    pub fsync: Fsync,
    /// Backups of the embedded store that are kept; 0 is all.
    pub backups_keep: u32,
    /// Where the embedded store keeps every commit; `None` is nowhere.
    pub journal_archive_dir: Option<PathBuf>,
    /// Days that archived commits are kept at least; 0 is for ever.
    pub journal_archive_days: u16,
    /// Whether the embedded store opens without what a damaged journal has lost.
    pub accepts_journal_loss: bool,
    /// Password that clients must give.
    pub requirepass: Option<String>,
    /// The file of users.
    pub aclfile: Option<PathBuf>,
    /// Whether new users may use all channels.
    pub acl_pubsub_all_channels: bool,
    /// Entries that the ACL log keeps.
    pub acllog_max_len: u64,
    /// Whether only clients of this machine are answered as long as there is no password.
    pub protected_mode: bool,
    /// How many databases there are.
    pub databases: u32,
    /// Clients that may be connected at once.
    pub maxclients: u32,
    /// Seconds after which an idle client is disconnected; 0 is never.
    pub timeout_s: u32,
    /// Seconds between TCP keepalive probes; 0 is none.
    pub tcp_keepalive_s: u32,
    /// Threads for the network.
    pub io_threads: usize,
    /// What is written to the log.
    pub log_level: LogLevel,
    /// In which form.
    pub log_format: LogFormat,
    /// The file to which it is appended; `None` is the standard error.
    pub logfile: Option<PathBuf>,
    /// Microseconds beyond which a command enters the slow log; negative is none.
    pub slowlog_log_slower_than_us: i64,
    /// Entries of the slow log.
    pub slowlog_max_len: u64,
    /// Whether scripts are run.
    pub enable_scripts: bool,
    /// Milliseconds after which a running script has other commands refused; 0 never.
    pub busy_reply_threshold_ms: u64,
    /// Milliseconds beyond which an event enters the latency monitor; 0 is none.
    pub latency_monitor_threshold_ms: u64,
    /// Seconds that a shutdown waits for what is in flight.
    pub shutdown_timeout_s: u32,
    /// How much may wait for a client, by class of clients.
    pub output_limits: OutputLimits,
    /// Bytes of unread requests that may wait of one client.
    pub query_buffer_limit_bytes: u64,
    /// Memory that the buffers of all clients may take together.
    pub maxmemory_clients: MemoryLimit,
    /// The most bytes of data; 0 is no bound.
    pub maxmemory_bytes: u64,
    /// Changes of keys that are published.
    pub keyspace_events: EventClasses,
    /// The most bytes that a HyperLogLog has in the sparse encoding.
    pub hll_sparse_max_bytes: u64,
    /// The most keys that are remembered for clients that cache them; 0 is no limit.
    pub tracking_table_max_keys: u64,
    /// How many entries of a stream are trimmed together at most, where it is trimmed approximately.
    pub stream_node_max_entries: u64,
    /// How many bytes of entries are at most, unless one has more.
    pub stream_node_max_bytes: u64,
}

/// Keys of a database whose names match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeysPattern {
    /// The database's number.
    pub database: u32,
    /// A glob pattern, as in KEYS.
    pub pattern: String,
}

impl KeysPattern {
    /// Whether it can only match the one key that is called as it is.
    pub fn is_name(&self) -> bool {
        !self.pattern.contains(['*', '?', '[', '\\'])
    }
}

impl Settings {
    /// The TCP port without TLS, where 0 takes any free one; `None` if there is none.
    pub fn tcp_port(&self) -> Option<u16> {
        let has_others = self.tls_port != 0 || self.unixsocket.is_some();
        (self.port != 0 || !has_others).then_some(self.port)
    }
}

/// FoundationDB's own TLS options. What is `None`, FoundationDB takes from its environment
/// variables (`FDB_TLS_CERTIFICATE_FILE` and so on) or its defaults.
///
/// Not `Debug`: it holds a password.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct FdbTls {
    /// This server's certificate, with its chain.
    pub certificate_file: Option<PathBuf>,
    /// The key that belongs to it.
    pub key_file: Option<PathBuf>,
    /// Certificates by which the cluster's are judged.
    pub ca_file: Option<PathBuf>,
    /// What the cluster's certificates must fulfil.
    pub verify_peers: Option<String>,
    /// The password of an encrypted key.
    pub password: Option<String>,
}

/// How much may wait to be written to a client. There are no replicas, so theirs has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Redis's class `normal`.
    pub normal: OutputLimit,
    /// Redis's class `slave`.
    pub replica: OutputLimit,
    /// Redis's class `pubsub`: clients that are subscribed.
    pub subscriber: OutputLimit,
}

/// A limit on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryLimit {
    /// So many bytes; 0 is no limit.
    Bytes(u64),
    /// So many hundredths of the machine's memory.
    Percent(u8),
}

impl MemoryLimit {
    /// The limit in bytes on a machine with so much memory; `None` is no limit.
    pub fn bytes(self, machine_bytes: u64) -> Option<u64> {
        match self {
            MemoryLimit::Bytes(0) => None,
            MemoryLimit::Bytes(bytes) => Some(bytes),
            MemoryLimit::Percent(percent) => Some(machine_bytes / 100 * u64::from(percent)),
        }
    }

    /// Reads what [`fmt::Display`] writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => percent.parse().ok().map(MemoryLimit::Percent),
            None => text.parse().ok().map(MemoryLimit::Bytes),
        }
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemoryLimit::Bytes(bytes) => write!(f, "{bytes}"),
            MemoryLimit::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// A limit on what waits for a client; beyond it the client is disconnected. 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputLimit {
    /// Bytes that end the connection at once.
    pub hard_bytes: u64,
    /// Bytes that end it when they stay above for some time.
    pub soft_bytes: u64,
    /// How long that is.
    pub soft_s: u32,
}

impl OutputLimit {
    /// Whether so much may not wait, as Redis's `checkClientOutputBufferLimits` has it.
    /// `above_soft_since_ms` is kept from one question to the next.
    pub fn is_exceeded(
        &self,
        bytes: u64,
        above_soft_since_ms: &mut Option<i64>,
        now_ms: i64,
    ) -> bool {
        if self.hard_bytes != 0 && bytes >= self.hard_bytes {
            return true;
        }
        if self.soft_bytes == 0 || bytes < self.soft_bytes {
            *above_soft_since_ms = None;
            return false;
        }
        let since_ms = *above_soft_since_ms.get_or_insert(now_ms);
        now_ms.saturating_sub(since_ms) > i64::from(self.soft_s) * 1000
    }
}

impl Default for OutputLimits {
    /// Redis's.
    fn default() -> Self {
        OutputLimits {
            normal: OutputLimit::default(),
            replica: OutputLimit {
                hard_bytes: 256 * 1024 * 1024,
                soft_bytes: 64 * 1024 * 1024,
                soft_s: 60,
            },
            subscriber: OutputLimit {
                hard_bytes: 32 * 1024 * 1024,
                soft_bytes: 8 * 1024 * 1024,
                soft_s: 60,
            },
        }
    }
}

impl Settings {
    /// Why `maxmemory` cannot be what it is, if it cannot.
    pub(super) fn refusal_of_maxmemory(&self) -> Option<&'static str> {
        let is_refused = self.store == StoreKind::Fdb && self.maxmemory_bytes > 0;
        is_refused.then_some(
            "the size of a FoundationDB cluster's data is not known at once: only 0 is possible",
        )
    }
}

impl Default for Settings {
    /// The same as the defaults of the table, which a test checks.
    fn default() -> Self {
        Settings {
            bind: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            port: 6379,
            tls_port: 0,
            tls: tls::ServerOptions::default(),
            unixsocket: None,
            unixsocketperm: 0,
            metrics_address: None,
            metrics_keys: Vec::new(),
            metrics_tls: false,
            data_dir: PathBuf::from("./quoin-data"),
            accept_copied_data_dir: false,
            store: StoreKind::Embedded,
            cluster_file: None,
            fdb_tls: FdbTls::default(),
            root_prefix: "quoin".to_owned(),
            delegated_pops: true,
            fsync: Fsync::Always,
            backups_keep: 7,
            journal_archive_dir: None,
            journal_archive_days: 0,
            accepts_journal_loss: false,
            requirepass: None,
            aclfile: None,
            acl_pubsub_all_channels: false,
            acllog_max_len: 128,
            protected_mode: true,
            databases: DATABASES,
            maxclients: 10_000,
            timeout_s: 0,
            tcp_keepalive_s: 300,
            io_threads: 1,
            log_level: LogLevel::Notice,
            log_format: LogFormat::Text,
            logfile: None,
            slowlog_log_slower_than_us: 10_000,
            slowlog_max_len: 128,
            enable_scripts: true,
            busy_reply_threshold_ms: 5_000,
            latency_monitor_threshold_ms: 0,
            shutdown_timeout_s: 10,
            output_limits: OutputLimits::default(),
            query_buffer_limit_bytes: 1024 * 1024 * 1024,
            maxmemory_clients: MemoryLimit::Percent(25),
            maxmemory_bytes: 0,
            keyspace_events: EventClasses::NONE,
            hll_sparse_max_bytes: HLL_SPARSE_BYTES_MAX,
            tracking_table_max_keys: 1_000_000,
            stream_node_max_entries: STREAM_NODE_ENTRIES_MAX,
            stream_node_max_bytes: STREAM_NODE_BYTES_MAX,
        }
    }
}

/// Which store holds the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// In this process, in a folder.
    Embedded,
    /// A FoundationDB cluster.
    Fdb,
}

impl StoreKind {
    pub(super) const NAMES: &'static [&'static str] = &["embedded", "fdb"];

    /// Its name in the settings.
    pub fn name(self) -> &'static str {
        match self {
            StoreKind::Embedded => "embedded",
            StoreKind::Fdb => "fdb",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [StoreKind::Embedded, StoreKind::Fdb]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// When a commit of the embedded store reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsync {
    /// Before the reply.
    Always,
    /// Once a second: a crash of the machine may lose the last second.
    EverySec,
}

impl Fsync {
    pub(super) const NAMES: &'static [&'static str] = &["everysec", "always"];

    /// Its name in the settings, as in Redis's `appendfsync`.
    pub fn name(self) -> &'static str {
        match self {
            Fsync::Always => "always",
            Fsync::EverySec => "everysec",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Fsync::Always, Fsync::EverySec]
            .into_iter()
            .find(|fsync| fsync.name() == name)
    }
}

/// The form of the log's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// An object of JSON each.
    Json,
}

impl LogFormat {
    pub(super) const NAMES: &'static [&'static str] = &["text", "json"];

    /// Its name in the settings.
    pub fn name(self) -> &'static str {
        match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [LogFormat::Text, LogFormat::Json]
            .into_iter()
            .find(|format| format.name() == name)
    }
}

/// How much the log says: Redis's levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Everything, for development.
    Debug,
    /// Details that are rarely of use.
    Verbose,
    /// What one wants to know in production.
    Notice,
    /// Only what is wrong.
    Warning,
    /// Nothing at all.
    Nothing,
}

impl LogLevel {
    pub(super) const NAMES: &'static [&'static str] =
        &["debug", "verbose", "notice", "warning", "nothing"];

    const ALL: [LogLevel; 5] = [
        LogLevel::Debug,
        LogLevel::Verbose,
        LogLevel::Notice,
        LogLevel::Warning,
        LogLevel::Nothing,
    ];

    /// Its name in the settings, as in Redis's `loglevel`.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Verbose => "verbose",
            LogLevel::Notice => "notice",
            LogLevel::Warning => "warning",
            LogLevel::Nothing => "nothing",
        }
    }

    /// The name of the level that `given` means at the start, where the words of the log's own
    /// lines are taken too. CONFIG SET takes what Redis takes.
    pub(super) fn name_at_start(given: &str) -> &str {
        match given.to_ascii_lowercase().as_str() {
            "info" => LogLevel::Notice.name(),
            "warn" => LogLevel::Warning.name(),
            _ => given,
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        LogLevel::ALL.into_iter().find(|level| level.name() == name)
    }

    /// The most detailed level of `tracing` that is written.
    pub fn filter(self) -> LevelFilter {
        match self {
            LogLevel::Debug => LevelFilter::TRACE,
            LogLevel::Verbose => LevelFilter::DEBUG,
            LogLevel::Notice => LevelFilter::INFO,
            LogLevel::Warning => LevelFilter::WARN,
            LogLevel::Nothing => LevelFilter::OFF,
        }
    }
}
