//! Parameters of Redis 7.2 that Quoin knows but does not use. CONFIG GET returns Redis's defaults,
//! and CONFIG SET checks, stores and echoes values, so that clients and test suites that set them
//! work. Names, bounds and defaults are those of `config.c`. (INFO latencystats asks for
//! `latency-tracking` and `latency-tracking-info-percentiles` by name.)
//!
//! If Redis's default would be wrong for Quoin, the default differs: there are no snapshots (`save`
//! is empty), every write is kept (`appendonly` is yes, `appendfsync` follows `fsync`), and DEBUG
//! is available to everyone.

use crate::special;
use crate::table::SETTINGS;
use crate::value::Kind;
use crate::value::Kind::{Bytes, Integer, OneOf, Secret, SomeOf, Special, Text, YesNo};

const I32_MIN: i128 = i32::MIN as i128;
const I32_MAX: i128 = i32::MAX as i128;
const U32_MAX: i128 = u32::MAX as i128;
const I64_MAX: i128 = i64::MAX as i128;
const U64_MAX: i128 = u64::MAX as i128;

/// A parameter that is remembered and echoed.
#[derive(Debug)]
pub(super) struct ParameterRow {
    /// Its name.
    pub(super) name: &'static str,
    /// Its older name, or nothing.
    pub(super) alias: &'static str,
    /// What it accepts.
    pub(super) kind: Kind,
    /// Its value at the start.
    pub(super) default: &'static str,
    /// Whether CONFIG SET takes it.
    pub(super) change: Change,
    /// Whether patterns do not match it, as for Redis's parameters for tests.
    pub(super) is_hidden: bool,
}

/// Whether CONFIG SET takes a parameter.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    /// Any valid value.
    Free,
    /// No value, as in Redis. Only a restart changes it.
    Immutable,
    /// No value, as in Redis unless protected parameters are enabled.
    Protected,
    /// Only its current value. Any other is refused with this reason.
    Fixed(&'static str),
}

const fn row(
    name: &'static str,
    alias: &'static str,
    kind: Kind,
    default: &'static str,
) -> ParameterRow {
    ParameterRow {
        name,
        alias,
        kind,
        default,
        change: Change::Free,
        is_hidden: false,
    }
}

impl ParameterRow {
    const fn immutable(mut self) -> Self {
        self.change = Change::Immutable;
        self
    }

    const fn protected(mut self) -> Self {
        self.change = Change::Protected;
        self
    }

    const fn fixed(mut self, reason: &'static str) -> Self {
        self.change = Change::Fixed(reason);
        self
    }

    const fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }
}

