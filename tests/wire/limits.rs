//! What a client cannot make the server do.

use std::time::Duration;

use crate::server::{Server, Socket, is_on_foundationdb, request, wait_until};

#[test]
fn more_clients_than_allowed_are_refused_as_in_redis() {
    let server = Server::start_with(&["--maxclients", "2"]);
    let mut first = server.connect();
    assert_eq!(first.run("PING"), "+PONG\r\n");
    let mut second = server.connect();
    assert_eq!(second.run("PING"), "+PONG\r\n");
    let refusal = "-ERR max number of clients reached\r\n";
    assert_eq!(server.connect().rest(), refusal);
    assert!(
        first
            .run("INFO stats")
            .contains("\r\nrejected_connections:1\r\n")
    );
    assert_eq!(first.run("CONFIG SET maxclients 3"), "+OK\r\n");
    let mut third = server.connect();
    assert_eq!(third.run("PING"), "+PONG\r\n");
    drop(second);
    drop(third);
    wait_until("there is room again", || {
        server
            .connect()
            .try_send("PING\r\n", Duration::from_secs(1))
            && first.run("INFO clients").contains("\r\nconnected_clients:")
    });
}

#[test]
fn maxmemory_bounds_the_data_and_takes_more_when_there_is_less() {
    if is_on_foundationdb() {
        return;
    }
    let server = Server::start();
    let mut socket = server.connect();
    let data_bytes = |socket: &mut Socket| {
        let info = socket.run("INFO quoin");
        let (_, rest) = info.split_once("store_data_bytes:").unwrap();
        let number = rest.lines().next().unwrap();
        number.parse::<u64>().unwrap()
    };
    let max = data_bytes(&mut socket) + 2_000_000;
    socket.run(&format!("CONFIG SET maxmemory {max}"));
    let value = "x".repeat(10_000);
    let refusal = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    let mut pushed = 0;
    while socket.command(&["RPUSH", "list", &value]) != refusal {
        pushed += 1;
        assert!(pushed < 1_000);
    }
    assert!(pushed > 50, "{pushed}");
    assert!(data_bytes(&mut socket) > max);
    let memory = socket.run("INFO memory");
    assert!(
        memory.contains(&format!("\r\nmaxmemory:{max}\r\n")),
        "{memory}"
    );
    assert!(memory.contains("\r\nmaxmemory_policy:noeviction\r\n"));
    assert!(socket.run("INFO quoin").contains("store_takes_growth:0"));
    assert_eq!(socket.run("LLEN list"), format!(":{pushed}\r\n"));
    for _ in 0..pushed {
        assert_eq!(socket.run("LPOP list"), format!("$10000\r\n{value}\r\n"));
    }
    wait_until("what was popped counts no more", || {
        socket.run("RPUSH list x") == ":1\r\n"
    });
}

#[test]
fn a_client_that_does_not_read_does_not_make_memory_grow() {
    let server = Server::start();
    let mut socket = server.connect();
    let value = "x".repeat(100_000);
    for _ in 0..20 {
        socket.command(&["RPUSH", "list", &value]);
    }
    let before = server.memory_bytes();
    // 100 replies of 2 MB each are requested, and none of them is read.
    let mut greedy = server.connect();
    let pipeline = request(&["LRANGE", "list", "0", "-1"]).repeat(100);
    greedy.try_send(&pipeline, Duration::from_millis(500));
    std::thread::sleep(Duration::from_millis(1_500));
    let after = server.memory_bytes();
    assert!(
        after < before + 64 * 1024 * 1024,
        "{before} to {after} bytes"
    );
    // Others are served meanwhile, and it is answered once it reads.
    assert_eq!(socket.run("LLEN list"), ":20\r\n");
    for _ in 0..100 {
        assert!(greedy.reply_bytes().len() > 2_000_000);
    }
}

