//! DUMP and RESTORE over a socket: payloads are bytes of every kind.

use crate::server::{Server, Socket, request, wait_until};

/// The payload of a bulk reply.
fn dump(socket: &mut Socket, key: &str) -> Vec<u8> {
    socket.send(request(&["DUMP", key]));
    let reply = socket.reply_bytes();
    let start = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    reply[start..reply.len() - 2].to_vec()
}

fn restore(socket: &mut Socket, key: &str, payload: &[u8], options: &[&str]) -> String {
    let mut words: Vec<&[u8]> = vec![b"RESTORE", key.as_bytes(), b"0", payload];
    words.extend(options.iter().map(|option| option.as_bytes()));
    socket.send(request(&words));
    socket.reply()
}

#[test]
fn a_payload_goes_out_and_in_as_it_is() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.command(&["RPUSH", "list", "a\r\nb", "\0", "7"]);
    let payload = dump(&mut socket, "list");
    assert_eq!(restore(&mut socket, "copy", &payload, &[]), "+OK\r\n");
    let expected = "*3\r\n$4\r\na\r\nb\r\n$1\r\n\0\r\n$1\r\n7\r\n";
    assert_eq!(socket.run("LRANGE copy 0 -1"), expected);
    let busy = "-BUSYKEY Target key name already exists.\r\n";
    assert_eq!(restore(&mut socket, "copy", &payload, &[]), busy);
    assert_eq!(
        restore(&mut socket, "copy", &payload, &["REPLACE"]),
        "+OK\r\n"
    );
    let refused = "-ERR DUMP payload version or checksum are wrong\r\n";
    assert_eq!(restore(&mut socket, "new", &payload[1..], &[]), refused);
}

#[test]
fn dump_of_nothing_is_nil_in_either_protocol() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("DUMP nothing"), "$-1\r\n");
    socket.run("HELLO 3");
    assert_eq!(socket.run("DUMP nothing"), "_\r\n");
}

#[test]
fn pipelined_commands_see_what_was_restored() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("ZADD set 1 a 2 b");
    let payload = dump(&mut socket, "set");
    let mut bytes = request(&["DEL", "set"]);
    bytes.extend(request(&[b"RESTORE", &b"set"[..], b"60000", &payload]));
    bytes.extend(request(&["ZCARD", "set"]));
    bytes.extend(request(&["TTL", "set"]));
    socket.send(bytes);
    assert_eq!(socket.reply(), ":1\r\n");
    assert_eq!(socket.reply(), "+OK\r\n");
    assert_eq!(socket.reply(), ":2\r\n");
    assert_eq!(socket.reply(), ":60\r\n");
}

#[test]
fn a_client_that_waits_gets_what_is_restored() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("RPUSH list a b");
    let list = dump(&mut socket, "list");
    socket.run("ZADD set 1 m");
    let set = dump(&mut socket, "set");
    for (command, key, payload, expected) in [
        ("BLPOP", "list2", list, "*2\r\n$5\r\nlist2\r\n$1\r\na\r\n"),
        (
            "BZPOPMIN",
            "set2",
            set,
            "*3\r\n$4\r\nset2\r\n$1\r\nm\r\n$1\r\n1\r\n",
        ),
    ] {
        let mut waiting = server.connect();
        waiting.send(request(&[command, key, "0"]));
        wait_until("the client waits", || {
            socket
                .run("INFO clients")
                .contains("\r\nblocked_clients:1\r\n")
        });
        assert_eq!(restore(&mut socket, key, &payload, &[]), "+OK\r\n");
        assert_eq!(waiting.reply(), expected);
    }
    assert_eq!(socket.run("LLEN list2"), ":1\r\n");
}

#[test]
fn values_are_restored_and_dumped_within_a_transaction() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("RPUSH list a b");
    let payload = dump(&mut socket, "list");
    socket.run("MULTI");
    assert_eq!(restore(&mut socket, "copy", &payload, &[]), "+QUEUED\r\n");
    socket.run("RPUSH copy c");
    socket.run("DUMP copy");
    socket.send(request(&["EXEC"]));
    let reply = socket.reply_bytes();
    let changed = dump(&mut socket, "copy");
    let begin = b"*3\r\n+OK\r\n:3\r\n$";
    assert!(reply.starts_with(begin), "{}", reply.escape_ascii());
    assert!(reply.ends_with(&[changed.as_slice(), b"\r\n"].concat()));
    assert_eq!(socket.run("LLEN copy"), ":3\r\n");
}

#[test]
#[ignore = "needs half a gigabyte of disk and memory"]
fn a_value_beyond_the_limit_of_dump_is_refused() {
    let server = Server::start();
    let mut socket = server.connect();
    let element = "x".repeat(16 * 1024 * 1024);
    for _ in 0..16 {
        socket.command(&["RPUSH", "list", &element]);
    }
    let refused = "-ERR value is too large for DUMP (more than 268435456 bytes)\r\n";
    assert_eq!(socket.run("DUMP list"), refused);
    assert_eq!(socket.run("LLEN list"), ":16\r\n");
}
