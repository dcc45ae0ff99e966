//! Declares each setting once. A macro makes its field in [`Settings`], its row in [`SETTINGS`] and, if a
//! running server reads it at each command, its cell in [`LiveSettings`]. The rows define the keys of the
//! file, the `QUOIN_*` variables, the flags, `--help`, config/quoin.toml, docs/operate/configuration.md,
//! and Quoin's own settings in CONFIG GET, SET and REWRITE.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use crate::settings::{
    ChannelsDefault, DashboardAddress, EndpointType, EvictionPolicy, FdbTls, Fsync, KeysPattern,
    Live, LogFormat, LogLevel, MemoryLimit, OutputLimits, Permissions, StoreKind,
};
use crate::special;
use crate::value::Kind::{
    Bytes, BytesOrPercent, Integer, OneOf, Path, Secret, Special, Text, YesNo,
};
use crate::value::{Kind, Value};
use quoin_base::events::EventClasses;
use quoin_base::limits::{
    DATABASES_MAX, METRICS_QUEUES_MAX, STREAM_PRODUCED_DURATION_S_MAX, STREAM_PRODUCED_MAX,
};
use quoin_base::redis_version::RedisVersion;
use quoin_tls::{AuthClients, ServerOptions};

const U16_MAX: i128 = u16::MAX as i128;
const U32_MAX: i128 = u32::MAX as i128;
const I32_MAX: i128 = i32::MAX as i128;
const I64_MAX: i128 = i64::MAX as i128;
const U64_MAX: i128 = u64::MAX as i128;

/// CONFIG SET changes it in a running server.
const RUNTIME: bool = true;
/// Only a restart changes it.
const START: bool = false;

/// The cell of a setting that only the settings' own accessor reads.
type Own<T> = <T as Live>::Cell;
/// The cell of a setting that other parts of the server hold too.
type Shared<T> = Arc<Own<T>>;

/// One setting.
#[derive(Debug)]
pub struct SettingRow {
    /// Key in the file and in CONFIG, and the flag after `--`. Redis's name if Redis has the setting.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// The default, written as in a variable or flag. Empty means none.
    pub default: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Whether CONFIG SET changes it in a running server.
    pub is_runtime_changeable: bool,
    /// Puts a value in its usual form into the settings. `None` if it is invalid.
    pub apply: fn(&mut Settings, &str) -> Option<()>,
    /// The value in its usual form.
    pub render: fn(&Settings) -> String,
}

impl SettingRow {
    /// Name of the environment variable.
    pub fn environment(&self) -> String {
        let name = self.name.replace('-', "_").to_ascii_uppercase();
        format!("QUOIN_{name}")
    }

    /// Parses `given` into `settings`. The error is the reason if it does not fit.
    pub fn set(&self, settings: &mut Settings, given: &str) -> Result<(), String> {
        let value = self.kind.normalise(given, &(self.render)(settings))?;
        (self.apply)(settings, &value)
            .ok_or_else(|| format!("argument must be {}", self.kind.accepted()))
    }

    /// Whether the value must not be shown.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret)
    }
}

/// The setting of that name, in any case.
pub fn find(name: &str) -> Option<&'static SettingRow> {
    SETTINGS
        .iter()
        .find(|row| row.name.eq_ignore_ascii_case(name))
}

/// The accessor of a cell of [`LiveSettings`].
macro_rules! accessor {
    (Own $field:ident $type:ty) => {
        #[doc = concat!("The present value of [`Settings::", stringify!($field), "`].")]
        pub fn $field(&self) -> $type {
            Live::load(&self.$field)
        }
    };
    (Shared $field:ident $type:ty) => {
        #[doc = concat!("The present value of [`Settings::", stringify!($field), "`]. CONFIG SET changes it.")]
        pub fn $field(&self) -> &Shared<$type> {
            &self.$field
        }
    };
}

