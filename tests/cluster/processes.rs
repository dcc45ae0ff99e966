//! Two server processes on FoundationDB, over their sockets.

use std::time::Duration;

use quoin_base::random::{Random, SystemRandom};

use crate::server::{Server, Socket, wait_until};

/// Servers that share their data. `None` if there is no cluster.
fn servers() -> Option<[Server; 2]> {
    let cluster_file = crate::server::foundationdb::cluster_file()?
        .to_str()
        .unwrap();
    let root_prefix = format!("processes-{:016x}", SystemRandom.next_u64());
    let start = || {
        Server::start_with(&[
            "--store",
            "fdb",
            "--cluster-file",
            cluster_file,
            "--root-prefix",
            &root_prefix,
        ])
    };
    Some([start(), start()])
}

fn wait_for_blocked(socket: &mut Socket, count: usize) {
    let line = format!("\r\nblocked_clients:{count}\r\n");
    wait_until("as many clients are blocked", || {
        socket.run("INFO clients").contains(&line)
    });
}

#[test]
fn a_push_to_one_server_wakes_a_client_of_the_other() {
    let Some([first, second]) = servers() else {
        return;
    };
    let mut waiting = second.connect();
    waiting.send("BRPOPLPUSH jobs done 0\r\n");
    wait_for_blocked(&mut second.connect(), 1);
    let mut pushing = first.connect();
    assert_eq!(pushing.run("RPUSH jobs a"), ":1\r\n");
    assert_eq!(waiting.reply(), "$1\r\na\r\n");
    assert_eq!(pushing.run("LRANGE done 0 -1"), "*1\r\n$1\r\na\r\n");
}

#[test]
fn nothing_is_popped_for_clients_of_a_server_that_has_ended() {
    let Some([first, mut second]) = servers() else {
        return;
    };
    let mut waiting: Vec<Socket> = (0..20).map(|_| second.connect()).collect();
    for socket in &mut waiting {
        socket.send("BLPOP jobs other 0\r\n");
    }
    wait_for_blocked(&mut second.connect(), 20);
    second.signal("TERM");
    assert!(second.wait().success());
    for mut socket in waiting {
        assert_eq!(socket.rest(), "");
    }
    let mut pushing = first.connect();
    assert_eq!(pushing.run("RPUSH jobs a"), ":1\r\n");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(pushing.run("LLEN jobs"), ":1\r\n");
}

#[test]
fn nothing_is_popped_for_a_client_that_has_left() {
    let Some([first, second]) = servers() else {
        return;
    };
    let mut observing = second.connect();
    for line in ["BLPOP jobs 0\r\n", "BLMPOP 0 2 jobs more LEFT\r\n"] {
        let mut waiting = second.connect();
        waiting.send(line);
        wait_for_blocked(&mut observing, 1);
        drop(waiting);
        wait_for_blocked(&mut observing, 0);
    }
    let mut pushing = first.connect();
    assert_eq!(pushing.run("RPUSH jobs a"), ":1\r\n");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(pushing.run("LLEN jobs"), ":1\r\n");
}

#[test]
fn users_hold_on_every_server() {
    let Some([first, second]) = servers() else {
        return;
    };
    let (mut admin, mut other) = (first.connect(), second.connect());
    assert_eq!(admin.run("ACL SETUSER bob on >p ~b* +@all"), "+OK\r\n");
    // A login reads the store, so there is nothing to wait for.
    let mut bob = second.connect();
    assert_eq!(bob.run("AUTH bob p"), "+OK\r\n");
    assert_eq!(bob.run("SET b1 x"), "+OK\r\n");
    let denied = "-NOPERM No permissions to access a key\r\n";
    assert_eq!(bob.run("GET x"), denied);
    assert_eq!(admin.run("ACL LIST"), other.run("ACL LIST"));
    // The rights of a connected client change when the watch fires.
    assert_eq!(other.run("ACL SETUSER bob ~x"), "+OK\r\n");
    assert_eq!(bob.run("GET x"), "$-1\r\n");
    assert_eq!(admin.run("ACL SETUSER bob resetkeys ~b*"), "+OK\r\n");
    wait_until("the other server knows", || bob.run("GET x") == denied);
    let mut waiting = second.connect();
    assert_eq!(waiting.run("AUTH bob p"), "+OK\r\n");
    waiting.send("BLPOP b 0\r\n");
    wait_for_blocked(&mut other, 1);
    assert_eq!(admin.run("ACL DELUSER bob"), ":1\r\n");
    // On the other server, too.
    assert_eq!(bob.rest(), "");
    assert_eq!(waiting.rest(), "");
    assert!(second.connect().run("AUTH bob p").starts_with("-WRONGPASS"));
    // Once the password of `default` is in the store, both servers use it.
    assert_eq!(admin.run("ACL SETUSER default >secret"), "+OK\r\n");
    assert_eq!(second.connect().run("AUTH secret"), "+OK\r\n");
    wait_until("clients of the other server need the password", || {
        second.connect().run("PING").starts_with("-NOAUTH")
    });
}

