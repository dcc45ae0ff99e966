//! Publish and subscribe.

use std::time::Duration;

use crate::server::{Server, Socket, is_on_foundationdb, wait_until};

const SUBSCRIBED: &str = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";

fn message(channel: &str, payload: &str) -> String {
    format!(
        "*3\r\n$7\r\nmessage\r\n${}\r\n{channel}\r\n${}\r\n{payload}\r\n",
        channel.len(),
        payload.len()
    )
}

fn subscriber(server: &Server) -> Socket {
    let mut socket = server.connect();
    assert_eq!(socket.run("SUBSCRIBE c"), SUBSCRIBED);
    socket
}

#[test]
fn each_channel_is_confirmed_by_itself() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("SUBSCRIBE c c d"), SUBSCRIBED);
    assert_eq!(socket.reply(), SUBSCRIBED);
    assert_eq!(socket.reply(), "*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:2\r\n");
    assert_eq!(
        socket.run("PSUBSCRIBE *"),
        "*3\r\n$10\r\npsubscribe\r\n$1\r\n*\r\n:3\r\n"
    );
    assert_eq!(
        socket.run("SSUBSCRIBE s"),
        "*3\r\n$10\r\nssubscribe\r\n$1\r\ns\r\n:1\r\n"
    );
    assert_eq!(
        socket.run("UNSUBSCRIBE"),
        "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:2\r\n"
    );
    assert_eq!(
        socket.reply(),
        "*3\r\n$11\r\nunsubscribe\r\n$1\r\nd\r\n:1\r\n"
    );
    assert_eq!(
        socket.run("UNSUBSCRIBE"),
        "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:1\r\n"
    );
    assert_eq!(
        socket.run("UNSUBSCRIBE x"),
        "*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:1\r\n"
    );
    assert_eq!(
        socket.run("PUNSUBSCRIBE *"),
        "*3\r\n$12\r\npunsubscribe\r\n$1\r\n*\r\n:0\r\n"
    );
    assert_eq!(
        socket.run("SUNSUBSCRIBE"),
        "*3\r\n$12\r\nsunsubscribe\r\n$1\r\ns\r\n:0\r\n"
    );
    assert_eq!(socket.run("DBSIZE"), ":0\r\n");
}

#[test]
fn messages_reach_idle_subscribers_in_order() {
    let server = Server::start();
    let mut socket = subscriber(&server);
    let mut publisher = server.connect();
    publisher.send("PUBLISH c 1\r\nPUBLISH other 2\r\nPUBLISH c 3\r\n");
    for reply in [":1\r\n", ":0\r\n", ":1\r\n"] {
        assert_eq!(publisher.reply(), reply);
    }
    assert_eq!(socket.reply(), message("c", "1"));
    assert_eq!(socket.reply(), message("c", "3"));
}

#[test]
fn a_pattern_is_told_with_its_messages() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("PSUBSCRIBE c?");
    assert_eq!(server.connect().run("PUBLISH c1 m"), ":1\r\n");
    assert_eq!(
        socket.reply(),
        "*4\r\n$8\r\npmessage\r\n$2\r\nc?\r\n$2\r\nc1\r\n$1\r\nm\r\n"
    );
}

#[test]
fn shard_channels_are_apart() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("SSUBSCRIBE c");
    let mut publisher = server.connect();
    assert_eq!(publisher.run("PUBLISH c m"), ":0\r\n");
    assert_eq!(publisher.run("SPUBLISH c m"), ":1\r\n");
    assert_eq!(
        socket.reply(),
        "*3\r\n$8\r\nsmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"
    );
}

#[test]
fn ping_after_subscribe_within_exec_has_the_form_for_subscribers() {
    let server = Server::start();
    let mut socket = server.connect();
    for line in ["SUBSCRIBE c", "PING", "PING x", "ECHO y"] {
        if line == "SUBSCRIBE c" {
            assert_eq!(socket.run("MULTI"), "+OK\r\n");
        }
        assert_eq!(socket.run(line), "+QUEUED\r\n");
    }
    let reply = socket.run("EXEC");
    let pings = "*2\r\n$4\r\npong\r\n$0\r\n\r\n*2\r\n$4\r\npong\r\n$1\r\nx\r\n$1\r\ny\r\n";
    assert!(reply.ends_with(pings), "{reply}");
}

#[test]
fn a_subscriber_of_resp2_may_only_say_what_concerns_its_subscriptions() {
    let server = Server::start();
    let mut socket = subscriber(&server);
    assert_eq!(
        socket.run("CLIENT LIST"),
        "-ERR Can't execute 'client|list': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
         RESET are allowed in this context\r\n"
    );
    assert!(
        socket
            .run("lpush l a")
            .starts_with("-ERR Can't execute 'lpush': only")
    );
    assert_eq!(socket.run("PING"), "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    assert_eq!(socket.run("PING x"), "*2\r\n$4\r\npong\r\n$1\r\nx\r\n");
    assert_eq!(socket.run("RESET"), "+RESET\r\n");
    assert_eq!(socket.run("PING"), "+PONG\r\n");
    assert_eq!(server.connect().run("PUBLISH c m"), ":0\r\n");
}

#[test]
fn a_subscriber_of_resp3_gets_pushes_and_may_say_anything() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("HELLO 3");
    assert_eq!(
        socket.run("SUBSCRIBE c"),
        ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
    );
    assert_eq!(socket.run("LPUSH l a"), ":1\r\n");
    assert_eq!(socket.run("PING"), "+PONG\r\n");
    assert_eq!(
        socket.run("UNSUBSCRIBE"),
        ">3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n"
    );
    assert_eq!(
        socket.run("UNSUBSCRIBE"),
        ">3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n"
    );
}

