//! Users and their rights. Expected texts are those of Redis 7.2.

use std::time::Duration;

use crate::script::play;
use crate::server::{Server, Socket, is_on_foundationdb, wait_until};

fn simple(text: &str) -> String {
    format!("+{text}\r\n")
}

/// The two replies that a client gets that becomes another user.
fn login(socket: &mut Socket, user: &str) {
    assert_eq!(socket.run(&format!("AUTH {user} p")), simple("OK"));
}

#[test]
fn rules_are_shown_as_redis_shows_them() {
    let server = Server::start();
    let mut socket = server.connect();
    let line = "ACL SETUSER alice on >p ~app:* %R~shared:* %W~out &news.* +@read -get +config|get \
                (%RW~x ~y +set -@all +@LIST) +select|0";
    assert_eq!(socket.run(line), simple("OK"));
    let list = socket.run("ACL LIST");
    let expected = "user alice on sanitize-payload \
        #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 ~app:* %R~shared:* %W~out \
        resetchannels &news.* -@all +@read -get +config|get +select|0 (~x ~y resetchannels -@all +@list)";
    assert!(list.contains(expected), "{list}");
    assert!(list.contains("user default on nopass sanitize-payload ~* &* +@all"));
    assert_eq!(
        socket.run("ACL USERS"),
        "*2\r\n$5\r\nalice\r\n$7\r\ndefault\r\n"
    );
    let shown = socket.run("ACL GETUSER alice");
    assert!(
        shown.starts_with("*12\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n"),
        "{shown}"
    );
    assert!(
        shown.contains("$25\r\n~app:* %R~shared:* %W~out\r\n"),
        "{shown}"
    );
    assert_eq!(socket.run("ACL GETUSER nobody"), "$-1\r\n");
}

#[test]
fn wrong_rules_change_nothing() {
    let server = Server::start();
    let mut socket = server.connect();
    for (rules, reason) in [
        (
            "on bad",
            "Error in ACL SETUSER modifier 'bad': Syntax error",
        ),
        (
            "+nosuch",
            "Error in ACL SETUSER modifier '+nosuch': Unknown command or category name in ACL",
        ),
        (
            "+config|get|x",
            "Error in ACL SETUSER modifier '+config|get|x': Allowing first-arg of a subcommand is not \
             supported",
        ),
        (
            "<absent",
            "Error in ACL SETUSER modifier '<absent': The password you are trying to remove from the \
             user does not exist",
        ),
        (
            "#abc",
            "Error in ACL SETUSER modifier '#abc': The password hash must be exactly 64 characters and \
             contain only lowercase hexadecimal characters",
        ),
        (
            "~* ~a",
            "Error in ACL SETUSER modifier '~a': Adding a pattern after the * pattern (or the \
             'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with \
             an empty list of patterns",
        ),
        (
            "(~a +get",
            "Unmatched parenthesis in acl selector starting at '(~a'.",
        ),
    ] {
        let reply = socket.run(&format!("ACL SETUSER bob {rules}"));
        assert_eq!(reply, format!("-ERR {reason}\r\n"));
    }
    assert_eq!(socket.run("ACL GETUSER bob"), "$-1\r\n");
    assert_eq!(
        socket.command(&["ACL", "SETUSER", "a b"]),
        "-ERR Usernames can't contain spaces or null characters\r\n"
    );
}

