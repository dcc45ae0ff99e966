//! MULTI, EXEC, DISCARD. See `script` for how these are written.

use crate::script::{play, play_to_quoin};
use crate::server::{Server, is_on_foundationdb, request};

#[test]
fn commands_are_queued_and_carried_out_together() {
    play(
        "a: MULTI => +OK|
         a: RPUSH l x y => +QUEUED|
         a: LRANGE l 0 -1 => +QUEUED|
         a: PING => +QUEUED|
         a: ECHO e => +QUEUED|
         b: EXISTS l => :0|
         a: EXEC => *4|:2|*2|$1|x|$1|y|+PONG|$1|e|
         b: EXISTS l => :1|",
    );
}

#[test]
fn an_empty_transaction_has_an_empty_reply() {
    play(
        "a: MULTI => +OK|
         a: EXEC => *0|
         a: EXEC => -ERR EXEC without MULTI|",
    );
}

#[test]
fn a_discarded_transaction_has_no_effect() {
    play(
        "a: MULTI => +OK|
         a: RPUSH l x => +QUEUED|
         a: DISCARD => +OK|
         a: EXISTS l => :0|
         a: DISCARD => -ERR DISCARD without MULTI|
         a: EXEC => -ERR EXEC without MULTI|",
    );
}

#[test]
fn multi_within_multi_is_refused_and_spoils_nothing() {
    play(
        "a: MULTI => +OK|
         a: MULTI => -ERR MULTI calls can not be nested|
         a: RPUSH l x => +QUEUED|
         a: EXEC => *1|:1|",
    );
}

#[test]
fn a_command_that_does_not_exist_spoils_the_transaction() {
    play(
        "a: MULTI => +OK|
         a: RPUSH l x => +QUEUED|
         a: NOSUCH a b => -ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' |
         a: RPUSH l y => +QUEUED|
         a: EXEC => -EXECABORT Transaction discarded because of previous errors.|
         a: EXISTS l => :0|
         a: PING => +PONG|
         a: EXEC => -ERR EXEC without MULTI|",
    );
}

#[test]
fn a_command_with_too_few_arguments_spoils_the_transaction() {
    play(
        "a: MULTI => +OK|
         a: RPUSH l => -ERR wrong number of arguments for 'rpush' command|
         a: EXEC => -EXECABORT Transaction discarded because of previous errors.|
         a: MULTI => +OK|
         a: CLIENT NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.|
         a: EXEC => -EXECABORT Transaction discarded because of previous errors.|",
    );
}

#[test]
fn exec_with_arguments_discards() {
    play(
        "a: WATCH l => +OK|
         a: MULTI => +OK|
         a: RPUSH l x => +QUEUED|
         a: EXEC now => -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command|
         a: EXEC => -ERR EXEC without MULTI|
         a: EXEC now => -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command|
         b: RPUSH l x => :1|
         a: MULTI => +OK|
         a: EXEC => *0|
         a: DISCARD now => -ERR wrong number of arguments for 'discard' command|",
    );
}

#[test]
fn commands_that_may_not_be_queued_spoil_the_transaction() {
    play(
        "a: MULTI => +OK|
         a: SYNC => *
         a: DISCARD => +OK|",
    );
}

#[test]
fn what_fails_while_running_leaves_the_effects_of_the_others() {
    play(
        "a: ZADD z 1 m => :1|
         a: MULTI => +OK|
         a: RPUSH l x => +QUEUED|
         a: RPUSH z x => +QUEUED|
         a: LSET l 9 y => +QUEUED|
         a: LSET none 0 y => +QUEUED|
         a: ZADD z nan m => +QUEUED|
         a: RPUSH l y => +QUEUED|
         a: EXEC => *6|:1|-WRONGTYPE Operation against a key holding the wrong kind of value|-ERR index out of range|-ERR no such key|-ERR value is not a valid float|:2|
         a: LRANGE l 0 -1 => *2|$1|x|$1|y|",
    );
}

