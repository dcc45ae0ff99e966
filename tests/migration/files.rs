//! `quoin import` of files that a real Redis has written.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::importing::{contents, knowledge, large_stream, long_list, run};
use crate::or_say_so;
use crate::redis_server::Redis;
use crate::resp::Connection;
use crate::server::Server;
use crate::values::{Held, Values};

const SEED: u64 = 7;

pub fn import(from: &Path, server: &Server, flags: &[&str]) -> (i32, String) {
    let to = format!("redis://{}", server.address());
    let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(["import", "--to", &to, "--from"])
        .arg(from)
        .args(flags)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    (output.status.code().unwrap(), text)
}

struct Source {
    redis: Redis,
    folder: tempfile::TempDir,
}

impl Source {
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let flags = ["--dir", path, "--enable-debug-command", "yes"];
        let redis = or_say_so(Redis::start_with_port(folder.path(), &flags))?;
        Some(Self { redis, folder })
    }

    fn connect(&self) -> Connection {
        Connection::open(self.redis.address().unwrap()).unwrap()
    }

    /// Writes a file of its current content.
    fn save(&self) -> PathBuf {
        assert_eq!(run(&mut self.connect(), "SAVE").error(), None);
        self.folder.path().join("dump.rdb")
    }
}

/// Every type in all its encodings, by many sizes and by other limits.
fn fill(redis: &mut Connection) {
    let mut values = Values::new(SEED);
    for database in [0, 3] {
        run(redis, &format!("SELECT {database}"));
        for number in 0..150 {
            let key = format!("key\r\n{number}");
            values.next().put(redis, key.as_bytes());
            if number % 3 == 0 {
                let at = (4_000_000_000_000_i64 + number).to_string();
                redis.command(&["PEXPIREAT", &key, &at]).unwrap();
            }
        }
        long_list(25_000).put(redis, b"long");
        Held::List(vec![vec![b'x'; 700_000]; 5]).put(redis, b"heavy");
        let members = (0..60_000).map(|number| (format!("member {number}").into(), 0.1));
        Held::Set(members.collect()).put(redis, b"wide");
        Held::String(vec![b's'; 3_000_000]).put(redis, b"text");
        Held::String(Vec::new()).put(redis, b"empty");
        run(redis, "PEXPIREAT long 4000000000000");
        for line in [
            "SADD numbers 1 2 3",
            "SADD more-numbers 1 70000 5000000000",
            "HSET hash a 1 b 2",
            "CONFIG SET hash-max-listpack-entries 1",
            "HSET hash-table a 1 b 2",
            "CONFIG SET hash-max-listpack-entries 128",
            "CONFIG SET set-max-intset-entries 1",
            "SADD table 1 2 3",
            "CONFIG SET set-max-intset-entries 512",
            "CONFIG SET zset-max-listpack-entries 1",
            "ZADD skip-list 1 a inf b -0.5 c",
            "CONFIG SET zset-max-listpack-entries 128",
            "XADD stream 5-1 a b",
            "XADD stream 6-1 a c",
            "XGROUP CREATE stream group 0",
            "XREADGROUP GROUP group consumer COUNT 1 STREAMS stream >",
            "XDEL stream 5-1",
            "XGROUP CREATE no-entries group $ MKSTREAM",
            "PFADD counts a b c",
        ] {
            assert_eq!(run(redis, line).error(), None, "{line}");
        }
    }
    run(redis, "SELECT 0");
}

#[test]
fn a_file_of_redis_arrives_whole() {
    let Some(source) = Source::start() else {
        return;
    };
    let mut redis = source.connect();
    fill(&mut redis);
    let code = "#!lua name=l\nredis.register_function('f', function() return 'from f' end)";
    redis.command(&["FUNCTION", "LOAD", code]).unwrap();
    for compression in ["yes", "no"] {
        run(
            &mut redis,
            &format!("CONFIG SET rdbcompression {compression}"),
        );
        let file = source.save();
        let expected = [contents(&mut redis, 0), contents(&mut redis, 3)];
        let server = Server::start();
        let mut quoin = Connection::open(server.address()).unwrap();
        let (code, text) = import(&file, &server, &["--dry-run"]);
        assert_eq!(code, 0, "{text}");
        assert_eq!(run(&mut quoin, "DBSIZE").integer(), Some(0));
        let line = " keys would be copied\n1 library of functions";
        assert!(text.contains(line), "{text}");
        let (code, text) = import(&file, &server, &[]);
        assert_eq!(code, 0, "{text}");
        let count = expected[0].len() + expected[1].len();
        let line = format!("{count} keys compared: all have the same number of elements");
        assert!(text.contains(&line), "{text}");
        assert_eq!(contents(&mut quoin, 0), expected[0]);
        assert_eq!(contents(&mut quoin, 3), expected[1]);
        let called = run(&mut quoin, "FCALL f 0");
        assert_eq!(called.bytes(), Some(&b"from f"[..]));
    }
}