/// Every parameter.
#[rustfmt::skip]
pub(super) static PARAMETERS: &[ParameterRow] = &[
    // Server and clients.
    row("dynamic-hz", "", YesNo, "yes"),
    row("crash-log-enabled", "", YesNo, "yes"),
    row("crash-memcheck-enabled", "", YesNo, "yes"),
    row("use-exit-on-panic", "", YesNo, "no").hidden(),
    row("latency-tracking", "", YesNo, "yes"),
    row("ignore-warnings", "", Text, ""),
    row("proc-title-template", "", Text, "{title} {listen-addr} {server-mode}"),
    row("bind-source-addr", "", Text, ""),
    row("locale-collate", "", Text, ""),
    row("sanitize-dump-payload", "", OneOf(&["no", "yes", "clients"]), "no"),
    row("propagation-error-behavior", "", OneOf(&["ignore", "panic", "panic-on-replicas"]), "ignore"),
    row("shutdown-on-sigint", "", SomeOf(&["default", "save", "nosave", "now", "force"]), "default"),
    row("shutdown-on-sigterm", "", SomeOf(&["default", "save", "nosave", "now", "force"]), "default"),
    row("key-load-delay", "", Integer(I32_MIN, I32_MAX), "0").hidden(),
    row("active-expire-effort", "", Integer(1, 10), "1"),
    row("hz", "", Integer(0, I32_MAX), "10"),
    row("watchdog-period", "", Integer(0, I32_MAX), "0").hidden(),
    row("proto-max-bulk-len", "", Bytes(1_048_576, I64_MAX), "536870912"),
    row("loading-process-events-interval-bytes", "", Integer(1024, I32_MAX), "2097152").hidden(),
    row("latency-tracking-info-percentiles", "", Special(special::PERCENTILES), "50 99 99.9"),
    // Process and start.
    row("daemonize", "", YesNo, "no").immutable(),
    row("io-threads-do-reads", "", YesNo, "no").immutable(),
    row("always-show-logo", "", YesNo, "no").immutable(),
    row("set-proc-title", "", YesNo, "yes").immutable(),
    row("syslog-enabled", "", YesNo, "no").immutable(),
    row("disable-thp", "", YesNo, "yes").immutable(),
    row("pidfile", "", Text, "").immutable(),
    row("syslog-ident", "", Text, "redis").immutable(),
    row("server_cpulist", "", Text, "").immutable(),
    row("bio_cpulist", "", Text, "").immutable(),
    row("bgsave_cpulist", "", Text, "").immutable(),
    row("supervised", "", OneOf(&["upstart", "systemd", "auto", "no"]), "no").immutable(),
    row("syslog-facility", "", OneOf(&["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"]), "local0").immutable(),
    row("enable-protected-configs", "", OneOf(&["no", "yes", "local"]), "no").immutable(),
    row("enable-debug-command", "", OneOf(&["no", "yes", "local"]), "yes").immutable(),
    row("enable-module-command", "", OneOf(&["no", "yes", "local"]), "no").immutable(),
    row("tcp-backlog", "", Integer(0, I32_MAX), "511").immutable(),
    row("socket-mark-id", "", Integer(0, U32_MAX), "0").immutable(),
    // Memory.
    row("activerehashing", "", YesNo, "yes"),
    row("lazyfree-lazy-eviction", "", YesNo, "no"),
    row("lazyfree-lazy-expire", "", YesNo, "no"),
    row("lazyfree-lazy-server-del", "", YesNo, "no"),
    row("lazyfree-lazy-user-del", "", YesNo, "no"),
    row("lazyfree-lazy-user-flush", "", YesNo, "no"),
    row("jemalloc-bg-thread", "", YesNo, "yes"),
    row("activedefrag", "", YesNo, "no").fixed("Active defragmentation cannot be enabled: Quoin does not have it"),
    row("oom-score-adj", "", OneOf(&["no", "yes", "relative", "absolute"]), "no"),
    row("active-defrag-cycle-min", "", Integer(1, 99), "1"),
    row("active-defrag-cycle-max", "", Integer(1, 99), "25"),
    row("active-defrag-threshold-lower", "", Integer(0, 1000), "10"),
    row("active-defrag-threshold-upper", "", Integer(0, 1000), "100"),
    row("lfu-log-factor", "", Integer(0, I32_MAX), "10"),
    row("lfu-decay-time", "", Integer(0, I32_MAX), "1"),
    row("maxmemory-samples", "", Integer(1, I32_MAX), "5"),
    row("maxmemory-eviction-tenacity", "", Integer(0, 100), "10"),
    row("active-defrag-max-scan-fields", "", Integer(1, I64_MAX), "1000"),
    row("active-defrag-ignore-bytes", "", Bytes(1, I64_MAX), "104857600"),
    row("oom-score-adj-values", "", Special(special::OOM_SCORES), "0 200 800"),
    // Encodings in memory.
    row("list-max-listpack-size", "list-max-ziplist-size", Integer(I32_MIN, I32_MAX), "-2"),
    row("list-compress-depth", "", Integer(0, I32_MAX), "0"),
    row("hash-max-listpack-entries", "hash-max-ziplist-entries", Integer(0, I64_MAX), "512"),
    row("set-max-intset-entries", "", Integer(0, I64_MAX), "512"),
    row("set-max-listpack-entries", "", Integer(0, I64_MAX), "128"),
    row("set-max-listpack-value", "", Integer(0, I64_MAX), "64"),
    row("zset-max-listpack-entries", "zset-max-ziplist-entries", Integer(0, I64_MAX), "128"),
    row("hash-max-listpack-value", "hash-max-ziplist-value", Bytes(0, I64_MAX), "64"),
    row("zset-max-listpack-value", "zset-max-ziplist-value", Bytes(0, I64_MAX), "64"),
    // Files of Redis.
    row("rdbchecksum", "", YesNo, "yes").immutable(),
    row("rdbcompression", "", YesNo, "yes"),
    row("rdb-del-sync-files", "", YesNo, "no"),
    row("stop-writes-on-bgsave-error", "", YesNo, "yes"),
    row("aof-rewrite-incremental-fsync", "", YesNo, "yes"),
    row("no-appendfsync-on-rewrite", "", YesNo, "no"),
    row("rdb-save-incremental-fsync", "", YesNo, "yes"),
    row("aof-load-truncated", "", YesNo, "yes"),
    row("aof-use-rdb-preamble", "", YesNo, "yes"),
    row("aof-timestamp-enabled", "", YesNo, "no"),
    row("appendonly", "", YesNo, "yes").fixed("Quoin keeps every write: there is no append-only file to turn off"),
    row("aof-disable-auto-gc", "", YesNo, "no").hidden(),
    row("dbfilename", "", Text, "dump.rdb").protected(),
    row("appendfilename", "", Text, "appendonly.aof").immutable(),
    row("appenddirname", "", Text, "appendonlydir").immutable(),
    row("aof_rewrite_cpulist", "", Text, "").immutable(),
    row("appendfsync", "", OneOf(&["everysec", "always", "no"]), "always").fixed("it follows the setting fsync, which only a restart changes"),
    row("auto-aof-rewrite-percentage", "", Integer(0, I32_MAX), "100"),
    row("rdb-key-save-delay", "", Integer(I32_MIN, I32_MAX), "0").hidden(),
    row("auto-aof-rewrite-min-size", "", Bytes(0, I64_MAX), "67108864"),
    row("dir", "", Text, "").protected(),
    row("save", "", Special(special::SAVE_POINTS), ""),
    // Replication.
    row("repl-disable-tcp-nodelay", "", YesNo, "no"),
    row("repl-diskless-sync", "", YesNo, "yes"),
    row("replica-lazy-flush", "slave-lazy-flush", YesNo, "no"),
    row("replica-serve-stale-data", "slave-serve-stale-data", YesNo, "yes"),
    row("replica-read-only", "slave-read-only", YesNo, "yes"),
    row("replica-ignore-maxmemory", "slave-ignore-maxmemory", YesNo, "yes"),
    row("replica-announced", "", YesNo, "yes"),
    row("replica-ignore-disk-write-errors", "", YesNo, "no"),
    row("replica-announce-ip", "slave-announce-ip", Text, ""),
    row("masteruser", "", Secret, ""),
    row("masterauth", "", Secret, ""),
    row("repl-diskless-load", "", OneOf(&["disabled", "on-empty-db", "swapdb"]), "disabled"),
    row("replica-priority", "slave-priority", Integer(0, I32_MAX), "100"),
    row("repl-diskless-sync-delay", "", Integer(0, I32_MAX), "5"),
    row("replica-announce-port", "slave-announce-port", Integer(0, 65535), "0"),
    row("repl-timeout", "", Integer(1, I32_MAX), "60"),
    row("repl-ping-replica-period", "repl-ping-slave-period", Integer(1, I32_MAX), "10"),
    row("min-replicas-to-write", "min-slaves-to-write", Integer(0, I32_MAX), "0"),
    row("min-replicas-max-lag", "min-slaves-max-lag", Integer(0, I32_MAX), "10"),
    row("repl-diskless-sync-max-replicas", "", Integer(0, I32_MAX), "0"),
    row("repl-backlog-size", "", Bytes(1, I64_MAX), "1048576"),
    row("repl-backlog-ttl", "", Integer(0, I64_MAX), "3600"),
    row("replicaof", "slaveof", Text, "").immutable(),
    // Cluster.
    row("cluster-require-full-coverage", "", YesNo, "yes"),
    row("cluster-replica-no-failover", "cluster-slave-no-failover", YesNo, "no"),
    row("cluster-enabled", "", YesNo, "no").immutable(),
    row("cluster-allow-reads-when-down", "", YesNo, "no"),
    row("cluster-allow-pubsubshard-when-down", "", YesNo, "yes"),
    row("cluster-allow-replica-migration", "", YesNo, "yes"),
    row("cluster-announce-ip", "", Text, ""),
    row("cluster-config-file", "", Text, "nodes.conf").immutable(),
    row("cluster-announce-hostname", "", Text, ""),
    row("cluster-announce-human-nodename", "", Text, ""),
    row("cluster-replica-validity-factor", "cluster-slave-validity-factor", Integer(0, I32_MAX), "10"),
    row("cluster-migration-barrier", "", Integer(0, I32_MAX), "1"),
    row("cluster-announce-bus-port", "", Integer(0, 65535), "0"),
    row("cluster-node-timeout", "", Integer(0, I64_MAX), "15000"),
    row("cluster-ping-interval", "", Integer(0, I64_MAX), "0").hidden(),
    row("cluster-link-sendbuf-limit", "", Bytes(0, U64_MAX), "0"),
    // Decided by rustls, or not needed for clients' TLS. None of these can be changed.
    row("tls-session-cache-size", "", Integer(0, I32_MAX), "20480").immutable(),
    row("tls-session-cache-timeout", "", Integer(0, I32_MAX), "300").immutable(),
    row("tls-cluster", "", YesNo, "no").immutable(),
    row("tls-replication", "", YesNo, "no").immutable(),
    row("tls-prefer-server-ciphers", "", YesNo, "no").immutable(),
    row("tls-session-caching", "", YesNo, "yes").immutable(),
    row("tls-client-cert-file", "", Text, "").immutable(),
    row("tls-client-key-file", "", Text, "").immutable(),
    row("tls-client-key-file-pass", "", Secret, "").immutable(),
    row("tls-dh-params-file", "", Text, "").immutable(),
    row("tls-ciphers", "", Text, "").immutable(),
    row("tls-ciphersuites", "", Text, "").immutable(),
];

/// Whether the value of a setting or parameter of this name is secret.
pub fn is_secret(name: &[u8]) -> bool {
    let is_it = |known: &str| known.as_bytes().eq_ignore_ascii_case(name);
    let settings = SETTINGS.iter().filter(|row| row.is_secret());
    let parameters = PARAMETERS.iter().filter(|row| matches!(row.kind, Secret));
    settings.map(|row| row.name).any(is_it)
        || parameters
            .flat_map(|row| [row.name, row.alias])
            .any(|known| !known.is_empty() && is_it(known))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_default_is_in_its_usual_form() {
        for row in PARAMETERS {
            let normal = row.kind.normalise(row.default, row.default);
            assert_eq!(normal.as_deref(), Ok(row.default), "{}", row.name);
        }
    }

    #[test]
    fn no_name_stands_twice() {
        let names = PARAMETERS
            .iter()
            .flat_map(|row| [row.name, row.alias])
            .chain(SETTINGS.iter().map(|row| row.name))
            .filter(|name| !name.is_empty());
        let mut seen = BTreeSet::new();
        for name in names {
            assert!(seen.insert(name), "{name}");
        }
    }
}
