//! What a client may send: pipelines, inline commands, and bytes that are not the protocol.

use std::time::Duration;

use crate::script::play;
use crate::server::{PATIENCE, Server, request, wait_until};

#[test]
fn a_pipeline_is_answered_in_order_whatever_carries_its_commands_out() {
    let server = Server::start();
    let mut socket = server.connect();
    let mut pipeline = Vec::new();
    let mut expected = String::new();
    for number in 1..=1000 {
        pipeline.extend(request(&["RPUSH", "list", "value"]));
        pipeline.extend(request(&["ECHO", &number.to_string()]));
        pipeline.extend(request(&["LLEN", "list"]));
        pipeline.extend(request(&["NOSUCH"]));
        let text = number.to_string();
        expected.push_str(&format!(
            ":{number}\r\n${}\r\n{text}\r\n:{number}\r\n",
            text.len()
        ));
        expected.push_str("-ERR unknown command 'NOSUCH', with args beginning with: \r\n");
    }
    socket.send(&pipeline);
    socket.end_sending();
    assert_eq!(socket.rest(), expected);
}

#[test]
fn a_request_may_arrive_byte_by_byte() {
    let server = Server::start();
    let mut socket = server.connect();
    for byte in request(&["ECHO", "a\r\nb"]) {
        socket.send([byte]);
    }
    assert_eq!(socket.reply(), "$4\r\na\r\nb\r\n");
}

#[test]
fn inline_commands_are_understood() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.send("PING\r\nPING 'a b'\n\r\nECHO \"\\x41\\n\"\r\n");
    assert_eq!(socket.reply(), "+PONG\r\n");
    assert_eq!(socket.reply(), "$3\r\na b\r\n");
    assert_eq!(socket.reply(), "$2\r\nA\n\r\n");
}

#[test]
fn what_is_not_the_protocol_ends_the_connection_with_the_reason() {
    let server = Server::start();
    for (bytes, reason) in [
        ("ECHO 'a\r\n", "unbalanced quotes in request"),
        ("*x\r\n", "invalid multibulk length"),
        ("*1048577\r\n", "invalid multibulk length"),
        ("*1\r\n#4\r\n", "expected '$', got '#'"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$536870913\r\n", "invalid bulk length"),
    ] {
        let mut socket = server.connect();
        socket.send(format!("PING\r\n{bytes}PING\r\n"));
        let expected = format!("+PONG\r\n-ERR Protocol error: {reason}\r\n");
        assert_eq!(socket.rest(), expected, "{bytes:?}");
    }
}

#[test]
fn a_client_that_still_sends_learns_why_the_connection_ends() {
    let server = Server::start();
    let argument = b"$1\r\na\r\n";
    let mut many = b"*1048577\r\n".to_vec();
    many.extend(argument.repeat(1_048_577));
    let long = vec![b'x'; 20_000_000];
    let large = [b"*2\r\n$4\r\nECHO\r\n$600000000\r\n".as_slice(), &long].concat();
    let garbage = [b"*1\r\n#".as_slice(), &long].concat();
    for (bytes, reason) in [
        (many, "invalid multibulk length"),
        (large, "invalid bulk length"),
        (long, "too big inline request"),
        (garbage, "too big bulk count string"),
    ] {
        let mut socket = server.connect();
        assert!(socket.try_send(&bytes, PATIENCE), "{reason}");
        let expected = format!("-ERR Protocol error: {reason}\r\n");
        assert_eq!(socket.rest(), expected);
    }
    let mut probe = server.connect();
    wait_until("they have left", || {
        let info = probe.run("INFO clients");
        info.contains("\r\nconnected_clients:1\r\n")
    });
}

#[test]
fn a_client_that_must_authenticate_and_still_sends_learns_why() {
    let server = Server::start_with(&["--requirepass", "secret"]);
    let large = vec![b'x'; 20_000_000];
    let bytes = [b"*2\r\n$4\r\nECHO\r\n$20000000\r\n".as_slice(), &large].concat();
    let mut socket = server.connect();
    assert!(socket.try_send(&bytes, PATIENCE));
    let expected = "-ERR Protocol error: unauthenticated bulk length\r\n";
    assert_eq!(socket.rest(), expected);
}

#[test]
fn a_client_that_does_not_end_after_an_error_is_ended() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.send("*x\r\n");
    let mut probe = server.connect();
    wait_until("it has left", || {
        let info = probe.run("INFO clients");
        info.contains("\r\nconnected_clients:1\r\n")
    });
    assert_eq!(
        socket.rest(),
        "-ERR Protocol error: invalid multibulk length\r\n"
    );
}

