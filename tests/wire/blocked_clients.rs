//! Waiting clients: how others see them, how they are woken or ended, and what they leave.

use std::time::{Duration, Instant};

use crate::script::{play, play_to_quoin};
use crate::server::{Server, Socket, request, wait_until};

fn id(socket: &mut Socket) -> String {
    let reply = socket.run("CLIENT ID");
    reply.trim_start_matches(':').trim_end().to_owned()
}

fn blocked_clients(probe: &mut Socket) -> u64 {
    field_of(&probe.run("INFO clients"), "blocked_clients")
}

fn field_of(info: &str, name: &str) -> u64 {
    let prefix = format!("{name}:");
    let line = info.lines().find_map(|line| line.strip_prefix(&prefix));
    line.unwrap().parse().unwrap()
}

/// A client that has sent a command and is blocked in it.
fn blocked(server: &Server, line: &str) -> (Socket, String) {
    let mut socket = server.connect();
    let id = id(&mut socket);
    let mut probe = server.connect();
    let before = blocked_clients(&mut probe);
    socket.send(format!("{line}\r\n"));
    wait_until("the client is blocked", || {
        blocked_clients(&mut probe) > before
    });
    (socket, id)
}

#[test]
fn client_unblock_ends_a_wait_as_its_timeout_would() {
    let server = Server::start();
    let mut other = server.connect();
    let (mut socket, id) = blocked(&server, "BLPOP l 0");
    assert_eq!(other.run(&format!("CLIENT UNBLOCK {id}")), ":1\r\n");
    assert_eq!(socket.reply(), "*-1\r\n");
    socket.send("BLMOVE l m LEFT LEFT 0\r\n");
    wait_until("it is blocked again", || blocked_clients(&mut other) == 1);
    assert_eq!(other.run(&format!("CLIENT UNBLOCK {id} timeout")), ":1\r\n");
    assert_eq!(socket.reply(), "*-1\r\n");
    assert_eq!(other.run("RPUSH l x"), ":1\r\n");
    assert_eq!(socket.run("LLEN l"), ":1\r\n");
}

#[test]
fn client_unblock_error_ends_a_wait_with_an_error() {
    let server = Server::start();
    let mut other = server.connect();
    let (mut socket, id) = blocked(&server, "BZPOPMIN z 0");
    assert_eq!(other.run(&format!("CLIENT UNBLOCK {id} ERROR")), ":1\r\n");
    assert_eq!(
        socket.reply(),
        "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
    );
    assert_eq!(other.run("ZADD z 1 m"), ":1\r\n");
    assert_eq!(other.run("ZCARD z"), ":1\r\n");
}

#[test]
fn client_unblock_finds_only_those_who_wait() {
    let server = Server::start();
    let mut socket = server.connect();
    let mut other = server.connect();
    let own = id(&mut socket);
    assert_eq!(other.run(&format!("CLIENT UNBLOCK {own}")), ":0\r\n");
    assert_eq!(other.run("CLIENT UNBLOCK 999999"), ":0\r\n");
    assert_eq!(
        other.run("CLIENT UNBLOCK x"),
        "-ERR value is not an integer or out of range\r\n"
    );
    assert_eq!(
        other.run(&format!("CLIENT UNBLOCK {own} MAYBE")),
        "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n"
    );
}

#[test]
fn a_client_that_is_shown_at_a_command_that_blocks_can_be_unblocked() {
    let server = Server::start();
    let mut other = server.connect();
    let mut socket = server.connect();
    let id = id(&mut socket);
    for (line, shown, reply) in [
        ("BLPOP l 0", "cmd=blpop", "*-1\r\n"),
        ("PING\r\nBZPOPMIN z 0", "cmd=bzpopmin", "+PONG\r\n*-1\r\n"),
        (
            "LLEN l\r\nBLMOVE l m LEFT LEFT 0",
            "cmd=blmove",
            ":0\r\n*-1\r\n",
        ),
        ("WAIT 1 0", "cmd=wait", ":0\r\n"),
    ] {
        for round in 0..60 {
            socket.send(format!("{line}\r\n"));
            let deadline = Instant::now() + Duration::from_secs(10);
            // At once when it shows.
            while !other.run(&format!("CLIENT LIST ID {id}")).contains(shown) {
                assert!(Instant::now() < deadline, "{line} does not show");
            }
            let unblocked = other.run(&format!("CLIENT UNBLOCK {id}"));
            assert_eq!(unblocked, ":1\r\n", "{line}, round {round}");
            for reply in reply.split_inclusive("\r\n") {
                assert_eq!(socket.reply(), reply);
            }
            assert_eq!(socket.run("PING"), "+PONG\r\n");
        }
    }
}

