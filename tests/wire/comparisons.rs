//! Conditions about values and MSETEX, over a socket: replies in both protocols, keys, events.

use crate::server::Server;

#[test]
fn a_lock_is_taken_extended_and_released_without_a_script() {
    let server = Server::start();
    for (protocol, nil) in [("2", "$-1\r\n"), ("3", "_\r\n")] {
        let mut socket = server.connect();
        socket.run(&format!("HELLO {protocol}"));
        assert_eq!(socket.run("SET lock mine NX PX 10000"), "+OK\r\n");
        assert_eq!(socket.run("SET lock other NX PX 10000"), nil);
        let lost = socket.run("SET lock other IFEQ other PX 20000");
        assert_eq!(lost, nil);
        let extended = socket.run("SET lock mine IFEQ mine PX 20000");
        assert_eq!(extended, "+OK\r\n");
        assert_eq!(socket.run("DELEX lock IFEQ other"), ":0\r\n");
        let digest = "$16\r\n404a763b3f4c8c9a\r\n";
        assert_eq!(socket.run("SET lock 123 GET"), "$4\r\nmine\r\n");
        assert_eq!(socket.run("DIGEST lock"), digest);
        assert_eq!(socket.run("DELIFEQ lock 123"), ":1\r\n");
        assert_eq!(socket.run("DIGEST lock"), nil);
        assert_eq!(socket.run("MSETEX 2 a 1 b 2 EX 10"), ":1\r\n");
        assert_eq!(socket.run("MSETEX 2 b 1 c 2 NX"), ":0\r\n");
        socket.run("DEL a b");
    }
}

#[test]
fn msetex_names_its_keys() {
    let server = Server::start();
    let mut socket = server.connect();
    let keys = socket.run("COMMAND GETKEYS MSETEX 2 a 1 b 2 NX");
    assert_eq!(keys, "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    socket.run("ACL SETUSER limited on nopass ~a* +@all");
    socket.run("AUTH limited any");
    assert_eq!(socket.run("MSETEX 2 a 1 ab 2"), ":1\r\n");
    let refusal = "-NOPERM No permissions to access a key\r\n";
    assert_eq!(socket.run("MSETEX 2 a 1 b 2"), refusal);
    assert_eq!(socket.run("DELEX b IFEQ 2"), refusal);
}

#[test]
fn what_happens_to_keys_is_published() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("CONFIG SET notify-keyspace-events KEA");
    let mut subscriber = server.connect();
    subscriber.run("PSUBSCRIBE __keyspace@0__:k");
    for (line, events) in [
        ("SET k a", &["set"][..]),
        ("SET k b IFEQ x", &[]),
        ("SET k b IFEQ a EX 10", &["set", "expire"]),
        ("DELEX k IFEQ x", &[]),
        ("DELEX k IFEQ b", &["del"]),
        ("MSETEX 1 k a PX 10000", &["set", "expire"]),
        ("MSETEX 1 k b NX", &[]),
        ("DELIFEQ k a", &["del"]),
    ] {
        socket.run(line);
        for event in events {
            let told = subscriber.reply();
            let end = format!("${}\r\n{event}\r\n", event.len());
            assert!(told.ends_with(&end), "{line}: {told}");
        }
    }
}