#[test]
fn an_inline_request_has_an_end() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.send(vec![b'x'; 70_000]);
    let reply = socket.reply();
    assert_eq!(reply, "-ERR Protocol error: too big inline request\r\n");
}

#[test]
fn before_the_password_requests_must_be_small() {
    let server = Server::start_with(&["--requirepass", "secret"]);
    let mut socket = server.connect();
    socket.send("*11\r\n");
    let reason = "-ERR Protocol error: unauthenticated multibulk length\r\n";
    assert_eq!(socket.rest(), reason);
    let mut socket = server.connect();
    socket.send("*2\r\n$4\r\nPING\r\n$16385\r\n");
    let reason = "-ERR Protocol error: unauthenticated bulk length\r\n";
    assert_eq!(socket.rest(), reason);
    let mut socket = server.connect();
    assert_eq!(socket.run("AUTH secret"), "+OK\r\n");
    let large = "x".repeat(20_000);
    assert_eq!(socket.command(&["RPUSH", "list", &large]), ":1\r\n");
}

#[test]
fn a_web_browser_is_hung_up_on() {
    let server = Server::start();
    for request in ["POST / HTTP/1.1\r\nHost: x\r\n", "Host: x\r\n"] {
        let mut socket = server.connect();
        socket.send(request);
        assert_eq!(socket.rest(), "", "{request:?}");
    }
}

#[test]
fn what_stands_before_a_web_request_is_carried_out() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.send("RPUSH list a\r\nPOST / HTTP/1.1\r\n");
    socket.rest();
    assert_eq!(server.connect().run("LLEN list"), ":1\r\n");
}

#[test]
fn unknown_commands_and_wrong_numbers_of_arguments_are_answered_as_in_redis() {
    let server = Server::start();
    let mut socket = server.connect();
    for (line, refusal) in [
        ("FOO", "unknown command 'FOO', with args beginning with: "),
        (
            "FOO a b",
            "unknown command 'FOO', with args beginning with: 'a' 'b' ",
        ),
        ("LPUSH a", "wrong number of arguments for 'lpush' command"),
        ("CLIENT", "wrong number of arguments for 'client' command"),
        (
            "CLIENT ID x",
            "wrong number of arguments for 'client|id' command",
        ),
        ("CLIENT FOO", "unknown subcommand 'FOO'. Try CLIENT HELP."),
        (
            "DEBUG FOO",
            "unknown subcommand or wrong number of arguments for 'FOO'. Try DEBUG HELP.",
        ),
    ] {
        assert_eq!(socket.run(line), format!("-ERR {refusal}\r\n"), "{line}");
    }
    let long = "x".repeat(200);
    let reply = socket.command(&["FOO", &long, "b"]);
    let shown = &long[..128];
    assert_eq!(
        reply,
        format!("-ERR unknown command 'FOO', with args beginning with: '{shown}' \r\n")
    );
}

#[test]
fn a_client_can_ask_not_to_be_answered() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("CLIENT REPLY ON"), "+OK\r\n");
    socket.send("CLIENT REPLY SKIP\r\nPING\r\nPING a\r\n");
    assert_eq!(socket.reply(), "$1\r\na\r\n");
    socket.send("CLIENT REPLY SKIP\r\nRPUSH list a\r\nRPUSH list b\r\n");
    assert_eq!(socket.reply(), ":2\r\n");
    socket.send("CLIENT REPLY OFF\r\nPING\r\nRPUSH list c\r\nNOSUCH\r\nCLIENT REPLY SKIP\r\n");
    assert!(socket.is_silent_for(Duration::from_millis(100)));
    assert_eq!(socket.run("CLIENT REPLY ON"), "+OK\r\n");
    assert_eq!(socket.run("LLEN list"), ":3\r\n");
}

#[test]
fn a_skip_holds_for_the_reset_behind_it() {
    play(
        "a>> CLIENT REPLY SKIP
         a>> RESET
         a: PING => +PONG|",
    );
}

#[test]
fn who_wants_no_replies_is_not_told_what_is_not_the_protocol() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.send("CLIENT REPLY OFF\r\n*abc\r\n");
    assert_eq!(socket.rest(), "");
}

#[test]
fn a_skip_within_exec_holds_for_the_command_behind_it() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.send("MULTI\r\nCLIENT REPLY SKIP\r\nRPUSH list a\r\nEXEC\r\nPING\r\nECHO x\r\n");
    let expected = "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n$1\r\nx\r\n";
    let mut answered = String::new();
    while answered.len() < expected.len() {
        answered.push_str(&socket.reply());
    }
    assert_eq!(answered, expected);
}
