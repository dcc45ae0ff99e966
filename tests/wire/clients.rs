//! CLIENT: who is connected, and what one client can do to others.

use std::time::{Duration, Instant};

use crate::server::{Server, Socket, request, wait_until};

fn id(socket: &mut Socket) -> String {
    let reply = socket.run("CLIENT ID");
    reply.trim_start_matches(':').trim_end().to_owned()
}

#[test]
fn a_client_is_listed_with_every_field_of_redis() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("HELLO 3 SETNAME worker");
    socket.run("SELECT 3");
    socket.run("CLIENT SETINFO LIB-NAME lib");
    socket.run("CLIENT NO-EVICT ON");
    let reply = socket.run("CLIENT INFO");
    let (length, text) = reply.split_once("\r\ntxt:").unwrap();
    assert_eq!(
        length,
        format!("={}", text.trim_end_matches("\r\n").len() + 4)
    );
    let fields: Vec<_> = text
        .trim()
        .split(' ')
        .map(|field| field.split_once('=').unwrap())
        .collect();
    let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names.join(" "),
        "id addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free argv-mem \
         multi-mem rbs rbp obl oll omem tot-mem events cmd user redir resp lib-name lib-ver"
    );
    for (name, value) in [
        ("addr", socket.local_address().to_string().as_str()),
        ("laddr", server.address().to_string().as_str()),
        ("name", "worker"),
        ("flags", "e"),
        ("db", "3"),
        ("cmd", "client|info"),
        ("user", "default"),
        ("resp", "3"),
        ("lib-name", "lib"),
        ("lib-ver", ""),
    ] {
        assert!(fields.contains(&(name, value)), "{name}={value} in {text}");
    }
}

#[test]
fn a_client_is_listed_with_the_command_that_it_is_at() {
    let server = Server::start();
    let mut socket = server.connect();
    // Redis keeps the bytes of a request in the query buffer until it is done.
    let request = "*2\r\n$6\r\nclient\r\n$4\r\nlist\r\n";
    socket.run("PING");
    socket.send(request);
    let listed = socket.reply();
    for field in [" qbuf=26 ", " obl=0 ", " cmd=client|list "] {
        assert!(listed.contains(field), "{field} in {listed}");
    }
    socket.send(request.repeat(2));
    let first = socket.reply();
    assert!(
        first.contains(" qbuf=52 ") && first.contains(" obl=0 "),
        "{first}"
    );
    // The reply to the first waits to be sent.
    let second = socket.reply();
    assert!(
        second.contains(" qbuf=52 ") && !second.contains(" obl=0 "),
        "{second}"
    );
}

#[test]
fn an_idle_client_is_listed_with_its_last_command_and_empty_buffers() {
    let server = Server::start();
    let mut socket = server.connect();
    let mut other = server.connect();
    let listing = format!("CLIENT LIST ID {}", id(&mut other));
    for (command, listed) in [
        ("RPUSH list a", "rpush"),
        ("LLEN", "llen"),
        ("CLIENT GETNAME", "client|getname"),
        ("NOSUCHCOMMAND", "NULL"),
    ] {
        other.run(command);
        let fields = format!(" cmd={listed} ");
        wait_until("the client is listed as idle", || {
            let line = socket.run(&listing);
            [" qbuf=0 ", " obl=0 ", fields.as_str()]
                .iter()
                .all(|field| line.contains(field))
        });
    }
}

#[test]
fn the_list_can_be_of_some_clients_only() {
    let server = Server::start();
    let mut first = server.connect();
    let mut second = server.connect();
    let (first_id, second_id) = (id(&mut first), id(&mut second));
    let lines = |reply: String| reply.matches("id=").count();
    assert_eq!(lines(first.run("CLIENT LIST")), 2);
    assert_eq!(lines(first.run("CLIENT LIST TYPE normal")), 2);
    assert_eq!(first.run("CLIENT LIST TYPE pubsub"), "$0\r\n\r\n");
    let one = first.run(&format!("CLIENT LIST ID {second_id} 99999"));
    assert!(one.contains(&format!("id={second_id} ")) && !one.contains(&format!("id={first_id} ")));
    assert_eq!(
        first.run("CLIENT LIST TYPE x"),
        "-ERR Unknown client type 'x'\r\n"
    );
    assert_eq!(first.run("CLIENT LIST ID x"), "-ERR Invalid client ID\r\n");
    assert_eq!(first.run("CLIENT LIST FOO"), "-ERR syntax error\r\n");
}

