use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use quoin_layout::{Id, Meta, Space, ValueType, encode_counter};

fn names(reply: Reply) -> BTreeSet<String> {
    let Reply::Array(items) = reply else {
        panic!("not an array: {reply:?}");
    };
    items
        .into_iter()
        .map(|item| match item {
            Reply::Bulk(name) => String::from_utf8(name.to_vec()).unwrap(),
            other => panic!("not a name: {other:?}"),
        })
        .collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// One step of SCAN: the next cursor and the names, with repetitions.
fn step(bench: &Bench, cursor: &str, options: &str) -> (String, Vec<String>) {
    let Reply::Array(parts) = bench.run(&format!("SCAN {cursor} {options}")) else {
        panic!("not an array");
    };
    let [Reply::Bulk(cursor), Reply::Array(items)] = parts.as_slice() else {
        panic!("not a cursor and names: {parts:?}");
    };
    let text = |item: &Reply| match item {
        Reply::Bulk(name) => String::from_utf8(name.to_vec()).unwrap(),
        other => panic!("not a name: {other:?}"),
    };
    (
        String::from_utf8(cursor.to_vec()).unwrap(),
        items.iter().map(text).collect(),
    )
}

fn scan_all(bench: &Bench, options: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let (next, names) = step(bench, &cursor, options);
        all.extend(names);
        if next == "0" {
            all.sort();
            return all;
        }
        cursor = next;
    }
}

#[test]
fn keys_returns_the_names_that_match() {
    on_both_stores(|bench| {
        for name in ["one", "two", "three"] {
            bench.run(&format!("RPUSH {name} 1"));
        }
        bench.run_words(&[b"RPUSH", b"", b"1"]);
        assert_eq!(
            names(bench.run("KEYS *")),
            set(&["", "one", "two", "three"])
        );
        assert_eq!(names(bench.run("KEYS t*")), set(&["two", "three"]));
        assert_eq!(names(bench.run("KEYS **")), set(&["one", "two", "three"]));
        assert_eq!(names(bench.run("KEYS ?n[ef]")), set(&["one"]));
    });
}

#[test]
fn scan_returns_every_key_once_whatever_the_count() {
    on_both_stores(|bench| {
        let mut expected: Vec<String> = (0..50).map(|number| format!("key:{number}")).collect();
        for name in &expected {
            bench.run(&format!("RPUSH {name} 1"));
        }
        let (cursor, names) = step(bench, "0", "");
        assert_eq!(names.len(), 10);
        assert_ne!(cursor, "0");
        make_emptied_list(bench, "empty");
        expected.sort();
        for count in [1, 7, 50, 1000] {
            assert_eq!(scan_all(bench, &format!("COUNT {count}")), expected);
        }
        assert_eq!(scan_all(bench, "MATCH key:1? TYPE LIST").len(), 10);
        assert_eq!(scan_all(bench, "TYPE zset").len(), 0);
        assert_eq!(scan_all(bench, "TYPE hash").len(), 0);
        assert_eq!(scan_all(bench, "TYPE nosuch").len(), 0);
    });
}

/// Writes metadata and length of a key as if its name had this hash.
fn forge_key(bench: &Bench, hash: u64, name: &str) {
    let meta = Meta {
        value_type: ValueType::List,
        data: Id {
            instance: 0,
            sequence: hash,
        },
        expire_at_ms: None,
        long_name: None,
        inline: None,
        rank_levels: 0,
        fields_expire: false,
        is_kept: false,
    };
    let space = Space::Keys as u64;
    let key = foundationdb_tuple::pack(&("test", space, 0, 0, hash, name.as_bytes()));
    let transaction = bench.store.begin_write().unwrap();
    transaction.set(&key, &meta.encode());
    let layout = &bench.executor.environment().layout;
    transaction.set(&layout.length_key(&key), &encode_counter(1));
    bench.block_on(transaction.commit()).unwrap();
}

