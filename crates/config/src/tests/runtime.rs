//! CONFIG GET, SET and REWRITE.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::load::load;
use crate::table::find;
use crate::{LoadedSettings, LogLevel, RuntimeConfig};

fn config() -> RuntimeConfig {
    RuntimeConfig::new(LoadedSettings::defaults())
}

fn get(config: &RuntimeConfig, name: &str) -> String {
    match config.get(&[name.as_bytes()]).as_slice() {
        [(_, value)] => value.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

fn set(config: &RuntimeConfig, words: &[&str]) -> Result<(), String> {
    let pairs: Vec<(&[u8], &[u8])> = words
        .as_chunks::<2>()
        .0
        .iter()
        .map(|[name, value]| (name.as_bytes(), value.as_bytes()))
        .collect();
    config.set(&pairs)
}

#[test]
fn a_change_is_seen_by_get_and_by_the_accessors() {
    let config = config();
    let words = [
        ["maxclients", "1"],
        ["timeout", "2"],
        ["tcp-keepalive", "3"],
        ["slowlog-log-slower-than", "-1"],
        ["slowlog-max-len", "5"],
        ["latency-monitor-threshold", "6"],
        ["shutdown-timeout", "7"],
    ];
    set(&config, &words.concat()).unwrap();
    for [name, value] in words {
        assert_eq!(get(&config, name), value);
    }
    assert_eq!(config.live.maxclients(), 1);
    assert_eq!(config.live.timeout_s(), 2);
    assert_eq!(config.live.tcp_keepalive_s(), 3);
    assert_eq!(config.live.slowlog_log_slower_than_us(), -1);
    assert_eq!(config.live.slowlog_max_len(), 5);
    assert_eq!(config.live.latency_monitor_threshold_ms(), 6);
    assert_eq!(config.live.shutdown_timeout_s(), 7);
}

#[test]
fn the_accessors_start_with_what_was_loaded() {
    let flags = [(find("maxclients").unwrap(), "7".to_owned())];
    let config = RuntimeConfig::new(load(None, [], flags).unwrap());
    assert_eq!(config.live.maxclients(), 7);
}

#[test]
fn names_are_answered_as_given_and_patterns_in_full() {
    let config = config();
    let names = |patterns: &[&[u8]]| -> Vec<String> {
        let found = config.get(patterns);
        found.into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(&[b"MAXMEMORY", b"maxmemory"]), ["MAXMEMORY"]);
    assert_eq!(names(&[b"MAXCLIENT?", b"maxclients"]), ["maxclients"]);
    assert_eq!(
        names(&[b"zset-max-*-entries"]),
        ["zset-max-listpack-entries", "zset-max-ziplist-entries"]
    );
    assert!(names(&[b"nothing", b"nothing*"]).is_empty());
    assert_eq!(names(&[b"key-load-delay"]), ["key-load-delay"]);
    assert!(names(&[b"key-load-dela?"]).is_empty());
}

#[test]
fn an_older_name_shares_its_value() {
    let config = config();
    set(
        &config,
        &[
            "zset-max-ziplist-entries",
            "5",
            "zset-max-listpack-entries",
            "6",
        ],
    )
    .unwrap();
    assert_eq!(get(&config, "zset-max-ziplist-entries"), "6");
}

#[test]
fn one_wrong_value_changes_nothing() {
    let config = config();
    assert!(set(&config, &["timeout", "10", "hz", "20", "Maxclients", "0"]).is_err());
    assert_eq!(get(&config, "timeout"), "0");
    assert_eq!(config.live.timeout_s(), 0);
    assert_eq!(get(&config, "hz"), "10");
}

#[test]
fn refusals_are_those_of_redis() {
    let config = config();
    let failed = "ERR CONFIG SET failed (possibly related to argument";
    for (words, expected) in [
        (
            vec!["foo", "bar"],
            "ERR Unknown option or number of arguments for CONFIG SET - 'foo'".to_owned(),
        ),
        (
            vec!["timeout", "10", "Foo", "20"],
            "ERR Unknown option or number of arguments for CONFIG SET - 'Foo'".to_owned(),
        ),
        (
            vec!["maxmemory", "1", "MaxMemory", "2"],
            format!("{failed} 'MaxMemory') - duplicate parameter"),
        ),
        (
            vec!["Databases", "4"],
            format!("{failed} 'Databases') - can't set immutable config"),
        ),
        (
            vec!["Dir", "/"],
            format!("{failed} 'Dir') - can't set protected config"),
        ),
        (
            vec!["TIMEOUT", "-1"],
            format!("{failed} 'timeout') - argument must be between 0 and 2147483647 inclusive"),
        ),
        (
            vec!["activerehashing", "maybe"],
            format!("{failed} 'activerehashing') - argument must be 'yes' or 'no'"),
        ),
        (
            vec!["maxmemory", "x"],
            format!("{failed} 'maxmemory') - argument must be a memory value"),
        ),
    ] {
        assert_eq!(set(&config, &words), Err(expected));
    }
}

#[test]
fn what_cannot_be_otherwise_accepts_only_its_value() {
    let config = config();
    assert_eq!(
        set(&config, &["appendonly", "yes", "appendfsync", "always"]),
        Ok(())
    );
    let refusal = set(&config, &["appendonly", "no"]).unwrap_err();
    assert!(refusal.contains("Quoin keeps every write"), "{refusal}");
    assert!(set(&config, &["appendfsync", "everysec"]).is_err());
}

#[test]
fn appendfsync_follows_the_setting() {
    let flags = [(find("fsync").unwrap(), "everysec".to_owned())];
    let config = RuntimeConfig::new(load(None, [], flags).unwrap());
    assert_eq!(get(&config, "appendfsync"), "everysec");
}

#[test]
fn the_folder_is_an_absolute_path() {
    assert!(get(&config(), "dir").starts_with('/'));
}

#[test]
fn the_port_is_the_one_that_is_listened_on() {
    let flags = [(find("port").unwrap(), "0".to_owned())];
    let config = RuntimeConfig::new(load(None, [], flags).unwrap());
    config.set_bound_port(4321);
    assert_eq!(get(&config, "port"), "4321");
    assert_eq!(config.settings().port, 0);
}

#[test]
fn a_new_log_level_is_told_once() {
    let config = config();
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    config.on_log_level(move |level| listener.lock().unwrap().push(level));
    set(&config, &["loglevel", "debug"]).unwrap();
    set(&config, &["loglevel", "debug", "timeout", "1"]).unwrap();
    assert_eq!(*told.lock().unwrap(), [LogLevel::Debug]);
}

#[test]
fn rewrite_needs_a_file() {
    assert_eq!(
        config().rewrite(None),
        Err("ERR The server is running without a config file".into())
    );
}

#[test]
fn rewrite_writes_what_was_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quoin.toml");
    std::fs::write(&path, "timeout = 1 # idle\n").unwrap();
    let config = RuntimeConfig::new(load(Some(path.clone()), [], []).unwrap());
    set(&config, &["timeout", "9", "maxclients", "8", "hz", "20"]).unwrap();
    config.rewrite(None).unwrap();
    let again = load(Some(path.clone()), [], []).unwrap();
    assert_eq!(again.settings, config.settings());
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("timeout = 9 # idle\n"), "{text}");
}

