//! The one table of settings. From it come the keys of the file, the `QUOIN_*` variables, the
//! flags, `--help`, config/quoin.toml, docs/operate/configuration.md and what CONFIG GET, SET and
//! REWRITE know of Quoin's own settings.

use std::fmt;
use std::path::PathBuf;

use super::settings::{Fsync, LogFormat, LogLevel, MemoryLimit, Settings, StoreKind};
use super::special::{
    self, parse_addresses, parse_keys_patterns, parse_output_limits, parse_permissions,
    parse_tls_protocols, render_keys_patterns, render_output_limits, render_tls_protocols,
};
use super::value::Kind;
use crate::events::EventClasses;
use crate::limits::DATABASES_MAX;
use crate::tls::{AuthClients, Password};

const I32_MAX: i128 = i32::MAX as i128;
const I64_MAX: i128 = i64::MAX as i128;
const U64_MAX: i128 = u64::MAX as i128;

/// One setting.
#[derive(Debug)]
pub struct SettingRow {
    /// Key in the file and in CONFIG, and the flag behind `--`: as Redis calls it where Redis
    /// has it.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// The default, written as in a variable or flag; empty is none.
    pub default: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Whether CONFIG SET changes it in a running server.
    pub is_runtime_changeable: bool,
    /// Puts a value, in the usual form that `kind` gives, into the settings; `None` when it is
    /// not one.
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

