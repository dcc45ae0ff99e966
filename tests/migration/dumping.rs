//! DUMP and RESTORE both ways.

use crate::resp::{Connection, Value};
use crate::server::Server;
use crate::start_redis;
use crate::values::{Held, Values};
use quoin_rdb::testing::{hashes, number_sets, old_lists, old_sets, sealed, sets, strings};

const VALUES: usize = 80;
const SEED: u64 = 1;
/// Bytes after a payload's value, which contain the version.
const FOOTER_BYTES: usize = 10;

struct Pair {
    quoin: Connection,
    redis: Connection,
    /// They end with the test.
    servers: (Server, crate::redis_server::Redis, tempfile::TempDir),
}

impl Pair {
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let redis = start_redis(folder.path())?;
        let server = Server::start();
        let mut pair = Self {
            quoin: Connection::open(server.address()).unwrap(),
            redis: Connection::open(redis.address().unwrap()).unwrap(),
            servers: (server, redis, folder),
        };
        // Redis checks the content of payloads only if configured to.
        pair.set_redis("sanitize-dump-payload", "yes");
        Some(pair)
    }

    fn is_before_72(&self) -> bool {
        self.servers.1.version() < (7, 2)
    }

    fn set_redis(&mut self, name: &str, value: &str) {
        let reply = self.redis.command(&["CONFIG", "SET", name, value]);
        assert_eq!(reply.unwrap(), ok());
    }
}

fn ok() -> Value {
    Value::Line(b'+', b"OK".to_vec())
}

fn dump(connection: &mut Connection, key: &[u8]) -> Vec<u8> {
    let reply = connection.command(&[b"DUMP", key]).unwrap();
    reply.bytes().unwrap().to_vec()
}

fn restore(connection: &mut Connection, key: &[u8], payload: &[u8]) -> Value {
    let words = [b"RESTORE", key, b"0", payload];
    connection.command(&words).unwrap()
}

#[test]
fn what_redis_dumps_quoin_restores_and_the_other_way_round() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    let mut values = Values::new(SEED);
    for number in 0..VALUES {
        let value = values.next();
        let key = format!("key{number}").into_bytes();
        value.put(&mut pair.redis, &key);
        let payload = dump(&mut pair.redis, &key);
        assert_eq!(
            restore(&mut pair.quoin, &key, &payload),
            ok(),
            "value {number}"
        );
        assert_eq!(
            Held::get(&mut pair.quoin, &key).as_ref(),
            Some(&value),
            "value {number}"
        );

        let back = [b"back-", key.as_slice()].concat();
        let payload = dump(&mut pair.quoin, &key);
        assert_eq!(
            restore(&mut pair.redis, &back, &payload),
            ok(),
            "value {number}"
        );
        assert_eq!(
            Held::get(&mut pair.redis, &back),
            Some(value),
            "value {number}"
        );
    }
}

#[test]
fn quoin_writes_the_bytes_that_redis_writes_without_compression() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    pair.set_redis("rdbcompression", "no");
    let mut values = Values::new(SEED + 1);
    for number in 0..VALUES {
        let mut value = values.next();
        if !value.has_one_form() {
            continue;
        }
        if let Held::Set(members) = &mut value
            && pair.is_before_72()
        {
            // It writes others with more digits than they need.
            for (_, score) in members.iter_mut().filter(|(_, score)| score.is_finite()) {
                *score = (*score % 1e6).trunc() + 0.0;
            }
        }
        let key = format!("key{number}").into_bytes();
        value.put(&mut pair.redis, &key);
        value.put(&mut pair.quoin, &key);
        let ours = dump(&mut pair.quoin, &key);
        let theirs = dump(&mut pair.redis, &key);
        let ours = &ours[..ours.len() - FOOTER_BYTES];
        let theirs = &theirs[..theirs.len() - FOOTER_BYTES];
        assert!(
            ours == theirs,
            "value {number}: {:?}",
            Value::Blob(b'$', Some(ours.to_vec()))
        );
    }
}

#[test]
fn payloads_of_old_versions_are_read_as_redis_reads_them() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    let mut values = Values::new(SEED + 2);
    for number in 0..VALUES {
        let value = values.next();
        let payloads = match &value {
            // Other forms are of numbers.
            Held::String(string) if !string.is_empty() => strings(string)[..2].to_vec(),
            Held::String(_) | Held::Stream(..) => continue,
            Held::List(elements) => old_lists(elements),
            Held::Set(members) => old_sets(members),
            Held::Hash(fields) => hashes(fields),
            // Redis before 7.2 does not read the last.
            Held::Members(members) => match value.numbers() {
                Some(numbers) => number_sets(&numbers),
                None => sets(members)[..1].to_vec(),
            },
        };
        for (form, payload) in payloads {
            let key = format!("key{number}-{form}").into_bytes();
            assert_eq!(
                restore(&mut pair.redis, &key, &payload),
                ok(),
                "{form} {number}"
            );
            assert_eq!(
                restore(&mut pair.quoin, &key, &payload),
                ok(),
                "{form} {number}"
            );
            let theirs = Held::get(&mut pair.redis, &key);
            assert_eq!(Held::get(&mut pair.quoin, &key), theirs, "{form} {number}");
            assert_eq!(theirs.as_ref(), Some(&value), "{form} {number}");
        }
    }
}