#[test]
fn rewrites_at_the_same_time_do_not_spoil_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quoin.toml");
    let comment = "# ours, and longer than what any of them changes in it\n";
    std::fs::write(&path, format!("{comment}timeout = 1\n")).unwrap();
    let config = RuntimeConfig::new(load(Some(path.clone()), [], []).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let config = &config;
            scope.spawn(move || {
                for number in 0..25 {
                    let length = 10_u64.pow((number % 9) as u32) + thread;
                    set(config, &["slowlog-max-len", &length.to_string()]).unwrap();
                    config.rewrite(None).unwrap();
                }
            });
        }
    });
    config.rewrite(None).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(comment));
    let again = load(Some(path), [], []).unwrap();
    assert_eq!(again.settings, config.settings());
}

#[test]
fn a_password_that_is_undone_is_not_shown_and_is_reloaded_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quoin.toml");
    std::fs::write(&path, "requirepass = 'old'\n").unwrap();
    let config = RuntimeConfig::new(load(Some(path.clone()), [], []).unwrap());
    std::fs::write(&path, "requirepass = 'new'\n").unwrap();
    for _ in 0..2 {
        assert_eq!(config.reload().unwrap().changed, ["requirepass"]);
        assert_eq!(get(&config, "requirepass"), "new");
        config.undo_reloaded_requirepass(Some("new"), Some("old".to_owned()));
        assert_eq!(get(&config, "requirepass"), "old");
    }
    // A setting that was changed again since then stays.
    set(&config, &["requirepass", "third"]).unwrap();
    config.undo_requirepass(Some("new"), Some("old".to_owned()));
    assert_eq!(get(&config, "requirepass"), "third");
}

#[test]
fn files_of_tls_are_read_while_others_read_settings() {
    let config = Arc::new(config());
    let reader = Arc::downgrade(&config);
    let taken = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&taken);
    config.on_tls(move |settings| {
        // It would deadlock with the lock held.
        let before = reader.upgrade().unwrap().settings();
        assert_ne!(before.tls, settings.tls);
        let seen = Arc::clone(&seen);
        Ok(Box::new(move || seen.store(true, Ordering::SeqCst)))
    });
    set(&config, &["tls-auth-clients", "optional"]).unwrap();
    assert!(taken.load(Ordering::SeqCst));
    assert_eq!(get(&config, "tls-auth-clients"), "optional");
}
