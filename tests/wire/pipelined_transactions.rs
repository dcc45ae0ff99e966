//! MULTI and EXEC in pipelines: what a connection sends together goes to the executor together. See
//! `script` for the notation.

use crate::script::{play, play_to_quoin};
use crate::server::{Server, request};

#[test]
fn transactions_of_a_pipeline_are_answered_in_order() {
    play(
        "a>> RPUSH l x ; MULTI ; RPUSH l y ; LPOP l ; EXEC ; LLEN l ; MULTI ; LPOP l ; EXEC ; LLEN l
         a< :1|
         a< +OK|
         a< +QUEUED|
         a< +QUEUED|
         a< *2|:2|$1|x|
         a< :1|
         a< +OK|
         a< +QUEUED|
         a< *1|$1|y|
         a< :0|",
    );
}

#[test]
fn a_transaction_that_fails_leaves_those_around_it_alone() {
    play(
        "a>> MULTI ; RPUSH l x ; EXEC ; MULTI ; RPUSH l ; EXEC ; MULTI ; HSET l f v ; LLEN l ; EXEC ; PING
         a< +OK|
         a< +QUEUED|
         a< *1|:1|
         a< +OK|
         a< -ERR wrong number of arguments for 'rpush' command|
         a< -EXECABORT Transaction discarded because of previous errors.|
         a< +OK|
         a< +QUEUED|
         a< +QUEUED|
         a< *2|-WRONGTYPE Operation against a key holding the wrong kind of value|:1|
         a< +PONG|",
    );
}

#[test]
fn discard_and_what_has_no_transaction_come_in_their_turn() {
    play(
        "a>> MULTI ; RPUSH l x ; EXEC ; EXEC ; MULTI ; MULTI ; RPUSH l y ; DISCARD ; DISCARD ; LLEN l
         a< +OK|
         a< +QUEUED|
         a< *1|:1|
         a< -ERR EXEC without MULTI|
         a< +OK|
         a< -ERR MULTI calls can not be nested|
         a< +QUEUED|
         a< +OK|
         a< -ERR DISCARD without MULTI|
         a< :1|",
    );
}

#[test]
fn a_pipeline_that_changes_what_it_watches_fails_its_exec() {
    play(
        "a>> SET k v ; WATCH k ; SET k v ; MULTI ; SET k w ; EXEC ; MULTI ; GET k ; EXEC
         a< +OK|
         a< +OK|
         a< +OK|
         a< +OK|
         a< +QUEUED|
         a< *-1|
         a< +OK|
         a< +QUEUED|
         a< *1|$1|v|",
    );
}

#[test]
fn unwatch_forgets_what_commands_before_it_change() {
    play(
        "a>> WATCH k ; SET k v ; UNWATCH ; MULTI ; SET k w ; EXEC
         a< +OK|
         a< +OK|
         a< +OK|
         a< +OK|
         a< +QUEUED|
         a< *1|+OK|",
    );
}

#[test]
fn commands_of_the_server_within_a_transaction_keep_their_turn() {
    play(
        "a>> MULTI ; RPUSH l x ; EXEC ; MULTI ; SELECT 1 ; LLEN l ; PING ; EXEC ; LLEN l ; MULTI ; EXEC
         a< +OK|
         a< +QUEUED|
         a< *1|:1|
         a< +OK|
         a< +QUEUED|
         a< +QUEUED|
         a< +QUEUED|
         a< *3|+OK|:0|+PONG|
         a< :0|
         a< +OK|
         a< *0|",
    );
}

#[test]
fn replies_that_a_client_does_not_want_are_left_out() {
    play(
        "a>> MULTI ; PING ; EXEC ; CLIENT REPLY SKIP ; MULTI ; RPUSH l x ; EXEC ; CLIENT REPLY OFF ; MULTI ; RPUSH l y ; EXEC ; CLIENT REPLY ON ; LLEN l
         a< +OK|
         a< +QUEUED|
         a< *1|+PONG|
         a< +QUEUED|
         a< *1|:1|
         a< +OK|
         a< :2|",
    );
}

#[test]
fn a_blocking_command_between_transactions_waits() {
    play(
        "a> MULTI ; RPUSH l x ; EXEC ; BLPOP m 0 ; MULTI ; LLEN l ; EXEC
         a< +OK|
         a< +QUEUED|
         a< *1|:1|
         b: RPUSH m y => :1|
         a< *2|$1|m|$1|y|
         a< +OK|
         a< +QUEUED|
         a< *1|:1|",
    );
}

#[test]
fn a_transaction_publishes_to_its_own_client_after_its_reply() {
    // As in Redis 7.2. In earlier versions, messages of EXEC came before its reply.
    play_to_quoin(
        &Server::start(),
        "a: HELLO 3 => %7|*
         a: SUBSCRIBE c => >3|$9|subscribe|$1|c|:1|
         a>> MULTI ; PUBLISH c m ; EXEC ; MULTI ; PUBLISH c n ; EXEC
         a< +OK|
         a< +QUEUED|
         a< *1|:1|
         a< >3|$7|message|$1|c|$1|m|
         a< +OK|
         a< +QUEUED|
         a< *1|:1|
         a< >3|$7|message|$1|c|$1|n|",
    );
}

#[test]
fn a_monitor_sees_a_pipeline_in_its_order() {
    let server = Server::start();
    let mut monitor = server.connect();
    assert_eq!(monitor.run("MONITOR"), "+OK\r\n");
    let lines = [
        "MULTI", "SET a 1", "EXEC", "GET a", "MULTI", "GET b", "EXEC", "GET c",
    ];
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut socket = server.connect();
    socket.send(
        lines
            .iter()
            .flat_map(|line| request(&words(line)))
            .collect::<Vec<_>>(),
    );
    for line in lines {
        let shown = monitor.reply();
        let quoted: Vec<_> = words(line).iter().map(|word| format!("{word:?}")).collect();
        assert!(
            shown.trim_end().ends_with(&quoted.join(" ")),
            "{shown} for {line}"
        );
    }
}

#[test]
fn many_transactions_in_one_pipeline_share_commits() {
    let server = Server::start();
    let commits = || figure(&server, "commits");
    let before = commits();
    let mut socket = server.connect();
    let one = ["MULTI", "INCR n", "EXEC"].map(|line| request(&line.split(' ').collect::<Vec<_>>()));
    socket.send(one.concat().repeat(200));
    for number in 1..=200 {
        assert_eq!(socket.reply(), "+OK\r\n");
        assert_eq!(socket.reply(), "+QUEUED\r\n");
        assert_eq!(socket.reply(), format!("*1\r\n:{number}\r\n"));
    }
    assert!(commits() - before < 100, "{} commits", commits() - before);
}

/// A figure of INFO.
fn figure(server: &Server, name: &str) -> u64 {
    let info = server.connect().run("INFO everything");
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.and_then(|value| value.parse().ok()).unwrap()
}