#[test]
fn a_publisher_that_hears_itself_gets_each_reply_before_the_message() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("HELLO 3");
    socket.run("SUBSCRIBE c");
    socket.send("PUBLISH c 1\r\nLPUSH l a\r\nPUBLISH c 2\r\nPING\r\n");
    let pushed = |payload: &str| message("c", payload).replacen('*', ">", 1);
    assert_eq!(socket.reply(), ":1\r\n");
    assert_eq!(socket.reply(), pushed("1"));
    assert_eq!(socket.reply(), ":1\r\n");
    assert_eq!(socket.reply(), ":1\r\n");
    assert_eq!(socket.reply(), pushed("2"));
    assert_eq!(socket.reply(), "+PONG\r\n");
}

#[test]
fn messages_and_confirmations_reach_a_client_that_wants_no_replies() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.send("CLIENT REPLY OFF\r\nPING\r\nSUBSCRIBE c\r\n");
    assert_eq!(socket.reply(), SUBSCRIBED);
    assert_eq!(server.connect().run("PUBLISH c m"), ":1\r\n");
    assert_eq!(socket.reply(), message("c", "m"));
}

#[test]
fn who_disconnects_is_not_subscribed_any_more() {
    let server = Server::start();
    let socket = subscriber(&server);
    let mut other = server.connect();
    assert_eq!(other.run("PUBSUB NUMSUB c"), "*2\r\n$1\r\nc\r\n:1\r\n");
    drop(socket);
    wait_until("the subscription ends", || {
        other.run("PUBSUB CHANNELS") == "*0\r\n"
    });
}

#[test]
fn pubsub_tells_of_channels_and_patterns() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("SUBSCRIBE news");
    socket.run("PSUBSCRIBE p*");
    socket.run("SSUBSCRIBE shard");
    let mut other = server.connect();
    other.run("HELLO 3");
    other.run("PSUBSCRIBE p*");
    assert_eq!(other.run("PUBSUB CHANNELS"), "*1\r\n$4\r\nnews\r\n");
    assert_eq!(other.run("PUBSUB CHANNELS x*"), "*0\r\n");
    assert_eq!(other.run("PUBSUB NUMSUB"), "*0\r\n");
    assert_eq!(
        other.run("PUBSUB NUMSUB news p"),
        "*4\r\n$4\r\nnews\r\n:1\r\n$1\r\np\r\n:0\r\n"
    );
    assert_eq!(other.run("PUBSUB NUMPAT"), ":1\r\n");
    assert_eq!(other.run("PUBSUB SHARDCHANNELS"), "*1\r\n$5\r\nshard\r\n");
    assert_eq!(
        other.run("PUBSUB SHARDNUMSUB shard"),
        "*2\r\n$5\r\nshard\r\n:1\r\n"
    );
    assert_eq!(
        other.run("PUBSUB CHANNELS a b"),
        "-ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.\r\n"
    );
    let stats = other.run("INFO stats");
    for line in [
        "pubsub_channels:1",
        "pubsub_patterns:1",
        "pubsubshard_channels:1",
    ] {
        assert!(stats.contains(line), "{line} in {stats}");
    }
}

#[test]
fn subscribers_are_a_class_of_clients_of_their_own() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("SUBSCRIBE a b");
    socket.reply();
    socket.run("PSUBSCRIBE p");
    socket.run("SSUBSCRIBE s");
    let mut other = server.connect();
    let listed = other.run("CLIENT LIST TYPE pubsub");
    for field in [" flags=P ", " sub=2 psub=1 ssub=1 ", " cmd=ssubscribe "] {
        assert!(listed.contains(field), "{field} in {listed}");
    }
    assert_eq!(listed.matches("id=").count(), 1);
    assert_eq!(
        other.run("CLIENT LIST TYPE normal").matches("id=").count(),
        1
    );
    assert_eq!(other.run("CLIENT KILL TYPE pubsub"), ":1\r\n");
    assert_eq!(socket.rest(), "");
}

fn set_limit(socket: &mut Socket, limit: &str) {
    let reply = socket.command(&["CONFIG", "SET", "client-output-buffer-limit", limit]);
    assert_eq!(reply, "+OK\r\n");
}

