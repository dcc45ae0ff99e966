//! HyperLogLogs: the library's bytes and Quoin's replies compared with those of `redis-server`, as
//! they grow, become dense and are merged. Also random commands on them for the mix with all
//! others.

use std::io::Write;

use quoin_data::string::hyperloglog::{Encoding, HyperLogLog, Registers};

use crate::redis_server::Redis;
use crate::resp::{Connection, Value, Words};
use crate::server::Server;
use crate::words::Dice;
use crate::{FIRST_SEED, number_of_environment};

const ROUNDS: usize = 6;
const STEPS: usize = 60;
const KEYS: usize = 3;
/// The first letter of keys in the mix.
const FAMILY: char = 'p';

/// A random command, mostly on keys that hold a HyperLogLog.
pub fn command(dice: &mut Dice) -> Words {
    let (name, arguments) = match dice.below(12) {
        0..5 => {
            let count = dice.pick(&[0, 1, 1, 3, 30, 300, 2_000]);
            let mut arguments = vec![dice.key(FAMILY)];
            arguments.extend((0..count).map(|_| match count {
                0..=3 => dice.value(),
                _ => dice.below(20_000).to_string().into_bytes(),
            }));
            ("PFADD", arguments)
        }
        5..8 => ("PFCOUNT", keys(dice)),
        8..11 => ("PFMERGE", keys(dice)),
        _ => {
            let subcommand = dice.choose_word(&["ENCODING", "DECODE", "TODENSE", "NOSUCH"]);
            ("PFDEBUG", vec![subcommand, dice.key(FAMILY)])
        }
    };
    std::iter::once(dice.word(name)).chain(arguments).collect()
}

/// One key, or several.
fn keys(dice: &mut Dice) -> Words {
    let more = dice.pick(&[0, 0, 1, 2, 3]);
    (0..=more).map(|_| dice.key(FAMILY)).collect()
}

#[test]
fn hyperloglogs_have_the_bytes_of_redis() {
    let redis = match Redis::start() {
        Ok(redis) => redis,
        Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
            let _ = writeln!(std::io::stderr(), "no HyperLogLog is compared: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let quoin = Server::start();
    let mut servers = Pair {
        quoin: Connection::open(quoin.address()).unwrap(),
        redis: Connection::open_unix(redis.socket()).unwrap(),
    };
    let mut dice = Dice::new(number_of_environment("QUOIN_TEST_SEED").unwrap_or(FIRST_SEED));
    let mut dense = 0;
    for _ in 0..ROUNDS {
        let bytes_max = dice.pick(&[3_000, 3_000, 3_000, 1_000, 100, 20, 0, 16_000]);
        let limit = bytes_max.to_string();
        let words = ["CONFIG", "SET", "hll-sparse-max-bytes", limit.as_str()];
        servers.run(&words);
        servers.run(&["FLUSHALL"]);
        let mut ours: Vec<Option<HyperLogLog>> = vec![None; KEYS];
        for _ in 0..STEPS {
            step(&mut dice, &mut servers, &mut ours, bytes_max);
        }
        let is_dense = |one: &&HyperLogLog| one.encoding() == Encoding::Dense;
        dense += ours.iter().flatten().filter(is_dense).count();
    }
    assert!(dense > 0 && dense < ROUNDS * KEYS, "{dense}");
}

/// Quoin and Redis.
struct Pair {
    quoin: Connection,
    redis: Connection,
}

impl Pair {
    /// Both replies.
    fn run<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Value {
        let theirs = self.redis.command(words).unwrap();
        let ours = self.quoin.command(words).unwrap();
        let shown: Vec<_> = words
            .iter()
            .take(3)
            .map(|word| word.as_ref().escape_ascii().to_string())
            .collect();
        assert_eq!(ours, theirs, "{shown:?}");
        theirs
    }
}

/// Adds to one, counts it or merges others into it, here and in Redis, and compares the bytes.
fn step(dice: &mut Dice, servers: &mut Pair, ours: &mut [Option<HyperLogLog>], bytes_max: usize) {
    let at = dice.below(KEYS);
    let name = at.to_string();
    match dice.below(10) {
        0 => {
            let others: Vec<usize> = (0..dice.below(3)).map(|_| dice.below(KEYS)).collect();
            let mut words = vec!["PFMERGE".to_owned(), name.clone()];
            words.extend(others.iter().map(usize::to_string));
            servers.run(&words);
            let mut registers = Registers::default();
            let mut is_dense = false;
            for one in others
                .iter()
                .chain([&at])
                .filter_map(|one| ours[*one].as_ref())
            {
                registers.merge(one).unwrap();
                is_dense |= one.encoding() == Encoding::Dense;
            }
            let merged = ours[at].get_or_insert_with(HyperLogLog::empty);
            if is_dense {
                merged.make_dense().unwrap();
            }
            merged.raise_to(&registers, bytes_max);
            merged.mark_stale();
        }
        1 | 2 => {
            let theirs = servers.run(&["PFCOUNT", &name]);
            let count = ours[at].as_mut().map_or(0, |one| match one.cached_count() {
                Some(count) => count,
                None => one.count().unwrap(),
            });
            assert_eq!(theirs, Value::Line(b':', count.to_string().into_bytes()));
        }
        _ => {
            let count = dice.pick(&[1, 3, 30, 300]);
            let elements: Vec<String> = (0..count)
                .map(|_| dice.below(20_000).to_string().repeat(dice.below(4)))
                .collect();
            let mut words = vec!["PFADD".to_owned(), name.clone()];
            words.extend(elements.clone());
            let theirs = servers.run(&words);
            let mut changes = ours[at].is_none();
            let one = ours[at].get_or_insert_with(HyperLogLog::empty);
            for element in &elements {
                changes |= one.add(element.as_bytes(), bytes_max).unwrap();
            }
            if changes {
                one.mark_stale();
            }
            let expected = u8::from(changes).to_string().into_bytes();
            assert_eq!(theirs, Value::Line(b':', expected));
        }
    }
    servers.run(&["STRLEN", &name]);
    servers.run(&["PFDEBUG", "ENCODING", &name]);
    servers.run(&["PFDEBUG", "DECODE", &name]);
    let theirs = servers.redis.command(&["GET", &name]).unwrap();
    let ours = ours[at].clone().map(HyperLogLog::into_bytes);
    assert!(
        theirs.bytes() == ours.as_deref(),
        "{name}: {ours:?} {theirs:?}"
    );
}
