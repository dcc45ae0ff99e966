//! Settings from files, variables and flags.

use std::io::Write;
use std::path::Path;

use crate::load::load;
use crate::settings::LogLevel;
use crate::table::{Settings, find};
use crate::{ConfigError, LoadedSettings, Origin, StoreKind};

type Variables<'a> = &'a [(&'a str, &'a str)];

fn load_from(
    file: Option<&Path>,
    variables: Variables,
    flags: &[(&str, &str)],
) -> Result<LoadedSettings, ConfigError> {
    load(
        file.map(Path::to_owned),
        variables
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
        flags
            .iter()
            .map(|(name, value)| (find(name).unwrap(), (*value).to_owned())),
    )
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[track_caller]
fn file_error(text: &str) -> String {
    let file = file(text);
    let error = load_from(Some(file.path()), &[], &[])
        .unwrap_err()
        .to_string();
    error.replace(&file.path().display().to_string(), "FILE")
}

#[test]
fn the_later_source_wins() {
    let file = file("port = 1\nmaxclients = 1\ntimeout = 1\n");
    let loaded = load_from(
        Some(file.path()),
        &[
            ("QUOIN_MAXCLIENTS", "2"),
            ("QUOIN_TIMEOUT", "2"),
            ("HOME", "/"),
        ],
        &[("timeout", "3")],
    )
    .unwrap();
    assert_eq!(loaded.settings.io_threads, 1);
    assert_eq!(loaded.settings.port, 1);
    assert_eq!(loaded.settings.maxclients, 2);
    assert_eq!(loaded.settings.timeout_s, 3);
    assert_eq!(loaded.origin("io-threads"), Origin::Default);
    assert_eq!(
        loaded.origin("port"),
        Origin::File(file.path().to_owned(), 1)
    );
    assert_eq!(
        loaded.origin("maxclients"),
        Origin::Variable("QUOIN_MAXCLIENTS".into())
    );
    assert_eq!(loaded.origin("timeout"), Origin::Flag("--timeout".into()));
}

#[test]
fn a_variable_names_the_file_unless_a_flag_does() {
    let (one, two) = (file("port = 1"), file("port = 2"));
    let variable = [("QUOIN_CONFIG", one.path().to_str().unwrap())];
    assert_eq!(load_from(None, &variable, &[]).unwrap().settings.port, 1);
    let loaded = load_from(Some(two.path()), &variable, &[]).unwrap();
    assert_eq!(loaded.settings.port, 2);
    assert_eq!(loaded.file.as_deref(), Some(two.path()));
}

#[test]
fn lists_and_hexadecimal_numbers_of_toml_are_read() {
    let file = file("bind = [\"127.0.0.1\", \"::1\"]\nport = 0x1F_40\n");
    let loaded = load_from(Some(file.path()), &[], &[]).unwrap();
    assert_eq!(loaded.settings.bind.len(), 2);
    assert_eq!(loaded.settings.port, 8000);
}

#[test]
fn a_wrong_value_names_setting_line_and_what_is_accepted() {
    assert_eq!(
        file_error("# comment\n\nport = 70000\n"),
        "port (FILE:3): wrong value '70000'; accepted: a whole number from 0 to 65535"
    );
    assert_eq!(
        file_error("store = 'disk'"),
        "store (FILE:1): wrong value 'disk'; accepted: embedded, fdb"
    );
    assert_eq!(
        file_error("port = 1.5"),
        "port (FILE:1): wrong value: its type is float; accepted: a whole number from 0 to \
         65535"
    );
}

#[test]
fn unknown_keys_name_the_nearest_setting() {
    assert_eq!(
        file_error("port = 1\ndata_dir = 'x'"),
        "FILE:2: no such setting: 'data_dir'; did you mean 'data-dir'?"
    );
}

#[test]
fn unknown_variables_name_the_nearest_setting() {
    let error = load_from(None, &[("QUOIN_PROT", "1")], &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "environment variable QUOIN_PROT: no such setting; did you mean 'QUOIN_PORT'?"
    );
}

#[test]
fn variables_of_tests_and_benchmarks_are_left_alone() {
    let variables = [("QUOIN_TEST_CLUSTER", "x"), ("QUOIN_BENCH_SECONDS", "1")];
    assert!(load_from(None, &variables, &[]).is_ok());
}

#[test]
fn text_that_is_not_toml_names_its_line() {
    let error = file_error("port = 1\nport 2\n");
    assert!(error.starts_with("FILE:2: not TOML: "), "{error}");
    let error = file_error("port = 1\nport = 2\n");
    assert!(
        error.starts_with("FILE:2: not TOML: duplicate key"),
        "{error}"
    );
}

#[test]
fn a_redis_conf_is_named_as_one() {
    assert_eq!(
        file_error("# Redis\n\ndaemonize no\nport 7000\n"),
        "FILE:3: this is a redis.conf, which Quoin does not read. Quoin's settings file is TOML, \
         and config/quoin.toml shows every setting; `quoin check-config --config FILE > \
         quoin.toml` translates a redis.conf"
    );
}

/// Each kind of line that a redis.conf has.
const REDIS_CONF: &str = r#"
# Redis configuration file
include /etc/redis/local.conf
loadmodule /usr/lib/redis/modules/redisbloom.so ERROR_RATE 0.004
bind 127.0.0.1 -::1
protected-mode yes
port 7379
tcp-backlog 511
unixsocket "/run/redis.sock"
unixsocketperm 700
timeout 0
daemonize no
supervised auto
pidfile /var/run/redis_6379.pid
loglevel verbose
logfile ""
databases 32
always-show-logo no
set-proc-title yes
proc-title-template "{title} {listen-addr} {server-mode}"
save 3600 1 300 100
stop-writes-on-bgsave-error yes
dir ./
replica-serve-stale-data yes
acllog-max-len 128
requirepass "foo bar"
user default on nopass ~* &* +@all
user alice on >secret ~jobs:* resetchannels +@all -@dangerous
MAXCLIENTS 512
maxclients 500
appendonly yes
appendfsync everysec
lua-time-limit 5000
busy-reply-threshold 4000
slowlog-log-slower-than 10000
latency-monitor-threshold 0
notify-keyspace-events ""
notify-keyspace-events 'KEA'
hash-max-listpack-entries 512
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit replica 256mb 64mb 60
client-output-buffer-limit pubsub 16mb 8mb 60
client-query-buffer-limit 1gb
maxmemory-clients 10%
tls-port 0
tls-protocols "TLSv1.2 TLSv1.3"
jemalloc-bg-thread yes
rename-command CONFIG ""
locale-collate ""
"#;

#[test]
fn what_is_made_of_a_redis_conf_is_a_settings_file() {
    let redis = file(REDIS_CONF);
    let error = load_from(Some(redis.path()), &[], &[]).unwrap_err();
    let ConfigError::RedisConf { toml, .. } = error else {
        panic!("{error}");
    };
    let translated = file(&toml);
    let loaded = load_from(Some(translated.path()), &[], &[]);
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}\n{toml}"));
    let settings = &loaded.settings;
    assert_eq!(settings.bind.len(), 2);
    assert_eq!((settings.port, settings.databases), (7379, 32));
    assert_eq!(settings.maxclients, 500);
    assert_eq!(settings.busy_reply_threshold_ms, 4_000);
    assert_eq!(
        settings.unixsocket.as_deref(),
        Some(Path::new("/run/redis.sock"))
    );
    assert_eq!(settings.logfile, None);
    assert_eq!(settings.requirepass.as_deref(), Some("…"));
    assert_eq!(settings.keyspace_events.letters(), "AKE");
    assert_eq!(settings.output_limits.subscriber.hard_bytes, 16 << 20);
    assert_eq!(settings.output_limits.replica.soft_s, 60);
    assert_eq!(loaded.users.unwrap().definitions.len(), 2);
    for hidden in ["foo bar", "secret"] {
        assert!(!toml.contains(hidden), "{toml}");
    }
    assert!(
        toml.contains("# line 3 includes /etc/redis/local.conf"),
        "{toml}"
    );
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let file = file("port = 70000\nprot = 1\nsupervised = 'x'\nmaxclients = 1.5\n");
    let error = load_from(
        Some(file.path()),
        &[("QUOIN_TIMEOUT", "x"), ("QUOIN_PROT", "1")],
        &[("fsync", "never")],
    )
    .unwrap_err();
    let text = error.to_string();
    assert_eq!(
        text.replace(&file.path().display().to_string(), "FILE"),
        "the settings have 7 errors:
  port (FILE:1): wrong value '70000'; accepted: a whole number from 0 to 65535
  FILE:2: no such setting: 'prot'; did you mean 'port'?
  FILE:3: no such setting: 'supervised'; Redis has it, Quoin does not (use a service manager instead)
  maxclients (FILE:4): wrong value: its type is float; accepted: a whole number from 1 to 4294967295
  environment variable QUOIN_PROT: no such setting; did you mean 'QUOIN_PORT'?
  timeout (environment variable QUOIN_TIMEOUT): wrong value 'x'; accepted: a whole number from 0 to 2147483647
  fsync (flag --fsync): wrong value 'never'; accepted: everysec, always"
    );
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn a_variable_that_is_empty_counts_as_not_set() {
    let file = file("port = 7\nrequirepass = 'secret'\n");
    let empty = [("QUOIN_PORT", ""), ("QUOIN_REQUIREPASS", "")];
    let loaded = load_from(Some(file.path()), &empty, &[]).unwrap();
    assert_eq!(loaded.settings.port, 7);
    assert_eq!(loaded.settings.requirepass.as_deref(), Some("secret"));
    // A wrong name is wrong with an empty value, too.
    assert!(load_from(None, &[("QUOIN_PROT", "")], &[]).is_err());
}

#[test]
fn numbers_may_stand_in_quotes() {
    let file = file("port = '7301'\n");
    let loaded = load_from(Some(file.path()), &[], &[]).unwrap();
    assert_eq!(loaded.settings.port, 7301);
}

#[test]
fn the_log_may_be_asked_for_by_the_words_of_its_lines() {
    for (given, level) in [
        ("info", LogLevel::Notice),
        ("WARN", LogLevel::Warning),
        ("Verbose", LogLevel::Verbose),
    ] {
        let loaded = load_from(None, &[], &[("loglevel", given)]).unwrap();
        assert_eq!(loaded.settings.log_level, level);
    }
    let error = load_from(None, &[], &[("loglevel", "fatal")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "loglevel (flag --loglevel): wrong value 'fatal'; accepted: debug, verbose, notice, \
         warning, nothing"
    );
}

#[test]
fn a_collector_of_traces_has_a_url_with_a_path() {
    let load = |url: &str| load_from(None, &[], &[("trace-endpoint", url)]);
    for url in ["", "http://c/v1/traces", "https://[::1]:4318/v1/traces?a=b"] {
        let loaded = load(url).unwrap();
        assert_eq!(loaded.settings.trace_endpoint, url);
    }
    for url in [
        "127.0.0.1:4318",
        "http://127.0.0.1:4318",
        "http://127.0.0.1:4318/",
        "http:///v1/traces",
        "grpc://127.0.0.1:4317/v1/traces",
        "http://user:password@c/v1/traces",
        "http://c/v1/traces#x",
        "http://c/v1 traces",
        "http://ä/v1/traces",
    ] {
        let error = load(url).unwrap_err().to_string();
        let expected =
            "an http or https URL with a host and a path, such as http://127.0.0.1:4318/v1/traces";
        assert!(error.contains(expected), "{url}: {error}");
    }
}

#[test]
fn a_policy_that_evicts_and_a_bound_that_the_store_cannot_keep_are_refused() {
    let error = load_from(None, &[], &[("maxmemory-policy", "allkeys-lru")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "maxmemory-policy (flag --maxmemory-policy): wrong value 'allkeys-lru'; accepted: \
         noeviction: nothing is evicted, because queues must not lose elements"
    );
    let loaded = load_from(None, &[], &[("maxmemory", "1gb")]).unwrap();
    assert_eq!(loaded.settings.maxmemory_bytes, 1 << 30);
    let on_cluster = Settings {
        store: StoreKind::Fdb,
        ..loaded.settings
    };
    assert!(on_cluster.refusal_of_maxmemory().is_some());
}

#[test]
fn a_missing_file_is_named() {
    let error = load_from(Some(Path::new("/nonexistent/quoin.toml")), &[], &[]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("settings file /nonexistent/quoin.toml: No such file"),
        "{error}"
    );
}

#[test]
fn passwords_are_not_shown() {
    let loaded = load_from(None, &[("QUOIN_REQUIREPASS", "hunter2")], &[]).unwrap();
    assert!(!loaded.describe().contains("hunter2"));
    assert!(!format!("{loaded:?}").contains("hunter2"));
    assert!(loaded.describe().contains("requirepass is set"));
}

#[test]
fn the_description_is_a_settings_file() {
    let loaded = load_from(None, &[], &[("port", "7000"), ("bind", "::1,127.0.0.1")]).unwrap();
    let file = file(&loaded.describe());
    let again = load_from(Some(file.path()), &[], &[]).unwrap();
    assert_eq!(again.settings, loaded.settings);
}

#[cfg(not(feature = "fdb"))]
#[test]
fn foundationdb_without_its_feature_says_what_to_install() {
    let error = load_from(None, &[], &[("store", "fdb")]).unwrap_err();
    assert!(error.to_string().contains("--features fdb"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn what_kubernetes_makes_of_a_service_is_no_setting() {
    let of_services = [
        ("QUOIN_SERVICE_HOST", "10.96.0.7"),
        ("QUOIN_SERVICE_PORT", "6379"),
        ("QUOIN_SERVICE_PORT_REDIS", "6379"),
        ("QUOIN_PORT", "tcp://10.96.0.7:6379"),
        ("QUOIN_PORT_6379_TCP", "tcp://10.96.0.7:6379"),
        ("QUOIN_PORT_6379_TCP_PROTO", "tcp"),
        ("QUOIN_PORT_6379_TCP_PORT", "6379"),
        ("QUOIN_PORT_6379_TCP_ADDR", "10.96.0.7"),
        ("QUOIN_HEADLESS_SERVICE_HOST", "None"),
        ("QUOIN_HEADLESS_PORT", "udp://10.96.0.8:53"),
        ("QUOIN_HEADLESS_PORT_53_UDP_ADDR", "10.96.0.8"),
        ("QUOIN_TLS_PORT", "tcp://10.96.0.9:6380"),
    ];
    let loaded = load_from(None, &of_services, &[]).unwrap();
    assert_eq!(loaded.settings, Settings::default());
    assert_eq!(loaded.of_services.len(), of_services.len());
    let loaded = load_from(None, &[("QUOIN_PORT", "7000")], &[]).unwrap();
    assert_eq!((loaded.settings.port, loaded.of_services.len()), (7000, 0));
    for name in [
        "QUOIN_SERVICE",
        "QUOIN_PORT_X",
        "QUOIN_PROT",
        "QUOIN_PORT_1_X",
    ] {
        assert!(load_from(None, &[(name, "1")], &[]).is_err(), "{name}");
    }
}

#[test]
fn variables_of_the_tools_are_no_settings() {
    for name in [
        "QUOIN_CLIENT_PASSWORD",
        "QUOIN_EXPORT_FROM_PASSWORD",
        "QUOIN_IMPORT_TO_USER",
    ] {
        assert!(load_from(None, &[(name, "x")], &[]).is_ok(), "{name}");
    }
}