#[test]
fn a_subscriber_that_does_not_read_is_disconnected_and_holds_nobody_up() {
    let server = Server::start();
    let mut other = server.connect();
    set_limit(&mut other, "pubsub 1mb 0 0");
    let _socket = subscriber(&server);
    let payload = "x".repeat(100_000);
    // More than the limit and all the buffers of the system between the two.
    for _ in 0..400 {
        other.run(&format!("PUBLISH c {payload}"));
    }
    wait_until("the subscriber is gone", || {
        other.run("PUBSUB NUMSUB c") == "*2\r\n$1\r\nc\r\n:0\r\n"
    });
}

#[test]
fn a_soft_limit_that_stays_exceeded_disconnects_too() {
    let server = Server::start();
    let mut other = server.connect();
    set_limit(&mut other, "pubsub 0 1mb 1");
    let _socket = subscriber(&server);
    let payload = "x".repeat(100_000);
    for _ in 0..200 {
        other.run(&format!("PUBLISH c {payload}"));
    }
    wait_until("the subscriber is gone", || {
        other.run("PUBSUB NUMSUB c") == "*2\r\n$1\r\nc\r\n:0\r\n"
    });
}

#[test]
fn messages_go_on_while_writes_are_paused() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("HELLO 3");
    socket.run("SUBSCRIBE c");
    let mut other = server.connect();
    let mut publisher = server.connect();
    publisher.send("PUBLISH c before\r\n");
    publisher.reply();
    socket.reply();
    other.run("CLIENT PAUSE 100000 WRITE");
    publisher.send("PUBLISH c after\r\n");
    wait_until("the publisher waits", || {
        other
            .run("INFO clients")
            .contains("\r\nblocked_clients:1\r\n")
    });
    other.run("CLIENT UNPAUSE");
    assert_eq!(publisher.reply(), ":1\r\n");
    assert!(socket.reply().contains("after"));
}

#[test]
fn what_a_transaction_publishes_to_its_own_client_comes_behind_all_its_replies() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("HELLO 3");
    socket.run("SUBSCRIBE c");
    for line in ["MULTI", "PUBLISH c 1", "UNSUBSCRIBE c", "PING"] {
        socket.run(line);
    }
    assert_eq!(
        socket.run("EXEC"),
        "*3\r\n:1\r\n>3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n+PONG\r\n"
    );
    assert_eq!(
        socket.reply(),
        ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n1\r\n"
    );
}

#[test]
fn a_client_that_waits_in_a_blocking_command_hears_messages_and_those_before_its_reply_first() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("HELLO 3");
    socket.run("SUBSCRIBE c");
    socket.send("BLPOP l 0\r\n");
    let mut other = server.connect();
    wait_until("it waits", || {
        other.run("INFO clients").contains("blocked_clients:1")
    });
    other.run("PUBLISH c 1");
    assert!(socket.reply().ends_with("$1\r\nc\r\n$1\r\n1\r\n"));
    other.send("PUBLISH c 2\r\nRPUSH l x\r\nPUBLISH c 3\r\n");
    assert!(socket.reply().ends_with("$1\r\nc\r\n$1\r\n2\r\n"));
    let others = [socket.reply(), socket.reply()];
    assert!(
        others.contains(&"*2\r\n$1\r\nl\r\n$1\r\nx\r\n".to_owned()),
        "{others:?}"
    );
}

/// Two servers on one cluster. `None` on the embedded store, which has one server.
fn two_servers(folder: &tempfile::TempDir) -> Option<[Server; 2]> {
    is_on_foundationdb().then(|| [0, 1].map(|_| Server::start_in(folder.path(), &[]).unwrap()))
}

#[test]
fn messages_reach_subscribers_of_every_server_of_a_cluster_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let Some([one, two]) = two_servers(&folder) else {
        return;
    };
    let mut sockets = [subscriber(&one), subscriber(&two)];
    let mut shard = two.connect();
    shard.run("SSUBSCRIBE c");
    let mut publishers = [one.connect(), two.connect()];
    for number in 0..200 {
        publishers[0].send(format!("PUBLISH c {number}\r\n"));
    }
    publishers[0].send("SPUBLISH c shard\r\n");
    for _ in 0..200 {
        assert_eq!(publishers[0].reply(), ":1\r\n");
    }
    assert_eq!(publishers[0].reply(), ":0\r\n");
    for socket in &mut sockets {
        for number in 0..200 {
            assert_eq!(socket.reply(), message("c", &number.to_string()));
        }
    }
    assert!(shard.reply().contains("shard"));
    publishers[1].run("PUBLISH c back");
    for socket in &mut sockets {
        assert_eq!(socket.reply(), message("c", "back"));
        assert!(socket.is_silent_for(Duration::from_millis(100)));
    }
}

#[test]
fn who_is_subscribed_hears_what_another_server_publishes_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let Some([one, two]) = two_servers(&folder) else {
        return;
    };
    let mut publisher = two.connect();
    for number in 0..20 {
        let mut socket = subscriber(&one);
        publisher.run(&format!("PUBLISH c {number}"));
        assert_eq!(socket.reply(), message("c", &number.to_string()));
    }
}