#[test]
fn a_client_can_be_killed_by_address_or_number() {
    let server = Server::start();
    let mut killer = server.connect();
    let mut by_address = server.connect();
    assert_eq!(by_address.run("PING"), "+PONG\r\n");
    let address = by_address.local_address();
    assert_eq!(killer.run(&format!("CLIENT KILL {address}")), "+OK\r\n");
    assert_eq!(by_address.rest(), "");
    wait_until("the killed client is forgotten", || {
        killer.run(&format!("CLIENT KILL {address}")) == "-ERR No such client\r\n"
    });
    let mut by_number = server.connect();
    let number = id(&mut by_number);
    assert_eq!(killer.run(&format!("CLIENT KILL ID {number}")), ":1\r\n");
    assert_eq!(by_number.rest(), "");
    assert_eq!(killer.run("CLIENT KILL TYPE pubsub"), ":0\r\n");
    assert_eq!(
        killer.run("CLIENT KILL ID 0"),
        "-ERR client-id should be greater than 0\r\n"
    );
}

#[test]
fn clients_can_be_killed_by_age() {
    let server = Server::start();
    let mut old = server.connect();
    let number = id(&mut old);
    let mut killer = server.connect();
    let by_age = |age_s: &str| format!("CLIENT KILL ID {number} MAXAGE {age_s}");
    assert_eq!(killer.run(&by_age("1000")), ":0\r\n");
    assert_eq!(old.run("PING"), "+PONG\r\n");
    wait_until("it is a second old", || {
        killer.run(&by_age("1")) == ":1\r\n"
    });
    for (age_s, error) in [
        ("0", "-ERR maxage should be greater than 0\r\n"),
        ("x", "-ERR maxage is not an integer or out of range\r\n"),
    ] {
        assert_eq!(killer.run(&by_age(age_s)), error);
    }
}

#[test]
fn a_client_that_kills_itself_reads_the_reply_first() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("CLIENT KILL USER default"), ":0\r\n");
    socket.send("CLIENT KILL USER default SKIPME no\r\nPING\r\n");
    assert_eq!(socket.rest(), ":1\r\n");
}

#[test]
fn a_pause_holds_writes_back_and_unpause_lets_them_go() {
    let server = Server::start();
    let mut socket = server.connect();
    let mut writer = server.connect();
    assert_eq!(socket.run("CLIENT PAUSE 100000 WRITE"), "+OK\r\n");
    assert_eq!(writer.run("LLEN list"), ":0\r\n");
    writer.send("RPUSH list a\r\n");
    assert!(writer.is_silent_for(Duration::from_millis(100)));
    assert_eq!(socket.run("LLEN list"), ":0\r\n");
    assert_eq!(socket.run("CLIENT UNPAUSE"), "+OK\r\n");
    assert_eq!(writer.reply(), ":1\r\n");
}