#[test]
fn a_large_stream_of_a_file_arrives_with_its_groups() {
    let Some(source) = Source::start() else {
        return;
    };
    let mut redis = source.connect();
    large_stream(&mut redis, "stream");
    let expected = (contents(&mut redis, 0), knowledge(&mut redis, "stream"));
    let file = source.save();
    let server = Server::start();
    let (code, text) = import(&file, &server, &[]);
    assert_eq!(code, 0, "{text}");
    let mut quoin = Connection::open(server.address()).unwrap();
    let arrived = (contents(&mut quoin, 0), knowledge(&mut quoin, "stream"));
    assert_eq!(arrived, expected);
}

#[test]
fn keys_whose_time_is_over_are_left_out() {
    let Some(source) = Source::start() else {
        return;
    };
    let mut redis = source.connect();
    for line in [
        "DEBUG SET-ACTIVE-EXPIRE 0",
        "SET stays 1",
        "SET goes 1 PX 1",
    ] {
        assert_eq!(run(&mut redis, line).error(), None, "{line}");
    }
    let file = source.save();
    let server = Server::start();
    let (code, text) = import(&file, &server, &[]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("1 were gone before they were copied"),
        "{text}"
    );
    let mut quoin = Connection::open(server.address()).unwrap();
    assert_eq!(run(&mut quoin, "DBSIZE").integer(), Some(1));
}

#[test]
fn what_is_there_stays_unless_it_is_to_be_replaced() {
    let Some(source) = Source::start() else {
        return;
    };
    let mut redis = source.connect();
    for line in ["SET a new", "SET b new", "SELECT 2", "SET c new"] {
        run(&mut redis, line);
    }
    long_list(200_000).put(&mut redis, b"long");
    let file = source.save();
    let server = Server::start();
    let mut quoin = Connection::open(server.address()).unwrap();
    for line in ["SET a old", "SELECT 2", "SET long old"] {
        run(&mut quoin, line);
    }
    let (code, text) = import(&file, &server, &[]);
    assert_eq!(code, 1, "{text}");
    for line in [
        "\"a\": exists already",
        "\"long\": exists already",
        "2 keys copied",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert_eq!(run(&mut quoin, "GET long").bytes(), Some(&b"old"[..]));
    let (code, text) = import(&file, &server, &["--replace"]);
    assert_eq!(code, 0, "{text}");
    assert!(Held::get(&mut quoin, b"long") == Some(long_list(200_000)));
    let keys = run(&mut quoin, "KEYS quoin-import-*");
    assert_eq!(keys.items().unwrap().len(), 0);

    let flags = ["--databases", "2", "--match", "c*"];
    let server = Server::start();
    let (code, text) = import(&file, &server, &flags);
    assert_eq!(code, 0, "{text}");
    let mut quoin = Connection::open(server.address()).unwrap();
    assert_eq!(run(&mut quoin, "DBSIZE").integer(), Some(0));
    run(&mut quoin, "SELECT 2");
    assert_eq!(run(&mut quoin, "DBSIZE").integer(), Some(1));
}

#[test]
fn nothing_of_a_damaged_file_is_written() {
    let Some(source) = Source::start() else {
        return;
    };
    let mut redis = source.connect();
    for number in 0..50 {
        run(&mut redis, &format!("RPUSH list{number} a b c"));
    }
    let file = source.save();
    let server = Server::start();
    let whole = std::fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    for (bytes, expected) in [
        (damaged.as_slice(), "dump.rdb: it"),
        (&whole[..whole.len() - 4], "cannot be read at byte"),
        (b"REDIS0014", "version 14"),
        (b"some text", "is no RDB file"),
        (
            &[whole.as_slice(), b"some text"].concat(),
            "9 bytes follow after the end of the RDB file",
        ),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let (code, text) = import(&file, &server, &[]);
        assert_eq!(code, 1, "{text}");
        assert!(text.contains(expected), "{text}");
        let mut quoin = Connection::open(server.address()).unwrap();
        assert_eq!(run(&mut quoin, "DBSIZE").integer(), Some(0));
    }
    let (code, text) = import(Path::new("no-such.rdb"), &server, &[]);
    assert!(code == 1 && text.contains("no-such.rdb: "), "{text}");
}

#[test]
fn what_quoin_exports_it_imports() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = [Server::start(), Server::start()];
    let mut here = Connection::open(from.address()).unwrap();
    let mut values = Values::new(SEED + 1);
    for number in 0..50 {
        let key = format!("key{number}");
        values.next().put(&mut here, key.as_bytes());
    }
    let file = folder.path().join("dump.rdb");
    let address = format!("redis://{}", from.address());
    let status = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(["export", "--from", &address, "--to"])
        .arg(&file)
        .status()
        .unwrap();
    assert!(status.success());
    let (code, text) = import(&file, &to, &[]);
    assert_eq!(code, 0, "{text}");
    let mut there = Connection::open(to.address()).unwrap();
    assert_eq!(contents(&mut there, 0), contents(&mut here, 0));
}
