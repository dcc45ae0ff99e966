//! Scripts over sockets.

use crate::server::{Server, wait_until};

const ENDLESS: &str = "while true do pcall(function() while true do end end) end";

#[test]
fn a_script_publishes_wakes_and_answers() {
    let server = Server::start();
    let mut waiter = server.connect();
    let mut subscriber = server.connect();
    let mut socket = server.connect();
    subscriber.command(&["SUBSCRIBE", "c"]);
    waiter.send("BLPOP q 0\r\n");
    wait_until("a client waits", || {
        socket.run("INFO clients").contains("blocked_clients:1")
    });
    let script =
        "redis.call('PUBLISH', 'c', 'm') redis.call('RPUSH', KEYS[1], ARGV[1]) return #KEYS";
    assert_eq!(socket.command(&["EVAL", script, "1", "q", "x"]), ":1\r\n");
    assert_eq!(waiter.reply(), "*2\r\n$1\r\nq\r\n$1\r\nx\r\n");
    assert_eq!(
        subscriber.reply(),
        "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"
    );
}

#[test]
fn scripts_run_within_multi() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("MULTI"), "+OK\r\n");
    let push = "return redis.call('RPUSH', KEYS[1], 'x')";
    assert_eq!(socket.command(&["EVAL", push, "1", "q"]), "+QUEUED\r\n");
    assert_eq!(socket.run("LLEN q"), "+QUEUED\r\n");
    assert_eq!(socket.run("EXEC"), "*2\r\n:1\r\n:1\r\n");
}

#[test]
fn replies_are_those_of_the_clients_protocol() {
    let server = Server::start();
    let mut socket = server.connect();
    let script = "redis.setresp(3) return {true, {double = 1.5}, {map = {a = 1}}, \
                  {big_number = '12'}, {verbatim_string = {format = 'mkd', string = 'x'}}, false}";
    let resp2 = "*6\r\n:1\r\n$3\r\n1.5\r\n*2\r\n$1\r\na\r\n:1\r\n$2\r\n12\r\n$1\r\nx\r\n:0\r\n";
    assert_eq!(socket.command(&["EVAL", script, "0"]), resp2);
    socket.run("HELLO 3");
    let resp3 = "*6\r\n#t\r\n,1.5\r\n%1\r\n$1\r\na\r\n:1\r\n(12\r\n=5\r\nmkd:x\r\n#f\r\n";
    assert_eq!(socket.command(&["EVAL", script, "0"]), resp3);
    assert_eq!(
        socket.command(&["EVAL", "return {ok = 'fine'}", "0"]),
        "+fine\r\n"
    );
}

#[test]
fn an_endless_script_is_busy_and_can_be_killed() {
    let server = Server::start_with(&["--busy-reply-threshold", "50"]);
    let mut running = server.connect();
    let mut socket = server.connect();
    assert_eq!(
        socket.run("SCRIPT KILL"),
        "-NOTBUSY No scripts in execution right now.\r\n"
    );
    running.send(crate::server::request(&["EVAL", ENDLESS, "0"]));
    wait_until("the server is busy", || {
        let reply = socket.run("PING");
        reply.starts_with("-BUSY Redis is busy running a script. You can only call SCRIPT KILL")
    });
    assert_eq!(socket.run("SCRIPT KILL"), "+OK\r\n");
    let killed = running.reply();
    assert!(
        killed.starts_with("-ERR Script killed by user with SCRIPT KILL..."),
        "{killed}"
    );
    assert_eq!(socket.run("RPUSH q x"), ":1\r\n");
}

#[test]
fn a_script_that_has_written_cannot_be_killed() {
    let server = Server::start_with(&["--busy-reply-threshold", "50"]);
    let mut running = server.connect();
    let mut socket = server.connect();
    let script = "redis.call('RPUSH', 'q', 1) local n = 0 while n < 3e7 do n = n + 1 end return n";
    running.send(crate::server::request(&["EVAL", script, "0"]));
    wait_until("the script has written", || {
        socket.run("SCRIPT KILL").starts_with("-UNKILLABLE ")
    });
    assert_eq!(running.reply(), ":30000000\r\n");
}

#[test]
fn evalsha_finds_a_script_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Server::start_in(folder.path(), &[]).unwrap();
    let mut server = start();
    let mut socket = server.connect();
    assert_eq!(socket.command(&["EVAL", "return 7", "0"]), ":7\r\n");
    let loaded = socket.command(&["SCRIPT", "LOAD", "return 8"]);
    server.signal("KILL");
    server.wait();
    let server = start();
    let mut socket = server.connect();
    let loaded = loaded.lines().nth(1).unwrap();
    assert_eq!(socket.command(&["EVALSHA", loaded, "0"]), ":8\r\n");
    let sha = quoin::scripting::sha1_hex(b"return 7");
    assert_eq!(socket.command(&["EVALSHA", &sha, "0"]), ":7\r\n");
}

#[test]
fn a_setting_turns_scripts_off() {
    let server = Server::start_with(&["--enable-scripts", "no"]);
    let mut socket = server.connect();
    let refused = "-ERR scripts are turned off by the setting enable-scripts\r\n";
    assert_eq!(socket.command(&["EVAL", "return 1", "0"]), refused);
    assert_eq!(socket.command(&["SCRIPT", "LOAD", "return 1"]), refused);
}
