//! Additions to streams since Redis 7.2, over a socket: replies in both protocols, a restart,
//! events.

use crate::server::Server;

/// The reply of an XADD.
fn is_id(reply: &str) -> bool {
    reply.starts_with('$') && reply.contains('-')
}

#[test]
fn a_producer_that_sends_an_entry_again_adds_it_once_also_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    let added = socket.run("XADD s IDMP gpu1 job7 * f 1");
    assert!(is_id(&added), "{added}");
    let by_content = socket.run("XADD s IDMPAUTO gpu1 * f 1 g 2");
    assert!(is_id(&by_content) && by_content != added, "{by_content}");
    server.signal("KILL");
    server.wait();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    assert_eq!(socket.run("XADD s IDMP gpu1 job7 * f 2"), added);
    assert_eq!(socket.run("XADD s IDMPAUTO gpu1 * g 2 f 1"), by_content);
    assert_eq!(socket.run("XLEN s"), ":2\r\n");
    assert_eq!(socket.run("XCFGSET s IDMP-MAXSIZE 10"), "+OK\r\n");
    let info = socket.run("XINFO STREAM s");
    let told = "$13\r\nidmp-duration\r\n:100\r\n$12\r\nidmp-maxsize\r\n:10\r\n$12\r\npids-tracked\r\n:0\r\n\
                $12\r\niids-tracked\r\n:0\r\n$10\r\niids-added\r\n:2\r\n$15\r\niids-duplicates\r\n:2\r\n";
    assert!(info.contains(told), "{info}");
}

#[test]
fn an_entry_that_is_not_added_again_tells_of_nothing() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("CONFIG SET notify-keyspace-events KEA");
    let mut subscriber = server.connect();
    subscriber.run("PSUBSCRIBE __keyspace@0__:s");
    socket.run("XADD s IDMP p a * f v");
    socket.run("XADD s IDMP p a MAXLEN 0 * f v");
    socket.run("XTRIM s MAXLEN 0 ACKED");
    socket.run("XTRIM s MAXLEN 0 DELREF");
    socket.run("DEL s");
    for event in ["xadd", "xtrim", "del"] {
        let told = subscriber.reply();
        let end = format!("${}\r\n{event}\r\n", event.len());
        assert!(told.ends_with(&end), "{event}: {told}");
    }
}

#[test]
fn who_watches_a_stream_hears_of_its_settings_and_not_of_a_duplicate() {
    let server = Server::start();
    let (mut socket, mut other) = (server.connect(), server.connect());
    socket.run("XADD s IDMP p a * f v");
    for (line, reply) in [
        ("XADD s IDMP p a * f v", "*1\r\n+PONG\r\n"),
        ("XCFGSET s IDMP-MAXSIZE 100", "*1\r\n+PONG\r\n"),
        ("XCFGSET s IDMP-MAXSIZE 99", "*-1\r\n"),
    ] {
        socket.run("WATCH s");
        other.run(line);
        socket.run("MULTI");
        socket.run("PING");
        assert_eq!(socket.run("EXEC"), reply, "{line}");
    }
}

#[test]
fn the_last_entry_is_read_in_both_protocols() {
    let server = Server::start();
    let entry = "*1\r\n*2\r\n$3\r\n2-0\r\n*2\r\n$1\r\nn\r\n$1\r\n2\r\n";
    for (protocol, beginning, nil) in [
        ("2", "*1\r\n*2\r\n$1\r\ns\r\n", "*-1\r\n"),
        ("3", "%1\r\n$1\r\ns\r\n", "_\r\n"),
    ] {
        let mut socket = server.connect();
        socket.run(&format!("HELLO {protocol}"));
        assert_eq!(socket.run("XREAD STREAMS s +"), nil);
        socket.run("XADD s 1-0 n 1");
        socket.run("XADD s 2-0 n 2");
        let read = socket.run("XREAD COUNT 5 BLOCK 10 STREAMS s +");
        assert_eq!(read, format!("{beginning}{entry}"));
        socket.run("DEL s");
    }
}

#[test]
fn pending_entries_are_claimed_by_a_reader_that_waits() {
    let server = Server::start();
    let entry = |id: &str| format!("$3\r\n{id}\r\n*2\r\n$1\r\nn\r\n$1\r\n1\r\n");
    for (protocol, beginning) in [
        ("2", "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*4\r\n"),
        ("3", "%1\r\n$1\r\ns\r\n*1\r\n*4\r\n"),
    ] {
        let mut socket = server.connect();
        socket.run(&format!("HELLO {protocol}"));
        socket.run("XGROUP CREATE s g 0 MKSTREAM");
        socket.run("XADD s 1-0 n 1");
        let read = socket.run("XREADGROUP GROUP g a CLAIM 300 STREAMS s >");
        assert_eq!(read, format!("{beginning}{}:0\r\n:0\r\n", entry("1-0")));
        let read = socket.run("XREADGROUP GROUP g b BLOCK 5000 CLAIM 300 STREAMS s >");
        let claimed = read.strip_prefix(&format!("{beginning}{}:", entry("1-0")));
        let claimed = claimed.unwrap().strip_suffix("\r\n:1\r\n").unwrap();
        let idle_ms: u64 = claimed.parse().unwrap();
        assert!((300..2_000).contains(&idle_ms), "{idle_ms}");
        let refused = socket.run("XREADGROUP GROUP g b CLAIM -1 STREAMS s >");
        assert_eq!(refused, "-ERR min-idle-time must be a positive integer\r\n");
        socket.run("DEL s");
    }
}

#[test]
fn streams_remember_what_producers_add_as_the_settings_say() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("XADD own * f v");
    socket.run("XCFGSET own IDMP-MAXSIZE 7");
    assert_eq!(
        socket.run("CONFIG SET stream-idmp-duration 9 stream-idmp-maxsize 3"),
        "+OK\r\n"
    );
    socket.run("XADD s IDMP p a * f v");
    for (stream, facts) in [("s", [9, 3]), ("own", [100, 7])] {
        let info = socket.run(&format!("XINFO STREAM {stream}"));
        let [duration, entries] = facts;
        let facts =
            format!("$13\r\nidmp-duration\r\n:{duration}\r\n$12\r\nidmp-maxsize\r\n:{entries}\r\n");
        assert!(info.contains(&facts), "{stream}: {info}");
    }
    for wrong in ["duration 0", "duration 86401", "maxsize 0", "maxsize 10001"] {
        let refusal = socket.run(&format!("CONFIG SET stream-idmp-{wrong}"));
        assert!(refusal.contains("must be between"), "{refusal}");
    }
}