#[test]
fn what_is_not_allowed_is_refused() {
    play(
        "
        a: ACL SETUSER bob on nopass ~b:* &b.* allcommands -flushall (~c +get) => +OK|
        a: SET x 1 => +OK|
        b: AUTH bob any => +OK|
        b: ACL WHOAMI => $3|bob|
        b: GET x => -NOPERM No permissions to access a key|
        7.0=> -NOPERM *
        b: GET b:1 => $-1|
        b: GET c => $-1|
        b: SET c 1 => -NOPERM No permissions to access a key|
        7.0=> -NOPERM *
        b: FLUSHALL => -NOPERM User bob has no permissions to run the 'flushall' command|
        7.0=> -NOPERM *
        b: PUBLISH a m => -NOPERM No permissions to access a channel|
        7.0=> -NOPERM *
        b: PUBLISH b.1 m => :0|
        b: SUBSCRIBE b.1 x => -NOPERM No permissions to access a channel|
        7.0=> -NOPERM *
        b: PSUBSCRIBE b.1 => -NOPERM No permissions to access a channel|
        7.0=> -NOPERM *
        b: PSUBSCRIBE b.* => *3|$10|psubscribe|$3|b.*|:1|
        a: ACL SETUSER bob resetchannels => +OK|
        b~ => closed
        a: ACL DRYRUN bob GET x => $49|User bob has no permissions to access the 'x' key|
        7.0=> $*
        a: ACL DELUSER bob nobody => :1|
        c: AUTH bob any => -WRONGPASS invalid username-password pair or user is disabled.|
        ",
    );
}

#[test]
fn reading_and_writing_are_two_rights() {
    let server = Server::start();
    let mut socket = server.connect();
    let run = |socket: &mut Socket, line: &str| socket.run(line);
    run(&mut socket, "ACL SETUSER u on >p %R~r* %W~w* ~b* +@all");
    let denied = |what: &str| format!("User u has no permissions to access the '{what}' key");
    for (line, key) in [
        ("GET r", None),
        ("GET w", Some("w")),
        ("SET w 1", None),
        ("SET w 1 GET", Some("w")),
        ("SET r 1", Some("r")),
        ("EXISTS w r", None),
        ("EXISTS x", Some("x")),
        ("COPY r w", None),
        ("COPY w r", Some("w")),
        ("BITFIELD r GET u8 0", None),
        ("BITFIELD r SET u8 0 1", Some("r")),
        ("LPOP r", Some("r")),
        ("EVAL x 1 b", None),
        ("EVAL x 1 r", Some("r")),
        ("XREAD STREAMS r 0", None),
        ("XREAD STREAMS w 0", Some("w")),
        ("MIGRATE h 1 b 0 9", None),
        ("MIGRATE h 1 r 0 9", Some("r")),
        ("PQ.PUSH w 1 a", None),
        ("PQ.POPMIN w", Some("w")),
        ("TASK.ADD b x y", None),
        ("TASK.ADD r x y", Some("r")),
    ] {
        let reply = run(&mut socket, &format!("ACL DRYRUN u {line}"));
        let expected = match key {
            None => simple("OK"),
            Some(key) => {
                let text = denied(key);
                format!("${}\r\n{text}\r\n", text.len())
            }
        };
        assert_eq!(reply, expected, "{line}");
    }
    assert_eq!(
        run(&mut socket, "ACL DRYRUN u SET x"),
        "-ERR wrong number of arguments for 'set' command\r\n"
    );
    assert_eq!(
        run(&mut socket, "ACL DRYRUN u NOSUCH x"),
        "-ERR Command 'NOSUCH' not found\r\n"
    );
    assert_eq!(
        run(&mut socket, "ACL DRYRUN nobody GET x"),
        "-ERR User 'nobody' not found\r\n"
    );
}

#[test]
fn sort_reads_named_keys_only_with_all_keys() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("RPUSH l 2 1");
    socket.run("ACL SETUSER u on nopass ~l +@all");
    login(&mut socket, "u");
    assert_eq!(
        socket.run("SORT l BY w*"),
        "-ERR BY option of SORT denied due to insufficient ACL permissions.\r\n"
    );
    assert_eq!(
        socket.run("SORT_RO l GET #"),
        "-ERR GET option of SORT denied due to insufficient ACL permissions.\r\n"
    );
    assert_eq!(
        socket.run("SORT l BY nosort"),
        "*2\r\n$1\r\n2\r\n$1\r\n1\r\n"
    );
    let script = "return redis.pcall('SORT', KEYS[1], 'GET', 'w*')";
    assert_eq!(
        socket.command(&["EVAL", script, "1", "l"]),
        "-ERR GET option of SORT denied due to insufficient ACL permissions.\r\n"
    );
}

