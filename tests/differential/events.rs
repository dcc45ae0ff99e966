//! Keyspace events: the same random commands on both servers, and the events that subscribers
//! receive.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::keys::Step;
use crate::redis_server::Redis;
use crate::resp::{Connection, Words};
use crate::server::Server;
use crate::servers::show;

const DURATION: Duration = Duration::from_secs(10);
const STEPS_MAX: usize = 4_000;

/// A server with a subscriber of everything.
struct Subscribed {
    commands: Connection,
    listener: Connection,
}

impl Subscribed {
    fn new(mut commands: Connection, mut listener: Connection) -> Self {
        for words in [
            &["CONFIG", "SET", "notify-keyspace-events", "KEAn"][..],
            &["FLUSHALL"],
        ] {
            assert_eq!(commands.command(words).unwrap().error(), None);
        }
        listener.command(&["PSUBSCRIBE", "*"]).unwrap();
        Self { commands, listener }
    }

    /// The events that a command causes, in order: channel and message.
    fn events(&mut self, words: &Words) -> Vec<(String, String)> {
        self.commands.command(words).unwrap();
        self.commands.command(&["PUBLISH", "end", ""]).unwrap();
        let mut events = Vec::new();
        loop {
            let message = self.listener.read().unwrap();
            let text = |at: usize| {
                let bytes = message.items().and_then(|items| items.get(at)?.bytes());
                bytes.unwrap_or_default().escape_ascii().to_string()
            };
            let channel = text(2);
            if channel == "end" {
                return events;
            }
            // When an expired key is removed depends on timing. Redis before 7.2 creates a consumer
            // only when it gets an entry.
            let is_compared = |event: &str| {
                text(3) != event
                    && !channel
                        .strip_suffix(event)
                        .is_some_and(|at| at.ends_with(':'))
            };
            if ["expired", "xgroup-createconsumer"]
                .into_iter()
                .all(is_compared)
            {
                let message = text(3);
                events.push((channel, message));
            }
        }
    }
}

#[test]
fn random_commands_publish_the_events_of_redis() {
    let redis = match Redis::start() {
        Ok(redis) => redis,
        Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
            let _ = writeln!(std::io::stderr(), "nothing is compared with Redis: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let quoin = Server::start();
    let connect = || Connection::open(quoin.address()).unwrap();
    let mut ours = Subscribed::new(connect(), connect());
    let connect = || Connection::open_unix(redis.socket()).unwrap();
    let mut theirs = Subscribed::new(connect(), connect());
    let started = Instant::now();
    let mut steps = 0;
    let mut events = 0;
    let mut seed = crate::number_of_environment("QUOIN_TEST_SEED").unwrap_or(crate::FIRST_SEED);
    while started.elapsed() < DURATION && steps < STEPS_MAX {
        let mut told = Vec::new();
        for batch in crate::history(seed, redis.version(), false) {
            for step in batch.steps {
                let Step::Command(words) = step else {
                    continue;
                };
                steps += 1;
                told.push(show(&words));
                let ours = ours.events(&words);
                let theirs = theirs.events(&words);
                events += theirs.len();
                assert_eq!(
                    ours,
                    theirs,
                    "QUOIN_TEST_SEED={seed}, quoin left, redis right, at the last of:\n{}",
                    told.join("\n")
                );
            }
        }
        let flush: Words = vec![b"FLUSHALL".to_vec()];
        assert_eq!(ours.events(&flush), theirs.events(&flush));
        seed += 1;
    }
    assert!(events > steps / 10, "{events} events of {steps} commands");
}

#[test]
fn a_key_that_expires_is_told_by_its_channel_and_by_the_event() {
    let quoin = Server::start();
    let connect = || Connection::open(quoin.address()).unwrap();
    let mut ours = Subscribed::new(connect(), connect());
    for words in [
        &["SELECT", "3"][..],
        &["RPUSH", "list", "a"],
        &["PEXPIRE", "list", "30"],
    ] {
        assert_eq!(ours.commands.command(words).unwrap().error(), None);
    }
    let mut received = Vec::new();
    while received.len() < 8 {
        let message = ours.listener.read().unwrap();
        let words = message.items().unwrap().iter().skip(2);
        let words = words.map(|word| word.bytes().unwrap_or_default());
        received.push(words.collect::<Vec<_>>().join(&b' '));
    }
    let received: Vec<_> = received
        .iter()
        .map(|words| String::from_utf8_lossy(words).into_owned())
        .collect();
    let expected = ["new", "rpush", "expire", "expired"].into_iter();
    let expected: Vec<String> = expected
        .flat_map(|event| {
            [
                format!("__keyspace@3__:list {event}"),
                format!("__keyevent@3__:{event} list"),
            ]
        })
        .collect();
    assert_eq!(received, expected);
}
