//! Clients that send without reading, and what the server holds for them.

use std::time::Duration;

use crate::server::{PATIENCE, Server, Socket, request, wait_until};

/// A value of 2 kB.
fn value() -> String {
    "x".repeat(2_000)
}

/// A client with small system buffers, so that they fill quickly.
fn narrow(server: &Server) -> Socket {
    Socket::connect_with_buffers(server.address(), 16 * 1024)
}

/// A server with 200 values of 2 kB in the list `list`: 400 kB a reply.
fn server_with_list(flags: &[&str]) -> Server {
    let server = Server::start_with(flags);
    let mut words = vec!["RPUSH".to_owned(), "list".to_owned()];
    words.resize(202, value());
    server.connect().send(request(&words));
    let mut probe = server.connect();
    wait_until("the list is there", || probe.run("LLEN list") == ":200\r\n");
    server
}

fn statistic(socket: &mut Socket, name: &str) -> String {
    let info = socket.run("INFO stats");
    let line = info.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim_start_matches(':').to_owned()
}

/// Sends requests for much more than the buffers in between hold, until the server closes.
fn ask_until_closed(socket: &mut Socket, pipeline: &[u8]) {
    let closed = (0..1_000).any(|_| !socket.try_send(pipeline, PATIENCE));
    assert!(closed, "everything was taken in");
}

#[test]
fn a_client_may_send_its_whole_pipeline_before_it_reads() {
    let server = server_with_list(&[]);
    let mut socket = narrow(&server);
    let count = 20_000;
    let pipeline = request(&["LINDEX", "list", "7"]).repeat(count);
    assert!(socket.try_send(&pipeline, PATIENCE), "it hangs");
    socket.end_sending();
    let replies = socket.rest();
    let reply = format!("$2000\r\n{}\r\n", value());
    assert_eq!(replies.len(), count * reply.len());
    assert_eq!(replies.matches(&reply).count(), count);
}

#[test]
fn a_transaction_may_be_sent_whole_before_anything_is_read() {
    let server = server_with_list(&[]);
    let mut socket = narrow(&server);
    let count = 20_000;
    let mut pipeline = request(&["LRANGE", "list", "0", "-1"]).repeat(30);
    pipeline.extend(request(&["MULTI"]));
    pipeline.extend(request(&["RPUSH", "other", "x"]).repeat(count));
    pipeline.extend(request(&["EXEC"]));
    assert!(socket.try_send(&pipeline, PATIENCE), "it hangs");
    socket.end_sending();
    let replies = socket.rest();
    assert_eq!(replies.matches("+QUEUED\r\n").count(), count);
    assert!(replies.ends_with(&format!(":{count}\r\n")));
}

#[test]
fn large_and_small_requests_that_were_read_ahead_are_carried_out_in_order() {
    let server = server_with_list(&[]);
    let mut socket = narrow(&server);
    let mut pipeline = Vec::new();
    let mut expected = Vec::new();
    for number in 0..40_usize {
        let text = number.to_string().repeat(number * number * 60 + 1);
        pipeline.extend(request(&["LRANGE", "list", "0", "-1"]));
        pipeline.extend(request(&["ECHO", &text]));
        pipeline.extend(format!("PING inline{number}\r\n").into_bytes());
        expected.push(format!("${}\r\n{text}\r\n", text.len()));
        let text = format!("inline{number}");
        expected.push(format!("${}\r\n{text}\r\n", text.len()));
    }
    assert!(socket.try_send(&pipeline, PATIENCE), "it hangs");
    for pair in expected.chunks(2) {
        assert!(socket.reply_bytes().len() > 400_000);
        assert!(socket.reply() == pair[0], "another text");
        assert_eq!(socket.reply(), pair[1]);
    }
}

#[test]
fn what_is_sent_behind_a_blocking_command_is_taken_in() {
    let server = Server::start();
    let mut socket = narrow(&server);
    let count = 2_000;
    let mut pipeline = request(&["BLPOP", "empty", "0"]);
    pipeline.extend(request(&["ECHO", &value()]).repeat(count));
    pipeline.extend(request(&["RPUSH", "list", "x"]).repeat(count));
    // It is not served before everything was sent.
    assert!(socket.try_send(&pipeline, PATIENCE), "it hangs");
    assert_eq!(server.connect().run("RPUSH empty a"), ":1\r\n");
    socket.end_sending();
    assert!(socket.rest().ends_with(&format!(":{count}\r\n")));
}

#[test]
fn a_subscriber_may_send_much_before_it_reads() {
    let server = Server::start();
    let mut socket = narrow(&server);
    let count = 4_000;
    let mut pipeline = request(&["SUBSCRIBE", "c"]);
    pipeline.extend(request(&["PING", &value()]).repeat(count));
    assert!(socket.try_send(&pipeline, PATIENCE), "it hangs");
    assert_eq!(server.connect().run("PUBLISH c last"), ":1\r\n");
    socket.end_sending();
    let replies = socket.rest();
    assert_eq!(replies.matches("$4\r\npong\r\n").count(), count);
    assert_eq!(replies.matches("$4\r\nlast\r\n").count(), 1);
}

