//! `quoin import` of append-only files.

use std::path::{Path, PathBuf};

use crate::files::import;
use crate::importing::{contents, knowledge, large_stream, long_list, run};
use crate::or_say_so;
use crate::redis_server::Redis;
use crate::resp::{Connection, Value};
use crate::server::{Server, request, wait_until};
use crate::values::{Held, Values};

const SEED: u64 = 11;

/// The content of a database of a server.
type Contents = Vec<(Vec<u8>, Held, Value)>;

struct Source {
    redis: Redis,
    folder: tempfile::TempDir,
}

impl Source {
    /// A Redis that keeps an append-only file.
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let flags = [
            "--dir",
            path,
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--enable-debug-command",
            "yes",
        ];
        let redis = or_say_so(Redis::start_with_port(folder.path(), &flags))?;
        Some(Self { redis, folder })
    }

    fn connect(&self) -> Connection {
        Connection::open(self.redis.address().unwrap()).unwrap()
    }

    /// Rewrites the files from the current content.
    fn rewrite(&self) {
        let mut redis = self.connect();
        assert_eq!(run(&mut redis, "BGREWRITEAOF").error(), None);
        wait_until("the file is rewritten", || {
            let info = run(&mut redis, "INFO persistence");
            let info = String::from_utf8_lossy(info.bytes().unwrap()).into_owned();
            info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
        });
    }

    /// A file by the end of its name.
    fn part(&self, suffix: &str) -> PathBuf {
        let files = std::fs::read_dir(self.folder.path().join("appendonlydir")).unwrap();
        let mut paths = files.map(|file| file.unwrap().path());
        paths
            .find(|path| path.to_str().unwrap().ends_with(suffix))
            .unwrap()
    }
}

/// All types, transactions, groups with pending entries, and expiries that are set and removed.
fn change(redis: &mut Connection, values: &mut Values, prefix: &str) {
    for database in [0, 3] {
        run(redis, &format!("SELECT {database}"));
        for number in 0..40 {
            let key = format!("{prefix}\r\n{number}");
            values.next().put(redis, key.as_bytes());
            if number % 3 == 0 {
                let at = (4_000_000_000_000_i64 + number).to_string();
                redis.command(&["PEXPIREAT", &key, &at]).unwrap();
            }
        }
    }
    run(redis, "SELECT 0");
    for line in [
        "RPUSH queue 1 2 3",
        "LPOP queue",
        "SET counter 5 EX 100000",
        "PERSIST counter",
        "MULTI",
        "INCR counter",
        "INCR counter",
        "EXEC",
        "EVAL redis.call('incr',KEYS[1]) 1 scripted",
        "SADD members a b c",
        "SPOP members",
        "RENAME members others",
        "SET goes 1 PX 1",
    ] {
        assert_eq!(run(redis, line).error(), None, "{line}");
    }
}

