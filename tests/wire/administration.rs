//! CONFIG, SLOWLOG, LATENCY, COMMAND, DEBUG, TIME.

use std::time::{Duration, Instant};

use crate::server::Server;

#[test]
fn slow_commands_are_remembered_with_trimmed_arguments() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(socket.run("SLOWLOG LEN"), ":0\r\n");
    assert_eq!(
        socket.run("CONFIG SET slowlog-log-slower-than 0"),
        "+OK\r\n"
    );
    socket.run("CLIENT SETNAME worker");
    let long = "x".repeat(200);
    socket.command(&["RPUSH", "list", &long]);
    let log = socket.run("SLOWLOG GET 1");
    assert!(log.starts_with("*1\r\n*6\r\n:"), "{log}");
    let kept = format!("{}... (72 more bytes)", "x".repeat(128));
    let arguments = format!(
        "*3\r\n$5\r\nRPUSH\r\n$4\r\nlist\r\n${}\r\n{kept}\r\n",
        kept.len()
    );
    let address = socket.local_address().to_string();
    let client = format!("${}\r\n{address}\r\n$6\r\nworker\r\n", address.len());
    assert!(log.ends_with(&(arguments + &client)), "{log}");
    assert_eq!(
        socket.run("CONFIG SET slowlog-log-slower-than -1"),
        "+OK\r\n"
    );
    assert_eq!(socket.run("SLOWLOG RESET"), "+OK\r\n");
    socket.run("PING");
    assert_eq!(socket.run("SLOWLOG GET"), "*0\r\n");
}

#[test]
fn the_slow_log_keeps_no_more_than_it_may() {
    let server = Server::start();
    let mut socket = server.connect();
    socket.run("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3");
    for _ in 0..10 {
        socket.run("LLEN list");
    }
    assert_eq!(socket.run("SLOWLOG LEN"), ":3\r\n");
}

#[test]
fn a_sleeping_client_does_not_stop_the_others() {
    let server = Server::start();
    let mut sleeper = server.connect();
    let mut other = server.connect();
    let begun = Instant::now();
    sleeper.send("DEBUG SLEEP 2\r\n");
    assert_eq!(other.run("PING"), "+PONG\r\n");
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert_eq!(sleeper.reply(), "+OK\r\n");
    assert!(begun.elapsed() >= Duration::from_secs(2));
}

#[test]
fn debug_error_answers_the_error_that_it_is_given() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(
        socket.command(&["DEBUG", "ERROR", "LOADING fake\r\nmessage"]),
        "-LOADING fake  message\r\n"
    );
}

#[test]
fn slow_events_are_monitored() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(
        socket.run("CONFIG SET latency-monitor-threshold 10"),
        "+OK\r\n"
    );
    assert_eq!(socket.run("LATENCY LATEST"), "*0\r\n");
    socket.run("DEBUG SLEEP 0.05");
    let latest = socket.run("LATENCY LATEST");
    assert!(
        latest.starts_with("*1\r\n*4\r\n$7\r\ncommand\r\n:"),
        "{latest}"
    );
    assert!(
        socket
            .run("LATENCY HISTORY command")
            .starts_with("*1\r\n*2\r\n:")
    );
    assert_eq!(socket.run("LATENCY RESET"), ":1\r\n");
    assert_eq!(socket.run("LATENCY HISTORY command"), "*0\r\n");
    let histogram = socket.run("LATENCY HISTOGRAM debug");
    assert!(
        histogram.starts_with("*2\r\n$5\r\ndebug\r\n*4\r\n$5\r\ncalls\r\n:1\r\n"),
        "{histogram}"
    );
}

#[test]
fn settings_are_written_back_to_the_settings_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quoin.toml");
    std::fs::write(&file, "# mine\nmaxclients = 50\n").unwrap();
    let path = file.display().to_string();
    let server = Server::start_in(folder.path(), &["--config", &path]).unwrap();
    let mut socket = server.connect();
    assert_eq!(socket.run("CONFIG SET maxclients 60"), "+OK\r\n");
    assert_eq!(socket.run("CONFIG REWRITE"), "+OK\r\n");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("# mine") && text.contains("maxclients = 60"),
        "{text}"
    );
    let other = Server::start();
    assert_eq!(
        other.connect().run("CONFIG REWRITE"),
        "-ERR The server is running without a config file\r\n"
    );
}

#[test]
fn commands_describe_themselves() {
    let server = Server::start();
    let mut socket = server.connect();
    assert_eq!(
        socket.run("COMMAND INFO lmove nosuch"),
        "*2\r\n*10\r\n$5\r\nlmove\r\n:5\r\n*2\r\n+write\r\n+denyoom\r\n:1\r\n:2\r\n:1\r\n*3\r\n\
         +@write\r\n+@list\r\n+@slow\r\n*0\r\n*2\r\n\
         *6\r\n$5\r\nflags\r\n*3\r\n+RW\r\n+access\r\n+delete\r\n\
         $12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n\
         $9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n\
         $7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n\
         *6\r\n$5\r\nflags\r\n*2\r\n+RW\r\n+insert\r\n\
         $12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:2\r\n\
         $9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n\
         $7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n$-1\r\n"
    );
    assert_eq!(
        socket.run("COMMAND GETKEYS ZUNIONSTORE d 2 a b"),
        "*3\r\n$1\r\nd\r\n$1\r\na\r\n$1\r\nb\r\n"
    );
    assert_eq!(
        socket.run("COMMAND GETKEYSANDFLAGS SORT a STORE b"),
        "*2\r\n*2\r\n$1\r\na\r\n*2\r\n+RO\r\n+access\r\n*2\r\n$1\r\nb\r\n*2\r\n+OW\r\n+update\r\n"
    );
    assert_eq!(
        socket.run("COMMAND LIST FILTERBY PATTERN lpush*"),
        "*2\r\n$5\r\nlpush\r\n$6\r\nlpushx\r\n"
    );
    assert_eq!(socket.run("COMMAND GETKEYS EVAL x 0"), "*0\r\n");
    assert_eq!(
        socket.run("COMMAND GETKEYS LMPOP 0 a LEFT"),
        "-ERR Invalid arguments specified for command\r\n"
    );
    assert_eq!(
        socket.run("COMMAND GETKEYS PING"),
        "-ERR The command has no key arguments\r\n"
    );
}

#[test]
fn the_time_is_in_seconds_and_microseconds() {
    let server = Server::start();
    let mut socket = server.connect();
    let time = socket.run("TIME");
    let words: Vec<_> = time.split("\r\n").collect();
    let seconds: u64 = words[2].parse().unwrap();
    let now = std::time::SystemTime::now();
    let now_s = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(now_s.abs_diff(seconds) <= 5, "{time}");
    assert!(words[4].parse::<u64>().unwrap() < 1_000_000);
}
