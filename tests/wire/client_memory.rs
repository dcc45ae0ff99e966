//! What counts as a client's memory, and the bound on the memory of all clients together.

use std::time::Duration;

use crate::server::{PATIENCE, Server, Socket, request, wait_until};

/// Bytes of a name.
const NAME_BYTES: usize = 500_000;

/// A large name that is different from the others.
fn name(number: usize) -> String {
    format!("{number}{}", "x".repeat(NAME_BYTES))
}

/// A client's memory according to CLIENT LIST. `None` if it is gone.
fn total_memory(probe: &mut Socket, client: &Socket) -> Option<usize> {
    let list = probe.run("CLIENT LIST");
    let address = format!(" addr={} ", client.local_address());
    let line = list.lines().find(|line| line.contains(&address))?;
    let (_, behind) = line.split_once(" tot-mem=").unwrap();
    let (bytes, _) = behind.split_once(' ').unwrap();
    Some(bytes.parse().unwrap())
}

/// Repeatedly sends commands that make the server keep a name, with a bound of 8 MB.
fn keep_names(first: &[u8], keep: impl Fn(usize) -> Vec<u8>, what: &str) {
    let server = Server::start_with(&["--maxmemory-clients", "8mb"]);
    let mut probe = server.connect();
    let mut other = server.connect();
    assert!(
        other
            .command(&["CLIENT", "SETNAME", "other"])
            .starts_with('+')
    );
    let mut client = server.connect();
    client.send(first);
    for number in 0..3 {
        client.send(keep(number));
    }
    wait_until("it counts what it keeps", || {
        total_memory(&mut probe, &client).is_some_and(|bytes| bytes > 3 * NAME_BYTES)
    });
    let is_sent = (3..60).all(|number| client.try_send(keep(number), PATIENCE));
    wait_until("the one that keeps most is evicted", || {
        probe
            .run("INFO stats")
            .contains("\r\nevicted_clients:1\r\n")
    });
    assert_eq!(total_memory(&mut probe, &client), None, "{what} {is_sent}");
    assert_eq!(other.run("CLIENT GETNAME"), "$5\r\nother\r\n");
}

#[test]
fn channels_patterns_and_shard_channels_count() {
    for word in ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"] {
        keep_names(b"", |number| request(&[word, &name(number)]), word);
    }
}

#[test]
fn watched_keys_count() {
    keep_names(b"", |number| request(&["WATCH", &name(number)]), "WATCH");
}

#[test]
fn prefixes_of_tracked_keys_count() {
    let track = |number| {
        let words = ["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX"];
        let prefix = format!("{number:03}{}", "x".repeat(NAME_BYTES));
        let words: Vec<&str> = words.into_iter().chain([prefix.as_str()]).collect();
        request(&words)
    };
    keep_names(&request(&["HELLO", "3"]), track, "PREFIX");
}

#[test]
fn commands_since_multi_count() {
    let queue = |number| request(&["SET", "key", &name(number)]);
    keep_names(&request(&["MULTI"]), queue, "MULTI");
}

#[test]
fn what_a_client_calls_itself_counts() {
    let server = Server::start_with(&["--maxmemory-clients", "4mb"]);
    let mut probe = server.connect();
    let text = "x".repeat(1_000_000);
    let long = "x".repeat(5_000_000);
    for words in [
        vec!["CLIENT", "SETNAME"],
        vec!["CLIENT", "SETINFO", "LIB-NAME"],
        vec!["CLIENT", "SETINFO", "LIB-VER"],
        vec!["HELLO", "2", "SETNAME"],
    ] {
        let with = |text| [words.as_slice(), &[text]].concat();
        let mut client = server.connect();
        assert!(!client.command(&with(&text)).starts_with('-'), "{words:?}");
        assert_eq!(client.run("PING"), "+PONG\r\n");
        assert!(total_memory(&mut probe, &client).unwrap() > 1_000_000);
        assert_eq!(client.run("RESET"), "+RESET\r\n");
        client.try_send(request(&with(&long)), PATIENCE);
        wait_until("it is evicted", || {
            total_memory(&mut probe, &client).is_none()
        });
    }
}

#[test]
fn what_a_blocked_client_waits_with_counts() {
    let server = Server::start_with(&["--maxmemory-clients", "4mb"]);
    let mut probe = server.connect();
    let mut client = server.connect();
    let mut words = vec!["BLPOP".to_owned()];
    words.extend((0..3).map(name));
    words.push("0".to_owned());
    client.send(request(&words));
    wait_until("it counts", || {
        total_memory(&mut probe, &client).is_some_and(|bytes| bytes > 3 * NAME_BYTES)
    });
    let mut many = vec!["BLPOP".to_owned()];
    many.extend((0..20_000).map(|number| number.to_string()));
    many.push("0".to_owned());
    let mut larger = server.connect();
    larger.send(request(&many));
    wait_until("the larger one is evicted", || {
        total_memory(&mut probe, &larger).is_none()
    });
    assert!(total_memory(&mut probe, &client).is_some());
}

#[test]
fn a_client_that_keeps_nothing_any_more_counts_nothing() {
    let server = Server::start();
    let mut probe = server.connect();
    let mut client = server.connect();
    client.command(&["SUBSCRIBE", &name(0)]);
    client.command(&["UNSUBSCRIBE", &name(0)]);
    client.command(&["WATCH", &name(0)]);
    client.run("UNWATCH");
    client.command(&["CLIENT", "SETNAME", &name(0)]);
    client.command(&["CLIENT", "SETNAME", ""]);
    client.run("PING");
    wait_until("nothing counts", || {
        total_memory(&mut probe, &client).unwrap() < 20_000
    });
}