#[test]
fn select_within_a_transaction_holds_for_what_follows_and_afterwards() {
    play(
        "a: MULTI => +OK|
         a: RPUSH l 0 => +QUEUED|
         a: SELECT 1 => +QUEUED|
         a: RPUSH l 1 => +QUEUED|
         a: SELECT 99 => +QUEUED|
         a: RPUSH l 2 => +QUEUED|
         a: EXEC => *5|:1|+OK|:1|-ERR DB index is out of range|:2|
         a: LRANGE l 0 -1 => *2|$1|1|$1|2|
         a: SELECT 0 => +OK|
         a: LRANGE l 0 -1 => *1|$1|0|",
    );
}

#[test]
fn a_transaction_sees_its_own_changes() {
    play(
        "a: RPUSH l a b c => :3|
         a: MULTI => +OK|
         a: LMOVE l m LEFT RIGHT => +QUEUED|
         a: RENAME m n => +QUEUED|
         a: EXISTS l m n => +QUEUED|
         a: SWAPDB 0 1 => +QUEUED|
         a: DBSIZE => +QUEUED|
         a: RPUSH l x => +QUEUED|
         a: SELECT 1 => +QUEUED|
         a: LRANGE l 0 -1 => +QUEUED|
         a: FLUSHDB => +QUEUED|
         a: DBSIZE => +QUEUED|
         a: EXEC => *10|$1|a|+OK|:2|+OK|:0|:1|+OK|*2|$1|b|$1|c|+OK|:0|",
    );
}

#[test]
fn a_pipeline_with_a_transaction_is_answered_in_order() {
    let server = Server::start();
    let mut socket = server.connect();
    let words: &[&[&str]] = &[
        &["RPUSH", "l", "x"],
        &["MULTI"],
        &["RPUSH", "l", "y"],
        &["EXEC"],
        &["LRANGE", "l", "0", "-1"],
    ];
    socket.send(
        words
            .iter()
            .flat_map(|one| request(one))
            .collect::<Vec<_>>(),
    );
    let replies: Vec<_> = words.iter().map(|_| socket.reply()).collect();
    let expected = [
        ":1\r\n",
        "+OK\r\n",
        "+QUEUED\r\n",
        "*1\r\n:2\r\n",
        "*2\r\n$1\r\nx\r\n$1\r\ny\r\n",
    ];
    assert_eq!(replies, expected);
}

#[test]
fn replies_within_exec_are_of_the_protocol_spoken() {
    play(
        "a: ZADD z 1.5 m => :1|
         a: HELLO 3 => %7|*
         a: MULTI => +OK|
         a: ZSCORE z m => +QUEUED|
         a: ZSCORE z n => +QUEUED|
         a: ZRANGE z 0 -1 WITHSCORES => +QUEUED|
         a: LPOP l => +QUEUED|
         a: BLPOP l 0 => +QUEUED|
         a: EXEC => *5|,1.5|_|*1|*2|$1|m|,1.5|_|_|",
    );
}

#[test]
fn reset_discards() {
    play(
        "a: RPUSH l x => :1|
         a: WATCH l => +OK|
         a: MULTI => +OK|
         a: RPUSH l y => +QUEUED|
         a: RESET => +RESET|
         a: EXEC => -ERR EXEC without MULTI|
         a: LLEN l => :1|",
    );
}

#[test]
fn quit_discards() {
    play(
        "a: MULTI => +OK|
         a: RPUSH l y => +QUEUED|
         a: QUIT => +OK|
         a~ => closed
         b: EXISTS l => :0|",
    );
}

#[test]
fn a_client_that_leaves_discards() {
    play(
        "a: MULTI => +OK|
         a: RPUSH l y => +QUEUED|
         a!
         b: EXISTS l => :0|",
    );
}

