//! MIGRATE from Quoin, to Redis and to another Quoin.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};

use crate::between::{Between, Fate, find};
use crate::resp::Connection;
use crate::server::{Server, Socket};
use crate::start_redis;
use crate::values::{Held, Values};

const VALUES: usize = 60;
const SEED: u64 = 5;

fn migrate(socket: &mut Socket, to: SocketAddr, rest: &str) -> String {
    let words = format!("MIGRATE {} {} {rest}", to.ip(), to.port());
    let words: Vec<&str> = words
        .split(' ')
        .map(|word| if word == "''" { "" } else { word })
        .collect();
    socket.command(&words)
}

/// Moves values to a server and checks them there.
fn leave(to: SocketAddr) {
    let server = Server::start();
    let mut here = Connection::open(server.address()).unwrap();
    let mut there = Connection::open(to).unwrap();
    let mut socket = server.connect();
    let mut values = Values::new(SEED);
    for number in 0..VALUES {
        let value = values.next();
        let key = format!("key{number}");
        value.put(&mut here, key.as_bytes());
        let reply = migrate(&mut socket, to, &format!("{key} 0 5000"));
        assert_eq!(reply, "+OK\r\n", "value {number}");
        assert_eq!(socket.run(&format!("EXISTS {key}")), ":0\r\n");
        let held = Held::get(&mut there, key.as_bytes());
        assert_eq!(held, Some(value), "value {number}");
    }
}

#[test]
fn values_leave_for_redis() {
    let folder = tempfile::tempdir().unwrap();
    if let Some(redis) = start_redis(folder.path()) {
        leave(redis.address().unwrap());
    }
}

#[test]
fn values_leave_for_another_quoin() {
    let server = Server::start();
    leave(server.address());
}

#[test]
fn several_keys_leave_together_with_their_times_to_live() {
    let [from, to] = [Server::start(), Server::start()];
    let (mut here, mut there) = (from.connect(), to.connect());
    here.run("MSET a 1 b 2 c 3");
    here.run("PEXPIRE b 100000");
    let reply = migrate(&mut here, to.address(), "'' 3 5000 KEYS a none b");
    assert_eq!(reply, "+OK\r\n");
    assert_eq!(here.run("KEYS *"), "*1\r\n$1\r\nc\r\n");
    there.run("SELECT 3");
    assert_eq!(
        there.run("MGET a b c"),
        "*3\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n"
    );
    assert_eq!(there.run("PTTL a"), ":-1\r\n");
    let ttl_ms = there.run("PTTL b");
    let ttl_ms: u64 = ttl_ms.trim().trim_start_matches(':').parse().unwrap();
    assert!((50_000..=100_000).contains(&ttl_ms), "{ttl_ms}");
    // More than is sent at a time.
    for number in 0..2500 {
        here.run(&format!("SET many{number} {number}"));
    }
    let names: Vec<String> = (0..2500).map(|number| format!("many{number}")).collect();
    let reply = migrate(
        &mut here,
        to.address(),
        &format!("'' 3 5000 KEYS {}", names.join(" ")),
    );
    assert_eq!(reply, "+OK\r\n");
    assert_eq!(here.run("DBSIZE"), ":1\r\n");
    assert_eq!(there.run("DBSIZE"), ":2502\r\n");
    assert_eq!(there.run("GET many2499"), "$4\r\n2499\r\n");
}

#[test]
fn a_key_that_the_target_refuses_stays() {
    let [from, to] = [Server::start(), Server::start()];
    let (mut here, mut there) = (from.connect(), to.connect());
    here.run("MSET a 1 b 2");
    there.run("SET a other");
    let reply = migrate(&mut here, to.address(), "'' 0 5000 KEYS a b");
    assert_eq!(
        reply,
        "-ERR Target instance replied with error: BUSYKEY Target key name already exists.\r\n"
    );
    assert_eq!(here.run("MGET a b"), "*2\r\n$1\r\n1\r\n$-1\r\n");
    assert_eq!(there.run("MGET a b"), "*2\r\n$5\r\nother\r\n$1\r\n2\r\n");
    assert_eq!(
        migrate(&mut here, to.address(), "a 0 5000 COPY REPLACE"),
        "+OK\r\n"
    );
    assert_eq!(here.run("GET a"), "$1\r\n1\r\n");
    assert_eq!(there.run("GET a"), "$1\r\n1\r\n");
    let reply = migrate(&mut here, to.address(), "a 999 5000");
    assert_eq!(
        reply,
        "-ERR Target instance replied with error: ERR DB index is out of range\r\n"
    );
    assert_eq!(here.run("GET a"), "$1\r\n1\r\n");
}