#[test]
fn base_and_increments_arrive_together() {
    let Some(source) = Source::start() else {
        return;
    };
    let mut redis = source.connect();
    let mut values = Values::new(SEED);
    change(&mut redis, &mut values, "first");
    large_stream(&mut redis, "stream");
    long_list(25_000).put(&mut redis, b"long");
    let code = "#!lua name=l\nredis.register_function('f', function() return 'from f' end)";
    redis.command(&["FUNCTION", "LOAD", code]).unwrap();
    source.rewrite();
    change(&mut redis, &mut values, "second");
    for line in [
        "XREADGROUP GROUP first three COUNT 7 STREAMS stream >",
        "XADD stream 900-1 a b",
        "RPUSH long last",
    ] {
        assert_eq!(run(&mut redis, line).error(), None, "{line}");
    }
    let told = |connection: &mut Connection| {
        let all = [contents(connection, 0), contents(connection, 3)];
        run(connection, "SELECT 0");
        (all, knowledge(connection, "stream"))
    };
    // How Redis itself reads the files: they do not say how much of a stream with gaps a group has
    // read.
    assert_eq!(run(&mut redis, "DEBUG LOADAOF").error(), None);
    let expected = told(&mut redis);
    let whole = source.folder.path().join("whole.aof");
    let parts = [source.part(".base.rdb"), source.part(".incr.aof")];
    let bytes = parts.map(|part| std::fs::read(part).unwrap()).concat();
    std::fs::write(&whole, bytes).unwrap();
    for from in [
        source.folder.path().join("appendonlydir"),
        source.folder.path().to_owned(),
        source.part(".manifest"),
        whole,
    ] {
        let server = Server::start();
        let mut quoin = Connection::open(server.address()).unwrap();
        let (code, text) = import(&from, &server, &["--dry-run"]);
        assert_eq!(code, 0, "{text}");
        assert_eq!(run(&mut quoin, "DBSIZE").integer(), Some(0));
        let (code, text) = import(&from, &server, &[]);
        assert_eq!(code, 0, "{text}");
        let arrived = told(&mut quoin);
        assert_eq!(arrived.1, expected.1, "{}", from.display());
        for (arrived, expected) in arrived.0.iter().zip(&expected.0) {
            let names = |all: &Contents| all.iter().map(|one| one.0.clone()).collect::<Vec<_>>();
            assert_eq!(names(arrived), names(expected));
            for (one, other) in arrived.iter().zip(expected) {
                assert!(one == other, "{}: {}", from.display(), one.0.escape_ascii());
            }
        }
        let called = run(&mut quoin, "FCALL f 0");
        assert_eq!(called.bytes(), Some(&b"from f"[..]));
    }
}

#[test]
fn parts_alone_say_what_they_are() {
    let Some(source) = Source::start() else {
        return;
    };
    run(&mut source.connect(), "RPUSH queue 1 2 3");
    source.rewrite();
    run(&mut source.connect(), "RPUSH queue 4 5");
    let server = Server::start();
    let mut quoin = Connection::open(server.address()).unwrap();
    let (code, text) = import(&source.part(".incr.aof"), &server, &[]);
    assert!(code == 1 && text.contains("import their folder"), "{text}");
    assert_eq!(run(&mut quoin, "DBSIZE").integer(), Some(0));
    let (code, text) = import(&source.part(".base.rdb"), &server, &[]);
    assert!(
        code == 1 && text.contains("is the base of an append-only file"),
        "{text}"
    );
    assert_eq!(run(&mut quoin, "LLEN queue").integer(), Some(3));
    let (code, text) = import(&source.part(".base.rdb"), &server, &["--replace", "--skip"]);
    assert_eq!(code, 0, "{text}");
}

/// A file of commands.
fn commands(path: &Path, lines: &[&str]) {
    let words = |line: &&str| request(&line.split(' ').collect::<Vec<_>>());
    std::fs::write(path, lines.iter().flat_map(words).collect::<Vec<u8>>()).unwrap();
}

#[test]
fn a_command_that_is_cut_off_is_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("appendonly.aof");
    let transaction = [
        "SELECT 0",
        "RPUSH queue 1 2 3",
        "MULTI",
        "RPUSH queue 4",
        "EXEC",
    ];
    commands(&path, &transaction);
    let whole = std::fs::read(&path).unwrap();
    for cut in [1, 3, 20, 40] {
        std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        let server = Server::start();
        let mut quoin = Connection::open(server.address()).unwrap();
        let (code, text) = import(&path, &server, &[]);
        assert!(
            code == 1 && text.contains("1 skipped: cut off: its last "),
            "{text}"
        );
        assert_eq!(run(&mut quoin, "LLEN queue").integer(), Some(3));
        let (code, text) = import(&path, &server, &["--replace", "--skip"]);
        assert_eq!(code, 0, "{text}");
    }
    // Within another file than the last it is damage.
    std::fs::write(folder.path().join("one"), &whole[..whole.len() - 1]).unwrap();
    std::fs::write(folder.path().join("two"), &whole).unwrap();
    let manifest = "file one seq 1 type i\nfile two seq 2 type i\n";
    std::fs::write(folder.path().join("a.manifest"), manifest).unwrap();
    let server = Server::start();
    let (code, text) = import(folder.path(), &server, &[]);
    assert!(code == 1 && text.contains("is not the last file"), "{text}");
    let mut quoin = Connection::open(server.address()).unwrap();
    assert_eq!(run(&mut quoin, "DBSIZE").integer(), Some(0));
}