#[test]
fn transactions_are_checked_twice() {
    let server = Server::start();
    let mut admin = server.connect();
    let mut socket = server.connect();
    admin.run("ACL SETUSER u on >p ~* +@all");
    login(&mut socket, "u");
    socket.run("MULTI");
    assert_eq!(socket.run("SET a 1"), "+QUEUED\r\n");
    assert_eq!(socket.run("INCR n"), "+QUEUED\r\n");
    assert_eq!(socket.run("ECHO x"), "+QUEUED\r\n");
    admin.run("ACL SETUSER u -set -echo");
    let refusal = "-NOPERM ACLs rules changed between the moment the transaction was accumulated and \
                   the EXEC call. This command is no longer allowed for the following reason: no \
                   permission to execute the command or subcommand\r\n";
    assert_eq!(
        socket.run("EXEC"),
        format!("*3\r\n{refusal}:1\r\n{refusal}")
    );
    assert_eq!(admin.run("EXISTS a"), ":0\r\n");
    socket.run("MULTI");
    assert_eq!(
        socket.run("SET a 1"),
        "-NOPERM User u has no permissions to run the 'set' command\r\n"
    );
    assert_eq!(
        socket.run("EXEC"),
        "-EXECABORT Transaction discarded because of previous errors.\r\n"
    );
    // An AUTH counts for the commands after it.
    let mut socket = server.connect();
    socket.run("MULTI");
    for line in ["SET a 1", "AUTH u p", "SET a 2", "INCR n"] {
        assert_eq!(socket.run(line), "+QUEUED\r\n");
    }
    assert_eq!(
        socket.run("EXEC"),
        format!("*4\r\n+OK\r\n+OK\r\n{refusal}:2\r\n")
    );
}

#[test]
fn scripts_may_call_what_their_client_may() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("ACL SETUSER u on >p ~a* +@all -incr");
    login(&mut socket, "u");
    let mut eval = |script: &str| socket.command(&["EVAL", script, "1", "a"]);
    assert_eq!(eval("return redis.call('SET', KEYS[1], 'v')"), simple("OK"));
    assert_eq!(
        eval("return redis.pcall('INCR', KEYS[1])"),
        "-ERR ACL failure in script: User u has no permissions to run the 'incr' command\r\n"
    );
    assert_eq!(
        eval("return redis.pcall('GET', 'b')"),
        "-ERR ACL failure in script: No permissions to access a key\r\n"
    );
    assert_eq!(
        eval(
            "return {redis.acl_check_cmd('GET', 'a') and 1 or 0, \
             redis.acl_check_cmd('GET', 'b') and 1 or 0, redis.acl_check_cmd('INCR', 'a') and 1 or 0}"
        ),
        "*3\r\n:1\r\n:0\r\n:0\r\n"
    );
    let log = server.connect().run("ACL LOG 1");
    assert!(log.contains("$3\r\nlua\r\n"), "{log}");
    assert!(log.contains("$1\r\nb\r\n"), "{log}");
    assert!(log.contains("cmd=eval user=u"), "{log}");
}

#[test]
fn a_command_that_waits_is_checked_when_it_is_woken() {
    let server = Server::start();
    let (mut admin, mut waiting) = (server.connect(), server.connect());
    admin.run("ACL SETUSER u on >p ~* +@all");
    login(&mut waiting, "u");
    waiting.send("BLPOP l 0\r\n");
    wait_until("it waits", || {
        admin
            .run("INFO clients")
            .contains("\r\nblocked_clients:1\r\n")
    });
    admin.run("ACL SETUSER u -blpop");
    assert_eq!(admin.run("RPUSH l a"), ":1\r\n");
    assert_eq!(
        waiting.reply(),
        "-NOPERM User u has no permissions to run the 'blpop' command\r\n"
    );
    assert_eq!(admin.run("LRANGE l 0 -1"), "*1\r\n$1\r\na\r\n");
}

