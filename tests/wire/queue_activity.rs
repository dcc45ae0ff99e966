//! QUEUE.TOP, and the metrics of the most active queues.

use std::collections::HashMap;

use crate::resp::{Connection, Value, Words};
use crate::server::{Server, request, wait_until};

/// A queue of QUEUE.TOP: its fields as text.
type Queue = HashMap<String, String>;

fn text(value: &Value) -> String {
    match value {
        Value::Line(_, text) | Value::Blob(_, Some(text)) => {
            String::from_utf8_lossy(text).into_owned()
        }
        other => panic!("{other:?}"),
    }
}

fn queues_of(reply: &Value) -> Vec<Queue> {
    let queues = reply.items().unwrap().iter();
    let fields = |queue: &Value| {
        let fields = queue.items().unwrap().chunks(2);
        fields
            .map(|pair| (text(&pair[0]), text(&pair[1])))
            .collect()
    };
    queues.map(fields).collect()
}

fn top(client: &mut Connection) -> Vec<Queue> {
    let reply = client.command(&["QUEUE.TOP", "COUNT", "2000"]).unwrap();
    queues_of(&reply)
}

fn find(client: &mut Connection, name: &str) -> Option<Queue> {
    top(client).into_iter().find(|queue| queue["key"] == name)
}

/// In, out, retries and deaths.
fn counts(client: &mut Connection, name: &str) -> [u64; 4] {
    match find(client, name) {
        Some(queue) => {
            ["in", "out", "retries", "deaths"].map(|field| queue[field].parse().unwrap())
        }
        None => [0; 4],
    }
}

fn words(line: &str) -> Words {
    let words = line.split(' ').map(|word| word.as_bytes().to_vec());
    words.collect()
}

fn run(client: &mut Connection, line: &str) -> Value {
    client.command(&words(line)).unwrap()
}

fn run_all(client: &mut Connection, lines: &[&str]) {
    for line in lines {
        let reply = run(client, line);
        assert!(reply.error_text().is_none(), "{line}: {reply:?}");
    }
}

fn connect(server: &Server) -> Connection {
    Connection::open(server.address()).unwrap()
}

#[test]
fn a_queue_has_the_documented_fields_in_both_protocols() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("QUEUE.TOP"), "*0\r\n");
    socket.run("SELECT 3");
    socket.run("RPUSH mail a b c");
    socket.run("LPOP mail 2");
    let mut waiting = server.connect();
    waiting.send("SELECT 3\r\nBRPOPLPUSH other mail 0\r\n");
    assert_eq!(waiting.reply(), "+OK\r\n");
    let queue = {
        let mut client = connect(&server);
        top(&mut client).remove(0)
    };
    let mut names: Vec<&str> = queue.keys().map(String::as_str).collect();
    names.sort_unstable();
    let fields = [
        "db",
        "deaths",
        "in",
        "in-per-second",
        "key",
        "out",
        "out-per-second",
        "retries",
        "type",
        "waiting",
    ];
    assert_eq!(names, fields);
    for (field, value) in [
        ("db", "3"),
        ("key", "mail"),
        ("type", "list"),
        ("in", "3"),
        ("out", "2"),
        ("retries", "0"),
        ("deaths", "0"),
        ("waiting", "0"),
    ] {
        assert_eq!(queue[field], value, "{field}");
    }
    let rate = |field: &str| queue[field].parse::<f64>().unwrap();
    assert!((0.2..=3.0).contains(&rate("in-per-second")), "{queue:?}");
    assert!((0.1..=2.0).contains(&rate("out-per-second")), "{queue:?}");
    socket.run("HELLO 3");
    let typed = socket.run("QUEUE.TOP");
    assert!(
        typed.starts_with("*1\r\n%10\r\n$2\r\ndb\r\n:3\r\n"),
        "{typed}"
    );
    assert!(
        typed.contains("$13\r\nin-per-second\r\n,") && typed.contains("$4\r\ntype\r\n$4\r\nlist"),
        "{typed}"
    );
}