#[test]
fn a_key_does_not_expire_while_its_file_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("appendonly.aof");
    commands(
        &path,
        &[
            "SELECT 0",
            "SET kept v PXAT 1000",
            "APPEND kept x",
            "PERSIST kept",
            "SET gone v PXAT 1000",
            "APPEND gone x",
            "RPUSH later v",
            "PEXPIREAT later 4000000000000",
        ],
    );
    let server = Server::start();
    let (code, text) = import(&path, &server, &[]);
    assert!(code == 0 && text.contains("1 were gone"), "{text}");
    let mut quoin = Connection::open(server.address()).unwrap();
    assert_eq!(run(&mut quoin, "GET kept").bytes(), Some(&b"vx"[..]));
    assert_eq!(run(&mut quoin, "PTTL kept").integer(), Some(-1));
    assert_eq!(run(&mut quoin, "EXISTS gone").integer(), Some(0));
    let at = run(&mut quoin, "PEXPIRETIME later").integer();
    assert_eq!(at, Some(4_000_000_000_000));
}

#[test]
fn a_key_expires_when_a_script_of_the_file_has_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("appendonly.aof");
    commands(
        &path,
        &[
            "SELECT 0",
            "EVAL redis.call('set',KEYS[1],'v','EX',86400) 1 set",
            "RPUSH list a",
            "EVAL redis.call('pexpireat',KEYS[1],4000000000000) 1 list",
            "SET shifted v PXAT 4000000000000",
            "EVAL redis.call('pexpire',KEYS[1],redis.call('pttl',KEYS[1])) 1 shifted",
        ],
    );
    let server = Server::start();
    let (code, text) = import(&path, &server, &[]);
    assert!(code == 0 && text.contains("3 keys copied"), "{text}");
    let mut quoin = Connection::open(server.address()).unwrap();
    let left = run(&mut quoin, "PTTL set").integer().unwrap();
    assert!((86_000_000..=86_400_000).contains(&left), "{left}");
    let at = run(&mut quoin, "PEXPIRETIME list").integer();
    assert_eq!(at, Some(4_000_000_000_000));
    let at = run(&mut quoin, "PEXPIRETIME shifted").integer().unwrap();
    assert!(at.abs_diff(4_000_000_000_000) < 60_000, "{at}");
}

#[test]
fn fields_expire_when_the_file_says_so_and_not_while_it_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("appendonly.aof");
    commands(
        &path,
        &[
            "SELECT 0",
            "HSETEX hash PXAT 4000000000000 FIELDS 2 a 1 b 2",
            "HSET hash c 3 d 4 e 5",
            "HPEXPIREAT hash 1000 FIELDS 2 c d",
            // It was not over then.
            "HPERSIST hash FIELDS 1 c",
            "HGETEX hash PXAT 4000000001000 FIELDS 1 e",
            "HSETEX gone PXAT 1000 FIELDS 1 a 1",
        ],
    );
    let server = Server::start();
    let (code, text) = import(&path, &server, &[]);
    assert_eq!(code, 0, "{text}");
    let mut quoin = Connection::open(server.address()).unwrap();
    let expiries = run(&mut quoin, "HPEXPIRETIME hash FIELDS 5 a b c d e");
    let expiries: Vec<_> = expiries
        .items()
        .unwrap()
        .iter()
        .map(Value::integer)
        .collect();
    let at_ms = 4_000_000_000_000;
    let expected = [at_ms, at_ms, -1, -2, at_ms + 1_000].map(Some);
    assert_eq!(expiries, expected);
    assert_eq!(
        run(&mut quoin, "HVALS gone").items().map(<[Value]>::len),
        Some(0)
    );
}