/// As in Redis, a script or a function is held back according to its declared flags, and EVAL_RO
/// without flags passes.
#[test]
fn a_pause_lets_scripts_pass_that_declare_no_writes() {
    let server = Server::start();
    let mut socket = server.connect();
    let mut other = server.connect();
    let declared = "#!lua flags=no-writes\nreturn 1";
    let undeclared = "#!lua\nreturn 1";
    let sha = |socket: &mut Socket, text: &str| {
        let reply = socket.command(&["SCRIPT", "LOAD", text]);
        reply.lines().nth(1).unwrap().to_owned()
    };
    let (reads, writes) = (sha(&mut socket, declared), sha(&mut socket, undeclared));
    let library = "#!lua name=l\n\
        redis.register_function{function_name='r', flags={'no-writes'}, callback=function() return 1 end}\n\
        redis.register_function('w', function() return 1 end)";
    assert_eq!(
        socket.command(&["FUNCTION", "LOAD", library]),
        "$1\r\nl\r\n"
    );
    assert_eq!(socket.run("CLIENT PAUSE 100000 WRITE"), "+OK\r\n");
    let passing: [&[&str]; 7] = [
        &["EVAL", declared, "0"],
        &["EVAL_RO", declared, "0"],
        &["EVAL_RO", "return 1", "0"],
        &["EVALSHA", &reads, "0"],
        &["EVALSHA_RO", &reads, "0"],
        &["FCALL", "r", "0"],
        &["FCALL_RO", "r", "0"],
    ];
    for words in passing {
        assert_eq!(other.command(words), ":1\r\n", "{words:?}");
    }
    assert_eq!(other.run("MULTI"), "+OK\r\n");
    for words in passing {
        assert_eq!(other.command(words), "+QUEUED\r\n", "{words:?}");
    }
    assert_eq!(other.run("EXEC"), format!("*7\r\n{}", ":1\r\n".repeat(7)));
    let held: [&[&str]; 6] = [
        &["EVAL", undeclared, "0"],
        &["EVAL", "return 1", "0"],
        &["EVALSHA", &writes, "0"],
        &["EVALSHA", "0123456789012345678901234567890123456789", "0"],
        &["FCALL", "w", "0"],
        &["FCALL", "none", "0"],
    ];
    let mut waiting: Vec<Socket> = held
        .iter()
        .map(|words| {
            let mut waiting = server.connect();
            waiting.send(request(words));
            waiting
        })
        .collect();
    for (words, waiting) in held.iter().zip(&mut waiting) {
        assert!(
            waiting.is_silent_for(Duration::from_millis(50)),
            "{words:?}"
        );
    }
    assert_eq!(socket.run("CLIENT UNPAUSE"), "+OK\r\n");
    for (words, waiting) in held.iter().zip(&mut waiting) {
        assert!(!waiting.reply().is_empty(), "{words:?}");
    }
}

#[test]
fn keys_do_not_expire_in_the_background_while_writes_are_paused() {
    let server = Server::start_with(&["--notify-keyspace-events", "Ex"]);
    let mut socket = server.connect();
    let mut listener = server.connect();
    listener.run("SUBSCRIBE __keyevent@0__:expired");
    socket.run("TASK.ADD tasks 1 a ID a");
    socket.run("TASK.TAKE tasks LEASE 50");
    socket.run("SET key value PX 50");
    assert_eq!(socket.run("CLIENT PAUSE 100000 WRITE"), "+OK\r\n");
    assert!(listener.is_silent_for(Duration::from_millis(400)));
    assert_eq!(socket.run("GET key"), "$-1\r\n");
    assert_eq!(socket.run("TASK.LEN tasks LEASED"), ":1\r\n");
    assert_eq!(socket.run("CLIENT UNPAUSE"), "+OK\r\n");
    assert!(listener.reply().ends_with("$3\r\nkey\r\n"));
    wait_until("the lease ends", || {
        socket.run("TASK.LEN tasks LEASED") == ":0\r\n"
    });
}

#[test]
fn a_pause_of_everything_ends_by_itself() {
    let server = Server::start();
    let mut socket = server.connect();
    let begun = Instant::now();
    assert_eq!(socket.run("CLIENT PAUSE 100"), "+OK\r\n");
    assert_eq!(socket.run("PING"), "+PONG\r\n");
    assert!(begun.elapsed() >= Duration::from_millis(100));
}

#[test]
fn waiting_for_replicas_ends_with_the_timeout_or_with_unblock() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("WAIT 0 0"), ":0\r\n");
    let begun = Instant::now();
    assert_eq!(socket.run("WAIT 1 100"), ":0\r\n");
    assert!(begun.elapsed() >= Duration::from_millis(100));
    assert_eq!(socket.run("WAITAOF 1 0 0"), "*2\r\n:1\r\n:0\r\n");
    let number = id(&mut socket);
    let mut other = server.connect();
    assert_eq!(other.run(&format!("CLIENT UNBLOCK {number}")), ":0\r\n");
    for (how, reply) in [
        ("TIMEOUT", ":0\r\n"),
        (
            "ERROR",
            "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n",
        ),
    ] {
        socket.send("WAIT 1 0\r\n");
        wait_until("the client is blocked", || {
            other
                .run("INFO clients")
                .contains("\r\nblocked_clients:1\r\n")
        });
        assert_eq!(
            other.run(&format!("CLIENT UNBLOCK {number} {how}")),
            ":1\r\n"
        );
        assert_eq!(socket.reply(), reply);
    }
}

