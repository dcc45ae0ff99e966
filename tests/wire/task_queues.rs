//! Task queues over a socket.

use std::time::Duration;

use crate::server::{Server, Socket, wait_until};

/// The token at the end of a reply with one task.
fn token(reply: &str) -> String {
    reply.trim_end().rsplit("\r\n").next().unwrap().to_owned()
}

#[test]
fn tasks_are_flat_in_resp2_and_typed_in_resp3() {
    let server = Server::start();
    let mut socket = server.connect();
    let added = socket.run("TASK.ADD q 1.5 work ID a NEEDS gb 2 cards 0.5");
    assert_eq!(added, "$1\r\na\r\n");
    let flat = "*1\r\n*5\r\n$1\r\na\r\n$3\r\n1.5\r\n:0\r\n*4\r\n$2\r\ngb\r\n$1\r\n2\r\n$5\r\ncards\r\n$3\r\n0.5\r\n$4\r\nwork\r\n";
    let peek = "TASK.PEEK q HAVING gb 2 cards 1";
    assert_eq!(socket.run(peek), flat);
    socket.run("HELLO 3");
    let typed = "*1\r\n*5\r\n$1\r\na\r\n,1.5\r\n:0\r\n%2\r\n$2\r\ngb\r\n,2\r\n$5\r\ncards\r\n,0.5\r\n$4\r\nwork\r\n";
    assert_eq!(socket.run(peek), typed);
}

#[test]
fn nothing_is_null_in_either_protocol() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("TASK.TAKE q"), "*-1\r\n");
    assert_eq!(socket.run("TASK.GET q a"), "$-1\r\n");
    assert_eq!(socket.run("TASK.PEEK q"), "*0\r\n");
    assert_eq!(socket.run("TASK.TAKE q BLOCK 10"), "*-1\r\n");
    socket.run("HELLO 3");
    assert_eq!(socket.run("TASK.TAKE q"), "_\r\n");
    assert_eq!(socket.run("TASK.GET q a"), "_\r\n");
    assert_eq!(socket.run("TASK.TAKE q BLOCK 10"), "_\r\n");
}

#[test]
fn a_task_is_taken_kept_and_acknowledged() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("TASK.ADD q 1 work ID a MAXTRIES 2");
    let taken = socket.run("TASK.TAKE q LEASE 60000");
    assert!(taken.starts_with("*1\r\n*6\r\n$1\r\na\r\n$1\r\n1\r\n:1\r\n*0\r\n$4\r\nwork\r\n"));
    let token = token(&taken);
    let extended = socket.run(&format!("TASK.EXTEND q a 60000 TOKEN {token}"));
    assert_eq!(extended, ":1\r\n");
    assert_eq!(socket.run("TASK.LEN q LEASED"), ":1\r\n");
    assert_eq!(
        socket.run(&format!("TASK.ACK q a b TOKEN {token}")),
        "*2\r\n:1\r\n:0\r\n"
    );
    assert_eq!(socket.run("TASK.LEN q"), ":0\r\n");
    assert_eq!(socket.run("TYPE q"), "+none\r\n");
}

#[test]
fn a_task_is_given_back_dies_and_is_revived() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("TASK.ADD q 1 work ID a MAXTRIES 1");
    socket.run("TASK.TAKE q LEASE 60000");
    assert_eq!(
        socket.run("TASK.NACK q a TOKEN 0000000000000001"),
        ":-2\r\n"
    );
    assert_eq!(socket.run("TASK.NACK q a"), ":2\r\n");
    assert_eq!(socket.run("TASK.NACK q a"), ":-1\r\n");
    let dead = "*1\r\n*6\r\n$1\r\na\r\n$1\r\n1\r\n:1\r\n*0\r\n$4\r\nwork\r\n$-1\r\n";
    assert_eq!(socket.run("TASK.DEAD q"), dead);
    assert_eq!(socket.run("TASK.REVIVE q a"), ":1\r\n");
    assert_eq!(socket.run("TASK.CANCEL q a"), ":1\r\n");
    assert_eq!(socket.run("EXISTS q"), ":0\r\n");
}