#[test]
fn clients_of_users_that_are_deleted_or_lose_a_channel_are_disconnected() {
    let server = Server::start();
    let mut admin = server.connect();
    admin.run("ACL SETUSER u on >p ~* &a &b +@all");
    let [mut gone, mut loses, mut keeps] = [0; 3].map(|_| server.connect());
    for socket in [&mut gone, &mut loses, &mut keeps] {
        login(socket, "u");
    }
    loses.run("SUBSCRIBE a");
    keeps.run("SUBSCRIBE b");
    assert_eq!(admin.run("ACL SETUSER u resetchannels &b"), simple("OK"));
    assert_eq!(loses.rest(), "");
    assert!(keeps.is_silent_for(Duration::from_millis(50)));
    assert_eq!(gone.run("GET x"), "$-1\r\n");
    assert_eq!(admin.run("ACL DELUSER u nobody"), ":1\r\n");
    assert_eq!(gone.rest(), "");
    assert_eq!(keeps.rest(), "");
    assert_eq!(
        admin.run("ACL DELUSER default"),
        "-ERR The 'default' user cannot be removed\r\n"
    );
    // The client's own user is deleted after the reply.
    admin.run("ACL SETUSER u on >p ~* +@all");
    login(&mut admin, "u");
    assert_eq!(admin.run("ACL DELUSER u"), ":1\r\n");
    assert_eq!(admin.rest(), "");
}

#[test]
fn requirepass_is_the_password_of_default() {
    let server = Server::start_with(&["--requirepass", "secret"]);
    let mut socket = server.connect();
    assert_eq!(socket.run("AUTH secret"), simple("OK"));
    assert_eq!(socket.run("ACL SETUSER default >other"), simple("OK"));
    assert_eq!(server.connect().run("AUTH other"), simple("OK"));
    assert_eq!(server.connect().run("AUTH secret"), simple("OK"));
    assert_eq!(socket.run("CONFIG SET requirepass third"), simple("OK"));
    assert!(server.connect().run("AUTH other").starts_with("-WRONGPASS"));
    assert_eq!(server.connect().run("AUTH default third"), simple("OK"));
    assert_eq!(socket.run("ACL SETUSER default nopass"), simple("OK"));
    assert_eq!(server.connect().run("PING"), simple("PONG"));
    assert_eq!(socket.run("ACL SETUSER default off"), simple("OK"));
    assert!(server.connect().run("PING").starts_with("-NOAUTH"));
    assert_eq!(socket.run("PING"), simple("PONG"));
}

#[test]
fn the_log_groups_what_is_alike() {
    let server = Server::start();
    let (mut admin, mut socket) = (server.connect(), server.connect());
    admin.run("ACL SETUSER u on >p ~a +@all -incr");
    login(&mut socket, "u");
    for line in ["INCR a", "INCR a", "GET b"] {
        socket.run(line);
    }
    socket.run("AUTH u wrong");
    let log = admin.run("ACL LOG");
    assert!(log.starts_with("*3\r\n*20\r\n$5\r\ncount\r\n:1\r\n$6\r\nreason\r\n$4\r\nauth\r\n"));
    assert!(
        log.contains("$5\r\ncount\r\n:2\r\n$6\r\nreason\r\n$7\r\ncommand\r\n"),
        "{log}"
    );
    assert!(log.contains("cmd=incr user=u"), "{log}");
    assert!(admin.run("ACL LOG 1").starts_with("*1\r\n"));
    let stats = admin.run("INFO stats");
    for line in [
        "acl_access_denied_auth:1",
        "acl_access_denied_cmd:2",
        "acl_access_denied_key:1",
        "acl_access_denied_channel:0",
    ] {
        assert!(stats.contains(&format!("\r\n{line}\r\n")), "{line}");
    }
    assert_eq!(admin.run("ACL LOG RESET"), simple("OK"));
    assert_eq!(admin.run("ACL LOG"), "*0\r\n");
    admin.run("CONFIG SET acllog-max-len 1");
    socket.run("GET b");
    socket.run("GET c");
    assert!(admin.run("ACL LOG").starts_with("*1\r\n"));
}