/// Declares settings. A field has a type, `as Own` or `as Shared` if a running server reads it at each
/// command, and a row for each name: `"name" = "default", kind, RUNTIME or START, "meaning";`. A row may
/// set a part of the field: `"name".part`.
macro_rules! settings {
    ($(
        $field:ident: $type:ty $(as $cell:ident)? {
            $($name:literal $(. $part:ident)* = $default:literal, $kind:expr, $change:expr, $help:literal;)+
        }
    )*) => {
        /// All settings.
        #[derive(Clone, PartialEq, Eq)]
        pub struct Settings {
            $($(#[doc = $help])+ pub $field: $type,)*
        }

        /// Every setting, in the order of the documents.
        pub static SETTINGS: &[SettingRow] = &[$($(SettingRow {
            name: $name,
            kind: $kind,
            default: $default,
            help: $help,
            is_runtime_changeable: $change,
            apply: |settings, text| {
                settings.$field $(.$part)* = Value::parse(text)?;
                Some(())
            },
            render: |settings| settings.$field $(.$part)*.render(),
        },)+)*];

        impl Default for Settings {
            fn default() -> Self {
                let mut settings = Settings { $($field: Default::default(),)* };
                for row in SETTINGS {
                    // A test checks that each default fits.
                    let _ = (row.apply)(&mut settings, row.default);
                }
                settings
            }
        }

        /// Settings that a running server reads at each command, as atomic numbers.
        #[derive(Default)]
        pub struct LiveSettings {
            $($($field: $cell<$type>,)?)*
        }

        impl LiveSettings {
            $($(accessor!($cell $field $type);)?)*

            /// Copies the values of these settings.
            pub(super) fn publish(&self, settings: &Settings) {
                $($(
                    let cell: &$cell<$type> = &self.$field;
                    <$type as Live>::store(settings.$field, cell);
                )?)*
            }
        }
    };
}

settings! {
    bind: Vec<IpAddr> {
        "bind" = "127.0.0.1", Special(special::ADDRESSES), START,
            "Addresses to listen on. Beyond loopback, also set requirepass: without it, protected-mode refuses clients from other machines";
    }
    port: u16 {
        "port" = "6379", Integer(0, 65_535), START,
            "TCP port. 0 disables it if tls-port or unixsocket is set; otherwise 0 picks any free port, which is printed at startup";
    }
    tls_port: u16 {
        "tls-port" = "0", Integer(0, 65_535), START,
            "TCP port for TLS clients; 0 disables it. Needs tls-cert-file and tls-key-file (docs/operate/security.md)";
    }
    tls: ServerOptions {
        "tls-cert-file".certificate_file = "", Path, RUNTIME,
            "Certificate (PEM), with its chain, that the server presents to clients of tls-port. CONFIG SET of any tls- setting and SIGHUP reload all of these files; existing connections are not affected";
        "tls-key-file".key_file = "", Path, RUNTIME,
            "Private key (PEM) of that certificate";
        "tls-key-file-pass".key_password = "", Secret, RUNTIME,
            "Password of the private key, if it is encrypted (PKCS#8). Other users of the machine can see flags, so prefer the settings file or the environment variable";
        "tls-ca-cert-file".ca_file = "", Path, RUNTIME,
            "CA certificates (PEM) that client certificates are checked against";
        "tls-ca-cert-dir".ca_dir = "", Path, RUNTIME,
            "Folder with files of such CA certificates";
        "tls-auth-clients".auth_clients = "yes", OneOf(AuthClients::NAMES), RUNTIME,
            "Whether clients of tls-port must present a certificate that tls-ca-cert-file or tls-ca-cert-dir accepts: yes, no (the server does not ask for one), or optional (a client may present none, but not an invalid one)";
        "tls-protocols".versions = "", Special(special::TLS_PROTOCOLS), RUNTIME,
            "TLS versions to accept; empty means both. Older versions are not supported. The cipher suites are those of rustls, all of which are safe";
    }
    unixsocket: Option<PathBuf> {
        "unixsocket" = "", Path, START,
            "Path of a Unix socket for clients on this machine. The server removes it when it stops, and replaces one that a dead server left behind";
    }
    unixsocketperm: Permissions {
        "unixsocketperm" = "0", Special(special::PERMISSIONS), START,
            "Permissions of the Unix socket: 700 admits only the server's user, 770 also its group. 0 leaves them to the process's umask";
    }
    announce_ip: Option<IpAddr> {
        "announce-ip" = "", Special(special::IP_ADDRESS), START,
            "Address that this server announces to other servers and to clients (docs/operate/several-servers.md). If it is not set, the server announces the first address of bind, or, if bind is 0.0.0.0 or ::, the address of the network interface that reaches other networks";
    }
    announce_port: u16 {
        "announce-port" = "0", Integer(0, 65_535), START,
            "Non-TLS port that this server announces, if it differs from port, for example behind port forwarding. 0 announces port";
    }
    announce_tls_port: u16 {
        "announce-tls-port" = "0", Integer(0, 65_535), START,
            "TLS port that this server announces, if it differs from tls-port. 0 announces tls-port";
    }
    announce_hostname: String {
        "announce-hostname" = "", Special(special::HOST_NAME), START,
            "Host name that clients get instead of this server's address, for example because its certificate has that name";
    }
    sentinel_port: u16 {
        "sentinel-port" = "0", Integer(0, 65_535), START,
            "TCP port on which the server answers as Redis Sentinel does, so that Sentinel clients find a live server (docs/operate/several-servers.md); 26379 is usual, 0 disables it. Only commands that change something need a password";
    }
    sentinel_tls_port: u16 {
        "sentinel-tls-port" = "0", Integer(0, 65_535), START,
            "The same for TLS clients, which get the TLS ports of the servers";
    }
    sentinel_masters: Vec<String> {
        "sentinel-masters" = "mymaster", Special(special::MASTER_NAMES), START,
            "Master names that Sentinel clients ask for. For each name, all servers return the same live server, and the names are spread over the servers: use one name per application. Set the same value on all servers";
    }
    cluster_port: u16 {
        "cluster-port" = "0", Integer(0, 65_535), START,
            "TCP port on which the server answers as a Redis Cluster node, so that Cluster clients find the live servers and spread their keys over them (docs/operate/several-servers.md); 0 disables it. In Redis, this is the port of the cluster bus, which Quoin does not have";
    }
    cluster_tls_port: u16 {
        "cluster-tls-port" = "0", Integer(0, 65_535), START,
            "The same for TLS clients, which get the cluster-tls-port of each server";
    }
    cluster_announce_port: u16 {
        "cluster-announce-port" = "0", Integer(0, 65_535), START,
            "Port that Cluster clients get for this server, if it differs from cluster-port, for example behind port forwarding. 0 announces cluster-port. The address comes from announce-ip and announce-hostname";
    }
    cluster_announce_tls_port: u16 {
        "cluster-announce-tls-port" = "0", Integer(0, 65_535), START,
            "The same for cluster-tls-port";
    }
    cluster_preferred_endpoint_type: EndpointType {
        "cluster-preferred-endpoint-type" = "ip", OneOf(EndpointType::NAMES), START,
            "What Cluster clients get as a server's address: its IP address, its announce-hostname, or nothing, which means the address that the client connected to. Set the same value on all servers";
    }
    metrics_address: Option<SocketAddr> {
        "metrics-address" = "", Special(special::SOCKET_ADDRESS), START,
            "Address where Prometheus can read metrics over HTTP, at the path /metrics (docs/operate/metrics.md). They are not protected by a password. Port 0 picks any free port, which is logged at startup";
    }
    metrics_keys: Vec<KeysPattern> {
        "metrics-keys" = "", Special(special::KEYS_PATTERNS), RUNTIME,
            "Keys whose lengths appear in the metrics: names, or patterns as in KEYS, with a number and a slash in front for a database other than 0 (jobs:* 3/mail). At most 256 keys are shown. The server looks them up every five seconds, by name only";
    }
    metrics_queues: u32 {
        "metrics-queues" = "20", Integer(0, METRICS_QUEUES_MAX as i128), RUNTIME,
            "Number of most active queues that have metrics of what goes in and out (docs/operate/metrics.md), without being listed in metrics-keys. Each queue has four time series. Up to twice as many queues are shown, because a queue stays for ten minutes. 0 means none";
    }
    metrics_tls: bool {
        "metrics-tls" = "no", YesNo, START,
            "Whether metrics are served over HTTPS, with tls-cert-file and tls-key-file. Readers need no client certificate";
    }
    trace_endpoint: String {
        "trace-endpoint" = "", Special(special::TRACE_ENDPOINT), START,
            "URL of a collector to which the server sends traces of tasks that carry a traceparent, by OTLP over HTTP (docs/operate/traces.md), such as http://127.0.0.1:4318/v1/traces; empty means none. The environment variable OTEL_EXPORTER_OTLP_HEADERS sets headers, for example for a password";
    }
    trace_slow_commands: bool as Own {
        "trace-slow-commands" = "no", YesNo, RUNTIME,
            "Whether commands that enter the slow log (slowlog-log-slower-than) are also sent to that collector, each as its own trace";
    }
    dashboard_address: DashboardAddress {
        "dashboard-address" = "auto", Special(special::DASHBOARD_ADDRESS), START,
            "Address of the dashboard for browsers (docs/operate/dashboard.md): an IP address with a port, or empty for none. auto means 127.0.0.1:8379 if the store is embedded, port is reachable on loopback, and nothing else uses the address. Port 0 picks any free port, which is logged at startup";
    }
    dashboard_tls: bool {
        "dashboard-tls" = "no", YesNo, START,
            "Whether the dashboard is served over HTTPS, with tls-cert-file and tls-key-file. Browsers need no client certificate";
    }
    store: StoreKind {
        "store" = "embedded", OneOf(StoreKind::NAMES), START,
            "Store that holds the data: embedded (a folder on this machine) or fdb (a FoundationDB cluster; needs a build with the feature fdb)";
    }
    data_dir: PathBuf {
        "data-dir" = "./quoin-data", Special(special::FOLDER), START,
            "Folder of the embedded store, created if it does not exist. Only one server can use it at a time";
    }
    accept_copied_data_dir: bool {
        "accept-copied-data-dir" = "no", YesNo, START,
            "Whether to open a copy of a data folder whose server was not shut down cleanly. Use it only if the whole folder was copied after its server had ended: a copy made while the server runs has pieces from different moments";
    }
    fsync: Fsync {
        "fsync" = "always", OneOf(Fsync::NAMES), START,
            "When the embedded store makes writes durable: always (before the reply) or everysec (once a second; a machine crash or power failure may lose acknowledged writes of the last second). FoundationDB is always durable";
    }
    cache_memory: MemoryLimit {
        "cache-memory" = "40%", BytesOrPercent, START,
            "Memory for rows of the embedded store: bytes, or a percentage of the memory of the machine or container. Beyond it, rows that were not read recently are read from the data file when they are needed again. The store uses a little more while recent writes are not yet in the data file. 0 means no limit";
    }
    backups_keep: u32 {
        "backups-keep" = "7", Integer(0, U32_MAX), RUNTIME,
            "Number of backups of this store to keep in the folder backups of data-dir, and in the folder of quoin backup --to (docs/operate/backup.md). When a new backup is complete, the oldest ones beyond this number are removed. 0 keeps all";
    }
    journal_archive_dir: Option<PathBuf> {
        "journal-archive-dir" = "", Path, START,
            "Folder, preferably on another disk, where the embedded store archives every commit, so that a backup can be restored to any later moment (docs/operate/backup.md). If it cannot be written, the journal grows up to 1 GiB, and then writes are refused. Without it, commits are not archived";
    }
    journal_archive_command: String {
        "journal-archive-command" = "", Text, START,
            "Shell command that copies each file of journal-archive-dir to another place, such as install -D %p /mnt/archive/%f. It runs as the server's user (docs/operate/backup.md). %p is the path of the file, %f its name within an archive, %% a percent sign. The file is removed when the command succeeds; otherwise it stays and the command is retried";
    }
    journal_archive_days: u16 {
        "journal-archive-days" = "0", Integer(0, U16_MAX), RUNTIME,
            "Minimum number of days to keep archived commits. When a backup is complete, files of journal-archive-dir are removed if all their commits are older and are in that backup. 0 keeps all";
    }
    accepts_journal_loss: bool {
        "accept-journal-loss" = "no", YesNo, START,
            "Whether the embedded store opens with a damaged journal, without the acknowledged commits from the damage on. It keeps the journal's files under other names. Use it for one start only, and never in a file";
    }
    cluster_file: Option<PathBuf> {
        "cluster-file" = "", Path, START,
            "FoundationDB cluster file. If it is not set, FoundationDB looks in its usual places: FDB_CLUSTER_FILE, ./fdb.cluster, /etc/foundationdb/fdb.cluster";
    }
    fdb_tls: FdbTls {
        "fdb-tls-certificate-file".certificate_file = "", Path, START,
            "Certificate, with its chain, that this server presents to a FoundationDB cluster whose addresses end with :tls. If it is not set, FoundationDB's FDB_TLS_CERTIFICATE_FILE applies";
        "fdb-tls-key-file".key_file = "", Path, START,
            "Private key of that certificate. If it is not set, FDB_TLS_KEY_FILE applies";
        "fdb-tls-ca-file".ca_file = "", Path, START,
            "CA certificates that the cluster's certificates are checked against. If it is not set, FDB_TLS_CA_FILE applies";
        "fdb-tls-verify-peers".verify_peers = "", Text, START,
            "Conditions that the cluster's certificates must meet, in FoundationDB's notation, such as Check.Valid=1,S.O=Example. If it is not set, FDB_TLS_VERIFY_PEERS applies";
        "fdb-tls-password".password = "", Secret, START,
            "Password of the private key, if it is encrypted. Other users of the machine can see flags, so prefer the settings file or the environment variable. If it is not set, FDB_TLS_PASSWORD applies";
    }
    root_prefix: String {
        "root-prefix" = "quoin", Special(special::ROOT_PREFIX), START,
            "Prefix of everything in the store. Servers with the same prefix on one cluster share their data; servers with different prefixes do not see each other";
    }
    forwarding: bool as Shared {
        "forwarding" = "yes", YesNo, RUNTIME,
            "Whether this server forwards commands that conflict with those of other servers, such as pops, to the server that owns their key (docs/understand/decisions/053-forwarding.md). If not, it runs them itself and retries them after a conflict. It always runs commands that other servers forward to it. The embedded store has no other servers";
    }
    requirepass: Option<String> {
        "requirepass" = "", Secret, RUNTIME,
            "Password that clients must give with AUTH or HELLO. Other users of the machine can see flags, so prefer the settings file or the environment variable";
    }
    aclfile: Option<PathBuf> {
        "aclfile" = "", Path, START,
            "File of users (docs/operate/security.md), which ACL SAVE writes and ACL LOAD reads. The embedded store reads it at startup, and it must exist then. Without it, users created with ACL SETUSER last until the restart. With FoundationDB, users are in the store, and the file is only for ACL LOAD and ACL SAVE";
    }
    acl_pubsub_default: ChannelsDefault {
        "acl-pubsub-default" = "resetchannels", OneOf(ChannelsDefault::NAMES), RUNTIME,
            "Whether a new user may use all channels (allchannels) or none (resetchannels) until a rule says otherwise";
    }
    acllog_max_len: u64 as Own {
        "acllog-max-len" = "128", Integer(0, I64_MAX), RUNTIME,
            "Maximum number of entries in ACL LOG, which lists what users were refused";
    }
    protected_mode: bool as Own {
        "protected-mode" = "yes", YesNo, RUNTIME,
            "Whether to accept only clients on this machine (127.0.0.1, ::1) while requirepass is not set";
    }
    databases: u32 {
        "databases" = "16", Integer(1, DATABASES_MAX as i128), START,
            "Number of databases that SELECT can reach, numbered from 0. If it is lowered, keys of the databases above stay in the store but are out of reach. Set the same value on all servers of a cluster";
    }
    compatible_version: RedisVersion {
        "compatible-version" = "7.2", OneOf(RedisVersion::NAMES), START,
            "Redis version that clients and scripts see: 7.2 or 8.4 (docs/start/compatibility.md#the-version-that-clients-are-told). It decides the form of replies that differ between the versions; commands and options of later versions work with both";
    }
    maxclients: u32 as Own {
        "maxclients" = "10000", Integer(1, U32_MAX), RUNTIME,
            "Maximum number of connected clients; more are refused. If the operating system allows too few open files (ulimit -n), it is lowered at startup";
    }
    timeout_s: u32 as Own {
        "timeout" = "0", Integer(0, I32_MAX), RUNTIME,
            "Seconds after which an idle client is disconnected. 0 means never";
    }
    tcp_keepalive_s: u32 as Own {
        "tcp-keepalive" = "300", Integer(0, I32_MAX), RUNTIME,
            "Seconds between TCP keepalive probes to clients. 0 disables them. A change applies to new connections";
    }
    io_threads: usize {
        "io-threads" = "1", Integer(1, 128), START,
            "Threads that read requests and write replies. On the embedded store they also run most commands, and one is fastest";
    }
    log_level: LogLevel {
        "loglevel" = "notice", OneOf(LogLevel::NAMES), RUNTIME,
            "What is logged: debug (everything), verbose (also connections, checkpoints and the like), notice, warning (only problems) or nothing. At startup, info and warn (the names in log lines) mean notice and warning";
    }
    log_format: LogFormat {
        "log-format" = "text", OneOf(LogFormat::NAMES), START,
            "Format of log lines: text for people, or json (one object per line, with timestamp, level and message)";
    }
    logfile: Option<PathBuf> {
        "logfile" = "", Path, START,
            "File to which the log is appended; empty means standard error. SIGHUP reopens it, after a tool has moved it away";
    }
    slowlog_log_slower_than_us: i64 as Own {
        "slowlog-log-slower-than" = "10000", Integer(-1, I64_MAX), RUNTIME,
            "Microseconds beyond which a command enters the slow log. 0 logs every command, -1 none";
    }
    slowlog_max_len: u64 as Own {
        "slowlog-max-len" = "128", Integer(0, I64_MAX), RUNTIME,
            "Maximum number of entries in the slow log";
    }
    enable_scripts: bool {
        "enable-scripts" = "yes", YesNo, START,
            "Whether EVAL, EVALSHA and SCRIPT LOAD run scripts";
    }
    busy_reply_threshold_ms: u64 as Own {
        "busy-reply-threshold" = "5000", Integer(0, I64_MAX), RUNTIME,
            "Milliseconds after which, while a script runs, the server refuses commands of all clients with BUSY, except SCRIPT KILL and the like. 0 means never";
        "lua-time-limit" = "5000", Integer(0, I64_MAX), RUNTIME,
            "Old name of busy-reply-threshold";
    }
    latency_monitor_threshold_ms: u64 as Own {
        "latency-monitor-threshold" = "0", Integer(0, I64_MAX), RUNTIME,
            "Milliseconds beyond which an event enters the latency monitor. 0 disables it";
    }
    shutdown_timeout_s: u32 as Own {
        "shutdown-timeout" = "10", Integer(0, I32_MAX), RUNTIME,
            "Seconds that a shutdown waits for commands in flight";
    }
    output_limits: OutputLimits as Own {
        "client-output-buffer-limit" = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60", Special(special::OUTPUT_LIMITS), RUNTIME,
            "Bytes of output that may wait for a client, by class: a hard limit, and a soft limit with the number of seconds for which it may be exceeded; 0 means no limit. A client beyond its limit is disconnected. Class pubsub is for subscribed clients, normal for all others; slave has no effect. At most about 256 KiB of a pipeline's replies wait at a time, so only single replies can be larger";
    }
    query_buffer_limit_bytes: u64 as Own {
        "client-query-buffer-limit" = "1073741824", Bytes(1_048_576, I64_MAX), RUNTIME,
            "Bytes of requests that may wait from a client that sends but does not read, or that waits in a blocking command. A client beyond it is disconnected. For a client that has not authenticated, the limit is 1 MiB";
    }
    maxmemory_bytes: u64 as Shared {
        "maxmemory" = "0", Bytes(0, U64_MAX), RUNTIME,
            "Bytes of data in the store; 0 means no limit. Beyond it, commands that add data are refused, as in Redis (docs/operate/limits.md#maxmemory). Embedded store only";
    }
    maxmemory_policy: EvictionPolicy {
        "maxmemory-policy" = "noeviction", Special(special::EVICTION_POLICY), RUNTIME,
            "What happens beyond maxmemory. Nothing is evicted, because queues must not lose elements";
    }
    maxmemory_clients: MemoryLimit as Own {
        "maxmemory-clients" = "25%", BytesOrPercent, RUNTIME,
            "Memory that all clients together may use (requests, replies, messages, commands queued by MULTI, names of subscriptions and of watched keys, and other data kept for a client): bytes, or a percentage of the memory of the machine or container. With many clients, each gets fewer replies at a time. Beyond the limit, clients are disconnected: first those that have not authenticated, then the largest; those with CLIENT NO-EVICT are spared. 0 means no limit";
    }
    keyspace_events: EventClasses as Shared {
        "notify-keyspace-events" = "", Special(special::KEYSPACE_EVENTS), RUNTIME,
            "Key changes to publish: K (channels named after keys) or E (channels named after events) or both, with g (generic), l (lists), z (sorted sets), d (what Redis does not have, such as priority queues), x (expired), n (new keys), or A for all but n. Empty means none";
    }
    hll_sparse_max_bytes: u64 as Shared {
        "hll-sparse-max-bytes" = "3000", Bytes(0, I64_MAX), RUNTIME,
            "Maximum bytes of a HyperLogLog in the sparse encoding; beyond it, the HyperLogLog becomes dense (12,304 bytes)";
    }
    tracking_table_max_keys: u64 as Own {
        "tracking-table-max-keys" = "1000000", Integer(0, I64_MAX), RUNTIME,
            "Maximum number of keys remembered for clients that cache them (CLIENT TRACKING). Beyond it, random keys are forgotten, as if they had changed. 0 means no limit";
    }
    stream_node_max_entries: u64 as Shared {
        "stream-node-max-entries" = "100", Integer(0, I64_MAX), RUNTIME,
            "Maximum number of stream entries that approximate trimming (MAXLEN ~, MINID ~) removes together; 0 means no limit";
    }
    stream_node_max_bytes: u64 as Shared {
        "stream-node-max-bytes" = "4096", Bytes(0, I64_MAX), RUNTIME,
            "Maximum bytes of the same, counted as in Redis, unless one entry is larger; 0 means no limit";
    }
    stream_idmp_duration_s: u64 as Shared {
        "stream-idmp-duration" = "100", Integer(1, STREAM_PRODUCED_DURATION_S_MAX as i128), RUNTIME,
            "Seconds for which streams without their own setting (XCFGSET) remember what producers have added (XADD with IDMP). Set the same value on all servers of a cluster";
    }
    stream_idmp_maxsize: u64 as Shared {
        "stream-idmp-maxsize" = "100", Integer(1, STREAM_PRODUCED_MAX as i128), RUNTIME,
            "Maximum number of entries per producer that such streams remember";
    }
}

impl Settings {
    /// The TCP port without TLS. `None` if the server has none. 0 takes any free port.
    pub fn tcp_port(&self) -> Option<u16> {
        let has_others = self.tls_port != 0 || self.unixsocket.is_some();
        (self.port != 0 || !has_others).then_some(self.port)
    }

    /// Where the dashboard is served, if anywhere.
    pub fn dashboard_place(&self) -> Option<SocketAddr> {
        match self.dashboard_address {
            DashboardAddress::Off => None,
            DashboardAddress::At(address) => Some(address),
            DashboardAddress::Auto => {
                let is_on_loopback = self
                    .bind
                    .iter()
                    .any(|ip| ip.to_canonical().is_loopback() || ip.is_unspecified());
                let opens_nothing = self.tcp_port().is_some() && is_on_loopback;
                let is_served = self.store == StoreKind::Embedded && opens_nothing;
                is_served.then_some(DashboardAddress::BY_DEFAULT)
            }
        }
    }

    /// Why the current `maxmemory` is not allowed, if it is not.
    pub(super) fn refusal_of_maxmemory(&self) -> Option<&'static str> {
        let is_refused = self.store == StoreKind::Fdb && self.maxmemory_bytes > 0;
        is_refused.then_some(
            "the current size of a FoundationDB cluster's data is not known: only 0 is accepted",
        )
    }
}

impl fmt::Debug for Settings {
    /// Formatted from the table, so that passwords stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for row in SETTINGS {
            let value = match row.is_secret() {
                true => "(not shown)".to_owned(),
                false => (row.render)(self),
            };
            map.entry(&row.name, &value);
        }
        map.finish()
    }
}

