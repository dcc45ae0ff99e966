//! What Redis's compact encodings show to clients: scans return small values whole, and approximate
//! trimming removes whole nodes of streams.

use std::io::Write;

use crate::redis_server::Redis;
use crate::resp::{Connection, Value};
use crate::server::Server;
use crate::words::Dice;

const SEED: u64 = 3;

/// A Quoin and a Redis with the settings that they have by themselves.
fn both(test: impl Fn(&mut dyn FnMut(&[&str]) -> [Value; 2])) {
    let redis = match Redis::start() {
        Ok(redis) => redis,
        Err(error) if std::env::var_os("QUOIN_TEST_REQUIRE_REDIS").is_none() => {
            let _ = writeln!(std::io::stderr(), "nothing is compared with Redis: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let quoin = Server::start();
    let mut ours = Connection::open(quoin.address()).unwrap();
    let mut theirs = Connection::open_unix(redis.socket()).unwrap();
    test(&mut |words| [&mut ours, &mut theirs].map(|one| one.command(words).unwrap()));
}

/// If a scan is over, how much it has returned.
fn shown(reply: &Value) -> Option<usize> {
    let [cursor, items] = reply.items().unwrap() else {
        panic!("{reply:?}");
    };
    (cursor.bytes() == Some(b"0")).then(|| items.items().unwrap().len())
}

#[test]
fn a_small_value_is_scanned_whole_where_redis_does_so() {
    both(|ask| {
        let long = "m".repeat(65);
        let just = "m".repeat(64);
        for count in [1, 65, 128, 129, 512, 513] {
            for odd in ["x", &just, &long] {
                for (add, scan) in [("SADD", "SSCAN"), ("HSET", "HSCAN"), ("ZADD", "ZSCAN")] {
                    for is_number in [true, false] {
                        ask(&["DEL", "k"]);
                        let names: Vec<String> = (1..count)
                            .map(|number| match is_number {
                                true => number.to_string(),
                                false => format!("m{number}"),
                            })
                            .chain([match (is_number, odd) {
                                (true, "x") => "0".to_owned(),
                                _ => odd.to_owned(),
                            }])
                            .collect();
                        let mut words = vec![add, "k"];
                        for name in &names {
                            match add {
                                "SADD" => words.push(name),
                                "HSET" => words.extend([name, "v"]),
                                _ => words.extend(["1", name]),
                            }
                        }
                        ask(&words);
                        // Redis's tables have pages of varying size, so only a finished scan can be
                        // compared.
                        let [ours, theirs] = ask(&[scan, "k", "0", "COUNT", "1"]);
                        let version_has_it = add != "SADD" || (is_number && odd == "x");
                        if shown(&theirs).is_some() || (version_has_it && count > 1) {
                            assert_eq!(
                                shown(&ours),
                                shown(&theirs),
                                "{add} of {count}, {is_number} {}",
                                odd.len()
                            );
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn a_set_of_short_texts_is_scanned_whole() {
    both(|ask| {
        let names: Vec<String> = (0..65).map(|number| format!("job:{number}")).collect();
        let words: Vec<&str> = ["SADD", "k"]
            .into_iter()
            .chain(names.iter().map(String::as_str))
            .collect();
        ask(&words);
        // A Redis before 7.2 has no listpack for it.
        let [ours, _] = ask(&["SSCAN", "k", "0", "COUNT", "50"]);
        assert_eq!(shown(&ours), Some(65));
    });
}

#[test]
fn streams_are_trimmed_by_whole_nodes_as_redis_trims_them() {
    both(|ask| {
        let mut dice = Dice::new(SEED);
        for (key, sizes) in [("tiny", 3), ("small", 60), ("mixed", 700), ("large", 5_000)] {
            for number in 0..600 {
                let value = "v".repeat(dice.below(sizes));
                let names = dice.pick(&["f", "g"]);
                let id = format!("{}-1", number + 1);
                let kept = dice.pick(&["45", "45", "120"]);
                ask(&["XADD", key, "MAXLEN", "~", kept, &id, names, &value]);
                let [ours, theirs] = ask(&["XLEN", key]);
                assert_eq!(ours, theirs, "{key} after {number}");
                if dice.one_in(40) {
                    let before = format!("{number}");
                    let [ours, theirs] = ask(&["XTRIM", key, "MINID", "~", &before]);
                    assert_eq!(ours, theirs, "{key} trimmed after {number}");
                }
            }
        }
    });
}