#[test]
fn what_a_burst_took_is_given_back() {
    let server = Server::start();
    let mut probe = server.connect();
    // A transaction of FoundationDB lasts five seconds. With 25,000 keys, eight clients at once
    // exceed that on a slow machine, and begin again until they wait by turns.
    let keys: Vec<String> = (0..15_000).map(|n| format!("key:{n:030}")).collect();
    let mut words = vec!["BLPOP"];
    words.extend(keys.iter().map(String::as_str));
    words.push("0");
    let wait = request(&words);
    // What it takes, and what is left of it.
    let mut burst = |before: u64| {
        let mut waiting: Vec<_> = (0..8).map(|_| server.connect()).collect();
        for socket in &mut waiting {
            socket.send(&wait);
        }
        let mut blocked = |count: usize| {
            let line = format!("\r\nblocked_clients:{count}\r\n");
            wait_until("clients are blocked or gone", || {
                probe.run("INFO clients").contains(&line)
            });
        };
        blocked(8);
        let grown = server.memory_bytes().saturating_sub(before);
        drop(waiting);
        blocked(0);
        // Also without it, but over some seconds.
        assert_eq!(server.connect().run("MEMORY PURGE"), "+OK\r\n");
        (grown, server.memory_bytes().saturating_sub(before))
    };
    let before = server.memory_bytes();
    let (grown, mut left) = burst(before);
    assert!(grown > 30_000_000, "{grown}");
    if is_on_foundationdb() {
        // The client library keeps what it took for the first.
        (_, left) = burst(before + left);
    }
    assert!(left < grown / 4, "{left} of {grown}");
}

#[test]
fn an_announced_length_costs_nothing_before_its_bytes_come() {
    let server = Server::start();
    let mut probe = server.connect();
    probe.run("PING");
    let before = server.memory_bytes();
    let mut sockets: Vec<_> = (0..50).map(|_| server.connect()).collect();
    for socket in &mut sockets {
        socket.send("*1048576\r\n$536870912\r\n");
    }
    wait_until("all are connected", || {
        probe
            .run("INFO clients")
            .contains("\r\nconnected_clients:51\r\n")
    });
    let after = server.memory_bytes();
    assert!(
        after < before + 128 * 1024 * 1024,
        "{before} to {after} bytes"
    );
}

#[test]
fn what_multi_queues_is_bounded_by_what_it_takes_to_hold() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("MULTI"), "+OK\r\n");
    let mut words = vec!["RPUSH", "list"];
    words.resize(1_000_000, "");
    let push = request(&words);
    let queued = (0..20)
        .take_while(|_| {
            socket.send(&push);
            socket.reply() == "+QUEUED\r\n"
        })
        .count();
    assert!((1..10).contains(&queued), "{queued}");
    assert!(socket.run("EXEC").starts_with("-EXECABORT"));
}

#[test]
fn replies_of_an_exec_are_bounded_and_above_that_nothing_is_done() {
    let server = Server::start();
    let mut socket = server.connect();
    let value = "x".repeat(1_000_000);
    for _ in 0..10 {
        socket.command(&["RPUSH", "list", &value]);
    }
    let before = server.memory_bytes();
    assert_eq!(socket.run("MULTI"), "+OK\r\n");
    assert_eq!(socket.run("RPUSH other x"), "+QUEUED\r\n");
    for _ in 0..200 {
        assert_eq!(socket.run("LRANGE list 0 -1"), "+QUEUED\r\n");
    }
    assert_eq!(
        socket.run("EXEC"),
        "-ERR replies of the transaction are too large; this was not done\r\n"
    );
    assert_eq!(socket.run("EXISTS other"), ":0\r\n");
    let grown = server.memory_bytes().saturating_sub(before);
    assert!(grown < 1_000_000_000, "{grown}");
}

#[test]
fn replies_of_the_servers_own_commands_within_exec_are_bounded_too() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("MULTI"), "+OK\r\n");
    let count = 10_000;
    socket.send("COMMAND\r\n".repeat(count));
    for _ in 0..count {
        assert_eq!(socket.reply(), "+QUEUED\r\n");
    }
    // Reads to the end, because a reply of that size must not be parsed at every read.
    socket.send("EXEC\r\nQUIT\r\n");
    let replies = socket.rest();
    assert!(replies.contains("-ERR replies of the transaction are too large"));
    assert!(replies.ends_with("+OK\r\n"));
}