#[test]
fn users_are_saved_to_a_file_and_read_from_it() {
    if is_on_foundationdb() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.acl");
    let flags = ["--aclfile", path.to_str().unwrap()];
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let refused = Server::start_in(&folder.path().join("data"), &flags)
        .err()
        .unwrap();
    assert!(refused.contains("No such file or directory"), "{refused}");
    std::fs::write(&path, "user alice on >p ~* &* +@all\n\n").unwrap();
    let server = Server::start_in(&folder.path().join("data"), &flags).unwrap();
    let mut socket = server.connect();
    assert_eq!(socket.run("AUTH alice p"), simple("OK"));
    socket.run("ACL SETUSER bob on nopass ~b +get (~c +set)");
    assert_eq!(socket.run("ACL SAVE"), simple("OK"));
    let saved = std::fs::read_to_string(&path).unwrap();
    assert_eq!(saved.lines().count(), 3, "{saved}");
    let bob = "user bob on nopass sanitize-payload ~b resetchannels -@all +get (~c resetchannels -@all \
               +set)";
    assert!(saved.lines().any(|line| line == bob), "{saved}");
    let list = socket.run("ACL LIST");
    // A file with errors is ignored completely.
    std::fs::write(
        &path,
        format!("{saved}user alice on\nuser eve +nosuch\nbad\n"),
    )
    .unwrap();
    let shown = path.display();
    assert_eq!(
        socket.run("ACL LOAD"),
        format!(
            "-ERR WARNING: Duplicate user 'alice' found on line 4. {shown}:5: Error in applying \
             operation '+nosuch': Unknown command or category name in ACL. {shown}:6 should start with \
             user keyword followed by the username. WARNING: ACL errors detected, no change to the \
             previously active ACL rules was performed\r\n"
        )
    );
    assert_eq!(socket.run("ACL LIST"), list);
    std::fs::write(&path, saved.replace("bob", "carol")).unwrap();
    assert_eq!(socket.run("ACL LOAD"), simple("OK"));
    // As in Redis 7.2, clients of all users except default are disconnected.
    assert_eq!(socket.rest(), "");
    let mut socket = server.connect();
    assert_eq!(socket.run("ACL GETUSER bob"), "$-1\r\n");
    assert_eq!(socket.run("AUTH carol any"), simple("OK"));
}

#[test]
fn without_a_file_users_are_neither_saved_nor_loaded() {
    let server = Server::start();
    let mut socket = server.connect();
    for line in ["ACL SAVE", "ACL LOAD"] {
        let reply = socket.run(line);
        assert!(
            reply.starts_with("-ERR This Redis instance is not configured to use an ACL file.")
        );
    }
}

#[test]
fn passwords_are_made_of_hexadecimal_digits() {
    let server = Server::start();
    let mut socket = server.connect();
    assert!(socket.run("ACL GENPASS").starts_with("$64\r\n"));
    let short = socket.run("ACL GENPASS 5");
    assert!(short.starts_with("$2\r\n"), "{short}");
    assert_ne!(socket.run("ACL GENPASS"), socket.run("ACL GENPASS"));
    for bits in ["0", "4097", "-1"] {
        assert_eq!(
            socket.run(&format!("ACL GENPASS {bits}")),
            "-ERR ACL GENPASS argument must be the number of bits for the output password, a positive \
             number up to 4096\r\n"
        );
    }
}