#[test]
fn a_change_through_one_server_spoils_a_transaction_of_the_other() {
    let Some([first, second]) = servers() else {
        return;
    };
    let (mut changing, mut watching) = (first.connect(), second.connect());
    for (change, reply) in [
        ("RPUSH key a", "*-1\r\n"),
        ("RPUSH other a", "*1\r\n:0\r\n"),
    ] {
        assert_eq!(watching.run("WATCH key"), "+OK\r\n");
        changing.run(change);
        assert_eq!(watching.run("MULTI"), "+OK\r\n");
        assert_eq!(watching.run("DEL nothing"), "+QUEUED\r\n");
        assert_eq!(watching.run("EXEC"), reply, "{change}");
    }
}

#[test]
fn a_change_through_one_server_is_told_to_clients_of_the_other_that_track_keys() {
    let Some([first, second]) = servers() else {
        return;
    };
    let mut changing = first.connect();
    changing.run("SET key 1");
    let mut reading = second.connect();
    reading.run("HELLO 3");
    assert_eq!(reading.run("CLIENT TRACKING ON"), "+OK\r\n");
    let mut hearing = second.connect();
    hearing.run("HELLO 3");
    assert_eq!(hearing.run("CLIENT TRACKING ON BCAST PREFIX k"), "+OK\r\n");
    let told = |what: &str| format!(">2\r\n$10\r\ninvalidate\r\n{what}");
    let key = told("*1\r\n$3\r\nkey\r\n");
    for (change, expected) in [
        ("SET key 2", &key),
        ("DEL key", &key),
        ("RPUSH key a", &key),
        ("PEXPIRE key 100", &key),
        ("FLUSHALL", &told("_\r\n")),
    ] {
        reading.run("EXISTS key");
        changing.run(change);
        assert_eq!(&reading.reply(), expected, "{change}");
        assert_eq!(&hearing.reply(), expected, "{change}");
        if change.starts_with("PEXPIRE") {
            assert_eq!(&hearing.reply(), expected, "it has expired");
        }
    }
    // Another server cannot say which client has changed a key, but it was not one of its own.
    assert_eq!(reading.run("CLIENT TRACKING ON NOLOOP"), "+OK\r\n");
    reading.run("EXISTS key");
    changing.run("SET key 3");
    assert_eq!(reading.reply(), key);
    assert_eq!(hearing.reply(), key);
    // Commands of one batch cause one message for the prefix.
    changing.run("MSET k1 1 other 1 k2 1");
    assert_eq!(hearing.reply(), told("*2\r\n$2\r\nk1\r\n$2\r\nk2\r\n"));
}

#[test]
fn leases_and_delays_go_on_when_their_server_is_killed() {
    let Some([mut first, second]) = servers() else {
        return;
    };
    let mut going = first.connect();
    going.run("TASK.ADD q 1 work ID leased NEEDS gb 1 MAXTRIES 2");
    going.run("TASK.ADD q 1 work ID spent NEEDS gb 1 MAXTRIES 1");
    going.run("TASK.ADD q 1 work ID kept NEEDS gb 1");
    going.run("TASK.ADD q 2 work ID delayed NEEDS gb 2 DELAY 1500");
    for line in ["COUNT 2 LEASE 300", "LEASE 600000"] {
        let taken = going.run(&format!("TASK.TAKE q HAVING gb 1 {line}"));
        assert!(taken.contains("work"), "{taken}");
    }
    let mut staying = second.connect();
    let mut waiting = second.connect();
    waiting.send("TASK.TAKE q HAVING gb 2 BLOCK 0\r\n");
    wait_for_blocked(&mut staying, 1);
    first.signal("KILL");
    first.wait();
    let lapsed = waiting.reply();
    assert!(lapsed.contains("\r\nleased\r\n"), "{lapsed}");
    assert!(lapsed.contains("\r\n:2\r\n"), "its second try: {lapsed}");
    waiting.send("TASK.TAKE q HAVING gb 2 BLOCK 0\r\n");
    let delayed = waiting.reply();
    assert!(delayed.contains("\r\ndelayed\r\n"), "{delayed}");
    let dead = staying.run("TASK.DEAD q");
    assert!(dead.contains("\r\nspent\r\n"), "{dead}");
    assert_eq!(staying.run("TASK.LEN q LEASED"), ":1\r\n");
    assert_eq!(staying.run("TASK.ACK q kept"), "*1\r\n:1\r\n");
    assert_eq!(staying.run("TASK.LEN q"), ":1\r\n");
}