#[test]
fn the_list_of_clients_tells_what_waits_each_way() {
    let server = server_with_list(&[]);
    let mut socket = narrow(&server);
    let pipeline = request(&["LRANGE", "list", "0", "-1"]).repeat(50_000);
    assert!(socket.try_send(&pipeline, PATIENCE), "it hangs");
    let mut probe = server.connect();
    let address = socket.local_address().to_string();
    let mut field = |name: &str| -> usize {
        let list = probe.run("CLIENT LIST");
        let line = list.lines().find(|line| line.contains(&address)).unwrap();
        let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
        let (_, value) = fields.find(|(found, _)| *found == name).unwrap();
        value.parse().unwrap()
    };
    wait_until("all was taken in", || {
        field("qbuf") > pipeline.len() - 200_000
    });
    let (in_buffer, beyond) = (field("obl"), field("omem"));
    assert!((1..=16 * 1024).contains(&in_buffer), "{in_buffer}");
    assert!(
        beyond == 0 || in_buffer == 16 * 1024,
        "{in_buffer} {beyond}"
    );
    let held = field("tot-mem");
    assert!((pipeline.len()..pipeline.len() + 3_000_000).contains(&held));
}

#[test]
fn a_client_that_sends_more_than_the_query_buffer_limit_is_disconnected() {
    let server = server_with_list(&["--client-query-buffer-limit", "2mb"]);
    let mut socket = narrow(&server);
    ask_until_closed(
        &mut socket,
        &request(&["LRANGE", "list", "0", "-1"]).repeat(1_000),
    );
    let line = "Closing client that reached max query buffer length: id=";
    wait_until("the log tells", || server.log().contains(line));
    let mut probe = server.connect();
    let count = statistic(&mut probe, "client_query_buffer_limit_disconnections");
    assert_eq!(count, "1");
}

#[test]
fn a_stranger_may_send_a_megabyte_before_it_reads() {
    let server = Server::start_with(&["--requirepass", "secret"]);
    let mut socket = narrow(&server);
    ask_until_closed(&mut socket, &request(&["PING"]).repeat(10_000));
    wait_until("the log tells", || {
        server.log().contains("max query buffer length")
    });
}

#[test]
fn a_reply_above_the_hard_limit_for_normal_clients_ends_the_connection() {
    let limit = "normal 300kb 0 0";
    let server = server_with_list(&["--client-output-buffer-limit", limit]);
    let mut socket = server.connect();
    // As in Redis, the first 16 KiB do not count.
    assert!(socket.run("LRANGE list 0 149").len() > 300_000);
    socket.send(request(&["LRANGE", "list", "0", "-1"]));
    assert_eq!(socket.rest(), "");
    let line = "closed for overcoming of output buffer limits.";
    wait_until("the log tells", || server.log().contains(line));
    let mut probe = server.connect();
    let count = statistic(&mut probe, "client_output_buffer_limit_disconnections");
    assert_eq!(count, "1");
}

#[test]
fn a_client_that_stays_above_the_soft_limit_is_disconnected() {
    let limit = "normal 0 100kb 1";
    let server = server_with_list(&["--client-output-buffer-limit", limit]);
    let mut socket = narrow(&server);
    // Above it for a moment only.
    assert!(socket.run("LRANGE list 0 -1").len() > 400_000);
    // One reply of 40 MB. What the system's buffers leave of it exceeds the limit.
    let mut transaction = request(&["MULTI"]);
    transaction.extend(request(&["LRANGE", "list", "0", "-1"]).repeat(100));
    transaction.extend(request(&["EXEC"]));
    socket.send(transaction);
    wait_until("the log tells", || {
        server
            .log()
            .contains("closed for overcoming of output buffer limits.")
    });
}

#[test]
fn clients_that_take_too_much_together_are_evicted_the_largest_first() {
    let server = server_with_list(&["--maxmemory-clients", "4mb"]);
    let mut small = server.connect();
    assert_eq!(small.run("PING"), "+PONG\r\n");
    let mut sockets: Vec<_> = (0..20).map(|_| narrow(&server)).collect();
    let pipeline = request(&["LRANGE", "list", "0", "-1"]).repeat(100);
    for socket in &mut sockets {
        // The last may find the server busy with closing others.
        socket.try_send(&pipeline, Duration::from_secs(1));
    }
    wait_until("some were evicted", || {
        server.log().contains("Evicting client: id=")
    });
    assert_eq!(small.run("PING"), "+PONG\r\n");
    let evicted: usize = statistic(&mut small, "evicted_clients").parse().unwrap();
    assert!((1..20).contains(&evicted), "{evicted}");
    let info = small.run("INFO memory");
    let held = info
        .lines()
        .find_map(|line| line.strip_prefix("mem_clients_normal:"));
    assert!(held.unwrap().parse::<usize>().unwrap() <= 4 << 20, "{info}");
}

#[test]
fn messages_that_wait_for_subscribers_count_in_the_memory_of_clients() {
    let server = Server::start_with(&["--maxmemory-clients", "4mb"]);
    let mut publisher = server.connect();
    // At times its own buffers are the largest.
    publisher.run("CLIENT NO-EVICT on");
    let mut sockets: Vec<_> = (0..3).map(|_| narrow(&server)).collect();
    for (number, socket) in sockets.iter_mut().enumerate() {
        socket.run(&format!("SUBSCRIBE c{number}"));
    }
    // More than the system's buffers hold, and less than may wait for each of them.
    let payload = "x".repeat(1_000_000);
    for number in (0..3).cycle().take(3 * 12) {
        publisher.command(&["PUBLISH", &format!("c{number}"), &payload]);
    }
    wait_until("some were evicted", || {
        server.log().contains("Evicting client: id=")
    });
    assert_eq!(publisher.run("PING"), "+PONG\r\n");
}
