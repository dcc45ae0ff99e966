//! Scripts over sockets.

use crate::server::{Server, is_on_foundationdb, wait_until};

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
        let reply = socket.run("SCRIPT KILL");
        if reply.starts_with('+') {
            // It was killed before it wrote.
            assert!(running.reply().starts_with('-'));
            running.send(crate::server::request(&["EVAL", script, "0"]));
        }
        reply.starts_with("-UNKILLABLE ")
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
    let sha = quoin_lua::sha1_hex(b"return 7");
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

#[test]
fn an_endless_function_is_busy_and_can_be_killed() {
    let server = Server::start_with(&["--busy-reply-threshold", "50"]);
    let mut socket = server.connect();
    let code = format!(
        "#!lua name=lib\nredis.register_function{{function_name='spin', flags={{'no-writes'}}, \
         callback=function() {ENDLESS} end}}"
    );
    assert_eq!(
        socket.command(&["FUNCTION", "LOAD", &code]),
        "$3\r\nlib\r\n"
    );
    // On the write lane and on the read lane.
    for command in ["FCALL", "FCALL_RO"] {
        let mut running = server.connect();
        running.send(crate::server::request(&[command, "spin", "0"]));
        wait_until("the server is busy", || {
            let reply = socket.run("PING");
            reply.starts_with(
                "-BUSY Redis is busy running a script. You can only call FUNCTION KILL",
            )
        });
        let stats = socket.run("FUNCTION STATS");
        let expected = format!(
            "$4\r\nname\r\n$4\r\nspin\r\n$7\r\ncommand\r\n*3\r\n${}\r\n{command}",
            command.len()
        );
        assert!(stats.contains(&expected), "{stats}");
        assert!(
            stats.contains("$15\r\nlibraries_count\r\n:1\r\n"),
            "{stats}"
        );
        let other = socket.run("SCRIPT KILL");
        assert!(
            other.starts_with("-BUSY ") && other.contains("FUNCTION KILL"),
            "{other}"
        );
        assert_eq!(socket.run("FUNCTION KILL"), "+OK\r\n");
        let killed = running.reply();
        assert!(
            killed.contains(" script: spin, on @user_function:2."),
            "{killed}"
        );
    }
}

#[test]
fn a_library_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let start = || Server::start_in(folder.path(), &[]).unwrap();
    let mut server = start();
    let code = "#!lua name=lib\nredis.register_function('f', function() return 7 end)";
    server.connect().command(&["FUNCTION", "LOAD", code]);
    server.signal("KILL");
    server.wait();
    let server = start();
    let mut socket = server.connect();
    assert_eq!(socket.run("FCALL f 0"), ":7\r\n");
    assert_eq!(socket.run("FLUSHALL"), "+OK\r\n");
    assert_eq!(
        socket.run("FCALL_RO f 0"),
        "-ERR Can not execute a script with write flag using *_ro command.\r\n"
    );
}

#[test]
fn what_scripts_call_is_counted_and_shown() {
    let server = Server::start();
    let mut monitor = server.connect();
    let mut socket = server.connect();
    assert_eq!(monitor.run("MONITOR"), "+OK\r\n");
    let script = "redis.call('SET', KEYS[1], 'v') redis.pcall('LPUSH', KEYS[1], 'x') \
                  redis.pcall('GET') redis.call('SELECT', 2) return redis.call('GET', 'none')";
    assert_eq!(socket.command(&["EVAL", script, "1", "k"]), "$-1\r\n");
    assert_eq!(
        socket.command(&["EVAL_RO", "return redis.call('GET', 'k')", "0"]),
        "$1\r\nv\r\n"
    );
    let mut shown = Vec::new();
    while shown.len() < 7 {
        let line = monitor.reply();
        shown.push(line.split_once('[').unwrap().1.to_owned());
    }
    assert!(shown[0].contains("] \"EVAL\""), "{shown:?}");
    assert_eq!(
        shown[1..5],
        [
            "0 lua] \"SET\" \"k\" \"v\"\r\n",
            "0 lua] \"LPUSH\" \"k\" \"x\"\r\n",
            "0 lua] \"SELECT\" \"2\"\r\n",
            "2 lua] \"GET\" \"none\"\r\n",
        ]
    );
    assert!(shown[5].contains("] \"EVAL_RO\""), "{shown:?}");
    assert_eq!(shown[6], "0 lua] \"GET\" \"k\"\r\n");
    let info = socket.run("INFO commandstats");
    for (command, counts) in [
        ("set", "rejected_calls=0,failed_calls=0"),
        ("lpush", "rejected_calls=0,failed_calls=1"),
        ("get", "rejected_calls=1,failed_calls=0"),
    ] {
        let start = format!(
            "cmdstat_{command}:calls={}",
            if command == "get" { 2 } else { 1 }
        );
        let line = info.lines().find(|line| line.starts_with(&start));
        assert!(line.is_some_and(|line| line.ends_with(counts)), "{info}");
    }
}

#[test]
fn a_script_cannot_publish_without_end() {
    if is_on_foundationdb() {
        // A transaction of a cluster holds far less.
        return;
    }
    let server = Server::start();
    let mut subscriber = server.connect();
    subscriber.run("SUBSCRIBE c");
    let mut socket = server.connect();
    let script = "local text = ('x'):rep(50 * 2^20) \
                  for number = 1, 40 do redis.call('PUBLISH', 'c', text) end";
    let reply = socket.command(&["EVAL", script, "0"]);
    assert!(
        reply.starts_with("-ERR a command, a script or a transaction cannot publish more"),
        "{reply}"
    );
    // Nobody receives these, so nothing is kept.
    assert_eq!(socket.run("PING"), "+PONG\r\n");
    let script = script.replace("'c'", "'unheard'");
    assert_eq!(socket.command(&["EVAL", &script, "0"]), "$-1\r\n");
    assert!(server.memory_bytes() < 400_000_000);
}

#[test]
fn a_line_that_a_script_logs_is_cut() {
    let server = Server::start();
    let mut socket = server.connect();
    let script = "redis.log(redis.LOG_WARNING, ('~'):rep(5000), 'end')";
    assert_eq!(socket.command(&["EVAL", script, "0"]), "$-1\r\n");
    wait_until("it is logged", || server.log().contains("~~~"));
    assert_eq!(server.log().matches('~').count(), 1_024);
}