#[test]
fn clients_are_listed_and_killed_by_their_users() {
    let server = Server::start();
    let (mut admin, mut socket) = (server.connect(), server.connect());
    admin.run("ACL SETUSER u on >p +@all");
    login(&mut socket, "u");
    assert!(socket.run("CLIENT INFO").contains(" user=u "));
    assert_eq!(
        admin.run("CLIENT KILL USER nobody"),
        "-ERR No such user 'nobody'\r\n"
    );
    assert_eq!(admin.run("CLIENT KILL USER u"), ":1\r\n");
    assert_eq!(socket.rest(), "");
}

#[test]
fn users_of_the_settings_file_hold_and_are_written_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quoin.toml");
    let text = "user = [\"alice on >p ~jobs:* -@all +@list\"] # all of them\n";
    std::fs::write(&path, text).unwrap();
    let flags = ["--config", path.to_str().unwrap()];
    let start = || Server::start_in(folder.path(), &flags);
    if is_on_foundationdb() {
        let refused = start().err().unwrap();
        assert!(refused.contains("are in its store"), "{refused}");
        return;
    }
    let mut server = start().unwrap();
    let mut alice = server.connect();
    login(&mut alice, "alice");
    assert_eq!(alice.run("RPUSH jobs:mail a"), ":1\r\n");
    assert!(alice.run("RPUSH other a").starts_with("-NOPERM "));
    assert!(alice.run("CONFIG GET user").starts_with("-NOPERM "));

    let mut admin = server.connect();
    assert_eq!(admin.run("CONFIG GET user"), "*0\r\n");
    let line = "ACL SETUSER bob on nopass ~b:* resetchannels -@all +get";
    assert_eq!(admin.run(line), simple("OK"));
    assert_eq!(admin.run("CONFIG REWRITE"), simple("OK"));
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.starts_with("user = [\n  \"alice on "), "{written}");
    assert!(written.contains("+@all\",\n] # all of them\n"), "{written}");
    let users = admin.run("ACL LIST");
    // Users are read only at the start. For SIGHUP, nothing has changed either.
    server.signal("HUP");
    wait_until("the file is read", || {
        server
            .log()
            .contains("SIGHUP: reloaded the settings, changed no setting")
    });
    std::fs::write(&path, text).unwrap();
    server.signal("HUP");
    wait_until("it is named", || {
        server.log().contains("the changes of user need a restart")
    });
    assert_eq!(admin.run("ACL LIST"), users);
    assert_eq!(admin.run("CONFIG REWRITE"), simple("OK"));
    server.signal("TERM");
    server.wait();

    let server = start().unwrap();
    assert_eq!(server.connect().run("ACL LIST"), users);
    login(&mut server.connect(), "alice");
}

#[test]
fn the_queues_of_quoin_have_categories() {
    let server = Server::start();
    let mut socket = server.connect();
    for (category, prefix) in [("pqueue", "pq."), ("taskqueue", "task.")] {
        let words = |reply: String| -> Vec<String> {
            let lines = reply.lines().filter(|line| !line.starts_with(['*', '$']));
            lines.map(str::to_owned).collect()
        };
        assert!(words(socket.run("ACL CAT")).contains(&category.to_owned()));
        let mut listed = words(socket.run(&format!("ACL CAT {category}")));
        let pattern = format!("COMMAND LIST FILTERBY PATTERN {prefix}*");
        let mut all = words(socket.run(&pattern));
        listed.sort();
        all.sort();
        assert!(all.len() > 5);
        assert_eq!(listed, all);
    }
    socket.run("ACL SETUSER u on >p ~* -@all +@pqueue");
    login(&mut socket, "u");
    assert_eq!(socket.run("PQ.PUSH q 1 x"), ":1\r\n");
    assert!(socket.run("TASK.ADD t 1 x").starts_with("-NOPERM "));
}