#[test]
fn a_task_and_a_queue_tell_of_themselves() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("TASK.ADD q 1 work ID a NEEDS gb 2");
    let task = "*30\r\n$2\r\nid\r\n$1\r\na\r\n$5\r\nstate\r\n$5\r\nready\r\n$8\r\npriority\r\n$1\r\n1\r\n$5\r\ntries\r\n:0\r\n$8\r\nmaxtries\r\n:0\r\n$7\r\nleft-ms\r\n:-1\r\n$5\r\nneeds\r\n*2\r\n$2\r\ngb\r\n$1\r\n2\r\n$7\r\npayload\r\n$4\r\nwork\r\n";
    let got = socket.run("TASK.GET q a");
    let rest = got.strip_prefix(task).unwrap();
    let time = rest.strip_prefix("$5\r\nat-ms\r\n:").unwrap();
    let (time, notes) = time.split_once("\r\n").unwrap();
    assert!(time.parse::<u64>().is_ok(), "{got}");
    assert_eq!(
        notes,
        "$6\r\nworker\r\n$-1\r\n$6\r\nreason\r\n$-1\r\n$8\r\nprogress\r\n$-1\r\n$10\r\nexpires-ms\r\n:-1\r\n$5\r\ngroup\r\n$-1\r\n$5\r\nafter\r\n*0\r\n"
    );
    let queue = "*22\r\n$6\r\nlength\r\n:1\r\n$5\r\nready\r\n:1\r\n$6\r\nleased\r\n:0\r\n$7\r\ndelayed\r\n:0\r\n$4\r\ndead\r\n:0\r\n$7\r\nwaiting\r\n:0\r\n$5\r\nadded\r\n:1\r\n$11\r\nnext-due-ms\r\n:-1\r\n$9\r\nresources\r\n*1\r\n$2\r\ngb\r\n$7\r\nclasses\r\n:1\r\n$6\r\npaused\r\n:0\r\n";
    assert_eq!(socket.run("TASK.INFO q"), queue);
}

#[test]
fn a_queue_is_listed_page_by_page_with_workers_and_reasons() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("TASK.ADD q 1 x ID a MAXTRIES 1");
    socket.run("TASK.ADD q 1 x ID b");
    socket.run("TASK.ADD q 1 x ID c");
    socket.run("TASK.TAKE q LEASE 60000 WORKER w1");
    socket.run("TASK.NACK q a REASON no-disk");
    let first = socket.run("TASK.LIST q READY COUNT 1");
    assert!(first.contains("$1\r\nb\r\n"), "{first}");
    let cursor = first.split("\r\n").nth(2).unwrap().to_owned();
    let second = socket.run(&format!("TASK.LIST q READY CURSOR {cursor}"));
    assert!(second.starts_with("*2\r\n$1\r\n0\r\n*1\r\n"), "{second}");
    assert!(second.contains("$1\r\nc\r\n"), "{second}");
    assert_eq!(socket.run("TASK.LIST q LEASED"), "*2\r\n$1\r\n0\r\n*0\r\n");
    socket.run("HELLO 3");
    let dead = socket.run("TASK.LIST q DEAD");
    assert!(dead.starts_with("*2\r\n$1\r\n0\r\n*1\r\n%12\r\n"), "{dead}");
    let notes = "$6\r\nworker\r\n$2\r\nw1\r\n$6\r\nreason\r\n$7\r\nno-disk\r\n";
    assert!(dead.contains(notes), "{dead}");
}

#[test]
fn a_queue_is_steered() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("CONFIG SET notify-keyspace-events Ed");
    let mut events = server.connect();
    events.run("SUBSCRIBE __keyevent@0__:task.purge __keyevent@0__:task.move");
    events.reply();
    for (line, reply) in [
        ("TASK.ADD q 1 x ID a MAXTRIES 1", "$1\r\na\r\n"),
        ("TASK.ADD q 1 x ID b DELAY 60000", "$1\r\nb\r\n"),
        ("TASK.ADD q 1 x ID c", "$1\r\nc\r\n"),
    ] {
        assert_eq!(socket.run(line), reply);
    }
    socket.run("TASK.TAKE q LEASE 60000");
    for (line, reply) in [
        ("TASK.NACK q a", ":2\r\n"),
        ("TASK.REVIVE q ALL", ":1\r\n"),
        ("TASK.REVIVE q ALL", ":0\r\n"),
        ("TASK.PURGE q READY", "*2\r\n$1\r\n0\r\n:2\r\n"),
        ("TASK.MOVE q other b", ":1\r\n"),
        ("EXISTS q other", ":1\r\n"),
        ("TASK.PURGE none DEAD", "*2\r\n$1\r\n0\r\n:0\r\n"),
    ] {
        assert_eq!(socket.run(line), reply, "{line}");
    }
    for event in ["task.purge", "task.move"] {
        let message = events.reply();
        assert!(
            message.contains(event) && message.contains("\r\nq\r\n"),
            "{message}"
        );
    }
}

