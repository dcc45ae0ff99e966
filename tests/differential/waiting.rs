//! How SLOWLOG, INFO commandstats and MONITOR show commands that waited, compared with Redis.

use std::time::{Duration, Instant};

use crate::redis_server::Redis;
use crate::resp::{Connection, Value};
use crate::server::Server;

/// How long a command waits at least before it is served.
const WAIT: Duration = Duration::from_millis(120);

/// Commands that wait, each with what ends the wait. Without that, the timeout does.
type Waiting = (&'static str, Option<&'static str>);

/// They get something.
const SERVED: &[Waiting] = &[
    ("BLPOP list 0", Some("RPUSH list a")),
    ("BRPOP other list 0", Some("RPUSH list a")),
    ("BLMOVE list moved LEFT RIGHT 0", Some("RPUSH list a")),
    ("BRPOPLPUSH list moved 0", Some("RPUSH list a")),
    ("BLMPOP 0 1 list LEFT", Some("RPUSH list a")),
    ("BZPOPMIN zset 0", Some("ZADD zset 1 a")),
    ("BZPOPMAX zset 0", Some("ZADD zset 1 a")),
    ("BZMPOP 0 1 zset MIN", Some("ZADD zset 1 a")),
    ("XREAD BLOCK 0 STREAMS stream $", Some("XADD stream * f v")),
    (
        "XREADGROUP GROUP g c BLOCK 0 STREAMS grouped >",
        Some("XADD grouped * f v"),
    ),
    (
        "XREADGROUP GROUP g c BLOCK 0 STREAMS grouped >",
        Some("DEL grouped"),
    ),
];

/// They get nothing. Redis 7.0 forgets some of them.
const UNSERVED: &[Waiting] = &[
    ("BLPOP timed 0.15", None),
    ("XREAD BLOCK 150 STREAMS timed $", None),
    ("BLPOP ended 0", Some("CLIENT UNBLOCK {id} ERROR")),
    ("BLPOP ended 0", Some("CLIENT UNBLOCK {id} TIMEOUT")),
    ("WAIT 1 150", None),
    ("WAIT 1 0", Some("CLIENT UNBLOCK {id} ERROR")),
    ("WAIT 1 0", Some("CLIENT UNBLOCK {id} TIMEOUT")),
];

fn command(connection: &mut Connection, line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    connection.command(&words).unwrap()
}

fn text(value: &Value) -> String {
    match value.bytes() {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => format!("{value:?}"),
    }
}

/// What one server shows about all waiting commands: entries of the slow log with whether they
/// include the wait, and the counts of commands.
fn shown(all: &[Waiting], mut open: impl FnMut() -> Connection) -> (Vec<String>, Vec<String>) {
    let mut control = open();
    let mut waiter = open();
    let id = command(&mut waiter, "CLIENT ID").integer().unwrap();
    command(&mut control, "XGROUP CREATE grouped g $ MKSTREAM");
    command(&mut control, "CONFIG SET slowlog-log-slower-than 0");
    command(&mut control, "CONFIG SET slowlog-max-len 1000");
    command(&mut control, "CONFIG RESETSTAT");
    command(&mut control, "SLOWLOG RESET");
    for (waiting, served_by) in all {
        let words: Vec<&str> = waiting.split(' ').collect();
        let started = Instant::now();
        waiter.send_raw(&crate::resp::encode(&words)).unwrap();
        while !text(&command(&mut control, "INFO clients")).contains("blocked_clients:1") {
            assert!(started.elapsed() < Duration::from_secs(10), "{waiting}");
        }
        std::thread::sleep(WAIT.saturating_sub(started.elapsed()));
        if let Some(line) = served_by {
            command(&mut control, &line.replace("{id}", &id.to_string()));
        }
        waiter.read().unwrap();
        assert!(started.elapsed() >= WAIT);
    }
    let names: Vec<&str> = all
        .iter()
        .map(|(line, _)| &line[..line.find(' ').unwrap()])
        .collect();
    let log = command(&mut control, "SLOWLOG GET -1");
    let mut entries: Vec<String> = Vec::new();
    for entry in log.items().unwrap() {
        let [_, _, duration, arguments, ..] = entry.items().unwrap() else {
            panic!("{entry:?}");
        };
        let arguments: Vec<String> = arguments.items().unwrap().iter().map(text).collect();
        if arguments
            .first()
            .is_none_or(|name| names.contains(&name.as_str()))
        {
            let counts_wait = i128::from(duration.integer().unwrap()) >= WAIT.as_micros() as i128;
            entries.push(format!(
                "{} counts the wait: {counts_wait}",
                arguments.join(" ")
            ));
        }
    }
    let info = text(&command(&mut control, "INFO commandstats"));
    let mut counts: Vec<String> = Vec::new();
    for line in info
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_"))
    {
        let (name, values) = line.split_once(':').unwrap();
        if names.contains(&name.to_ascii_uppercase().as_str()) {
            let values: Vec<&str> = values.split(',').collect();
            let took: u128 = values[1].strip_prefix("usec=").unwrap().parse().unwrap();
            let counts_wait = took >= WAIT.as_micros();
            counts.push(format!(
                "{name} {} {} {} counts the wait: {counts_wait}",
                values[0], values[3], values[4]
            ));
        }
    }
    counts.sort();
    (entries, counts)
}

#[test]
fn commands_that_waited_are_logged_and_counted_as_in_redis() {
    let redis = Redis::start().unwrap();
    let theirs = shown(SERVED, || Connection::open_unix(redis.socket()).unwrap());
    assert_eq!(theirs.0.len(), SERVED.len());
    let quoin = Server::start();
    let ours = shown(SERVED, || Connection::open(quoin.address()).unwrap());
    assert_eq!(ours, theirs);
}

#[test]
fn commands_that_waited_in_vain_are_logged_and_counted() {
    let quoin = Server::start();
    let (mut entries, counts) = shown(UNSERVED, || Connection::open(quoin.address()).unwrap());
    entries.reverse();
    let expected: Vec<String> = UNSERVED
        .iter()
        .map(|(line, _)| format!("{line} counts the wait: false"))
        .collect();
    assert_eq!(entries, expected);
    let expected = [
        "blpop calls=3 rejected_calls=0 failed_calls=1 counts the wait: false",
        "wait calls=3 rejected_calls=0 failed_calls=1 counts the wait: false",
        "xread calls=1 rejected_calls=0 failed_calls=0 counts the wait: false",
    ];
    assert_eq!(counts, expected);
}

#[test]
fn a_command_is_monitored_when_it_begins_to_wait() {
    let redis = Redis::start().unwrap();
    let quoin = Server::start();
    let opened: [&dyn Fn() -> Connection; 2] =
        [&|| Connection::open_unix(redis.socket()).unwrap(), &|| {
            Connection::open(quoin.address()).unwrap()
        }];
    for open in opened {
        let (mut monitor, mut waiter) = (open(), open());
        command(&mut monitor, "MONITOR");
        for (line, shown) in [
            ("WAIT 1 0", r#""WAIT" "1" "0""#),
            ("BLPOP list 0", r#""BLPOP" "list" "0""#),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            waiter.send_raw(&crate::resp::encode(&words)).unwrap();
            // Within the time that a connection waits for a reply.
            let seen = format!("{:?}", monitor.read().unwrap());
            assert!(seen.replace('\\', "").contains(shown), "{seen}");
            waiter = open();
        }
    }
}
