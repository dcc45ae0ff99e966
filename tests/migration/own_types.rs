//! Priority queues and task queues on their way to another Quoin, and how a Redis handles them.

use std::path::Path;
use std::process::{Command, Output};

use crate::importing::{contents, run};
use crate::or_say_so;
use crate::redis_server::Redis;
use crate::resp::{Connection, Value};
use crate::server::Server;
use crate::values::Values;

const SEED: u64 = 31;

fn quoin(arguments: &[&str]) -> (i32, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(arguments)
        .output()
        .unwrap();
    let text = [stdout, stderr].concat();
    (status.code().unwrap(), String::from_utf8(text).unwrap())
}

fn url(server: &Server) -> String {
    format!("redis://{}", server.address())
}

fn import(from: &str, to: &Server, flags: &[&str]) -> (i32, String) {
    let to = url(to);
    quoin(&[&["import", "--from", from, "--to", &to], flags].concat())
}

/// Queues with everything that they can contain, in two databases. Times are far away, so that
/// nothing changes.
fn fill(quoin: &mut Connection) {
    for line in [
        "PQ.PUSH pq 1 a 1 b 1.0 c -5 d inf e 9007199254740993 f",
        "PEXPIREAT pq 4000000000000",
        "TASK.ADD tasks 1 ready ID ready NEEDS gb 2.5 cpu 1",
        "TASK.ADD tasks 1 delayed ID delayed DELAY 31557600000000",
        "TASK.ADD tasks -1 leased ID leased MAXTRIES 5",
        "TASK.TAKE tasks LEASE 31557600000000",
        "TASK.ADD tasks 7 dead ID dead MAXTRIES 1",
        "TASK.TAKE tasks LEASE 1000000 WORKER w1",
        "TASK.NACK tasks dead REASON broken",
        "TASK.ADD tasks 9 old ID old TTL 31557600000000 UNIQUE order 31557600000000",
        "TASK.SETOPTIONS tasks MAXTRIES 9 BACKOFF 10 LEASE 5000 LEASES 90 RATE 80 1000 OVERFLOW DROP DEADLETTER letters",
        "TASK.ADD manytasks 1 done ID done UNIQUE many 31557600000000",
        "TASK.TAKE manytasks LEASE 5000",
        "TASK.PROGRESS manytasks done half",
        "TASK.ACK manytasks done RESULT 42 KEEP 31557600000000",
        "TASK.PAUSE tasks",
        "TASK.PAUSE longtasks",
        "TASK.SCHEDULE tasks hourly EVERY 31557600000000 TASK 1 work NEEDS gb 1 UNIQUE order 1000",
        "TASK.SCHEDULE scheduled yearly EVERY 31557600000000 MISSED ALL TASK 1 work",
        "TASK.PAUSE scheduled SCHEDULE yearly",
        "SELECT 3",
        "PQ.PUSH pq 7 other",
        "SELECT 0",
    ] {
        assert_eq!(run(quoin, line.trim_end()).error(), None, "{line}");
    }
    let long = "v".repeat(300_000);
    for number in 0..20 {
        let (number, priority) = (number.to_string(), (number % 3).to_string());
        let push = ["PQ.PUSH", "long", &priority, &long];
        assert_eq!(quoin.command(&push).unwrap().error(), None);
        let add = ["TASK.ADD", "longtasks", &priority, &long, "ID", &number];
        assert_eq!(quoin.command(&add).unwrap().error(), None);
    }
    let script = "for i = 1, 25000 do \
                  redis.call('PQ.PUSH', 'many', i % 7, i) \
                  redis.call('TASK.ADD', 'manytasks', i % 5, i, 'ID', i, 'NEEDS', 'gb', 1 + i % 9) end";
    let filled = quoin.command(&["EVAL", script, "0"]).unwrap();
    assert_eq!(filled.error(), None);
    run(
        quoin,
        "TASK.TAKE manytasks COUNT 1000 HAVING gb 9 LEASE 31557600000000",
    );
}

/// DUMP of each of the queues.
fn dumps(quoin: &mut Connection) -> Vec<Value> {
    let keys = [
        "pq",
        "tasks",
        "long",
        "longtasks",
        "many",
        "manytasks",
        "scheduled",
    ];
    let mut all: Vec<Value> = keys
        .iter()
        .flat_map(|key| ["DUMP", "PEXPIRETIME"].map(|word| format!("{word} {key}")))
        .map(|line| run(quoin, &line))
        .collect();
    assert!(all.iter().all(|dump| dump.error().is_none()));
    run(quoin, "SELECT 3");
    all.push(run(quoin, "DUMP pq"));
    run(quoin, "SELECT 0");
    all
}