    /// Reads `given` into `settings`. The error says why it does not fit.
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

fn path_or_none(value: &str) -> Option<PathBuf> {
    (!value.is_empty()).then(|| PathBuf::from(value))
}

fn render_path(path: &Option<PathBuf>) -> String {
    match path {
        Some(path) => path.display().to_string(),
        None => String::new(),
    }
}

fn text_or_none(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}

/// Every setting, in the order of the documents.
pub static SETTINGS: &[SettingRow] = &[
    SettingRow {
        name: "bind",
        kind: Kind::Special(special::ADDRESSES),
        default: "127.0.0.1",
        help: "Addresses to listen on. Beyond loopback, set requirepass too: without it, protected-mode refuses clients of other machines",
        is_runtime_changeable: false,
        apply: |settings, value| parse_addresses(value).map(|list| settings.bind = list),
        render: |settings| {
            let words: Vec<String> = settings.bind.iter().map(ToString::to_string).collect();
            words.join(" ")
        },
    },
    SettingRow {
        name: "port",
        kind: Kind::Integer(0, 65_535),
        default: "6379",
        help: "TCP port. 0 is none where there is tls-port or unixsocket; otherwise it takes any free one, which is printed at the start",
        is_runtime_changeable: false,
        apply: |settings, value| value.parse().ok().map(|port| settings.port = port),
        render: |settings| settings.port.to_string(),
    },
    SettingRow {
        name: "tls-port",
        kind: Kind::Integer(0, 65_535),
        default: "0",
        help: "TCP port for clients that speak TLS; 0 is none. Needs tls-cert-file and tls-key-file (docs/operate/security.md)",
        is_runtime_changeable: false,
        apply: |settings, value| value.parse().ok().map(|port| settings.tls_port = port),
        render: |settings| settings.tls_port.to_string(),
    },
    SettingRow {
        name: "tls-cert-file",
        kind: Kind::Path,
        default: "",
        help: "Certificate (PEM) that the server shows to clients of tls-port, with its chain. CONFIG SET of any tls- setting, and SIGHUP, read all of these files again; connections keep what they began with",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.tls.certificate_file = path_or_none(value);
            Some(())
        },
        render: |settings| render_path(&settings.tls.certificate_file),
    },
    SettingRow {
        name: "tls-key-file",
        kind: Kind::Path,
        default: "",
        help: "Key (PEM) that belongs to it",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.tls.key_file = path_or_none(value);
            Some(())
        },
        render: |settings| render_path(&settings.tls.key_file),
    },
    SettingRow {
        name: "tls-key-file-pass",
        kind: Kind::Secret,
        default: "",
        help: "Password of the key where it is encrypted (PKCS#8). Other users of the machine can see flags, so prefer the file or the variable",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.tls.key_password = text_or_none(value).map(Password);
            Some(())
        },
        render: |settings| match &settings.tls.key_password {
            Some(password) => password.0.clone(),
            None => String::new(),
        },
    },
    SettingRow {
        name: "tls-ca-cert-file",
        kind: Kind::Path,
        default: "",
        help: "Certificates by which those of clients are judged (PEM)",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.tls.ca_file = path_or_none(value);
            Some(())
        },
        render: |settings| render_path(&settings.tls.ca_file),
    },
    SettingRow {
        name: "tls-ca-cert-dir",
        kind: Kind::Path,
        default: "",
        help: "Folder with files of such certificates",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.tls.ca_dir = path_or_none(value);
            Some(())
        },
        render: |settings| render_path(&settings.tls.ca_dir),
    },
    SettingRow {
        name: "tls-auth-clients",
        kind: Kind::OneOf(AuthClients::NAMES),
        default: "yes",
        help: "Whether clients of tls-port must have a certificate that tls-ca-cert-file or tls-ca-cert-dir accepts: yes, no (they are not asked), or optional (they may have none, but not a wrong one)",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.tls.auth_clients = AuthClients::from_name(value)?;
            Some(())
        },
        render: |settings| settings.tls.auth_clients.name().to_owned(),
    },
    SettingRow {
        name: "tls-protocols",
        kind: Kind::Special(special::TLS_PROTOCOLS),
        default: "",
        help: "Versions of TLS that are spoken; empty is both. Older ones are not there, and the ciphers are those of rustls, all of which are safe",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.tls.versions = parse_tls_protocols(value)?;
            Some(())
        },
        render: |settings| render_tls_protocols(&settings.tls.versions),
    },
    SettingRow {
        name: "unixsocket",
        kind: Kind::Path,
        default: "",
        help: "Path of a Unix socket for clients of this machine. It is removed when the server stops; one that a dead server has left there is replaced",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.unixsocket = path_or_none(value);
            Some(())
        },
        render: |settings| render_path(&settings.unixsocket),
    },
    SettingRow {
        name: "unixsocketperm",
        kind: Kind::Special(special::PERMISSIONS),
        default: "0",
        help: "Permissions of the Unix socket: 700 is for the server's user alone, 770 for its group too. 0 leaves what the process's mask (umask) gives",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.unixsocketperm = parse_permissions(value)?;
            Some(())
        },
        render: |settings| format!("{:o}", settings.unixsocketperm),
    },
    SettingRow {
        name: "metrics-address",
        kind: Kind::Special(special::SOCKET_ADDRESS),
        default: "",
        help: "Where Prometheus can read metrics over HTTP, at the path /metrics (docs/operate/metrics.md). Nobody is asked for a password there. Port 0 takes any free one, which is logged at the start",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.metrics_address = match value {
                "" => None,
                value => Some(value.parse().ok()?),
            };
            Some(())
        },
        render: |settings| match &settings.metrics_address {
            Some(address) => address.to_string(),
            None => String::new(),
        },
    },
    SettingRow {
        name: "metrics-keys",
        kind: Kind::Special(special::KEYS_PATTERNS),
        default: "",
        help: "Keys whose lengths are among the metrics: names, or patterns as in KEYS, with a number and a slash in front for a database other than 0 (jobs:* 3/mail). At most 256 keys are shown; they are looked up every five seconds, by names alone",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.metrics_keys = parse_keys_patterns(value)?;
            Some(())
        },
        render: |settings| render_keys_patterns(&settings.metrics_keys),
    },
    SettingRow {
        name: "metrics-tls",
        kind: Kind::YesNo,
        default: "no",
        help: "Whether metrics are read over HTTPS, with tls-cert-file and tls-key-file. Their readers are not asked for certificates",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.metrics_tls = value == "yes";
            Some(())
        },
        render: |settings| match settings.metrics_tls {
            true => "yes".to_owned(),
            false => "no".to_owned(),
        },
    },
    SettingRow {
        name: "store",
        kind: Kind::OneOf(StoreKind::NAMES),
        default: "embedded",
        help: "Store that holds the data: embedded (a folder of this machine) or fdb (a FoundationDB cluster; needs a build with the feature fdb)",
        is_runtime_changeable: false,
        apply: |settings, value| StoreKind::from_name(value).map(|kind| settings.store = kind),
        render: |settings| settings.store.name().to_owned(),
    },
    SettingRow {
        name: "data-dir",
        kind: Kind::Special(special::FOLDER),
        default: "./quoin-data",
        help: "Folder of the embedded store, which is made when it does not exist. Only one server can use it at a time",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.data_dir = PathBuf::from(value);
            Some(())
        },
        render: |settings| settings.data_dir.display().to_string(),
    },
    SettingRow {
        name: "accept-copied-data-dir",
        kind: Kind::YesNo,
        default: "no",
        help: "Whether to open a copy of a data folder whose server was not stopped in order. Only for a folder that was copied as a whole after its server had ended: what was copied from a running server has pieces of different moments",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.accept_copied_data_dir = value == "yes";
            Some(())
        },
        render: |settings| {
            let is_accepted = settings.accept_copied_data_dir;
            if is_accepted { "yes" } else { "no" }.to_owned()
        },
    },
    SettingRow {
        name: "fsync",
        kind: Kind::OneOf(Fsync::NAMES),
        default: "always",
        help: "When the embedded store makes writes durable: always (before the reply) or everysec (once a second: a crash of the machine or of its power may lose acknowledged writes of the last second). FoundationDB is always durable",
        is_runtime_changeable: false,
        apply: |settings, value| Fsync::from_name(value).map(|fsync| settings.fsync = fsync),
        render: |settings| settings.fsync.name().to_owned(),
    },
    SettingRow {
        name: "backups-keep",
        kind: Kind::Integer(0, u32::MAX as i128),
        default: "7",
        help: "Backups of this store that are kept in the folder backups of data-dir, and in the folder of quoin backup --to (docs/operate/backup.md). When another is complete the oldest beyond so many are removed. 0 keeps all",
        is_runtime_changeable: true,
        apply: |settings, value| {
            let backups = value.parse().ok()?;
            settings.backups_keep = backups;
            Some(())
        },
        render: |settings| settings.backups_keep.to_string(),
    },
    SettingRow {
        name: "journal-archive-dir",
        kind: Kind::Path,
        default: "",
        help: "Folder, better on another disk, in which the embedded store keeps every commit, so that a backup can be brought to any later moment (docs/operate/backup.md). Where it cannot be written the journal grows up to 1 GiB, and then writes are refused. Without it nothing is kept",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.journal_archive_dir = path_or_none(value);
            Some(())
        },
        render: |settings| render_path(&settings.journal_archive_dir),
    },
    SettingRow {
        name: "journal-archive-days",
        kind: Kind::Integer(0, u16::MAX as i128),
        default: "0",
        help: "Days that archived commits are kept at least. When a backup is complete, files of journal-archive-dir are removed whose commits are all older, and in that backup. 0 keeps all",
        is_runtime_changeable: true,
        apply: |settings, value| {
            let days = value.parse().ok()?;
            settings.journal_archive_days = days;
            Some(())
        },
        render: |settings| settings.journal_archive_days.to_string(),
    },
    SettingRow {
        name: "accept-journal-loss",
        kind: Kind::YesNo,
        default: "no",
        help: "Whether the embedded store opens where its journal is damaged, without the acknowledged commits from the damage on; the journal's files are kept under other names. For one start, and never in a file",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.accepts_journal_loss = value == "yes";
            Some(())
        },
        render: |settings| {
            let shown = if settings.accepts_journal_loss {
                "yes"
            } else {
                "no"
            };
            shown.to_owned()
        },
    },
    SettingRow {
        name: "cluster-file",
        kind: Kind::Path,
        default: "",
        help: "FoundationDB's cluster file. Without it, FoundationDB looks where it always does: FDB_CLUSTER_FILE, ./fdb.cluster, /etc/foundationdb/fdb.cluster",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.cluster_file = path_or_none(value);
            Some(())
        },
        render: |settings| render_path(&settings.cluster_file),
    },
    SettingRow {
        name: "fdb-tls-certificate-file",
        kind: Kind::Path,
        default: "",
        help: "Certificate, with its chain, by which this server connects to a FoundationDB cluster whose addresses end with :tls. Without it, FoundationDB's FDB_TLS_CERTIFICATE_FILE holds",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.fdb_tls.certificate_file = path_or_none(value);
            Some(())
        },
        render: |settings| render_path(&settings.fdb_tls.certificate_file),
    },
    SettingRow {
        name: "fdb-tls-key-file",
        kind: Kind::Path,
        default: "",
        help: "Key that belongs to it. Without it, FDB_TLS_KEY_FILE holds",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.fdb_tls.key_file = path_or_none(value);
            Some(())
        },
        render: |settings| render_path(&settings.fdb_tls.key_file),
    },
    SettingRow {
        name: "fdb-tls-ca-file",
        kind: Kind::Path,
        default: "",
        help: "Certificates by which those of the cluster are judged. Without it, FDB_TLS_CA_FILE holds",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.fdb_tls.ca_file = path_or_none(value);
            Some(())
        },
        render: |settings| render_path(&settings.fdb_tls.ca_file),
    },
    SettingRow {
        name: "fdb-tls-verify-peers",
        kind: Kind::Text,
        default: "",
        help: "What the cluster's certificates must fulfil, in FoundationDB's notation, such as Check.Valid=1,S.O=Example. Without it, FDB_TLS_VERIFY_PEERS holds",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.fdb_tls.verify_peers = text_or_none(value);
            Some(())
        },
        render: |settings| settings.fdb_tls.verify_peers.clone().unwrap_or_default(),
    },
    SettingRow {
        name: "fdb-tls-password",
        kind: Kind::Secret,
        default: "",
        help: "Password of the key file where it is encrypted. Other users of the machine can see flags, so prefer the file or the variable. Without it, FDB_TLS_PASSWORD holds",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.fdb_tls.password = text_or_none(value);
            Some(())
        },
        render: |settings| settings.fdb_tls.password.clone().unwrap_or_default(),
    },
    SettingRow {
        name: "root-prefix",
        kind: Kind::Special(special::ROOT_PREFIX),
        default: "quoin",
        help: "Prefix under which the store holds everything. Servers with the same prefix on one cluster share their data; with another prefix they do not see each other",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.root_prefix = value.to_owned();
            Some(())
        },
        render: |settings| settings.root_prefix.clone(),
    },
    SettingRow {
        name: "delegated-pops",
        kind: Kind::YesNo,
        default: "yes",
        help: "Whether this server and others on its cluster pop for each other from queues on which their pops conflict (docs/understand/decisions/012-delegated-pops.md). Without it, they retry until they do not conflict. What others have popped for this server is given to its clients all the same. The embedded store has no other servers",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.delegated_pops = value == "yes";
            Some(())
        },
        render: |settings| match settings.delegated_pops {
            true => "yes".to_owned(),
            false => "no".to_owned(),
        },
    },
    SettingRow {
        name: "requirepass",
        kind: Kind::Secret,
        default: "",
        help: "Password that clients must give with AUTH or HELLO. Other users of the machine can see flags, so prefer the file or the variable",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.requirepass = text_or_none(value);
            Some(())
        },
        render: |settings| settings.requirepass.clone().unwrap_or_default(),
    },
    SettingRow {
        name: "aclfile",
        kind: Kind::Path,
        default: "",
        help: "File of users (docs/operate/security.md), which ACL SAVE writes and ACL LOAD reads. The embedded store reads it at the start; it must be there then. Without it, users that ACL SETUSER makes live until the restart. With a FoundationDB cluster users are in the store, and the file is only for ACL LOAD and SAVE",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.aclfile = path_or_none(value);
            Some(())
        },
        render: |settings| render_path(&settings.aclfile),
    },
    SettingRow {
        name: "acl-pubsub-default",
        kind: Kind::OneOf(&["allchannels", "resetchannels"]),
        default: "resetchannels",
        help: "Whether a new user may use all channels (allchannels) or none (resetchannels) until a rule says otherwise",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.acl_pubsub_all_channels = value == "allchannels";
            Some(())
        },
        render: |settings| match settings.acl_pubsub_all_channels {
            true => "allchannels".to_owned(),
            false => "resetchannels".to_owned(),
        },
    },
    SettingRow {
        name: "acllog-max-len",
        kind: Kind::Integer(0, I64_MAX),
        default: "128",
        help: "Entries that ACL LOG keeps of what users were refused",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.acllog_max_len = value.parse().ok()?;
            Some(())
        },
        render: |settings| settings.acllog_max_len.to_string(),
    },
    SettingRow {
        name: "protected-mode",
        kind: Kind::YesNo,
        default: "yes",
        help: "Whether only clients of this machine (127.0.0.1, ::1) are answered as long as there is no requirepass",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.protected_mode = value == "yes";
            Some(())
        },
        render: |settings| match settings.protected_mode {
            true => "yes".to_owned(),
            false => "no".to_owned(),
        },
    },
    SettingRow {
        name: "databases",
        kind: Kind::Integer(1, DATABASES_MAX as i128),
        default: "16",
        help: "Databases, numbered from 0, that SELECT reaches. Where it is lowered, keys of the databases above stay in the store and are out of reach. The same on all servers of a cluster",
        is_runtime_changeable: false,
        apply: |settings, value| value.parse().ok().map(|number| settings.databases = number),
        render: |settings| settings.databases.to_string(),
    },
    SettingRow {
        name: "maxclients",
        kind: Kind::Integer(1, u32::MAX as i128),
        default: "10000",
        help: "Clients that may be connected at once; more are refused. Where the operating system allows too few open files (ulimit -n), it is lowered at the start",
        is_runtime_changeable: true,
        apply: |settings, value| {
            value
                .parse()
                .ok()
                .map(|number| settings.maxclients = number)
        },
        render: |settings| settings.maxclients.to_string(),
    },
    SettingRow {
        name: "timeout",
        kind: Kind::Integer(0, I32_MAX),
        default: "0",
        help: "Seconds after which an idle client is disconnected. 0 is never",
        is_runtime_changeable: true,
        apply: |settings, value| value.parse().ok().map(|number| settings.timeout_s = number),
        render: |settings| settings.timeout_s.to_string(),
    },
    SettingRow {
        name: "tcp-keepalive",
        kind: Kind::Integer(0, I32_MAX),
        default: "300",
        help: "Seconds between TCP keepalive probes to clients. 0 is none. A change holds for new connections",
        is_runtime_changeable: true,
        apply: |settings, value| {
            let seconds = value.parse().ok()?;
            settings.tcp_keepalive_s = seconds;
            Some(())
        },
        render: |settings| settings.tcp_keepalive_s.to_string(),
    },
    SettingRow {
        name: "io-threads",
        kind: Kind::Integer(1, 128),
        default: "1",
        help: "Threads that read requests and write replies; on the embedded store they run most commands too, and one is fastest",
        is_runtime_changeable: false,
        apply: |settings, value| {
            value
                .parse()
                .ok()
                .map(|number| settings.io_threads = number)
        },
        render: |settings| settings.io_threads.to_string(),
    },
    SettingRow {
        name: "loglevel",
        kind: Kind::OneOf(LogLevel::NAMES),
        default: "notice",
        help: "What is written to the log: debug (everything), verbose (connections, checkpoints and the like too), notice, warning (only what is wrong) or nothing. At the start info and warn, as the lines of the log say, mean notice and warning",
        is_runtime_changeable: true,
        apply: |settings, value| LogLevel::from_name(value).map(|level| settings.log_level = level),
        render: |settings| settings.log_level.name().to_owned(),
    },
    SettingRow {
        name: "log-format",
        kind: Kind::OneOf(LogFormat::NAMES),
        default: "text",
        help: "Form of the log's lines: text for people, or json (an object each, with timestamp, level and message)",
        is_runtime_changeable: false,
        apply: |settings, value| {
            LogFormat::from_name(value).map(|format| settings.log_format = format)
        },
        render: |settings| settings.log_format.name().to_owned(),
    },
    SettingRow {
        name: "logfile",
        kind: Kind::Path,
        default: "",
        help: "File to which the log is appended; empty is the standard error. SIGHUP opens it again, after a tool has moved it away",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.logfile = path_or_none(value);
            Some(())
        },
        render: |settings| render_path(&settings.logfile),
    },
    SettingRow {
        name: "slowlog-log-slower-than",
        kind: Kind::Integer(-1, I64_MAX),
        default: "10000",
        help: "Microseconds beyond which a command enters the slow log. 0 logs every command, -1 none",
        is_runtime_changeable: true,
        apply: |settings, value| {
            let microseconds = value.parse().ok()?;
            settings.slowlog_log_slower_than_us = microseconds;
            Some(())
        },
        render: |settings| settings.slowlog_log_slower_than_us.to_string(),
    },
    SettingRow {
        name: "slowlog-max-len",
        kind: Kind::Integer(0, I64_MAX),
        default: "128",
        help: "Entries that the slow log keeps",
        is_runtime_changeable: true,
        apply: |settings, value| {
            let entries = value.parse().ok()?;
            settings.slowlog_max_len = entries;
            Some(())
        },
        render: |settings| settings.slowlog_max_len.to_string(),
    },
    SettingRow {
        name: "enable-scripts",
        kind: Kind::YesNo,
        default: "yes",
        help: "Whether EVAL, EVALSHA and SCRIPT LOAD run scripts",
        is_runtime_changeable: false,
        apply: |settings, value| {
            settings.enable_scripts = value == "yes";
            Some(())
        },
        render: |settings| match settings.enable_scripts {
            true => "yes".to_owned(),
            false => "no".to_owned(),
        },
    },
    SettingRow {
        name: "busy-reply-threshold",
        kind: Kind::Integer(0, I64_MAX),
        default: "5000",
        help: "Milliseconds after which a running script has the commands of all clients refused with BUSY, except SCRIPT KILL and the like. 0 never",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.busy_reply_threshold_ms = value.parse().ok()?;
            Some(())
        },
        render: |settings| settings.busy_reply_threshold_ms.to_string(),
    },
    SettingRow {
        name: "lua-time-limit",
        kind: Kind::Integer(0, I64_MAX),
        default: "5000",
        help: "The older name of busy-reply-threshold",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.busy_reply_threshold_ms = value.parse().ok()?;
            Some(())
        },
        render: |settings| settings.busy_reply_threshold_ms.to_string(),
    },
    SettingRow {
        name: "latency-monitor-threshold",
        kind: Kind::Integer(0, I64_MAX),
        default: "0",
        help: "Milliseconds beyond which an event enters the latency monitor. 0 turns it off",
        is_runtime_changeable: true,
        apply: |settings, value| {
            let milliseconds = value.parse().ok()?;
            settings.latency_monitor_threshold_ms = milliseconds;
            Some(())
        },
        render: |settings| settings.latency_monitor_threshold_ms.to_string(),
    },
    SettingRow {
        name: "shutdown-timeout",
        kind: Kind::Integer(0, I32_MAX),
        default: "10",
        help: "Seconds that a shutdown waits for commands in flight",
        is_runtime_changeable: true,
        apply: |settings, value| {
            let seconds = value.parse().ok()?;
            settings.shutdown_timeout_s = seconds;
            Some(())
        },
        render: |settings| settings.shutdown_timeout_s.to_string(),
    },
    SettingRow {
        name: "client-output-buffer-limit",
        kind: Kind::Special(special::OUTPUT_LIMITS),
        default: "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        help: "Bytes that may wait for a client, by class: a hard limit, and a soft one with the seconds for which it may be exceeded; 0 is none. A client beyond is disconnected. The class pubsub are clients that are subscribed, normal all others; slave has no effect. Of a pipeline not more than about 256 KiB of replies wait at a time, so that only single replies can be larger",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.output_limits = parse_output_limits(value)?;
            Some(())
        },
        render: |settings| render_output_limits(&settings.output_limits),
    },
    SettingRow {
        name: "client-query-buffer-limit",
        kind: Kind::Bytes(1_048_576, I64_MAX),
        default: "1073741824",
        help: "Bytes of requests that may wait of one client which sends but does not read, or waits in a blocking command. A client beyond is disconnected. Of one that has not authenticated it is 1 MiB",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.query_buffer_limit_bytes = value.parse().ok()?;
            Some(())
        },
        render: |settings| settings.query_buffer_limit_bytes.to_string(),
    },
    SettingRow {
        name: "maxmemory",
        kind: Kind::Bytes(0, U64_MAX),
        default: "0",
        help: "Bytes of data in the store; 0 is no bound. Beyond it commands that add data are refused, as by Redis (docs/operate/limits.md#maxmemory). Embedded store only",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.maxmemory_bytes = value.parse().ok()?;
            Some(())
        },
        render: |settings| settings.maxmemory_bytes.to_string(),
    },
    SettingRow {
        name: "maxmemory-policy",
        kind: Kind::Special(special::EVICTION_POLICY),
        default: "noeviction",
        help: "What happens beyond maxmemory: as queues must not lose elements, nothing is evicted",
        is_runtime_changeable: true,
        apply: |_, _| Some(()),
        render: |_| special::NO_EVICTION.to_owned(),
    },
    SettingRow {
        name: "maxmemory-clients",
        kind: Kind::BytesOrPercent,
        default: "25%",
        help: "Memory that all clients may take together (requests, replies, messages, what MULTI has queued, names of subscriptions and of watched keys, and what else is kept for a client): bytes, or a percentage of the machine's or container's memory. With many clients, each gets fewer replies at a time. Beyond it, clients are disconnected, those that have not authenticated first and then the largest; those with CLIENT NO-EVICT are spared. 0 is no limit",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.maxmemory_clients = MemoryLimit::parse(value)?;
            Some(())
        },
        render: |settings| settings.maxmemory_clients.to_string(),
    },
    SettingRow {
        name: "notify-keyspace-events",
        kind: Kind::Special(special::KEYSPACE_EVENTS),
        default: "",
        help: "Changes of keys that are published: K (channels named after keys) or E (named after events) or both, with g (generic), l (lists), z (sorted sets), d (what Redis has not, such as priority queues), x (expired), n (new keys), or A for all but n. Empty is none",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.keyspace_events = EventClasses::parse(value)?;
            Some(())
        },
        render: |settings| settings.keyspace_events.letters(),
    },
    SettingRow {
        name: "hll-sparse-max-bytes",
        kind: Kind::Bytes(0, I64_MAX),
        default: "3000",
        help: "Most bytes of a HyperLogLog in the sparse encoding; beyond them it becomes dense (12,304 bytes)",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.hll_sparse_max_bytes = value.parse().ok()?;
            Some(())
        },
        render: |settings| settings.hll_sparse_max_bytes.to_string(),
    },
    SettingRow {
        name: "tracking-table-max-keys",
        kind: Kind::Integer(0, I64_MAX),
        default: "1000000",
        help: "Keys that are remembered for clients that cache them (CLIENT TRACKING); beyond it, random ones are forgotten, as if they had changed. 0 is no limit",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.tracking_table_max_keys = value.parse().ok()?;
            Some(())
        },
        render: |settings| settings.tracking_table_max_keys.to_string(),
    },
    SettingRow {
        name: "stream-node-max-entries",
        kind: Kind::Integer(0, I64_MAX),
        default: "100",
        help: "Most entries of a stream that are trimmed together where it is trimmed approximately (MAXLEN ~, MINID ~); 0 is no limit",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.stream_node_max_entries = value.parse().ok()?;
            Some(())
        },
        render: |settings| settings.stream_node_max_entries.to_string(),
    },
    SettingRow {
        name: "stream-node-max-bytes",
        kind: Kind::Bytes(0, I64_MAX),
        default: "4096",
        help: "Bytes of the same, counted as in Redis, unless one entry has more; 0 is no limit",
        is_runtime_changeable: true,
        apply: |settings, value| {
            settings.stream_node_max_bytes = value.parse().ok()?;
            Some(())
        },
        render: |settings| settings.stream_node_max_bytes.to_string(),
    },
];

impl fmt::Debug for Settings {
    /// By the table, so that passwords stay out of logs.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_the_table_are_those_of_the_struct() {
        let mut settings = Settings::default();
        for row in SETTINGS {
            assert_eq!((row.render)(&settings), row.default, "{}", row.name);
            row.set(&mut settings, row.default).unwrap();
        }
        assert_eq!(settings, Settings::default());
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
            ("metrics-address", "127.0.0.1:9121"),
            ("metrics-tls", "yes"),
            ("store", "fdb"),
            ("data-dir", "/var/lib/quoin"),
            ("accept-copied-data-dir", "yes"),
            ("fsync", "everysec"),
            ("backups-keep", "0"),
            ("journal-archive-dir", "/mnt/archive"),
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
            ("acl-pubsub-default", "allchannels"),
            ("acllog-max-len", "9223372036854775807"),
            ("protected-mode", "no"),
            ("delegated-pops", "no"),
            ("databases", "1024"),
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
            ("notify-keyspace-events", "glKE"),
            ("hll-sparse-max-bytes", "0"),
            ("tracking-table-max-keys", "9223372036854775807"),
            ("stream-node-max-entries", "1"),
            ("stream-node-max-bytes", "1"),
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
}
