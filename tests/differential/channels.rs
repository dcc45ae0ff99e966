//! Publish and subscribe: random commands of a subscriber and a publisher on both servers, and
//! everything that the subscriber is sent.

use std::io::Write;

use crate::redis_server::Redis;
use crate::resp::{Connection, Value};
use crate::server::Server;
use crate::words::Dice;

const ROUNDS: u64 = 40;
const ROUND_STEPS: usize = 100;

const SUBSCRIBER: &[&str] = &[
    "SUBSCRIBE",
    "PSUBSCRIBE",
    "SSUBSCRIBE",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE",
    "SUNSUBSCRIBE",
    "subscribe",
    "PING",
    "HELLO",
    "RESET",
    "LLEN",
    "CLIENT",
];
const NAMES: &[&str] = &["a", "b", "ab", "*", "a*", "[ab]", "?", "", "2", "3"];

/// A server with a subscriber and a publisher.
struct Side {
    subscriber: Connection,
    publisher: Connection,
}

impl Side {
    /// Sends a subscriber's command. Returns everything received up to the reply to a fence.
    fn subscriber(&mut self, words: &[&str], fence: &str) -> Vec<Value> {
        // A message from the publisher's last command may be in transit. It comes first.
        let mut bytes = crate::resp::encode(words);
        bytes.extend(crate::resp::encode(&["PING", fence]));
        self.subscriber.send_raw(&bytes).unwrap();
        let mut sent = Vec::new();
        loop {
            let value = self.subscriber.read().unwrap();
            let is_fence = |value: &Value| value.bytes() == Some(fence.as_bytes());
            let items = value.items().unwrap_or_default();
            let is_last = is_fence(&value) || items.iter().any(is_fence);
            sent.push(value);
            if is_last {
                return sent;
            }
        }
    }
}

fn words(dice: &mut Dice, commands: &[&'static str]) -> Vec<&'static str> {
    let mut words = vec![commands[dice.below(commands.len())]];
    for _ in 0..dice.below(4) {
        words.push(NAMES[dice.below(NAMES.len())]);
    }
    words
}

#[test]
fn subscribers_are_sent_what_redis_sends_them() {
    let redis = match Redis::start() {
        Ok(redis) => redis,
        Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
            let _ = writeln!(std::io::stderr(), "nothing is compared with Redis: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let quoin = Server::start();
    let first = crate::number_of_environment("QUOIN_TEST_SEED").unwrap_or(crate::FIRST_SEED);
    for seed in first..first + ROUNDS {
        let mut dice = Dice::new(seed);
        let connect = || Connection::open(quoin.address()).unwrap();
        let mut ours = Side {
            subscriber: connect(),
            publisher: connect(),
        };
        let connect = || Connection::open_unix(redis.socket()).unwrap();
        let mut theirs = Side {
            subscriber: connect(),
            publisher: connect(),
        };
        let mut told = Vec::new();
        for step in 0..ROUND_STEPS {
            if dice.one_in(2) {
                let commands = ["PUBLISH", "SPUBLISH", "PUBSUB NUMPAT", "PUBSUB NUMSUB"];
                let mut words = words(&mut dice, &commands);
                let split: Vec<&str> = words[0].split(' ').collect();
                words.splice(0..1, split);
                told.push(format!("publisher: {words:?}"));
                let ours = ours.publisher.command(&words).unwrap();
                let theirs = theirs.publisher.command(&words).unwrap();
                assert_eq!(ours, theirs, "seed {seed}:\n{}", told.join("\n"));
                continue;
            }
            let mut commands = words(&mut dice, SUBSCRIBER);
            if commands[0] == "CLIENT" {
                commands = vec!["CLIENT", "GETNAME"];
            }
            // Greetings contain data about the server.
            let is_greeting = commands[0] == "HELLO" && commands.len() == 2;
            if commands[0] == "HELLO" && !is_greeting {
                continue;
            }
            told.push(format!("subscriber: {commands:?}"));
            let fence = format!("fence {step}");
            let mut sent = [
                ours.subscriber(&commands, &fence),
                theirs.subscriber(&commands, &fence),
            ];
            for sent in &mut sent {
                if is_greeting {
                    sent.retain(|value| value.items().map(<[_]>::len) != Some(14));
                }
                // Patterns, and what an UNSUBSCRIBE without names ends, come in no particular
                // order, and so do the counts with them.
                sent.sort();
            }
            let show = |sent: &[Value]| format!("{sent:?}");
            let [ours, theirs] = sent;
            let is_same = ours == theirs || {
                commands.len() == 1 && ours.len() == theirs.len() && ours.len() > 2
            };
            assert!(
                is_same,
                "seed {seed}\nquoin: {}\nredis: {}\n{}",
                show(&ours),
                show(&theirs),
                told.join("\n")
            );
        }
    }
}