#[test]
fn a_client_that_leaves_while_it_waits_is_forgotten() {
    let server = Server::start();
    let mut other = server.connect();
    let mut waiting = server.connect();
    waiting.send("WAIT 1 0\r\n");
    wait_until("the client is blocked", || {
        other
            .run("INFO clients")
            .contains("\r\nblocked_clients:1\r\n")
    });
    drop(waiting);
    wait_until("the client is gone", || {
        other
            .run("INFO clients")
            .contains("\r\nconnected_clients:1\r\n")
    });
}

#[test]
fn an_idle_client_is_disconnected_after_the_timeout() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("CONFIG SET timeout 1"), "+OK\r\n");
    let begun = Instant::now();
    assert_eq!(socket.rest(), "");
    assert!(begun.elapsed() >= Duration::from_millis(900));
}

#[test]
fn a_timeout_that_is_set_holds_for_clients_that_are_idle_already() {
    let server = Server::start();
    let mut idle = server.connect();
    assert_eq!(idle.run("PING"), "+PONG\r\n");
    std::thread::sleep(Duration::from_millis(50));
    let mut other = server.connect();
    assert_eq!(other.run("CONFIG SET timeout 1"), "+OK\r\n");
    assert_eq!(idle.rest(), "");
}

#[test]
fn a_client_that_does_not_read_its_reply_is_disconnected_after_the_timeout() {
    let server = Server::start_with(&["--timeout", "1"]);
    let value = "x".repeat(1_000_000);
    let mut other = server.connect();
    for _ in 0..20 {
        other.command(&["RPUSH", "list", &value]);
    }
    let mut greedy = server.connect();
    let number = id(&mut greedy);
    greedy.send("LRANGE list 0 -1\r\n");
    wait_until("it is disconnected", || {
        let list = other.run(&format!("CLIENT LIST ID {number}"));
        list == "$0\r\n\r\n"
    });
}

#[test]
fn a_pause_holds_back_what_multi_queues() {
    let server = Server::start();
    let mut socket = server.connect();
    let mut writer = server.connect();
    assert_eq!(writer.run("MULTI"), "+OK\r\n");
    assert_eq!(socket.run("CLIENT PAUSE 100000 WRITE"), "+OK\r\n");
    assert_eq!(writer.run("LLEN list"), "+QUEUED\r\n");
    writer.send("RPUSH list a\r\n");
    assert!(writer.is_silent_for(Duration::from_millis(100)));
    assert_eq!(socket.run("CLIENT UNPAUSE"), "+OK\r\n");
    assert_eq!(writer.reply(), "+QUEUED\r\n");
    assert_eq!(writer.run("EXEC"), "*2\r\n:0\r\n:1\r\n");
}

#[test]
fn who_has_waited_for_longer_than_the_timeout_is_not_idle() {
    let server = Server::start_with(&["--timeout", "3"]);
    let mut quiet = server.connect();
    // Nothing is sent to it when it times out.
    quiet.send("CLIENT REPLY OFF\r\nBLPOP list 4\r\n");
    // By then it has been idle for a second of three: long enough to be checked, and far from too
    // long.
    std::thread::sleep(Duration::from_millis(5_000));
    assert_eq!(quiet.run("CLIENT REPLY ON"), "+OK\r\n");
}

#[test]
fn what_new_client_libraries_send_when_they_connect_is_accepted() {
    let server = Server::start();
    let mut socket = server.connect();
    for (line, expected) in [
        (
            "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type external-fqdn",
            "+OK\r\n",
        ),
        (
            "client maint_notifications on moving-endpoint-type none",
            "+OK\r\n",
        ),
        ("CLIENT MAINT_NOTIFICATIONS ON", "+OK\r\n"),
        ("CLIENT MAINT_NOTIFICATIONS OFF", "+OK\r\n"),
        ("CLIENT MAINT_NOTIFICATIONS MAYBE", "-ERR syntax error\r\n"),
        (
            "CLIENT MAINT_NOTIFICATIONS ON other-option none",
            "-ERR syntax error\r\n",
        ),
        (
            "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type",
            "-ERR syntax error\r\n",
        ),
        (
            "CLIENT MAINT_NOTIFICATIONS",
            "-ERR wrong number of arguments for 'client|maint_notifications' command\r\n",
        ),
    ] {
        assert_eq!(socket.run(line), expected, "{line}");
    }
}