/// The settings as the FoundationDB store takes them.
#[cfg(feature = "fdb")]
impl From<&Settings> for quoin_store_fdb::FdbOptions {
    fn from(settings: &Settings) -> Self {
        let tls = &settings.fdb_tls;
        Self {
            cluster_file: settings.cluster_file.clone(),
            tls: quoin_store_fdb::TlsOptions {
                certificate_file: tls.certificate_file.clone(),
                key_file: tls.key_file.clone(),
                ca_file: tls.ca_file.clone(),
                verify_peers: tls.verify_peers.clone(),
                password: tls.password.clone(),
            },
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_base::limits::{
        DATABASES, HLL_SPARSE_BYTES_MAX, STREAM_NODE_BYTES_MAX, STREAM_NODE_ENTRIES_MAX,
        STREAM_PRODUCED, STREAM_PRODUCED_DURATION_S,
    };

    #[test]
    fn every_default_is_in_its_usual_form_and_fits() {
        let mut settings = Settings::default();
        for row in SETTINGS {
            assert_eq!((row.render)(&settings), row.default, "{}", row.name);
            row.set(&mut settings, row.default).unwrap();
        }
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn defaults_are_those_that_hold_without_settings() {
        let settings = Settings::default();
        assert_eq!(settings.databases, DATABASES);
        assert_eq!(settings.hll_sparse_max_bytes, HLL_SPARSE_BYTES_MAX);
        assert_eq!(settings.stream_node_max_entries, STREAM_NODE_ENTRIES_MAX);
        assert_eq!(settings.stream_node_max_bytes, STREAM_NODE_BYTES_MAX);
        assert_eq!(settings.stream_idmp_duration_s, STREAM_PRODUCED_DURATION_S);
        assert_eq!(settings.stream_idmp_maxsize, STREAM_PRODUCED);
    }

    #[test]
    fn every_setting_keeps_another_value() {
        let others = [
            ("bind", "0.0.0.0 ::1"),
            ("port", "0"),
            ("tls-port", "6380"),
            ("tls-cert-file", "/etc/x.pem"),
            ("tls-key-file", "/etc/key.pem"),
            ("tls-key-file-pass", "secret"),
            ("tls-ca-cert-file", "/etc/ca.pem"),
            ("tls-ca-cert-dir", "/etc/ssl/certs"),
            ("tls-auth-clients", "optional"),
            ("tls-protocols", "TLSv1.3"),
            ("unixsocket", "/run/quoin.sock"),
            ("unixsocketperm", "770"),
            ("announce-ip", "10.0.0.1"),
            ("announce-port", "16379"),
            ("announce-tls-port", "16380"),
            ("announce-hostname", "a.example"),
            ("sentinel-port", "26379"),
            ("sentinel-tls-port", "26380"),
            ("sentinel-masters", "mail web"),
            ("cluster-port", "7000"),
            ("cluster-tls-port", "7001"),
            ("cluster-announce-port", "17000"),
            ("cluster-announce-tls-port", "17001"),
            ("cluster-preferred-endpoint-type", "hostname"),
            ("metrics-address", "127.0.0.1:9121"),
            ("metrics-tls", "yes"),
            ("trace-endpoint", "https://[::1]:4318/v1/traces"),
            ("trace-slow-commands", "yes"),
            ("dashboard-address", "0.0.0.0:9122"),
            ("dashboard-tls", "yes"),
            ("store", "fdb"),
            ("data-dir", "/var/lib/quoin"),
            ("accept-copied-data-dir", "yes"),
            ("fsync", "everysec"),
            ("backups-keep", "0"),
            ("journal-archive-dir", "/mnt/archive"),
            ("journal-archive-command", "cp %p /mnt/%f"),
            ("journal-archive-days", "30"),
            ("accept-journal-loss", "yes"),
            ("cluster-file", "/etc/x.cluster"),
            ("fdb-tls-certificate-file", "/etc/x.pem"),
            ("fdb-tls-key-file", "/etc/key.pem"),
            ("fdb-tls-ca-file", "/etc/ca.pem"),
            ("fdb-tls-verify-peers", "Check.Valid=1"),
            ("fdb-tls-password", "secret"),
            ("root-prefix", "other"),
            ("requirepass", "secret"),
            ("aclfile", "/etc/quoin/users.acl"),
            ("metrics-keys", "jobs:*"),
            ("metrics-queues", "256"),
            ("acl-pubsub-default", "allchannels"),
            ("acllog-max-len", "9223372036854775807"),
            ("protected-mode", "no"),
            ("forwarding", "no"),
            ("databases", "1024"),
            ("compatible-version", "8.4"),
            ("maxclients", "4294967295"),
            ("timeout", "2147483647"),
            ("tcp-keepalive", "2147483647"),
            ("io-threads", "128"),
            ("loglevel", "nothing"),
            ("log-format", "json"),
            ("logfile", "/var/log/quoin.log"),
            ("slowlog-log-slower-than", "-1"),
            ("slowlog-max-len", "9223372036854775807"),
            ("enable-scripts", "no"),
            ("busy-reply-threshold", "9223372036854775807"),
            ("lua-time-limit", "9223372036854775807"),
            ("latency-monitor-threshold", "9223372036854775807"),
            ("shutdown-timeout", "2147483647"),
            (
                "client-output-buffer-limit",
                "normal 1 2 3 slave 4 5 6 pubsub 7 8 9",
            ),
            ("client-query-buffer-limit", "9223372036854775807"),
            ("maxmemory", "18446744073709551615"),
            ("maxmemory-clients", "1048576"),
            ("cache-memory", "1048576"),
            ("notify-keyspace-events", "glKE"),
            ("hll-sparse-max-bytes", "0"),
            ("tracking-table-max-keys", "9223372036854775807"),
            ("stream-node-max-entries", "1"),
            ("stream-node-max-bytes", "1"),
            ("stream-idmp-duration", "1"),
            ("stream-idmp-maxsize", "1"),
        ];
        // `maxmemory-policy` takes one value.
        assert_eq!(others.len() + 1, SETTINGS.len());
        for (name, other) in others {
            let row = find(name).unwrap();
            let mut settings = Settings::default();
            row.set(&mut settings, other).unwrap();
            assert_ne!(settings, Settings::default(), "{name}");
            assert_eq!((row.render)(&settings), other, "{name}");
        }
    }

    #[test]
    fn variables_are_named_after_the_settings() {
        assert_eq!(find("Data-Dir").unwrap().environment(), "QUOIN_DATA_DIR");
    }

    #[cfg(feature = "fdb")]
    #[test]
    fn every_setting_of_the_store_reaches_it() {
        let mut settings = Settings::default();
        for name in [
            "cluster-file",
            "fdb-tls-certificate-file",
            "fdb-tls-key-file",
            "fdb-tls-ca-file",
            "fdb-tls-verify-peers",
            "fdb-tls-password",
        ] {
            find(name).unwrap().set(&mut settings, name).unwrap();
        }
        let options = quoin_store_fdb::FdbOptions::from(&settings);
        let text = |path: Option<std::path::PathBuf>| path.unwrap().display().to_string();
        assert_eq!(text(options.cluster_file), "cluster-file");
        assert_eq!(
            text(options.tls.certificate_file),
            "fdb-tls-certificate-file"
        );
        assert_eq!(text(options.tls.key_file), "fdb-tls-key-file");
        assert_eq!(text(options.tls.ca_file), "fdb-tls-ca-file");
        assert_eq!(
            options.tls.verify_peers.as_deref(),
            Some("fdb-tls-verify-peers")
        );
        assert_eq!(options.tls.password.as_deref(), Some("fdb-tls-password"));
    }
}