#[test]
fn scan_never_parts_keys_of_one_hash() {
    on_both_stores(|bench| {
        for (hash, name) in [(5, "a"), (7, "b"), (7, "c"), (7, "d"), (9, "e")] {
            forge_key(bench, hash, name);
        }
        assert_eq!(
            step(bench, "0", "COUNT 1"),
            ("6".to_owned(), vec!["a".to_owned()])
        );
        let together = ["b", "c", "d"].map(str::to_owned).to_vec();
        assert_eq!(
            step(bench, "6", "COUNT 1"),
            ("8".to_owned(), together.clone())
        );
        assert_eq!(step(bench, "6", "COUNT 2"), ("8".to_owned(), together));
        assert_eq!(
            step(bench, "8", "COUNT 1"),
            ("0".to_owned(), vec!["e".to_owned()])
        );
    });
}

#[test]
fn a_cursor_behind_all_keys_is_the_end() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        for cursor in ["281474976710656", "18446744073709551615", "-1"] {
            assert_eq!(step(bench, cursor, ""), ("0".to_owned(), Vec::new()));
        }
        assert_eq!(step(bench, "+0", "").1, ["a"]);
    });
}

#[test]
fn refusals_of_scan_are_those_of_redis() {
    let bench = Bench::embedded();
    let cases = [
        ("SCAN x", "ERR invalid cursor"),
        ("SCAN 1x FOO", "ERR invalid cursor"),
        ("SCAN +", "ERR invalid cursor"),
        ("SCAN 18446744073709551616", "ERR invalid cursor"),
        ("SCAN 0 COUNT 0", "ERR syntax error"),
        ("SCAN 0 COUNT", "ERR syntax error"),
        (
            "SCAN 0 COUNT x",
            "ERR value is not an integer or out of range",
        ),
        ("SCAN 0 FOO bar", "ERR syntax error"),
        ("SCAN 0 MATCH", "ERR syntax error"),
    ];
    for (command, line) in cases {
        assert_eq!(bench.run(command), error(line), "{command}");
    }
    assert_eq!(
        bench.run_words(&[b"SCAN", b" 0"]),
        error("ERR invalid cursor")
    );
}

#[test]
fn randomkey_returns_a_key_of_the_database() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("RANDOMKEY"), Reply::Null);
        for number in 0..20 {
            make_emptied_list(bench, &format!("empty:{number}"));
        }
        bench.run("RPUSH a 1");
        bench.run_in(1, &[b"RPUSH", b"b", b"1"]);
        for _ in 0..20 {
            assert_eq!(bench.run("RANDOMKEY"), bulk("a"));
        }
        for number in 0..20 {
            bench.run(&format!("RPUSH key:{number} 1"));
        }
        let seen: BTreeSet<String> = (0..100)
            .flat_map(|_| names(Reply::Array(vec![bench.run("RANDOMKEY")])))
            .collect();
        assert!(seen.len() > 5, "{seen:?}");
    });
}

#[test]
fn dbsize_counts_beyond_one_page_of_rows() {
    let bench = Bench::embedded();
    for number in 0..1500 {
        bench.run(&format!("RPUSH key:{number} 1"));
    }
    assert_eq!(bench.run("DBSIZE"), Reply::Integer(1500));
    assert_eq!(scan_all(&bench, "COUNT 400").len(), 1500);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn scan_returns_keys_that_stay_exactly_once_while_others_come_and_go(
        staying in proptest::collection::btree_set("[a-f]{1,3}", 0..30),
        changes in proptest::collection::vec((any::<bool>(), "[g-z]{1,2}"), 0..60),
        count in 1_usize..6,
    ) {
        let bench = Bench::cluster_like();
        for name in &staying {
            bench.run(&format!("RPUSH {name} 1"));
        }
        let mut changes = changes.into_iter();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut cursor = "0".to_owned();
        loop {
            let (next, names) = step(&bench, &cursor, &format!("COUNT {count}"));
            for name in names {
                *seen.entry(name).or_default() += 1;
            }
            if next == "0" {
                break;
            }
            cursor = next;
            for (adds, name) in changes.by_ref().take(3) {
                bench.run(&format!("{} {name} 1", if adds { "RPUSH" } else { "DEL" }));
            }
        }
        for name in &staying {
            prop_assert_eq!(seen.get(name), Some(&1), "{}", name);
        }
    }
}