/// The peak memory of a process, in bytes.
fn peak_bytes(server: &Server) -> u64 {
    let path = format!("/proc/{}/status", server.process_id());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kibibytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kibibytes.parse::<u64>().unwrap() * 1024
}

/// Clients that request many replies together, and read none of them yet.
fn askers(server: &Server, count: usize, pipeline: &[u8]) -> Vec<Socket> {
    let mut all: Vec<_> = (0..count)
        .map(|_| Socket::connect_with_buffers(server.address(), 16 * 1024))
        .collect();
    for socket in &mut all {
        socket.try_send(pipeline, Duration::from_secs(1));
    }
    all
}

#[test]
fn replies_that_many_clients_do_not_take_are_bounded_together() {
    let server = Server::start_with(&["--maxmemory-clients", "24mb"]);
    let value = "x".repeat(2_000);
    assert_eq!(server.connect().command(&["SET", "key", &value]), "+OK\r\n");
    let before = peak_bytes(&server);
    let gets = 2_000;
    let mut all = askers(&server, 200, &request(&["GET", "key"]).repeat(gets));
    let mut probe = server.connect();
    // They are slowed down, and none is evicted.
    let reply = format!("$2000\r\n{value}\r\n");
    for socket in all.iter_mut().take(5) {
        for _ in 0..gets {
            assert!(socket.reply() == reply);
        }
    }
    assert!(
        probe
            .run("INFO stats")
            .contains("\r\nevicted_clients:0\r\n")
    );
    // All of them are 800 MB. What waits for the lanes is kept with its arguments.
    let grown = peak_bytes(&server) - before;
    assert!(grown < 150_000_000, "{grown}");
}

#[test]
fn large_replies_that_many_clients_do_not_take_are_bounded_together() {
    let server = Server::start_with(&["--maxmemory-clients", "24mb"]);
    let value = "x".repeat(1_000_000);
    assert_eq!(server.connect().command(&["SET", "key", &value]), "+OK\r\n");
    let before = peak_bytes(&server);
    let all = askers(&server, 150, &request(&["GET", "key"]).repeat(20));
    let mut probe = server.connect();
    assert_eq!(probe.run("PING"), "+PONG\r\n");
    wait_until("the largest are evicted", || {
        !probe
            .run("INFO stats")
            .contains("\r\nevicted_clients:0\r\n")
    });
    let grown = peak_bytes(&server) - before;
    assert!(grown < 100_000_000, "{grown}");
    drop(all);
}

#[test]
fn replies_of_woken_clients_that_take_nothing_are_bounded_together() {
    let server = Server::start_with(&["--maxmemory-clients", "24mb"]);
    let before = peak_bytes(&server);
    let all = askers(
        &server,
        300,
        &request(&["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]),
    );
    let mut probe = server.connect();
    wait_until("all wait", || {
        probe
            .run("INFO clients")
            .contains("\r\nblocked_clients:300\r\n")
    });
    let value = "x".repeat(1_000_000);
    let added = server
        .connect()
        .command(&["XADD", "s", "1-1", "field", &value]);
    assert_eq!(added, "$3\r\n1-1\r\n");
    wait_until("all are woken", || {
        probe
            .run("INFO clients")
            .contains("\r\nblocked_clients:0\r\n")
    });
    let grown = peak_bytes(&server) - before;
    assert!(grown < 150_000_000, "{grown}");
    drop(all);
}

#[test]
fn a_client_that_is_woken_while_it_takes_nothing_holds_up_nobody() {
    let server = Server::start();
    let mut probe = server.connect();
    // Together, their replies exceed what may be in transit.
    let count = 6;
    let mut all = askers(&server, count, &request(&["HELLO", "3"]));
    for client in &mut all {
        assert!(client.reply().starts_with('%'));
        client.send(request(&["SUBSCRIBE", "c"]));
        assert!(client.reply().starts_with('>'));
        client.send(request(&["BLPOP", "q", "0"]));
    }
    wait_until("all wait", || {
        let info = probe.run("INFO clients");
        info.contains(&format!("\r\nblocked_clients:{count}\r\n"))
    });
    // More than the system buffers for a client that reads nothing.
    let message = "m".repeat(7_000_000);
    let receivers = probe.command(&["PUBLISH", "c", &message]);
    assert_eq!(receivers, format!(":{count}\r\n"));
    let mut total = |client: &Socket| total_memory(&mut probe, client).unwrap();
    wait_until("messages wait for all", || {
        all.iter().all(|client| total(client) > 1_000_000)
    });
    let value = "v".repeat(4_000_000);
    let before: Vec<usize> = all.iter().map(&mut total).collect();
    let mut pusher = server.connect();
    for _ in 0..count {
        assert_eq!(pusher.command(&["RPUSH", "q", &value]), ":1\r\n");
    }
    assert_eq!(pusher.run("INCR n"), ":1\r\n");
    wait_until("the replies count as their clients'", || {
        let mut now = all.iter().map(&mut total);
        let mut counts = |bytes: &usize| now.next().unwrap() >= bytes + value.len();
        before.iter().all(&mut counts)
    });
    for client in &mut all {
        assert!(
            client
                .reply()
                .ends_with(&format!("$7000000\r\n{message}\r\n"))
        );
        assert!(client.reply() == format!("*2\r\n$1\r\nq\r\n$4000000\r\n{value}\r\n"));
    }
}
