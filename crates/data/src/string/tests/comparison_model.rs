//! Random comparisons of a few short values on a few keys, some of another type, against a model.

use std::collections::BTreeMap;

use super::*;
use quoin_base::random::{Random, SeededRandom};

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// Values, with their digests.
const DIGESTS: [(&str, &str); 3] = [
    ("hello", "9555e8555c62dcfd"),
    ("", "2d06800538d394c2"),
    ("v8", "0cc76dbb41381419"),
];

/// What a key holds in the model.
#[derive(Clone, PartialEq)]
enum Held {
    String(String),
    List,
}

#[test]
fn random_commands_equal_a_model() {
    on_both_stores(|bench| {
        let random = SeededRandom::new(11);
        let pick = |from: &[&str]| from[random.below(from.len() as u64) as usize].to_owned();
        let mut model: BTreeMap<String, Held> = BTreeMap::new();
        let digests = BTreeMap::from(DIGESTS);
        for _ in 0..2_000 {
            let key = pick(&["a", "b", "c"]);
            let (value, operand) = (pick(&["hello", "", "v8"]), pick(&["hello", "", "v8"]));
            let digest = digests[operand.as_str()].to_owned();
            let held = model.get(&key).cloned();
            let old = match &held {
                Some(Held::String(old)) => bulk(old),
                _ => Reply::Null,
            };
            let is_equal = held == Some(Held::String(operand.clone()));
            let is_list = held == Some(Held::List);
            let (option, word, is_met) = match random.below(4) {
                0 => ("IFEQ", &operand, is_equal),
                1 => ("IFNE", &operand, !is_equal),
                2 => ("IFDEQ", &digest, is_equal),
                _ => ("IFDNE", &digest, !is_equal),
            };
            let words: Vec<&str>;
            let expected = match random.below(6) {
                0 => {
                    words = vec!["SET", &key, &value, option, word];
                    if is_met && !is_list {
                        model.insert(key.clone(), Held::String(value.clone()));
                    }
                    match (is_list, is_met) {
                        (true, _) => error(WRONG_TYPE),
                        (_, true) => Reply::OK,
                        (_, false) => Reply::Null,
                    }
                }
                1 => {
                    words = vec!["SET", &key, &value, "GET", option, word];
                    if is_met && !is_list {
                        model.insert(key.clone(), Held::String(value.clone()));
                    }
                    match is_list {
                        true => error(WRONG_TYPE),
                        false => old,
                    }
                }
                2 => {
                    words = vec!["DELEX", &key, option, word];
                    let removes = held.is_some() && !is_list && is_met;
                    if removes {
                        model.remove(&key);
                    }
                    match is_list {
                        true => {
                            error("ERR Key should be of string type if conditions are specified")
                        }
                        false => Reply::Integer(i64::from(removes)),
                    }
                }
                3 => {
                    words = vec!["DELIFEQ", &key, &operand];
                    if is_equal {
                        model.remove(&key);
                    }
                    match is_list {
                        true => error(WRONG_TYPE),
                        false => Reply::Integer(i64::from(is_equal)),
                    }
                }
                4 => {
                    words = vec!["DIGEST", &key];
                    match &held {
                        Some(Held::String(old)) => bulk(digests[old.as_str()]),
                        Some(Held::List) => error(WRONG_TYPE),
                        None => Reply::Null,
                    }
                }
                _ if random.below(3) == 0 => {
                    words = vec!["DELEX", &key];
                    Reply::Integer(i64::from(model.remove(&key).is_some()))
                }
                _ if held.is_none() => {
                    words = vec!["RPUSH", &key, "x"];
                    model.insert(key.clone(), Held::List);
                    Reply::Integer(1)
                }
                _ => {
                    words = vec!["EXISTS", &key];
                    Reply::Integer(1)
                }
            };
            let bytes: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(bench.run_words(&bytes), expected, "{words:?}");
        }
    });
}
