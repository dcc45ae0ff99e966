//! `quoin export` to a file that a real Redis loads.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::importing::{contents, long_list, run};
use crate::or_say_so;
use crate::redis_server::Redis;
use crate::resp::Connection;
use crate::server::{Server, wait_until};
use crate::values::{Held, Values};

const SEED: u64 = 6;

fn export(server: &Server, to: &Path, flags: &[&str]) -> (i32, String) {
    let from = format!("redis://{}", server.address());
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(["export", "--from", &from, "--to"])
        .arg(to)
        .args(flags)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = [stdout, stderr].concat();
    (status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_redis_loads_all_that_it_has_types_for() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(&[]);
    let mut quoin = Connection::open(server.address()).unwrap();
    let mut values = Values::new(SEED);
    for database in [0, 3] {
        run(&mut quoin, &format!("SELECT {database}"));
        for number in 0..100 {
            let key = format!("key\r\n{number}");
            values.next().put(&mut quoin, key.as_bytes());
            if number % 3 == 0 {
                let at = (4_000_000_000_000_i64 + number).to_string();
                quoin.command(&["PEXPIREAT", &key, &at]).unwrap();
            }
        }
        long_list(25_000).put(&mut quoin, b"12");
        Held::String(vec![b's'; 3_000_000]).put(&mut quoin, b"text");
        Held::String(Vec::new()).put(&mut quoin, b"");
    }
    let expected = [contents(&mut quoin, 0), contents(&mut quoin, 3)];
    let code = "#!lua name=l\nredis.register_function('f', function() return 'from f' end)";
    quoin.command(&["FUNCTION", "LOAD", code]).unwrap();
    run(&mut quoin, "PQ.PUSH jobs 1 one");
    run(&mut quoin, "PQ.PUSH others 1 one");

    let file = folder.path().join("dump.rdb");
    let (code, text) = export(&server, &file, &["--for-redis"]);
    assert_eq!(code, 0, "{text}");
    let length = std::fs::metadata(&file).unwrap().len();
    let said = format!("\n1 library of functions exported\n206 keys exported, {length} bytes\n");
    assert!(text.ends_with(&said), "{text}");
    assert!(
        text.contains("2 skipped: Redis has no type pqueue\nskipped: \""),
        "{text}"
    );
    assert!(
        text.contains("\"jobs\"") && text.contains("\"others\""),
        "{text}"
    );
    let names = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(names.count(), 1, "something is left over");
    // Keys that are left out are not dumped either.
    let calls = run(&mut quoin, "INFO commandstats");
    let calls = String::from_utf8(calls.bytes().unwrap().to_vec()).unwrap();
    assert!(calls.contains("cmdstat_dump:calls=206,"), "{calls}");

    let loading = folder.path().to_str().unwrap();
    let redis = Redis::start_with_port(folder.path(), &["--dir", loading]);
    let Some(redis) = or_say_so(redis) else {
        return;
    };
    let mut redis = Connection::open(redis.address().unwrap()).unwrap();
    wait_until("the file is loaded", || {
        run(&mut redis, "DBSIZE").integer() == Some(103)
    });
    assert_eq!(contents(&mut redis, 0), expected[0]);
    assert_eq!(contents(&mut redis, 3), expected[1]);
    let called = run(&mut redis, "FCALL f 0");
    assert_eq!(called.bytes(), Some(&b"from f"[..]));
}

#[test]
fn only_what_is_asked_for_is_exported_and_no_file_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(&[]);
    let mut quoin = Connection::open(server.address()).unwrap();
    for line in ["SET a 1", "SET b 1", "SELECT 1", "SET a 1", "SET c 1"] {
        run(&mut quoin, line);
    }
    let file = folder.path().join("f");
    let (code, text) = export(&server, &file, &["--databases", "1", "--match", "[ab]"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("1 key exported"), "{text}");
    let (code, text) = export(&server, &file, &[]);
    assert_eq!(code, 1);
    assert!(text.contains("exists"), "{text}");
}

#[test]
fn a_redis_is_not_exported() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = or_say_so(Redis::start_with_port(folder.path(), &[])) else {
        return;
    };
    let from = format!("redis://{}", redis.address().unwrap());
    let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(["export", "--from", &from, "--to"])
        .arg(folder.path().join("f"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("is not a Quoin"), "{text}");
    assert!(!folder.path().join("f").exists());
}