#[test]
fn the_target_may_ask_for_a_password() {
    let [from, to] = [
        Server::start(),
        Server::start_with(&["--requirepass", "secret"]),
    ];
    let mut here = from.connect();
    here.run("MSET a 1 b 2");
    let target = to.address();
    for (options, begins) in [
        ("", "-ERR Target instance replied with error: NOAUTH "),
        (
            " AUTH wrong",
            "-ERR Target instance replied with error: WRONGPASS ",
        ),
        (" AUTH secret", "+OK"),
    ] {
        let reply = migrate(&mut here, target, &format!("a 0 5000{options}"));
        assert!(reply.starts_with(begins), "{options}: {reply}");
    }
    assert_eq!(
        migrate(&mut here, target, "b 0 5000 AUTH2 default secret"),
        "+OK\r\n"
    );
    let mut there = to.connect();
    there.run("AUTH secret");
    assert_eq!(there.run("MGET a b"), "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
}

#[test]
fn what_redis_refuses_is_refused() {
    let server = Server::start();
    let mut socket = server.connect();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = nobody.local_addr().unwrap();
    assert_eq!(migrate(&mut socket, closed, "a 0 100"), "+NOKEY\r\n");
    socket.run("SET a 1");
    // It accepts the connection and sends nothing.
    assert_eq!(
        migrate(&mut socket, closed, "a 0 100"),
        "-IOERR error or timeout reading to target instance\r\n"
    );
    drop(nobody);
    for (rest, expected) in [
        (
            "a 0 100",
            "-IOERR error or timeout connecting to the client",
        ),
        ("a 0 x", "-ERR value is not an integer or out of range"),
        ("a x 100", "-ERR value is not an integer or out of range"),
        ("a 0 100 NOTHING", "-ERR syntax error"),
        ("a 0 100 AUTH", "-ERR syntax error"),
        ("a 0 100 AUTH2 x", "-ERR syntax error"),
        (
            "a 0 100 KEYS b",
            "-ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
        ),
    ] {
        let reply = migrate(&mut socket, closed, rest);
        assert_eq!(reply.trim_end(), expected, "{rest}");
    }
    assert_eq!(socket.run("GET a"), "$1\r\n1\r\n");
    socket.run("PQ.PUSH q 1 x");
    let reply = migrate(&mut socket, closed, "q 0 100");
    assert!(reply.starts_with("-IOERR"), "{reply}");
}

#[test]
fn a_key_that_changes_on_the_way_stays() {
    let [from, to] = [Server::start(), Server::start()];
    let mut here = from.connect();
    for (change, kept) in [
        ("RPUSH a z", "*3\r\n$1\r\nx\r\n$1\r\ny\r\n$1\r\nz\r\n"),
        ("LPOP a", "*1\r\n$1\r\ny\r\n"),
        ("LSET a 0 x", "*2\r\n$1\r\nx\r\n$1\r\ny\r\n"),
        ("DEL a", "*0\r\n"),
    ] {
        here.run("DEL a");
        here.run("RPUSH a x y");
        let mut changing = from.connect();
        let between = Between::start(to.address(), move |sent| {
            if find(sent, "RESTORE").is_some() {
                changing.run(change);
            }
            Fate::Passes
        });
        let reply = migrate(&mut here, between.unwrap().address(), "a 0 5000 REPLACE");
        assert_eq!(
            reply,
            "-ERR key 'a' changed while it was being sent: it stays here, and the target instance \
             has its earlier value\r\n",
            "{change}"
        );
        assert_eq!(here.run("LRANGE a 0 -1"), kept, "{change}");
        let there = to.connect().run("LRANGE a 0 -1");
        assert_eq!(there, "*2\r\n$1\r\nx\r\n$1\r\ny\r\n", "{change}");
    }
}

#[test]
fn a_connection_that_breaks_leaves_the_keys_here() {
    let [from, to] = [Server::start(), Server::start()];
    let mut here = from.connect();
    here.run("SET a 1");
    let between = Between::start(to.address(), |sent| Fate::BreaksAfter(sent.len() / 2));
    let reply = migrate(&mut here, between.unwrap().address(), "a 0 5000");
    assert_eq!(
        reply,
        "-IOERR error or timeout reading to target instance\r\n"
    );
    assert_eq!(here.run("GET a"), "$1\r\n1\r\n");
    assert_eq!(to.connect().run("EXISTS a"), ":0\r\n");
}

/// A server that answers everything with the same bytes, and then keeps silent.
fn answering(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            stream.write_all(answer).unwrap();
            // Until the client closes.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    address
}

#[test]
fn only_ok_counts_as_taken() {
    let server = Server::start();
    let mut here = server.connect();
    for answer in [
        &b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"[..],
        b"+OK\r\n+QUEUED\r\n",
        b"+OK\r\n:1\r\n",
        b"+OK\r\n$-1\r\n",
        b"+OK\r\n$2\r\nNO\r\n",
        b"+OK\r\n*0\r\n",
        b"+OK\r\n\r\n",
        b"+PONG\r\n+OK\r\n",
        b"220 mail ESMTP\r\n500 unrecognized\r\n",
    ] {
        here.run("SET a 1");
        let reply = migrate(&mut here, answering(answer), "a 0 500");
        let expected = "-IOERR error or timeout reading to target instance\r\n";
        assert_eq!(reply, expected, "{}", answer.escape_ascii());
        assert_eq!(
            here.run("GET a"),
            "$1\r\n1\r\n",
            "{}",
            answer.escape_ascii()
        );
    }
    for answer in [&b"+OK\r\n+OK\r\n"[..], b"$2\r\nOK\r\n$2\r\nOK\r\n"] {
        here.run("SET a 1");
        assert_eq!(migrate(&mut here, answering(answer), "a 0 500"), "+OK\r\n");
        assert_eq!(here.run("EXISTS a"), ":0\r\n");
    }
}