#[test]
fn elements_of_each_type_are_counted_as_they_come_and_go() {
    let server = Server::start();
    let mut client = connect(&server);
    run_all(
        &mut client,
        &[
            "RPUSH list a b c d",
            "LPOP list",
            "LREM list 1 c",
            "LMOVE list other LEFT RIGHT",
            "ZADD zset 1 a 2 b 3 c",
            "ZADD zset 9 a",
            "ZPOPMIN zset 2",
            "ZREM zset nosuch",
            "PQ.PUSH pq 1 a 2 b",
            "PQ.POPMIN pq",
            "XADD stream * a b",
            "XADD stream * a b",
            "XGROUP CREATE stream group 0",
            "XREADGROUP GROUP group c COUNT 1 STREAMS stream >",
            "XREADGROUP GROUP group c NOACK STREAMS stream >",
            "XTRIM stream MAXLEN 0",
            "SADD set a b c",
            "HSET hash a b",
            "SET string value",
        ],
    );
    for (name, kind, elements_in, elements_out) in [
        ("list", "list", 4, 3),
        ("other", "list", 1, 0),
        ("zset", "zset", 3, 2),
        ("pq", "pqueue", 2, 1),
        ("stream", "stream", 2, 1),
    ] {
        let queue = find(&mut client, name).unwrap();
        assert_eq!(queue["type"], kind);
        let counted = counts(&mut client, name);
        assert_eq!(counted, [elements_in, elements_out, 0, 0], "{name}");
    }
    for name in ["set", "hash", "string"] {
        assert!(find(&mut client, name).is_none(), "{name}");
    }
}

#[test]
fn entries_of_streams_go_out_when_they_are_acknowledged() {
    let server = Server::start();
    let mut client = connect(&server);
    run_all(
        &mut client,
        &[
            "XADD stream 1-1 a b",
            "XADD stream 2-1 a b",
            "XGROUP CREATE stream group 0",
            "XREADGROUP GROUP group c STREAMS stream >",
        ],
    );
    assert_eq!(counts(&mut client, "stream"), [2, 0, 0, 0]);
    run_all(
        &mut client,
        &[
            "XACK stream group 1-1 9-9",
            "XACK stream group 1-1",
            "XDEL stream 2-1",
        ],
    );
    assert_eq!(counts(&mut client, "stream"), [2, 1, 0, 0]);
}

#[test]
fn what_is_undone_or_refused_is_not_counted() {
    let server = Server::start();
    let mut client = connect(&server);
    run_all(
        &mut client,
        &[
            "MULTI",
            "RPUSH q a b",
            "LPOP q",
            "DISCARD",
            "WATCH w",
            "SET w 1",
            "MULTI",
            "RPUSH q a b",
            "EXEC",
        ],
    );
    assert_eq!(counts(&mut client, "q"), [0; 4]);
    // A script that fails keeps what it wrote, unless it is declared atomic.
    let fails = "#!lua flags=atomic\nredis.call('RPUSH', 'q', 'a') redis.call('NOSUCH')";
    let reply = client.command(&["EVAL", fails, "0"]).unwrap();
    assert!(reply.error_text().is_some());
    assert_eq!(counts(&mut client, "q"), [0; 4]);
    run_all(
        &mut client,
        &[
            "MULTI",
            "RPUSH q a b c",
            "LPOP q",
            "EXEC",
            "RENAME q r",
            "DEL r",
        ],
    );
    assert_eq!(counts(&mut client, "q"), [3, 1, 0, 0]);
    assert_eq!(counts(&mut client, "r"), [0; 4]);
}

#[test]
fn scripts_and_pipelines_count() {
    let server = Server::start();
    let mut client = connect(&server);
    let script =
        "for i = 1, 10 do redis.call('RPUSH', 'q', i) end return redis.call('LPOP', 'q', 4)";
    client.command(&["EVAL", script, "0"]).unwrap();
    assert_eq!(counts(&mut client, "q"), [10, 4, 0, 0]);
    let pipeline: Vec<_> = (0..100)
        .flat_map(|_| [words("LPUSH p a"), words("LPUSH p b"), words("RPOP p")])
        .collect();
    client.pipeline(&pipeline).unwrap();
    assert_eq!(counts(&mut client, "p"), [200, 100, 0, 0]);
}

