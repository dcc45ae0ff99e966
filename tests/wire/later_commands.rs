//! Commands of later versions of Redis, with a client library in both protocols.

use crate::server::Server;

fn ask<T: redis::FromRedisValue>(client: &mut redis::Connection, line: &str) -> T {
    let mut words = line.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command.query(client).unwrap()
}

#[test]
fn unions_and_differences_are_counted() {
    let server = Server::start();
    for protocol in [2, 3] {
        let mut client = server.redis(protocol);
        ask::<()>(&mut client, "SADD sports football tennis golf");
        ask::<()>(&mut client, "SADD news politics football");
        for (line, count) in [
            ("SUNIONCARD 2 sports news", 4),
            ("SUNIONCARD 2 sports news LIMIT 3", 3),
            ("SUNIONCARD 2 sports news APPROX", 4),
            ("SDIFFCARD 2 sports news", 2),
            ("SDIFFCARD 2 sports news LIMIT 1", 1),
        ] {
            assert_eq!(ask::<i64>(&mut client, line), count, "{line}");
        }
        let keys: Vec<String> = ask(&mut client, "COMMAND GETKEYS SUNIONCARD 2 a b LIMIT 1");
        assert_eq!(keys, ["a", "b"]);
    }
}

#[test]
fn locks_and_several_strings_are_set() {
    let server = Server::start();
    for protocol in [2, 3] {
        let mut client = server.redis(protocol);
        assert_eq!(ask::<i64>(&mut client, "MSETEX 2 a 1 b hello EX 100"), 1);
        assert_eq!(ask::<i64>(&mut client, "MSETEX 2 b 1 c 2 NX"), 0);
        let digest: String = ask(&mut client, "DIGEST b");
        assert_eq!(digest, "9555e8555c62dcfd");
        let set: Option<String> = ask(&mut client, "SET b mine IFEQ other");
        assert_eq!(set, None);
        let set: Option<String> = ask(&mut client, &format!("SET b mine IFDEQ {digest}"));
        assert_eq!(set.as_deref(), Some("OK"));
        assert_eq!(ask::<i64>(&mut client, "DELEX b IFEQ other"), 0);
        assert_eq!(ask::<i64>(&mut client, "DELEX b IFEQ mine"), 1);
        assert_eq!(ask::<i64>(&mut client, "DELIFEQ a 1"), 1);
    }
}

#[test]
fn a_rate_is_limited() {
    let server = Server::start();
    for protocol in [2, 3] {
        let mut client = server.redis(protocol);
        for reply in [(1, 1), (2, 1), (2, 0)] {
            let line = "INCREX rate BYINT 1 UBOUND 2 EX 60 ENX";
            assert_eq!(ask::<(i64, i64)>(&mut client, line), reply);
        }
        assert_eq!(ask::<i64>(&mut client, "TTL rate"), 60);
        let floats: (f64, f64) = ask(&mut client, "INCREX sum BYFLOAT 0.5");
        assert_eq!(floats, (0.5, 0.5));
        ask::<()>(&mut client, "DEL rate sum");
    }
    let mut socket = server.connect();
    socket.run("SET sum 0.5");
    let bulks = "*2\r\n$3\r\n0.7\r\n$3\r\n0.2\r\n";
    assert_eq!(socket.run("INCREX sum BYFLOAT 0.2"), bulks);
    socket.run("HELLO 3");
    let doubles = "*2\r\n,0.9\r\n,0.2\r\n";
    assert_eq!(socket.run("INCREX sum BYFLOAT 0.2"), doubles);
}

#[test]
fn what_increx_does_is_published() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("CONFIG SET notify-keyspace-events KEA");
    let mut subscriber = server.connect();
    subscriber.run("PSUBSCRIBE __keyspace@0__:k");
    for (line, events) in [
        ("INCREX k EX 10", &["incrby", "expire"][..]),
        ("INCREX k EX 20 ENX", &["incrby"]),
        ("INCREX k UBOUND 1", &[]),
        ("INCREX k PERSIST", &["incrby", "persist"]),
        ("INCREX k PERSIST", &["incrby"]),
        ("INCREX k BYFLOAT 1.5", &["incrbyfloat"]),
        ("INCREX k BYFLOAT 1.5 EXAT 1", &["del"]),
    ] {
        socket.run(line);
        for event in events {
            let told = subscriber.reply();
            let end = format!("${}\r\n{event}\r\n", event.len());
            assert!(told.ends_with(&end), "{line}: {told}");
        }
    }
    assert_eq!(socket.run("EXISTS k"), ":0\r\n");
}