#[test]
fn who_waits_at_a_paused_queue_gets_a_task_when_it_goes_on() {
    let server = Server::start();
    let mut waiting = server.connect();
    let mut socket = server.connect();
    assert_eq!(socket.run("TASK.PAUSE q"), ":1\r\n");
    waiting.send("TASK.TAKE q BLOCK 0\r\n");
    blocked(&mut socket, 1);
    socket.run("TASK.ADD q 1 work ID a");
    assert!(waiting.is_silent_for(Duration::from_millis(100)));
    assert_eq!(socket.run("TASK.RESUME q"), ":1\r\n");
    assert!(waiting.reply().contains("work"));
    assert_eq!(socket.run("EXISTS q"), ":0\r\n");
}

#[test]
fn wrong_numbers_of_arguments_are_refused() {
    let server = Server::start();
    let mut socket = server.connect();
    for line in [
        "TASK.ADD q 1",
        "TASK.SCHEDULE q s EVERY 5000 TASK 1",
        "TASK.UNSCHEDULE q",
        "TASK.SCHEDULES",
        "TASK.TAKE",
        "TASK.ACK q",
        "TASK.NACK q",
        "TASK.EXTEND q a",
        "TASK.CANCEL q",
        "TASK.GET q",
        "TASK.PEEK",
        "TASK.LEN",
        "TASK.DEAD",
        "TASK.LIST q",
        "TASK.PAUSE",
        "TASK.RESUME",
        "TASK.PURGE q",
        "TASK.MOVE q other",
        "TASK.REVIVE q",
        "TASK.INFO",
    ] {
        let name = line.split(' ').next().unwrap().to_ascii_lowercase();
        let refused = format!("-ERR wrong number of arguments for '{name}' command\r\n");
        assert_eq!(socket.run(line), refused);
    }
}

#[test]
fn who_waits_hears_of_a_task_that_fits_of_a_delay_and_of_a_lapse() {
    let server = Server::start();
    let mut waiting = server.connect();
    let mut socket = server.connect();
    waiting.send("TASK.TAKE q HAVING gb 4 LEASE 200 BLOCK 0\r\n");
    blocked(&mut socket, 1);
    socket.run("TASK.ADD q 1 large ID large NEEDS gb 5");
    assert!(waiting.is_silent_for(Duration::from_millis(100)));
    socket.run("TASK.ADD q 1 small ID small NEEDS gb 4 DELAY 150");
    assert!(waiting.reply().contains("small"));
    // Nobody ends the lease, so it lapses.
    waiting.send("TASK.TAKE q HAVING gb 4 BLOCK 0\r\n");
    assert!(waiting.reply().contains("small"));
    assert_eq!(socket.run("TASK.LEN q"), ":1\r\n");
}

fn blocked(socket: &mut Socket, count: usize) {
    wait_until("clients are blocked", || {
        socket
            .run("INFO clients")
            .contains(&format!("blocked_clients:{count}\r\n"))
    });
}

#[test]
fn a_schedule_adds_its_task_to_who_waits_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    let set = socket.run("TASK.SCHEDULE q s EVERY 1000 TASK 1 work NEEDS gb 2");
    assert!(set.starts_with(':'), "{set}");
    let taken = socket.run("TASK.TAKE q HAVING gb 4 LEASE 60000 BLOCK 0");
    assert!(taken.starts_with("*1\r\n*6\r\n$15\r\ns@"), "{taken}");
    socket.run("TASK.UNSCHEDULE q s");
    let never = [
        "TASK.SCHEDULE",
        "q",
        "t",
        "CRON",
        "0 0 30 2 *",
        "TASK",
        "1",
        "work",
    ];
    let refused = socket.command(&never);
    assert_eq!(refused, "-ERR cron expression never comes true\r\n");
    socket.run("TASK.SCHEDULE q t EVERY 1000 TASK 1 work");
    server.signal("KILL");
    server.wait();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    let taken = socket.run("TASK.TAKE q BLOCK 0");
    assert!(taken.contains("\r\nt@"), "{taken}");
    let listed = socket.run("TASK.SCHEDULES q COUNT 5");
    let begins = "*2\r\n$1\r\n0\r\n*1\r\n*36\r\n$4\r\nname\r\n$1\r\nt\r\n$4\r\ncron\r\n$-1\r\n";
    assert!(listed.starts_with(begins), "{listed}");
    socket.run("HELLO 3");
    let listed = socket.run("TASK.SCHEDULES q");
    assert!(
        listed.starts_with("*2\r\n$1\r\n0\r\n*1\r\n%18\r\n"),
        "{listed}"
    );
}

