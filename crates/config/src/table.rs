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
            "Addresses to listen on. Beyond loopback, set requirepass too: without it, protected-mode refuses clients of other machines";
    }
    port: u16 {
        "port" = "6379", Integer(0, 65_535), START,
            "TCP port. 0 is none where there is tls-port or unixsocket; otherwise it takes any free one, which is printed at the start";
    }
    tls_port: u16 {
        "tls-port" = "0", Integer(0, 65_535), START,
            "TCP port for clients that speak TLS; 0 is none. Needs tls-cert-file and tls-key-file (docs/operate/security.md)";
    }
    tls: ServerOptions {
        "tls-cert-file".certificate_file = "", Path, RUNTIME,
            "Certificate (PEM) that the server shows to clients of tls-port, with its chain. CONFIG SET of any tls- setting, and SIGHUP, read all of these files again; connections keep what they began with";
        "tls-key-file".key_file = "", Path, RUNTIME,
            "Key (PEM) that belongs to it";
        "tls-key-file-pass".key_password = "", Secret, RUNTIME,
            "Password of the key where it is encrypted (PKCS#8). Other users of the machine can see flags, so prefer the file or the variable";
        "tls-ca-cert-file".ca_file = "", Path, RUNTIME,
            "Certificates by which those of clients are judged (PEM)";
        "tls-ca-cert-dir".ca_dir = "", Path, RUNTIME,
            "Folder with files of such certificates";
        "tls-auth-clients".auth_clients = "yes", OneOf(AuthClients::NAMES), RUNTIME,
            "Whether clients of tls-port must have a certificate that tls-ca-cert-file or tls-ca-cert-dir accepts: yes, no (they are not asked), or optional (they may have none, but not a wrong one)";
        "tls-protocols".versions = "", Special(special::TLS_PROTOCOLS), RUNTIME,
            "Versions of TLS that are spoken; empty is both. Older ones are not there, and the ciphers are those of rustls, all of which are safe";
    }
    unixsocket: Option<PathBuf> {
        "unixsocket" = "", Path, START,
            "Path of a Unix socket for clients of this machine. It is removed when the server stops; one that a dead server has left there is replaced";
    }
    unixsocketperm: Permissions {
        "unixsocketperm" = "0", Special(special::PERMISSIONS), START,
            "Permissions of the Unix socket: 700 is for the server's user alone, 770 for its group too. 0 leaves what the process's mask (umask) gives";
    }
    announce_ip: Option<IpAddr> {
        "announce-ip" = "", Special(special::IP_ADDRESS), START,
            "Address of this server that it tells other servers and clients (docs/operate/several-servers.md). Without it, the first address of bind, or that of the network card by which other networks are reached where bind is 0.0.0.0 or ::";
    }
    announce_port: u16 {
        "announce-port" = "0", Integer(0, 65_535), START,
            "Port without TLS that this server tells them, where it is not that of port, as behind a forwarding of ports. 0 is that of port";
    }
    announce_tls_port: u16 {
        "announce-tls-port" = "0", Integer(0, 65_535), START,
            "The same for tls-port";
    }
    announce_hostname: String {
        "announce-hostname" = "", Special(special::HOST_NAME), START,
            "Host name of this server that clients get in place of its address, for example because its certificate has that name";
    }
    sentinel_port: u16 {
        "sentinel-port" = "0", Integer(0, 65_535), START,
            "TCP port on which the server answers as Redis Sentinel does, so that clients with Sentinel find a living server (docs/operate/several-servers.md); 26379 is usual, and 0 is none. Asks for no password except where something is changed";
    }
    sentinel_tls_port: u16 {
        "sentinel-tls-port" = "0", Integer(0, 65_535), START,
            "The same for clients that speak TLS, which get the ports for TLS of the servers";
    }
    sentinel_masters: Vec<String> {
        "sentinel-masters" = "mymaster", Special(special::MASTER_NAMES), START,
            "Names that clients with Sentinel ask for. For each name all servers name the same living server, and names spread over the servers: one name for each application. The same on all servers";
    }
    cluster_port: u16 {
        "cluster-port" = "0", Integer(0, 65_535), START,
            "TCP port on which the server answers as a node of Redis Cluster, so that clients of Cluster find the living servers and spread their keys over them (docs/operate/several-servers.md); 0 is none. Redis means the port of its cluster bus by this name, which Quoin does not have";
    }
    cluster_tls_port: u16 {
        "cluster-tls-port" = "0", Integer(0, 65_535), START,
            "The same for clients that speak TLS, which get the ports of the servers of this kind";
    }
    cluster_announce_port: u16 {
        "cluster-announce-port" = "0", Integer(0, 65_535), START,
            "Port that clients of Cluster get for this server, where it is not cluster-port, as behind a forwarding of ports. 0 is cluster-port. The address is that of announce-ip and announce-hostname";
    }
    cluster_announce_tls_port: u16 {
        "cluster-announce-tls-port" = "0", Integer(0, 65_535), START,
            "The same for cluster-tls-port";
    }
    cluster_preferred_endpoint_type: EndpointType {
        "cluster-preferred-endpoint-type" = "ip", OneOf(EndpointType::NAMES), START,
            "What clients of Cluster get as a server's address: its address, its announce-hostname, or nothing, which means the address where they have asked. The same on all servers";
    }
    metrics_address: Option<SocketAddr> {
        "metrics-address" = "", Special(special::SOCKET_ADDRESS), START,
            "Where Prometheus can read metrics over HTTP, at the path /metrics (docs/operate/metrics.md). Nobody is asked for a password there. Port 0 takes any free one, which is logged at the start";
    }
    metrics_keys: Vec<KeysPattern> {
        "metrics-keys" = "", Special(special::KEYS_PATTERNS), RUNTIME,
            "Keys whose lengths are among the metrics: names, or patterns as in KEYS, with a number and a slash in front for a database other than 0 (jobs:* 3/mail). At most 256 keys are shown; they are looked up every five seconds, by names alone";
    }
    metrics_queues: u32 {
        "metrics-queues" = "20", Integer(0, METRICS_QUEUES_MAX as i128), RUNTIME,
            "How many of the most active queues have metrics of what goes in and out (docs/operate/metrics.md), without being named. Each queue is four time series; up to twice as many queues are shown, because one stays for ten minutes. 0 is none";
    }
    metrics_tls: bool {
        "metrics-tls" = "no", YesNo, START,
            "Whether metrics are read over HTTPS, with tls-cert-file and tls-key-file. Their readers are not asked for certificates";
    }
    trace_endpoint: String {
        "trace-endpoint" = "", Special(special::TRACE_ENDPOINT), START,
            "URL of a collector to which the server sends traces of tasks that carry a traceparent, by OTLP over HTTP (docs/operate/traces.md), such as http://127.0.0.1:4318/v1/traces; empty is none. Headers, as for a password, are those of the variable OTEL_EXPORTER_OTLP_HEADERS";
    }
    trace_slow_commands: bool as Own {
        "trace-slow-commands" = "no", YesNo, RUNTIME,
            "Whether commands that enter the slow log (slowlog-log-slower-than) go to that collector too, each as a trace of its own";
    }
    dashboard_address: DashboardAddress {
        "dashboard-address" = "auto", Special(special::DASHBOARD_ADDRESS), START,
            "Where browsers find the dashboard (docs/operate/dashboard.md): an IP address with a port, or empty for none. With auto it is at 127.0.0.1:8379 if the store is embedded, port is reachable on loopback, and nobody else has the address. Port 0 takes any free one, which is logged at the start";
    }
    dashboard_tls: bool {
        "dashboard-tls" = "no", YesNo, START,
            "Whether the dashboard is served over HTTPS, with tls-cert-file and tls-key-file. Browsers are not asked for certificates";
    }
    store: StoreKind {
        "store" = "embedded", OneOf(StoreKind::NAMES), START,
            "Store that holds the data: embedded (a folder of this machine) or fdb (a FoundationDB cluster; needs a build with the feature fdb)";
    }
    data_dir: PathBuf {
        "data-dir" = "./quoin-data", Special(special::FOLDER), START,
            "Folder of the embedded store, which is made when it does not exist. Only one server can use it at a time";
    }
    accept_copied_data_dir: bool {
        "accept-copied-data-dir" = "no", YesNo, START,
            "Whether to open a copy of a data folder whose server was not stopped in order. Only for a folder that was copied as a whole after its server had ended: what was copied from a running server has pieces of different moments";
    }
    fsync: Fsync {
        "fsync" = "always", OneOf(Fsync::NAMES), START,
            "When the embedded store makes writes durable: always (before the reply) or everysec (once a second: a crash of the machine or of its power may lose acknowledged writes of the last second). FoundationDB is always durable";
    }
    cache_memory: MemoryLimit {
        "cache-memory" = "40%", BytesOrPercent, START,
            "Memory for rows of the embedded store: bytes, or a percentage of the machine's or container's memory. Beyond it, rows that were not read lately are read from the data file when they are needed again. A little more is taken while the data file lacks what was just written. 0 is no limit";
    }
    backups_keep: u32 {
        "backups-keep" = "7", Integer(0, U32_MAX), RUNTIME,
            "Backups of this store that are kept in the folder backups of data-dir, and in the folder of quoin backup --to (docs/operate/backup.md). Once a new one is complete, the oldest beyond this number are removed. 0 keeps all";
    }
    journal_archive_dir: Option<PathBuf> {
        "journal-archive-dir" = "", Path, START,
            "Folder, better on another disk, in which the embedded store keeps every commit, so that a backup can be brought to any later moment (docs/operate/backup.md). Where it cannot be written the journal grows up to 1 GiB, and then writes are refused. Without it nothing is kept";
    }
    journal_archive_command: String {
        "journal-archive-command" = "", Text, START,
            "Shell command that takes each file of journal-archive-dir to another place, such as install -D %p /mnt/archive/%f, as the server's user (docs/operate/backup.md). %p is the path of the file, %f its name within an archive, %% a percent sign. A file is removed when the command has succeeded; otherwise it stays and the command is run again";
    }
    journal_archive_days: u16 {
        "journal-archive-days" = "0", Integer(0, U16_MAX), RUNTIME,
            "Days that archived commits are kept at least. When a backup is complete, files of journal-archive-dir are removed whose commits are all older, and in that backup. 0 keeps all";
    }
    accepts_journal_loss: bool {
        "accept-journal-loss" = "no", YesNo, START,
            "Whether the embedded store opens where its journal is damaged, without the acknowledged commits from the damage on; the journal's files are kept under other names. For one start, and never in a file";
    }
    cluster_file: Option<PathBuf> {
        "cluster-file" = "", Path, START,
            "FoundationDB's cluster file. Without it, FoundationDB looks where it always does: FDB_CLUSTER_FILE, ./fdb.cluster, /etc/foundationdb/fdb.cluster";
    }
    fdb_tls: FdbTls {
        "fdb-tls-certificate-file".certificate_file = "", Path, START,
            "Certificate, with its chain, by which this server connects to a FoundationDB cluster whose addresses end with :tls. Without it, FoundationDB's FDB_TLS_CERTIFICATE_FILE holds";
        "fdb-tls-key-file".key_file = "", Path, START,
            "Key that belongs to it. Without it, FDB_TLS_KEY_FILE holds";
        "fdb-tls-ca-file".ca_file = "", Path, START,
            "Certificates by which those of the cluster are judged. Without it, FDB_TLS_CA_FILE holds";
        "fdb-tls-verify-peers".verify_peers = "", Text, START,
            "What the cluster's certificates must fulfil, in FoundationDB's notation, such as Check.Valid=1,S.O=Example. Without it, FDB_TLS_VERIFY_PEERS holds";
        "fdb-tls-password".password = "", Secret, START,
            "Password of the key file where it is encrypted. Other users of the machine can see flags, so prefer the file or the variable. Without it, FDB_TLS_PASSWORD holds";
    }
    root_prefix: String {
        "root-prefix" = "quoin", Special(special::ROOT_PREFIX), START,
            "Prefix under which the store holds everything. Servers with the same prefix on one cluster share their data; with another prefix they do not see each other";
    }
    forwarding: bool as Shared {
        "forwarding" = "yes", YesNo, RUNTIME,
            "Whether this server hands commands for which several servers would conflict, such as pops, to the one that owns their key (docs/understand/decisions/053-forwarding.md). Without it, they run here, and again after a conflict. It runs what others hand over in any case. The embedded store has no other servers";
    }
    requirepass: Option<String> {
        "requirepass" = "", Secret, RUNTIME,
            "Password that clients must give with AUTH or HELLO. Other users of the machine can see flags, so prefer the file or the variable";
    }
    aclfile: Option<PathBuf> {
        "aclfile" = "", Path, START,
            "File of users (docs/operate/security.md), which ACL SAVE writes and ACL LOAD reads. The embedded store reads it at the start; it must be there then. Without it, users that ACL SETUSER makes live until the restart. With a FoundationDB cluster users are in the store, and the file is only for ACL LOAD and SAVE";
    }
    acl_pubsub_default: ChannelsDefault {
        "acl-pubsub-default" = "resetchannels", OneOf(ChannelsDefault::NAMES), RUNTIME,
            "Whether a new user may use all channels (allchannels) or none (resetchannels) until a rule says otherwise";
    }
    acllog_max_len: u64 as Own {
        "acllog-max-len" = "128", Integer(0, I64_MAX), RUNTIME,
            "Entries that ACL LOG keeps of what users were refused";
    }
    protected_mode: bool as Own {
        "protected-mode" = "yes", YesNo, RUNTIME,
            "Whether only clients of this machine (127.0.0.1, ::1) are answered as long as there is no requirepass";
    }
    databases: u32 {
        "databases" = "16", Integer(1, DATABASES_MAX as i128), START,
            "Databases, numbered from 0, that SELECT reaches. Where it is lowered, keys of the databases above stay in the store and are out of reach. The same on all servers of a cluster";
    }
    compatible_version: RedisVersion {
        "compatible-version" = "7.2", OneOf(RedisVersion::NAMES), START,
            "Version of Redis that clients and scripts are told: 7.2 or 8.4 (docs/start/compatibility.md#the-version-that-clients-are-told). It decides how replies look that have changed; commands and options of later versions work with both";
    }
    maxclients: u32 as Own {
        "maxclients" = "10000", Integer(1, U32_MAX), RUNTIME,
            "Clients that may be connected at once; more are refused. Where the operating system allows too few open files (ulimit -n), it is lowered at the start";
    }
    timeout_s: u32 as Own {
        "timeout" = "0", Integer(0, I32_MAX), RUNTIME,
            "Seconds after which an idle client is disconnected. 0 is never";
    }
    tcp_keepalive_s: u32 as Own {
        "tcp-keepalive" = "300", Integer(0, I32_MAX), RUNTIME,
            "Seconds between TCP keepalive probes to clients. 0 is none. A change holds for new connections";
    }
    io_threads: usize {
        "io-threads" = "1", Integer(1, 128), START,
            "Threads that read requests and write replies; on the embedded store they run most commands too, and one is fastest";
    }
    log_level: LogLevel {
        "loglevel" = "notice", OneOf(LogLevel::NAMES), RUNTIME,
            "What is written to the log: debug (everything), verbose (connections, checkpoints and the like too), notice, warning (only what is wrong) or nothing. At the start info and warn, as the lines of the log say, mean notice and warning";
    }
    log_format: LogFormat {
        "log-format" = "text", OneOf(LogFormat::NAMES), START,
            "Form of the log's lines: text for people, or json (an object each, with timestamp, level and message)";
    }
    logfile: Option<PathBuf> {
        "logfile" = "", Path, START,
            "File to which the log is appended; empty is the standard error. SIGHUP opens it again, after a tool has moved it away";
    }
    slowlog_log_slower_than_us: i64 as Own {
        "slowlog-log-slower-than" = "10000", Integer(-1, I64_MAX), RUNTIME,
            "Microseconds beyond which a command enters the slow log. 0 logs every command, -1 none";
    }
    slowlog_max_len: u64 as Own {
        "slowlog-max-len" = "128", Integer(0, I64_MAX), RUNTIME,
            "Entries that the slow log keeps";
    }
    enable_scripts: bool {
        "enable-scripts" = "yes", YesNo, START,
            "Whether EVAL, EVALSHA and SCRIPT LOAD run scripts";
    }
    busy_reply_threshold_ms: u64 as Own {
        "busy-reply-threshold" = "5000", Integer(0, I64_MAX), RUNTIME,
            "Milliseconds after which a running script has the commands of all clients refused with BUSY, except SCRIPT KILL and the like. 0 never";
        "lua-time-limit" = "5000", Integer(0, I64_MAX), RUNTIME,
            "The older name of busy-reply-threshold";
    }
    latency_monitor_threshold_ms: u64 as Own {
        "latency-monitor-threshold" = "0", Integer(0, I64_MAX), RUNTIME,
            "Milliseconds beyond which an event enters the latency monitor. 0 turns it off";
    }
    shutdown_timeout_s: u32 as Own {
        "shutdown-timeout" = "10", Integer(0, I32_MAX), RUNTIME,
            "Seconds that a shutdown waits for commands in flight";
    }
    output_limits: OutputLimits as Own {
        "client-output-buffer-limit" = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60", Special(special::OUTPUT_LIMITS), RUNTIME,
            "Bytes that may wait for a client, by class: a hard limit, and a soft one with the seconds for which it may be exceeded; 0 is none. A client beyond is disconnected. The class pubsub are clients that are subscribed, normal all others; slave has no effect. Of a pipeline not more than about 256 KiB of replies wait at a time, so that only single replies can be larger";
    }
    query_buffer_limit_bytes: u64 as Own {
        "client-query-buffer-limit" = "1073741824", Bytes(1_048_576, I64_MAX), RUNTIME,
            "Bytes of requests that may wait of one client which sends but does not read, or waits in a blocking command. A client beyond is disconnected. Of one that has not authenticated it is 1 MiB";
    }
    maxmemory_bytes: u64 as Shared {
        "maxmemory" = "0", Bytes(0, U64_MAX), RUNTIME,
            "Bytes of data in the store; 0 is no bound. Beyond it commands that add data are refused, as by Redis (docs/operate/limits.md#maxmemory). Embedded store only";
    }
    maxmemory_policy: EvictionPolicy {
        "maxmemory-policy" = "noeviction", Special(special::EVICTION_POLICY), RUNTIME,
            "What happens beyond maxmemory: as queues must not lose elements, nothing is evicted";
    }
    maxmemory_clients: MemoryLimit as Own {
        "maxmemory-clients" = "25%", BytesOrPercent, RUNTIME,
            "Memory that all clients may take together (requests, replies, messages, what MULTI has queued, names of subscriptions and of watched keys, and what else is kept for a client): bytes, or a percentage of the machine's or container's memory. With many clients, each gets fewer replies at a time. Beyond it, clients are disconnected, those that have not authenticated first and then the largest; those with CLIENT NO-EVICT are spared. 0 is no limit";
    }
    keyspace_events: EventClasses as Shared {
        "notify-keyspace-events" = "", Special(special::KEYSPACE_EVENTS), RUNTIME,
            "Changes of keys that are published: K (channels named after keys) or E (named after events) or both, with g (generic), l (lists), z (sorted sets), d (what Redis has not, such as priority queues), x (expired), n (new keys), or A for all but n. Empty is none";
    }
    hll_sparse_max_bytes: u64 as Shared {
        "hll-sparse-max-bytes" = "3000", Bytes(0, I64_MAX), RUNTIME,
            "Most bytes of a HyperLogLog in the sparse encoding; beyond them it becomes dense (12,304 bytes)";
    }
    tracking_table_max_keys: u64 as Own {
        "tracking-table-max-keys" = "1000000", Integer(0, I64_MAX), RUNTIME,
            "Keys that are remembered for clients that cache them (CLIENT TRACKING); beyond it, random ones are forgotten, as if they had changed. 0 is no limit";
    }
    stream_node_max_entries: u64 as Shared {
        "stream-node-max-entries" = "100", Integer(0, I64_MAX), RUNTIME,
            "Most entries of a stream that are trimmed together where it is trimmed approximately (MAXLEN ~, MINID ~); 0 is no limit";
    }
    stream_node_max_bytes: u64 as Shared {
        "stream-node-max-bytes" = "4096", Bytes(0, I64_MAX), RUNTIME,
            "Bytes of the same, counted as in Redis, unless one entry has more; 0 is no limit";
    }
    stream_idmp_duration_s: u64 as Shared {
        "stream-idmp-duration" = "100", Integer(1, STREAM_PRODUCED_DURATION_S_MAX as i128), RUNTIME,
            "Seconds for which streams without a setting of their own (XCFGSET) remember what producers have added (XADD with IDMP). The same on all servers of a cluster";
    }
    stream_idmp_maxsize: u64 as Shared {
        "stream-idmp-maxsize" = "100", Integer(1, STREAM_PRODUCED_MAX as i128), RUNTIME,
            "Most entries of a producer that such streams remember";
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
            "the size of a FoundationDB cluster's data is not known at once: only 0 is possible",
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