#[test]
fn redis_migrates_keys_to_quoin() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    let mut values = Values::new(SEED + 4);
    let held: Vec<(String, Held)> = (0..30)
        .map(|number| (format!("key{number}"), values.next()))
        .collect();
    for (key, value) in &held {
        value.put(&mut pair.redis, key.as_bytes());
    }
    pair.redis.command(&["PEXPIRE", "key3", "1000000"]).unwrap();
    let port = pair.servers.0.address().port().to_string();
    let mut words = vec![
        "MIGRATE",
        "127.0.0.1",
        &port,
        "",
        "2",
        "5000",
        "REPLACE",
        "KEYS",
    ];
    words.extend(held.iter().map(|(key, _)| key.as_str()));
    assert_eq!(pair.redis.command(&words).unwrap(), ok());
    pair.quoin.command(&["SELECT", "2"]).unwrap();
    for (key, value) in &held {
        assert_eq!(
            Held::get(&mut pair.quoin, key.as_bytes()).as_ref(),
            Some(value),
            "{key}"
        );
        assert_eq!(Held::get(&mut pair.redis, key.as_bytes()), None, "{key}");
    }
    let left = pair
        .quoin
        .command(&["PTTL", "key3"])
        .unwrap()
        .integer()
        .unwrap();
    assert!((900_000..=1_000_000).contains(&left), "{left}");
}

/// Redis may accept more, such as a length that extends into the footer. Everything that Quoin
/// accepts, Redis accepts too, and both read it as the same value.
#[test]
fn what_quoin_takes_of_damaged_payloads_redis_takes_too() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    let mut values = Values::new(SEED + 3);
    let mut taken = 0;
    let mut refused = 0;
    for number in 0..VALUES * 10 {
        let value = values.next().cut_to(9);
        pair.redis.command(&["DEL", "whole", "damaged"]).unwrap();
        pair.quoin.command(&["DEL", "damaged"]).unwrap();
        value.put(&mut pair.redis, b"whole");
        let mut bytes = dump(&mut pair.redis, b"whole");
        bytes.truncate(bytes.len() - FOOTER_BYTES);
        // Not the type, and early bytes rather than late ones, because the structure is there.
        let place = 1 + (number * 7) % bytes.len().min(60).saturating_sub(1).max(1);
        bytes[place] ^= 1 << (number % 8);
        let payload = sealed(10, &bytes);
        let ours = restore(&mut pair.quoin, b"damaged", &payload);
        if ours == ok() {
            taken += 1;
            assert_eq!(
                restore(&mut pair.redis, b"damaged", &payload),
                ok(),
                "value {number}"
            );
            let theirs = Held::get(&mut pair.redis, b"damaged");
            assert_eq!(
                Held::get(&mut pair.quoin, b"damaged"),
                theirs,
                "value {number}"
            );
        } else {
            refused += 1;
            assert_eq!(
                ours.error(),
                Some(&b"ERR Bad data format"[..]),
                "value {number}"
            );
        }
    }
    assert!(
        taken > 50 && refused > 50,
        "{taken} taken, {refused} refused"
    );
}

#[test]
fn streams_go_both_ways_with_their_groups() {
    let Some(mut pair) = Pair::start() else {
        return;
    };
    let mut commands: Vec<String> = Vec::new();
    for number in 1..350 {
        let name = match number % 40 {
            39 => "other",
            _ => "field",
        };
        let value = "x".repeat(number % 90);
        commands.push(format!(
            "XADD s {}-{number} {name} {number} v v{value}",
            number / 3
        ));
    }
    commands.extend(
        [
            "XDEL s 0-1 5-16 116-349",
            "XTRIM s MAXLEN 300",
            "XGROUP CREATE s first 0",
            "XGROUP CREATE s second $ ENTRIESREAD 7",
            "XGROUP CREATE s third 90",
            "XREADGROUP GROUP first one COUNT 40 STREAMS s >",
            "XREADGROUP GROUP first two COUNT 3 STREAMS s >",
            "XCLAIM s first two 0 30-90",
            "XGROUP CREATECONSUMER s third idle",
            "XGROUP CREATE empty g 0 MKSTREAM",
            "XADD numbers 18446744073709551615-1 -1 9223372036854775807",
        ]
        .map(str::to_owned),
    );
    for line in commands {
        let words: Vec<&str> = line.split(' ').collect();
        let reply = pair.redis.command(&words).unwrap();
        assert_eq!(reply.error(), None, "{line}");
    }
    for key in ["s", "empty", "numbers"] {
        let payload = dump(&mut pair.redis, key.as_bytes());
        assert_eq!(restore(&mut pair.quoin, key.as_bytes(), &payload), ok());
        let all = ["XRANGE", key, "-", "+"];
        assert_eq!(
            pair.quoin.command(&all).unwrap(),
            pair.redis.command(&all).unwrap()
        );
        let back = format!("back-{key}");
        let payload = dump(&mut pair.quoin, key.as_bytes());
        assert_eq!(restore(&mut pair.redis, back.as_bytes(), &payload), ok());
        let mut full = |key: &str| {
            let words = ["XINFO", "STREAM", key, "FULL", "COUNT", "0"];
            let reply = pair.redis.command(&words).unwrap();
            // Nodes may end at other places.
            let items = reply.items().unwrap().to_vec();
            [items[..2].to_vec(), items[6..].to_vec()].concat()
        };
        assert_eq!(full(key), full(&back), "{key}");
    }
}