#[test]
fn a_key_that_a_command_made_other_than_it_was_is_named_and_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("appendonly.aof");
    commands(
        &path,
        &[
            "SELECT 0",
            "SET hash 1",
            "BF.ADD hash x",
            "APPEND hash 1",
            "BF.ADD bloom x",
            "BF.ADD deleted x",
            "DEL deleted",
            "SET deleted again",
            "SET plain 1",
            "RENAME hash renamed",
            "SELECT 2000",
            "SET far 1",
            "SELECT 20",
            "SET beyond 1",
        ],
    );
    let server = Server::start();
    let (code, text) = import(&path, &server, &[]);
    assert_eq!(code, 1, "{text}");
    for line in [
        "3 skipped: changed by BF.ADD, which Quoin does not have\n",
        "1 skipped: of database 20, which is beyond",
        "1 skipped: of database 2000, which is beyond",
        "2 keys copied",
        "\"bloom\"",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let mut quoin = Connection::open(server.address()).unwrap();
    let names: Vec<_> = contents(&mut quoin, 0)
        .into_iter()
        .map(|(name, ..)| name)
        .collect();
    assert_eq!(names, [&b"deleted"[..], b"plain"]);
    let (code, text) = import(&path, &server, &["--replace", "--skip"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = import(&path, &server, &["--replace", "--match", "pl*"]);
    assert!(code == 0 && !text.contains("skipped"), "{text}");
}

#[test]
fn a_key_is_right_after_commands_that_are_not_about_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("appendonly.aof");
    let before = ["SET removed v", "SELECT 2000", "FLUSHALL", "SELECT 0"];
    let others = ["SUBSCRIBE a b", "BLPOP nothing 0", "CLIENT REPLY OFF"];
    let after = ["SET kept v", "RPUSH kept x"];
    for (lines, refused) in [
        (&[&before[..], &["SET kept v"]].concat(), None),
        (
            &[&others[..], &after].concat(),
            Some("RPUSH of the append-only file"),
        ),
    ] {
        commands(&path, lines);
        let server = Server::start();
        let (code, text) = import(&path, &server, &[]);
        assert_eq!(code, i32::from(refused.is_some()), "{text}");
        let mut quoin = Connection::open(server.address()).unwrap();
        assert_eq!(run(&mut quoin, "EXISTS removed").integer(), Some(0));
        match refused {
            None => assert_eq!(run(&mut quoin, "EXISTS kept").integer(), Some(1)),
            Some(line) => assert!(
                text.contains(line) && text.contains("\"SUBSCRIBE\""),
                "{text}"
            ),
        }
    }
}

#[test]
fn what_is_there_is_not_changed_by_the_commands_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("appendonly.aof");
    commands(
        &path,
        &[
            "SELECT 0",
            "RPUSH queue 1",
            "RPUSH other 1",
            "FLUSHDB",
            "RPUSH queue 2",
        ],
    );
    let server = Server::start();
    let mut quoin = Connection::open(server.address()).unwrap();
    run(&mut quoin, "RPUSH queue here");
    run(&mut quoin, "RPUSH mine here");
    let (code, text) = import(&path, &server, &[]);
    assert!(
        code == 1 && text.contains("\"queue\": exists already"),
        "{text}"
    );
    assert_eq!(run(&mut quoin, "LLEN queue").integer(), Some(1));
    let (code, text) = import(&path, &server, &["--replace"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(run(&mut quoin, "LINDEX queue 0").bytes(), Some(&b"2"[..]));
    assert_eq!(run(&mut quoin, "LLEN mine").integer(), Some(1));
}