#[test]
fn a_command_that_blocks_and_finds_something_is_shown_too() {
    let server = Server::start();
    let (mut socket, mut other) = (server.connect(), server.connect());
    let id = id(&mut socket);
    other.run("RPUSH l x");
    assert_eq!(socket.run("BLPOP l 0"), "*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
    let shown = other.run(&format!("CLIENT LIST ID {id}"));
    assert!(
        shown.contains(" flags=N ") && shown.contains(" cmd=blpop "),
        "{shown}"
    );
}

#[test]
fn commands_behind_an_unblocked_one_are_carried_out() {
    let server = Server::start();
    let mut other = server.connect();
    let (mut socket, id) = blocked(&server, "BLPOP l 0\r\nPING\r\nBLPOP l 0");
    assert_eq!(other.run(&format!("CLIENT UNBLOCK {id}")), ":1\r\n");
    assert_eq!(socket.reply(), "*-1\r\n");
    assert_eq!(socket.reply(), "+PONG\r\n");
    assert_eq!(other.run("RPUSH l x"), ":1\r\n");
    assert_eq!(socket.reply(), "*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
}

#[test]
fn a_killed_client_gets_no_element() {
    let server = Server::start();
    let mut other = server.connect();
    let (mut socket, id) = blocked(&server, "BLPOP l 0");
    let (mut next, _) = blocked(&server, "BLPOP l 0");
    assert_eq!(other.run(&format!("CLIENT KILL ID {id}")), ":1\r\n");
    assert_eq!(socket.rest(), "");
    assert_eq!(other.run("RPUSH l x"), ":1\r\n");
    assert_eq!(next.reply(), "*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
}

#[test]
fn a_client_that_leaves_gets_no_element_and_leaves_no_trace() {
    let server = Server::start();
    let mut other = server.connect();
    let (socket, _) = blocked(&server, "BLPOP l m 0");
    drop(socket);
    wait_until("it is forgotten", || blocked_clients(&mut other) == 0);
    let info = other.run("INFO clients");
    assert_eq!(field_of(&info, "total_blocking_keys"), 0);
    assert_eq!(field_of(&info, "connected_clients"), 1);
    assert_eq!(other.run("RPUSH l x"), ":1\r\n");
    assert_eq!(other.run("LLEN l"), ":1\r\n");
}

#[test]
fn a_client_that_leaves_with_commands_behind_the_blocked_one_is_found_out() {
    let server = Server::start();
    let mut other = server.connect();
    let (socket, _) = blocked(&server, "BLPOP l 0\r\nRPUSH m x");
    drop(socket);
    wait_until("it is forgotten", || blocked_clients(&mut other) == 0);
    assert_eq!(other.run("EXISTS m"), ":0\r\n");
    assert_eq!(other.run("RPUSH l x"), ":1\r\n");
    assert_eq!(other.run("LLEN l"), ":1\r\n");
}

#[test]
fn a_client_that_leaves_with_something_unread_is_found_out() {
    let server = Server::start();
    let mut other = server.connect();
    let (mut socket, _) = blocked(&server, "BLPOP l 0");
    socket.send("RPUSH m x\r\n");
    // The server has noticed input, and does not read it while it waits.
    std::thread::sleep(Duration::from_millis(100));
    drop(socket);
    wait_until("it is forgotten", || blocked_clients(&mut other) == 0);
    assert_eq!(other.run("EXISTS m"), ":0\r\n");
    assert_eq!(other.run("RPUSH l x"), ":1\r\n");
    assert_eq!(other.run("LLEN l"), ":1\r\n");
}

#[test]
fn of_a_crowd_that_leaves_and_stays_every_element_reaches_somebody() {
    const CLIENTS: usize = 40;
    let server = Server::start();
    let mut other = server.connect();
    let mut sockets: Vec<Option<Socket>> = (0..CLIENTS)
        .map(|_| {
            let mut socket = server.connect();
            socket.send("BLPOP l 0\r\n");
            Some(socket)
        })
        .collect();
    wait_until("all are blocked", || {
        blocked_clients(&mut other) == CLIENTS as u64
    });
    for socket in sockets.iter_mut().step_by(2) {
        drop(socket.take());
    }
    wait_until("half are forgotten", || {
        blocked_clients(&mut other) == CLIENTS as u64 / 2
    });
    for number in 0..CLIENTS {
        other.run(&format!("RPUSH l {number}"));
    }
    let mut got: Vec<String> = sockets.iter_mut().flatten().map(Socket::reply).collect();
    got.sort();
    got.dedup();
    assert_eq!(got.len(), CLIENTS / 2);
    assert_eq!(other.run("LLEN l"), format!(":{}\r\n", CLIENTS / 2));
}

#[test]
fn blocked_clients_and_their_keys_are_counted() {
    let server = Server::start();
    let mut other = server.connect();
    let (_first, _) = blocked(&server, "BLPOP l m 0");
    let (_second, _) = blocked(&server, "BRPOP l 0");
    let (_third, _) = blocked(&server, "BZPOPMIN l 0");
    let info = other.run("INFO clients");
    assert_eq!(field_of(&info, "blocked_clients"), 3);
    assert_eq!(field_of(&info, "total_blocking_keys"), 2);
}

#[test]
fn a_blocked_client_is_listed_as_such() {
    let server = Server::start();
    let mut other = server.connect();
    let (mut socket, id) = blocked(&server, "BLPOP l 0");
    let listed = other.run(&format!("CLIENT LIST ID {id}"));
    assert!(
        listed.contains(" flags=b ") && listed.contains(" cmd=blpop "),
        "{listed}"
    );
    other.run("RPUSH l x");
    assert_eq!(socket.reply(), "*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
    let listed = other.run(&format!("CLIENT LIST ID {id}"));
    assert!(listed.contains(" flags=N "), "{listed}");
}

#[test]
fn the_end_of_the_server_ends_waits_and_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(folder.path(), &[]).unwrap();
    let (mut list, _) = blocked(&server, "BLPOP l 0");
    let (mut set, _) = blocked(&server, "BZPOPMIN z 1000");
    server.signal("TERM");
    assert!(server.wait().success());
    assert_eq!(list.rest(), "");
    assert_eq!(set.rest(), "");
}

#[test]
fn what_was_popped_for_one_who_waited_is_gone_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(folder.path(), &[]).unwrap();
    let (mut socket, _) = blocked(&server, "BLMOVE l working LEFT RIGHT 0");
    server.connect().run("RPUSH l x y");
    assert_eq!(socket.reply(), "$1\r\nx\r\n");
    server.signal("KILL");
    server.wait();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    assert_eq!(socket.run("LRANGE l 0 -1"), "*1\r\n$1\r\ny\r\n");
    assert_eq!(socket.run("LRANGE working 0 -1"), "*1\r\n$1\r\nx\r\n");
}

#[test]
fn an_idle_timeout_does_not_end_a_wait() {
    let server = Server::start_with(&["--timeout", "1"]);
    let started = Instant::now();
    let (mut socket, _) = blocked(&server, "BLPOP l 1.5");
    assert_eq!(socket.reply(), "*-1\r\n");
    assert!(started.elapsed() >= Duration::from_millis(1_500));
}

#[test]
fn a_pause_holds_back_the_push_and_not_the_wait() {
    play(
        "a> BLPOP l 0
         b: CLIENT PAUSE 100000 WRITE => +OK|
         c>> RPUSH l x
         a.
         b: CLIENT UNPAUSE => +OK|
         c< :1|
         a< *2|$1|l|$1|x|",
    );
}

#[test]
fn a_blocked_subscriber_of_resp3_hears_its_messages() {
    play_to_quoin(
        &Server::start(),
        "a: HELLO 3 => %7|*
         a: SUBSCRIBE c => >3|$9|subscribe|$1|c|:1|
         a> BLPOP l 0
         b: PUBLISH c m => :1|
         a< >3|$7|message|$1|c|$1|m|
         b: RPUSH l x => :1|
         a< *2|$1|l|$1|x|",
    );
}

#[test]
fn a_client_that_left_behind_what_it_has_sent_gets_nothing() {
    play(
        "a> BLPOP l 0
         a>> PING
         sleep 100
         a!
         b: RPUSH l x => :1|
         b: LLEN l => :1|",
    );
}

#[test]
fn what_a_client_sends_while_it_waits_is_carried_out_behind() {
    play(
        "a> BLPOP l 0
         a>> PING
         a>> RPUSH m y
         a.
         b: LLEN m => :0|
         b: RPUSH l x => :1|
         a< *2|$1|l|$1|x|
         a< +PONG|
         a< :1|",
    );
}

#[test]
fn much_that_a_client_sends_while_it_waits_is_carried_out_behind() {
    let server = Server::start();
    let (mut waiting, _) = blocked(&server, "BLPOP l 0");
    let value = "x".repeat(300_000);
    let pushes = request(&["RPUSH", "m", &value]).repeat(20);
    // More than the server reads from it meanwhile.
    let sender = std::thread::spawn(move || {
        waiting.send(&pushes);
        waiting
    });
    std::thread::sleep(Duration::from_millis(200));
    let mut other = server.connect();
    assert_eq!(other.run("RPUSH l x"), ":1\r\n");
    let mut waiting = sender.join().unwrap();
    assert_eq!(waiting.reply(), "*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
    for length in 1..=20 {
        assert_eq!(waiting.reply(), format!(":{length}\r\n"));
    }
}
