//! PING, HELLO, AUTH, RESET, SELECT, QUIT.

use crate::server::Server;

#[test]
fn a_new_connection_speaks_resp2() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("PING"), "+PONG\r\n");
    assert_eq!(socket.run("PING hello"), "$5\r\nhello\r\n");
    assert_eq!(
        socket.run("PING a b"),
        "-ERR wrong number of arguments for 'ping' command\r\n"
    );
    assert_eq!(socket.run("LPOP nothing"), "$-1\r\n");
}

#[test]
fn hello_says_who_answers_and_changes_the_protocol() {
    let server = Server::start();
    let mut socket = server.connect();
    let greeting = socket.run("HELLO 2");
    assert!(
        greeting.starts_with("*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.")
    );
    assert!(greeting.ends_with("$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"));
    let greeting = socket.run("HELLO 3");
    assert!(greeting.starts_with("%7\r\n$6\r\nserver\r\n"));
    assert!(greeting.contains("$5\r\nproto\r\n:3\r\n"));
    assert_eq!(socket.run("LPOP nothing"), "_\r\n");
    assert_eq!(socket.run("RESET"), "+RESET\r\n");
    assert_eq!(socket.run("LPOP nothing"), "$-1\r\n");
}

#[test]
fn hello_refuses_what_redis_refuses() {
    let server = Server::start();
    let mut socket = server.connect();
    for (line, refusal) in [
        ("HELLO 4", "NOPROTO unsupported protocol version"),
        (
            "HELLO x",
            "ERR Protocol version is not an integer or out of range",
        ),
        (
            "HELLO 3 SETNAME",
            "ERR Syntax error in HELLO option 'SETNAME'",
        ),
        ("HELLO 3 AUTH a", "ERR Syntax error in HELLO option 'AUTH'"),
        (
            "HELLO 3 AUTH nobody x",
            "WRONGPASS invalid username-password pair or user is disabled.",
        ),
    ] {
        assert_eq!(socket.run(line), format!("-{refusal}\r\n"), "{line}");
    }
    assert_eq!(
        socket.command(&["HELLO", "3", "SETNAME", "a b"]),
        "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
    );
    assert_eq!(socket.run("PING"), "+PONG\r\n");
}

#[test]
fn hello_names_the_client() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("HELLO 3 AUTH default anything SETNAME worker");
    assert_eq!(socket.run("CLIENT GETNAME"), "$6\r\nworker\r\n");
}

#[test]
fn without_the_password_only_the_handshake_is_open() {
    let server = Server::start_with(&["--requirepass", "secret"]);
    let mut socket = server.connect();
    assert_eq!(
        socket.run("LPUSH a b"),
        "-NOAUTH Authentication required.\r\n"
    );
    assert_eq!(socket.run("PING"), "-NOAUTH Authentication required.\r\n");
    let refused = socket.run("HELLO 3");
    assert!(refused.starts_with("-NOAUTH HELLO must be called with the client already"));
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    assert_eq!(socket.run("AUTH wrong"), wrong);
    assert_eq!(socket.run("AUTH secrets"), wrong);
    assert_eq!(socket.run("AUTH nobody secret"), wrong);
    assert_eq!(socket.run("AUTH a b c"), "-ERR syntax error\r\n");
    assert_eq!(socket.run("PING"), "-NOAUTH Authentication required.\r\n");
    assert_eq!(socket.run("AUTH secret"), "+OK\r\n");
    assert_eq!(socket.run("PING"), "+PONG\r\n");
    assert_eq!(socket.run("RESET"), "+RESET\r\n");
    assert_eq!(socket.run("PING"), "-NOAUTH Authentication required.\r\n");
    assert_eq!(socket.run("AUTH default secret"), "+OK\r\n");
    assert_eq!(socket.run("RESET"), "+RESET\r\n");
    let greeting = socket.run("HELLO 3 AUTH default secret");
    assert!(greeting.starts_with("%7\r\n"), "{greeting}");
}

#[test]
fn every_wrong_password_of_a_pipeline_is_answered() {
    let server = Server::start_with(&["--requirepass", "secret"]);
    let mut socket = server.connect();
    socket.send("AUTH a\r\nAUTH b\r\nAUTH secret\r\nPING\r\n");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    for expected in [wrong, wrong, "+OK\r\n", "+PONG\r\n"] {
        assert_eq!(socket.reply(), expected);
    }
}

#[test]
fn a_password_where_none_is_set_is_refused_with_an_explanation() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(
        socket.run("AUTH secret"),
        "-ERR AUTH <password> called without any password configured for the default user. Are \
         you sure your configuration is correct?\r\n"
    );
    assert_eq!(socket.run("AUTH default whatever"), "+OK\r\n");
}

#[test]
fn a_password_that_is_set_at_run_time_holds_for_new_connections() {
    let server = Server::start();
    let mut old = server.connect();
    assert_eq!(old.run("CONFIG SET requirepass secret"), "+OK\r\n");
    assert_eq!(old.run("PING"), "+PONG\r\n");
    let mut new = server.connect();
    assert_eq!(new.run("PING"), "-NOAUTH Authentication required.\r\n");
    assert_eq!(
        old.command(&["CONFIG", "SET", "requirepass", ""]),
        "+OK\r\n"
    );
    assert_eq!(new.run("PING"), "+PONG\r\n");
}

#[test]
fn databases_are_numbered_from_0_to_15() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("SELECT 15"), "+OK\r\n");
    assert_eq!(socket.run("RPUSH list a"), ":1\r\n");
    assert_eq!(socket.run("SELECT 0"), "+OK\r\n");
    assert_eq!(socket.run("LLEN list"), ":0\r\n");
    let outside = "-ERR DB index is out of range\r\n";
    assert_eq!(socket.run("SELECT 16"), outside);
    assert_eq!(socket.run("SELECT -1"), outside);
    assert_eq!(
        socket.run("SELECT x"),
        "-ERR value is not an integer or out of range\r\n"
    );
}

#[test]
fn quit_closes_the_connection_behind_what_came_before_it() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.send("RPUSH list a\r\nQUIT\r\nRPUSH list b\r\n");
    assert_eq!(socket.rest(), ":1\r\n+OK\r\n");
    assert_eq!(server.connect().run("LLEN list"), ":1\r\n");
}

#[test]
fn a_client_library_connects_in_both_protocols() {
    let server = Server::start();
    for protocol in [2, 3] {
        let mut client = server.redis(protocol);
        let key = format!("list{protocol}");
        let length: i64 = redis::cmd("RPUSH")
            .arg(&key)
            .arg(&["a", "b"])
            .query(&mut client)
            .unwrap();
        assert_eq!(length, 2);
        let values: Vec<String> = redis::cmd("LRANGE")
            .arg(&key)
            .arg(0)
            .arg(-1)
            .query(&mut client)
            .unwrap();
        assert_eq!(values, ["a", "b"]);
        let info: String = redis::cmd("CLIENT").arg("INFO").query(&mut client).unwrap();
        assert!(info.contains(&format!(" resp={protocol} ")), "{info}");
        assert!(info.contains(" lib-name=redis-rs "), "{info}");
    }
}
