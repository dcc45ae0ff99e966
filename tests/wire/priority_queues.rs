//! Priority queues over a socket, in both versions of the protocol.

use std::thread;
use std::time::Duration;

use crate::server::{Server, wait_until};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";

#[test]
fn resp2_answers_flat_arrays_of_strings() {
    let server = Server::start();
    let mut socket = server.connect();
    for (line, reply) in [
        ("PQ.PUSH q 2 b 1 a 2.5 c", ":3\r\n"),
        ("PQ.PEEKMIN q", "*2\r\n$1\r\na\r\n$1\r\n1\r\n"),
        ("PQ.PEEKMAX q", "*2\r\n$1\r\nc\r\n$3\r\n2.5\r\n"),
        (
            "PQ.PEEKMIN q 2",
            "*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n",
        ),
        ("PQ.PEEKMAX q 1", "*2\r\n$1\r\nc\r\n$3\r\n2.5\r\n"),
        ("PQ.RANGE q 0 0", "*2\r\n$1\r\na\r\n$1\r\n1\r\n"),
        ("PQ.RANGE q 0 0 REV", "*2\r\n$1\r\nc\r\n$3\r\n2.5\r\n"),
        ("PQ.COUNT q (1 +inf", ":2\r\n"),
        ("PQ.LEN q", ":3\r\n"),
        (
            "PQ.LIST q",
            "*2\r\n$1\r\n0\r\n*6\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\nc\r\n$3\r\n2.5\r\n",
        ),
        ("PQ.PUSH q 7 d 7 d", ":5\r\n"),
        ("PQ.REM q 7.0 d COUNT 5", ":2\r\n"),
        ("PQ.REM q 7 d", ":0\r\n"),
        ("TYPE q", "+pqueue\r\n"),
        ("PQ.MOVE q r MAX", "*2\r\n$1\r\nc\r\n$3\r\n2.5\r\n"),
        (
            "PQ.BPOPMIN nothing q 1",
            "*3\r\n$1\r\nq\r\n$1\r\na\r\n$1\r\n1\r\n",
        ),
        (
            "PQ.BPOPMAX r 1",
            "*3\r\n$1\r\nr\r\n$1\r\nc\r\n$3\r\n2.5\r\n",
        ),
        ("PQ.POPMIN q", "*2\r\n$1\r\nb\r\n$1\r\n2\r\n"),
        ("PQ.POPMAX q", "*0\r\n"),
        ("PQ.POPMAX q 2", "*0\r\n"),
        ("PQ.MOVE q r MIN", "*-1\r\n"),
        ("PQ.BPOPMIN q 0.01", "*-1\r\n"),
        ("EXISTS q r", ":0\r\n"),
    ] {
        assert_eq!(socket.run(line), reply, "{line}");
    }
}

#[test]
fn resp3_answers_pairs_with_numbers_as_they_were_given() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("HELLO 3");
    for (line, reply) in [
        ("PQ.PUSH q 9007199254740993 b 1 a 2.0 c inf d", ":4\r\n"),
        ("PQ.PEEKMIN q", "*2\r\n$1\r\na\r\n:1\r\n"),
        (
            "PQ.POPMIN q 2",
            "*2\r\n*2\r\n$1\r\na\r\n:1\r\n*2\r\n$1\r\nc\r\n,2\r\n",
        ),
        (
            "PQ.RANGE q 0 -1 REV",
            "*2\r\n*2\r\n$1\r\nd\r\n,inf\r\n*2\r\n$1\r\nb\r\n:9007199254740993\r\n",
        ),
        ("PQ.MOVE q r MIN", "*2\r\n$1\r\nb\r\n:9007199254740993\r\n"),
        (
            "PQ.BPOPMAX r 1",
            "*3\r\n$1\r\nr\r\n$1\r\nb\r\n:9007199254740993\r\n",
        ),
        ("PQ.POPMAX q", "*2\r\n$1\r\nd\r\n,inf\r\n"),
        ("PQ.POPMAX q", "*0\r\n"),
        ("PQ.MOVE q r MIN", "_\r\n"),
        ("PQ.BPOPMIN q 0.01", "_\r\n"),
    ] {
        assert_eq!(socket.run(line), reply, "{line}");
    }
}