#[test]
fn an_open_transaction_shows_in_the_list_of_clients() {
    let server = Server::start();
    let mut socket = server.connect();
    let mut other = server.connect();
    let id = socket.run("CLIENT ID");
    let list = format!("CLIENT LIST ID {}", id[1..].trim_end());
    assert!(other.run(&list).contains(" multi=-1 "));
    socket.run("WATCH l");
    assert!(other.run(&list).contains(" multi=-1 "));
    socket.run("MULTI");
    assert!(other.run(&list).contains(" multi=0 "));
    socket.run("RPUSH l x");
    socket.run("RPUSH l x");
    let listed = other.run(&list);
    assert!(
        listed.contains(" multi=2 ") && listed.contains(" flags=x "),
        "{listed}"
    );
    other.run("RPUSH l x");
    assert!(other.run(&list).contains(" flags=xd "), "{listed}");
    assert_eq!(socket.run("EXEC"), "*-1\r\n");
    let listed = other.run(&list);
    assert!(
        listed.contains(" multi=-1 ") && listed.contains(" flags=N "),
        "{listed}"
    );
}

#[test]
fn subscribing_within_a_transaction_works() {
    play_to_quoin(
        &Server::start(),
        "a: HELLO 3 => %7|*
         a: MULTI => +OK|
         a: RPUSH l x => +QUEUED|
         a: SUBSCRIBE c => +QUEUED|
         a>> EXEC
         a< *2|:1|*
         b: PUBLISH c m => :1|",
    );
}

#[test]
fn what_was_answered_to_exec_is_there_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    for round in 1..=3 {
        let mut server = Server::start_in(folder.path(), &[]).unwrap();
        let mut socket = server.connect();
        socket.run("MULTI");
        socket.run("RPUSH l x");
        socket.run("ZADD z 1 m");
        socket.run("ZINCRBY z 1 n");
        socket.run("SELECT 5");
        socket.run("LPUSH l y");
        assert!(socket.run("EXEC").starts_with("*5\r\n"));
        server.signal("KILL");
        server.wait();
        let server = Server::start_in(folder.path(), &[]).unwrap();
        let mut socket = server.connect();
        assert_eq!(socket.run("LLEN l"), format!(":{round}\r\n"));
        assert_eq!(socket.run("ZSCORE z n"), format!("$1\r\n{round}\r\n"));
        socket.run("SELECT 5");
        assert_eq!(socket.run("LLEN l"), format!(":{round}\r\n"));
    }
}

#[test]
fn a_transaction_too_large_to_queue_is_refused_whole() {
    // More than 256 MiB of arguments.
    let server = Server::start();
    let mut socket = server.connect();
    let value = "v".repeat(30 * 1024 * 1024);
    socket.run("MULTI");
    for _ in 0..8 {
        assert_eq!(socket.command(&["RPUSH", "l", &value]), "+QUEUED\r\n");
    }
    assert_eq!(
        socket.command(&["RPUSH", "l", &value]),
        "-ERR too many commands in one transaction\r\n"
    );
    assert_eq!(
        socket.run("EXEC"),
        "-EXECABORT Transaction discarded because of previous errors.\r\n"
    );
    assert_eq!(socket.run("EXISTS l"), ":0\r\n");
}

#[test]
#[ignore = "needs gigabytes of memory; executor::batch tests the same on a smaller store"]
fn a_transaction_too_large_for_the_store_is_refused_whole() {
    // COPY writes in one transaction what no client has to send: 40 copies of 30 MiB, or on
    // FoundationDB, which has a lower limit, of 3 MiB.
    let server = Server::start();
    let mut socket = server.connect();
    let mebibytes = if is_on_foundationdb() { 3 } else { 30 };
    let value = "v".repeat(mebibytes * 1024 * 1024);
    assert_eq!(socket.command(&["RPUSH", "l", &value]), ":1\r\n");
    socket.run("MULTI");
    socket.run("RPUSH m x");
    for number in 0..40 {
        socket.run(&format!("COPY l copy{number}"));
    }
    let refusal = socket.run("EXEC");
    assert!(refusal.contains("nothing was changed"), "{refusal}");
    assert_eq!(socket.run("DBSIZE"), ":1\r\n");
    assert_eq!(socket.run("RPUSH m x"), ":1\r\n");
}