#[test]
fn leases_and_takes_within_a_time_are_limited() {
    let server = Server::start();
    let mut socket = server.connect();
    let set = "TASK.SETOPTIONS q LEASES 1 RATE 2 300";
    assert_eq!(socket.run(set), "+OK\r\n");
    for id in ["a", "b", "c"] {
        socket.run(&format!("TASK.ADD q 1 x ID {id}"));
    }
    assert!(
        socket
            .run("TASK.TAKE q COUNT 2 LEASE 60000")
            .contains("\r\na\r\n")
    );
    let mut waiting = server.connect();
    waiting.send("TASK.TAKE q LEASE 60000 BLOCK 0\r\n");
    blocked(&mut socket, 1);
    socket.run("TASK.ACK q a");
    assert!(waiting.reply().contains("\r\nb\r\n"));
    socket.run("TASK.ACK q b");
    // As soon as the time is over.
    waiting.send("TASK.TAKE q LEASE 60000 BLOCK 0\r\n");
    assert!(waiting.reply().contains("\r\nc\r\n"));
    let told = socket.run("TASK.GETOPTIONS q");
    assert!(told.contains("\r\nleases\r\n:1\r\n"), "{told}");
    assert!(told.contains("\r\nrate\r\n*2\r\n:2\r\n:300\r\n"), "{told}");
}

#[test]
fn groups_have_their_turns_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    for (id, group) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")] {
        let added = socket.run(&format!("TASK.ADD q 1 x ID {id} GROUP {group}"));
        assert_eq!(added, format!("$2\r\n{id}\r\n"));
    }
    assert_eq!(socket.run("TASK.SETOPTIONS q GROUPLEASES 1"), "+OK\r\n");
    assert!(socket.run("TASK.TAKE q LEASE 60000").contains("a1"));
    server.signal("KILL");
    server.wait();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    assert!(socket.run("TASK.TAKE q COUNT 2 LEASE 60000").contains("b1"));
    assert_eq!(socket.run("TASK.TAKE q LEASE 60000"), "*-1\r\n");
    let mut waiting = server.connect();
    waiting.send("TASK.TAKE q LEASE 60000 BLOCK 0\r\n");
    blocked(&mut socket, 1);
    assert_eq!(socket.run("TASK.ACK q a1"), "*1\r\n:1\r\n");
    assert!(waiting.reply().contains("a2"));
}

#[test]
fn a_task_waits_until_others_are_acknowledged() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("TASK.ADD q 1 x ID a");
    assert_eq!(socket.run("TASK.ADD q 1 x ID b AFTER 1 a"), "$1\r\nb\r\n");
    assert_eq!(socket.run("TASK.LEN q WAITING"), ":1\r\n");
    assert!(
        socket
            .run("TASK.TAKE q LEASE 60000")
            .contains("$1\r\na\r\n")
    );
    let mut waiting = server.connect();
    waiting.send("TASK.TAKE q BLOCK 0\r\n");
    blocked(&mut socket, 1);
    assert_eq!(socket.run("TASK.ACK q a"), "*1\r\n:1\r\n");
    assert!(waiting.reply().contains("$1\r\nb\r\n"));
}

#[test]
fn changes_are_told_as_events() {
    let server = Server::start_with(&["--notify-keyspace-events", "KEd"]);
    let mut listener = server.connect();
    listener.run("SUBSCRIBE __keyspace@0__:q");
    let mut socket = server.connect();
    socket.run("TASK.ADD q 1 work ID a");
    socket.run("TASK.TAKE q LEASE 60000");
    socket.run("TASK.ACK q a");
    socket.run("TASK.SCHEDULE q s EVERY 1000 TASK 1 work");
    socket.run("TASK.TAKE q BLOCK 0");
    socket.run("TASK.PAUSE q SCHEDULE s");
    socket.run("TASK.RESUME q SCHEDULE s");
    socket.run("TASK.UNSCHEDULE q s");
    for event in [
        "task.add",
        "task.take",
        "task.ack",
        "task.schedule",
        "task.add",
        "task.take",
        "task.pause",
        "task.resume",
        "task.unschedule",
    ] {
        assert!(listener.reply().contains(event), "{event}");
    }
}