#[test]
fn a_whole_quoin_moves_to_another() {
    let [from, to] = [Server::start(), Server::start()];
    let mut here = Connection::open(from.address()).unwrap();
    let mut there = Connection::open(to.address()).unwrap();
    fill(&mut here);
    let mut values = Values::new(SEED);
    for number in 0..30 {
        values
            .next()
            .put(&mut here, format!("key{number}").as_bytes());
    }
    let (code, text) = import(&url(&from), &to, &["--databases", "all"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("38 keys copied"), "{text}");
    assert_eq!(dumps(&mut there), dumps(&mut here));
    // The same tasks are taken next, and the results of finished tasks have moved too.
    let next = "TASK.TAKE manytasks COUNT 50 HAVING gb 3";
    assert_eq!(run(&mut there, next), run(&mut here, next));
    let result = run(&mut there, "TASK.RESULT manytasks done");
    assert_eq!(result.bytes(), Some(&b"42"[..]));
    let (code, text) = import(&url(&from), &to, &["--resume"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("37 existed already"), "{text}");
}

#[test]
fn a_file_moves_a_whole_quoin_too() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = [Server::start(), Server::start()];
    let mut here = Connection::open(from.address()).unwrap();
    let mut there = Connection::open(to.address()).unwrap();
    fill(&mut here);
    let file = folder.path().join("all.rdb");
    let file = file.to_str().unwrap();
    let (code, text) = quoin(&["export", "--from", &url(&from), "--to", file]);
    assert_eq!(code, 0, "{text}");
    for line in [
        "4 of type pqueue, which Redis does not have\n",
        "4 of type taskqueue, which Redis does not have\n",
        "--for-redis",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let (code, text) = import(file, &to, &[]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(dumps(&mut there), dumps(&mut here));
}

#[test]
fn queues_leave_by_migrate_and_are_copied() {
    let [from, to] = [Server::start(), Server::start()];
    let mut here = Connection::open(from.address()).unwrap();
    let mut there = Connection::open(to.address()).unwrap();
    fill(&mut here);
    for key in ["pq", "tasks"] {
        let dump = run(&mut here, &format!("DUMP {key}"));
        run(&mut here, &format!("COPY {key} copy"));
        assert_eq!(run(&mut here, "DUMP copy"), dump);
        let port = to.address().port();
        let moved = run(&mut here, &format!("MIGRATE 127.0.0.1 {port} {key} 0 5000"));
        assert!(moved.is_ok(), "{moved:?}");
        assert_eq!(run(&mut here, &format!("EXISTS {key}")).integer(), Some(0));
        assert_eq!(run(&mut there, &format!("DUMP {key}")), dump);
        run(&mut here, "DEL copy");
    }
}

#[test]
fn a_redis_refuses_such_values() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = or_say_so(Redis::start_with_port(folder.path(), &[])) else {
        return;
    };
    let from = Server::start();
    let mut here = Connection::open(from.address()).unwrap();
    let mut there = Connection::open(redis.address().unwrap()).unwrap();
    fill(&mut here);
    for key in ["pq", "tasks"] {
        let dump = run(&mut here, &format!("DUMP {key}"));
        let words: [&[u8]; 4] = [b"RESTORE", b"k", b"0", dump.bytes().unwrap()];
        let refused = there.command(&words).unwrap();
        let line = refused.error().map(String::from_utf8_lossy);
        assert_eq!(line.as_deref(), Some("ERR Bad data format"));
        let port = redis.address().unwrap().port();
        let refused = run(&mut here, &format!("MIGRATE 127.0.0.1 {port} {key} 0 5000"));
        let line = refused.error().map(String::from_utf8_lossy);
        let expected = "ERR Target instance replied with error: ERR Bad data format";
        assert_eq!(line.as_deref(), Some(expected));
        assert_eq!(run(&mut here, &format!("EXISTS {key}")).integer(), Some(1));
    }
    assert!(contents(&mut there, 0).is_empty());
}

#[test]
fn a_redis_names_the_type_in_a_file_that_it_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let from = Server::start();
    let mut here = Connection::open(from.address()).unwrap();
    run(&mut here, "PQ.PUSH pq 1 a");
    let file = folder.path().join("dump.rdb");
    quoin(&[
        "export",
        "--from",
        &url(&from),
        "--to",
        file.to_str().unwrap(),
    ]);
    let Some(text) = loaded_by_redis(folder.path()) else {
        return;
    };
    assert!(
        text.contains("no matching module type 'quoinprio'"),
        "{text}"
    );
}

/// The output of a Redis that is started on a file and then ends.
fn loaded_by_redis(folder: &Path) -> Option<String> {
    let binary = std::env::var_os("REDIS_ORACLE").unwrap_or_else(|| "redis-server".into());
    let output = Command::new(binary)
        .args(["--port", "0", "--save", "", "--dir"])
        .arg(folder)
        .arg("--unixsocket")
        .arg(folder.join("socket"))
        .output();
    // It ends, but its exit code says nothing: it checks the file first, and that skips such
    // values.
    let output = or_say_so_of(output)?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn or_say_so_of(output: std::io::Result<Output>) -> Option<Output> {
    output
        .inspect_err(|error| eprintln!("nothing is loaded by Redis: {error}"))
        .ok()
}