#[test]
fn clients_that_wait_are_shown_and_what_they_get_is_counted() {
    let server = Server::start();
    let mut client = connect(&server);
    run_all(&mut client, &["RPUSH q a", "LPOP q"]);
    let mut waiting: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for socket in &mut waiting {
        socket.send(request(&["BLPOP", "q", "0"]));
    }
    wait_until("three clients wait", || {
        find(&mut client, "q").unwrap()["waiting"] == "3"
    });
    run_all(&mut client, &["RPUSH q b c"]);
    wait_until("one client waits", || {
        find(&mut client, "q").unwrap()["waiting"] == "1"
    });
    assert_eq!(counts(&mut client, "q"), [3, 3, 0, 0]);
}

#[test]
fn tasks_go_out_when_they_are_acknowledged_and_failed_leases_are_counted() {
    let server = Server::start();
    let mut client = connect(&server);
    run_all(
        &mut client,
        &[
            "TASK.ADD q 1 work ID a",
            "TASK.ADD q 1 work ID b MAXTRIES 2",
            "TASK.ADD q 1 work ID c",
            "TASK.TAKE q LEASE 60000 COUNT 2",
        ],
    );
    assert_eq!(counts(&mut client, "q"), [3, 0, 0, 0]);
    run_all(&mut client, &["TASK.ACK q a", "TASK.NACK q b"]);
    assert_eq!(counts(&mut client, "q"), [3, 1, 1, 0]);
    // Now only b has a lease, which lapses.
    run_all(&mut client, &["TASK.TAKE q LEASE 50"]);
    wait_until("the lease has ended", || {
        counts(&mut client, "q") == [3, 1, 1, 1]
    });
    run_all(&mut client, &["TASK.TAKE q"]);
    assert_eq!(counts(&mut client, "q"), [3, 2, 1, 1]);
}

#[test]
fn users_see_the_queues_that_they_may_read() {
    let server = Server::start();
    let mut client = connect(&server);
    run_all(
        &mut client,
        &[
            "RPUSH a:1 x",
            "RPUSH b:1 x",
            "RPUSH c:1 x",
            "ACL SETUSER reader on nopass %R~a:* %W~b:* +@read",
            "ACL SETUSER blind on nopass ~* +@write",
        ],
    );
    let mut reader = connect(&server);
    run_all(&mut reader, &["AUTH reader any"]);
    let names: Vec<String> = top(&mut reader)
        .into_iter()
        .map(|queue| queue["key"].clone())
        .collect();
    assert_eq!(names, ["a:1"]);
    let mut blind = connect(&server);
    run_all(&mut blind, &["AUTH blind any"]);
    let refused = run(&mut blind, "QUEUE.TOP");
    assert!(refused.error_text().unwrap().starts_with("NOPERM"));
}

#[test]
fn the_most_active_queues_come_first_and_they_are_bounded() {
    let server = Server::start();
    let mut client = connect(&server);
    let busy = (0..100).map(|_| words("RPUSH busy a b c"));
    let others = (0..3_000).map(|number| words(&format!("RPUSH q{number} a")));
    let commands: Vec<_> = busy.chain(others).collect();
    client.pipeline(&commands).unwrap();
    let queues = top(&mut client);
    assert!(
        queues.len() <= 1_024 && queues.len() >= 700,
        "{}",
        queues.len()
    );
    assert_eq!((&*queues[0]["key"], &*queues[0]["in"]), ("busy", "300"));
    let default = queues_of(&run(&mut client, "QUEUE.TOP"));
    assert_eq!(default.len(), 20);
    assert_eq!(queues_of(&run(&mut client, "QUEUE.TOP COUNT 3")).len(), 3);
    run_all(&mut client, &["CONFIG RESETSTAT"]);
    assert!(top(&mut client).is_empty());
}

#[test]
fn other_arguments_are_refused() {
    let server = Server::start();
    let mut socket = server.connect();
    for (line, error) in [
        ("QUEUE.TOP COUNT 0", "-ERR COUNT is out of range"),
        ("QUEUE.TOP COUNT x", "-ERR COUNT is out of range"),
        ("QUEUE.TOP COUNT", "-ERR syntax error, expected QUEUE.TOP"),
        ("QUEUE.TOP 5", "-ERR syntax error"),
        ("QUEUE.TOP COUNT 1 2", "-ERR syntax error"),
    ] {
        let reply = socket.run(line);
        assert!(reply.starts_with(error), "{line}: {reply}");
    }
}