#[test]
fn errors_are_in_the_words_of_redis() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("RPUSH list x");
    socket.run("PQ.PUSH q 1 a");
    for verb in [
        "PUSH", "POPMIN", "POPMAX", "PEEKMIN", "PEEKMAX", "BPOPMIN", "BPOPMAX", "LEN", "COUNT",
        "RANGE", "MOVE",
    ] {
        let name = format!("pq.{}", verb.to_lowercase());
        let expected = format!("-ERR wrong number of arguments for '{name}' command\r\n");
        assert_eq!(socket.run(&format!("PQ.{verb}")), expected);
    }
    for (line, reply) in [
        (
            "PQ.PUSH q 1 a 2",
            "-ERR syntax error, expected PQ.PUSH key priority value [priority value ...]\r\n",
        ),
        ("PQ.PUSH q nan a", "-ERR priority is not a valid float\r\n"),
        (
            "PQ.POPMIN q -1",
            "-ERR value is out of range, must be positive\r\n",
        ),
        ("PQ.COUNT q a b", "-ERR min or max is not a float\r\n"),
        (
            "PQ.RANGE q a b",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "PQ.RANGE q 0 1 WITHSCORES",
            "-ERR syntax error, expected PQ.RANGE key start stop [REV]\r\n",
        ),
        (
            "PQ.MOVE q r LEFT",
            "-ERR syntax error, expected PQ.MOVE source destination <MIN | MAX>\r\n",
        ),
        (
            "PQ.BPOPMIN q abc",
            "-ERR timeout is not a float or out of range\r\n",
        ),
        ("PQ.BPOPMIN q -1", "-ERR timeout is negative\r\n"),
        ("PQ.PUSH list 1 a", WRONG_TYPE),
        ("PQ.POPMAX list", WRONG_TYPE),
        ("PQ.BPOPMAX list 0", WRONG_TYPE),
        ("LPOP q", WRONG_TYPE),
        ("SORT q", WRONG_TYPE),
    ] {
        assert_eq!(socket.run(line), reply, "{line}");
    }
}

#[test]
fn a_push_wakes_who_waits() {
    let server = Server::start();
    let mut waiting = server.connect();
    waiting.run("HELLO 3");
    waiting.send("PQ.BPOPMAX other q 0\r\n");
    let mut pushing = server.connect();
    wait_until("a client waits", || {
        pushing
            .run("INFO clients")
            .contains("blocked_clients:1\r\n")
    });
    assert_eq!(pushing.run("PQ.PUSH q 1 a 2 b"), ":2\r\n");
    assert_eq!(waiting.reply(), "*3\r\n$1\r\nq\r\n$1\r\nb\r\n:2\r\n");
    assert_eq!(pushing.run("PQ.LEN q"), ":1\r\n");
}

#[test]
fn a_push_and_a_pop_of_one_transaction_are_one_change_to_who_watches() {
    let server = Server::start();
    let mut first = server.connect();
    let mut second = server.connect();
    first.run("PQ.PUSH q 1 a");
    first.run("WATCH q");
    first.run("MULTI");
    assert_eq!(first.run("PQ.POPMIN q"), "+QUEUED\r\n");
    second.run("PQ.PUSH q 5 b");
    assert_eq!(first.run("EXEC"), "*-1\r\n");
    first.run("MULTI");
    first.run("PQ.PUSH q 0 c");
    first.run("PQ.POPMIN q");
    first.run("PQ.LEN q");
    let expected = "*3\r\n:3\r\n*2\r\n$1\r\nc\r\n$1\r\n0\r\n:2\r\n";
    assert_eq!(first.run("EXEC"), expected);
}

#[test]
fn each_value_is_popped_once_by_many_clients() {
    const CLIENTS: usize = 8;
    const VALUES: usize = 50;
    let server = Server::start();
    let popped: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let mut socket = server.connect();
                scope.spawn(move || {
                    for number in 0..VALUES {
                        socket.run(&format!("PQ.PUSH q {} v{client}-{number}", number % 3));
                    }
                    let end = if client % 2 == 0 { "MIN" } else { "MAX" };
                    let replies = (0..VALUES).map(|_| socket.run(&format!("PQ.BPOP{end} q 5")));
                    replies.collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut values: Vec<&str> = popped
        .iter()
        .map(|reply| reply.split("\r\n").nth(4).unwrap())
        .collect();
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len(), CLIENTS * VALUES);
    let mut socket = server.connect();
    assert_eq!(socket.run("EXISTS q"), ":0\r\n");
}

#[test]
fn values_are_there_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(folder.path(), &[]).unwrap();
    server.connect().run("PQ.PUSH q 1 a 1.5 b -inf c");
    server.signal("KILL");
    server.wait();
    thread::sleep(Duration::from_millis(10));
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let mut socket = server.connect();
    let expected = "*6\r\n$1\r\nc\r\n$4\r\n-inf\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$3\r\n1.5\r\n";
    assert_eq!(socket.run("PQ.RANGE q 0 -1"), expected);
}

#[test]
fn command_tells_of_them() {
    let server = Server::start();
    let mut socket = server.connect();
    let docs = socket.run("COMMAND DOCS pq.popmin");
    assert!(
        docs.contains("priority-queue") && docs.contains("0.1.0"),
        "{docs}"
    );
    assert_eq!(
        socket.run("COMMAND GETKEYS pq.bpopmin a b 0"),
        "*2\r\n$1\r\na\r\n$1\r\nb\r\n"
    );
    let info = socket.run("COMMAND INFO pq.bpopmin");
    for word in [
        "blocking",
        "@blocking",
        "@fast",
        "@write",
        "access",
        "delete",
    ] {
        assert!(info.contains(word), "{word} in {info}");
    }
}
