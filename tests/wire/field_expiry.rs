//! Fields of hashes that expire, over a socket: replies in both protocols, events, WATCH and tracking.

use crate::server::{Server, wait_until};

#[test]
fn replies_are_those_of_redis_8_in_both_protocols() {
    let server = Server::start();
    for (protocol, nil) in [("2", "$-1\r\n"), ("3", "_\r\n")] {
        let mut socket = server.connect();
        socket.run(&format!("HELLO {protocol}"));
        socket.run("DEL h");
        assert_eq!(socket.run("HSETEX h EX 100 FIELDS 2 a 1 b 2"), ":1\r\n");
        assert_eq!(socket.run("HTTL h FIELDS 2 a x"), "*2\r\n:100\r\n:-2\r\n");
        let values = format!("*2\r\n$1\r\n1\r\n{nil}");
        assert_eq!(socket.run("HGETEX h PERSIST FIELDS 2 a x"), values);
        assert_eq!(socket.run("HTTL h FIELDS 1 a"), "*1\r\n:-1\r\n");
        assert_eq!(socket.run("HGETDEL h FIELDS 2 a x"), values);
        assert_eq!(socket.run("HEXPIRE h 0 FIELDS 1 b"), "*1\r\n:2\r\n");
        assert_eq!(socket.run("EXISTS h"), ":0\r\n");
        let missing = "-ERR Mandatory argument FIELDS is missing or not at the right position\r\n";
        assert_eq!(socket.run("HEXPIRE h 10 1 2 a"), missing);
    }
}

#[test]
fn what_happens_to_fields_is_published() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("CONFIG SET notify-keyspace-events KEA");
    let mut subscriber = server.connect();
    subscriber.run("PSUBSCRIBE __keyspace@0__:h");
    for (line, events) in [
        ("HSET h a 1 b 2", &["hset"][..]),
        ("HEXPIRE h 100 FIELDS 1 a", &["hexpire"]),
        ("HEXPIRE h 100 NX FIELDS 1 a", &[]),
        ("HPERSIST h FIELDS 1 a", &["hpersist"]),
        ("HPERSIST h FIELDS 1 a", &[]),
        ("HSETEX h EX 100 FIELDS 1 a 1", &["hset", "hexpire"]),
        ("HSETEX h KEEPTTL FIELDS 1 a 1", &["hset"]),
        ("HGETEX h EX 10 FIELDS 1 a", &["hexpire"]),
        ("HGETEX h FIELDS 1 a", &[]),
        ("HSETEX h PXAT 1 FIELDS 1 a 1", &["hset", "hdel"]),
        ("HGETEX h PXAT 1 FIELDS 1 b", &["hdel", "del"]),
        ("HSETEX h PX 10 FIELDS 2 a 1 b 2", &["hset", "hexpire"]),
        // Background work.
        ("PING", &["hexpired", "del"]),
        ("HSETEX h PXAT 1 FIELDS 1 a 1", &["hset", "hdel", "del"]),
        ("SET h v", &["set"]),
    ] {
        socket.run(line);
        for event in events {
            let told = subscriber.reply();
            let end = format!("${}\r\n{event}\r\n", event.len());
            assert!(told.ends_with(&end), "{line}: {told}");
        }
    }
}

#[test]
fn a_watched_hash_has_changed_when_a_field_was_removed() {
    let server = Server::start();
    let (mut socket, mut other) = (server.connect(), server.connect());
    socket.run("HSET h a 1 b 2");
    socket.run("HPEXPIRE h 50 FIELDS 1 a");
    socket.run("WATCH h");
    wait_until("the removal of the field", || {
        other.run("HLEN h") == ":1\r\n"
    });
    socket.run("MULTI");
    socket.run("PING");
    assert_eq!(socket.run("EXEC"), "*-1\r\n");
}

#[test]
fn a_client_that_caches_a_hash_hears_that_a_field_is_gone() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("HELLO 3");
    socket.run("CLIENT TRACKING ON");
    socket.run("HSET h a 1 b 2");
    socket.run("HPEXPIRE h 50 FIELDS 1 a");
    socket.run("HGETALL h");
    let told = socket.reply();
    assert_eq!(told, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nh\r\n");
    assert_eq!(socket.run("HGETALL h"), "%1\r\n$1\r\nb\r\n$1\r\n2\r\n");
}

#[test]
fn fields_expire_across_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    socket.run("HSETEX h PXAT 4000000000000 FIELDS 1 a 1");
    socket.run("HSETEX h PX 300 FIELDS 1 b 2");
    server.signal("KILL");
    server.wait();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    wait_until("the removal of the field", || {
        socket.run("HLEN h") == ":1\r\n"
    });
    assert_eq!(
        socket.run("HPEXPIRETIME h FIELDS 1 a"),
        "*1\r\n:4000000000000\r\n"
    );
}
