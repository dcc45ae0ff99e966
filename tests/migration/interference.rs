//! `quoin import` while something happens to its servers at the wrong moment.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::between::{Between, Fate, find};
use crate::importing::{Pair, long_list, run};
use crate::resp::Connection;
use crate::values::Held;

/// Imports between two addresses. Returns the exit code and the output.
fn import(from: std::net::SocketAddr, to: std::net::SocketAddr) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .args(["import", "--from", &format!("redis://{from}")])
        .args(["--to", &format!("redis://{to}"), "--replace"])
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

/// Runs a command at the source before the import's `nth` command with a given name arrives there.
fn import_and_interfere(
    pair: &Pair,
    command: &'static str,
    nth: usize,
    lines: &'static [&'static str],
) -> (i32, String) {
    let mut redis = pair.redis();
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let between = Between::start(pair.redis.address().unwrap(), move |sent| {
        if find(sent, command).is_some() {
            let count = counted.fetch_add(1, Ordering::SeqCst) + 1;
            if count == nth {
                for line in lines {
                    assert_eq!(run(&mut redis, line).error(), None);
                }
            }
        }
        Fate::Passes
    });
    let done = import(between.unwrap().address(), pair.server.address());
    assert!(seen.load(Ordering::SeqCst) >= nth, "too early an end");
    done
}

fn temporary_keys(quoin: &mut Connection) -> usize {
    run(quoin, "KEYS quoin-import-*").items().unwrap().len()
}

#[test]
fn a_pop_amid_the_copy_of_a_long_list_hides_no_other_element() {
    let Some(pair) = Pair::start(&[]) else { return };
    let (mut redis, mut quoin) = (pair.redis(), pair.quoin());
    long_list(25_000).put(&mut redis, b"list");
    let (code, text) = import_and_interfere(&pair, "LRANGE", 3, &["LPOP list"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("1 key copied, with 24999 elements"), "{text}");
    let expected = Held::get(&mut redis, b"list");
    assert!(Held::get(&mut quoin, b"list") == expected);
    assert_eq!(temporary_keys(&mut quoin), 0);
}

#[test]
fn a_pop_amid_the_copy_of_a_large_sorted_set_hides_no_other_member() {
    let Some(pair) = Pair::start(&[]) else { return };
    let (mut redis, mut quoin) = (pair.redis(), pair.quoin());
    let members = (0..25_000_u16).map(|number| (format!("m{number}").into(), f64::from(number)));
    Held::Set(members.collect()).put(&mut redis, b"set");
    let (code, text) = import_and_interfere(&pair, "ZRANGE", 3, &["ZPOPMIN set"]);
    assert_eq!(code, 0, "{text}");
    let line = "1 key copied, with 24999 elements";
    assert!(text.contains(line), "{text}");
    let expected = Held::get(&mut redis, b"set");
    assert!(Held::get(&mut quoin, b"set") == expected);
}

#[test]
fn a_long_list_that_changes_at_every_attempt_is_named_and_not_copied() {
    let Some(pair) = Pair::start(&[]) else { return };
    let (mut redis, mut quoin) = (pair.redis(), pair.quoin());
    long_list(2_000).put(&mut redis, b"list");
    run(&mut quoin, "RPUSH list before");
    let mut other = pair.redis();
    let between = Between::start(pair.redis.address().unwrap(), move |sent| {
        if find(sent, "LRANGE").is_some() {
            // As many elements as before, so only the order shows it.
            run(&mut other, "RPOPLPUSH list list");
        }
        Fate::Passes
    });
    let (code, text) = import(between.unwrap().address(), pair.server.address());
    assert_eq!(code, 1, "{text}");
    let line = "\"list\": not copied: it changed at the source each time while it was being read\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("1 could not be copied\n"), "{text}");
    assert!(Held::get(&mut quoin, b"list") == Some(Held::List(vec![b"before".to_vec()])));
    assert_eq!(temporary_keys(&mut quoin), 0);
}

#[test]
fn a_small_key_that_is_made_anew_has_its_new_expiry() {
    let Some(pair) = Pair::start(&[]) else { return };
    run(&mut pair.redis(), "RPUSH list old");
    let lines = &["DEL list", "RPUSH list new", "PEXPIREAT list 4000000000000"];
    let (code, text) = import_and_interfere(&pair, "LRANGE", 1, lines);
    assert_eq!(code, 0, "{text}");
    let mut quoin = pair.quoin();
    assert!(Held::get(&mut quoin, b"list") == Some(Held::List(vec![b"new".to_vec()])));
    let at = run(&mut quoin, "PEXPIRETIME list").integer();
    assert_eq!(at, Some(4_000_000_000_000));
}

#[test]
fn a_long_list_that_is_made_anew_has_its_new_expiry() {
    let Some(pair) = Pair::start(&[]) else { return };
    long_list(300).put(&mut pair.redis(), b"list");
    let lines = &["PEXPIREAT list 4000000000000"];
    let (code, text) = import_and_interfere(&pair, "LRANGE", 1, lines);
    assert_eq!(code, 0, "{text}");
    let at = run(&mut pair.quoin(), "PEXPIRETIME list").integer();
    assert_eq!(at, Some(4_000_000_000_000));
}

#[test]
fn a_source_without_transactions_is_refused() {
    for command in ["MULTI", "WATCH"] {
        let flags = ["--rename-command", command, ""];
        let Some(pair) = Pair::start_with_redis(&flags) else {
            return;
        };
        long_list(300).put(&mut pair.redis(), b"list");
        run(&mut pair.redis(), "RPUSH small a");
        let (code, text) = import(pair.redis.address().unwrap(), pair.server.address());
        assert_eq!(code, 1, "{text}");
        let error = format!("answers: ERR unknown command '{command}'");
        assert!(text.contains(&error), "{text}");
    }
}

#[test]
fn a_source_whose_memory_is_full_is_read_all_the_same() {
    let Some(pair) = Pair::start(&[]) else { return };
    let mut redis = pair.redis();
    long_list(300).put(&mut redis, b"list");
    run(&mut redis, "RPUSH small a");
    run(&mut redis, "CONFIG SET maxmemory 1");
    let refused = run(&mut redis, "RPUSH small b");
    assert!(refused.error().unwrap().starts_with(b"OOM"), "{refused:?}");
    let (code, text) = import(pair.redis.address().unwrap(), pair.server.address());
    assert_eq!(code, 0, "{text}");
    let mut quoin = pair.quoin();
    for key in [b"list".as_slice(), b"small"] {
        assert!(Held::get(&mut quoin, key) == Held::get(&mut redis, key));
    }
}

#[test]
fn a_temporary_key_that_expired_amid_the_copy_is_begun_anew() {
    let Some(pair) = Pair::start(&[]) else { return };
    long_list(25_000).put(&mut pair.redis(), b"list");
    let mut quoin = pair.quoin();
    let mut is_done = false;
    let between = Between::start(pair.server.address(), move |sent| {
        let keys = run(&mut quoin, "KEYS quoin-import-*");
        if let (false, [name]) = (is_done, keys.items().unwrap())
            && find(sent, "RPUSH").is_some()
        {
            let gone = quoin.command(&[b"DEL", name.bytes().unwrap()]).unwrap();
            is_done = gone.integer() == Some(1);
        }
        Fate::Passes
    });
    let to = between.unwrap().address();
    let (code, text) = import(pair.redis.address().unwrap(), to);
    assert_eq!(code, 0, "{text}");
    assert!(Held::get(&mut pair.quoin(), b"list") == Some(long_list(25_000)));
}

/// How long the import's temporary keys stay when its connection breaks before the first command of a name.
fn lifetimes_after_a_break_before(command: &'static str) -> Option<Vec<i64>> {
    let pair = Pair::start(&[])?;
    long_list(300).put(&mut pair.redis(), b"list");
    let between = Between::start(pair.server.address(), move |sent| {
        match find(sent, command) {
            // In front of the mark of its length.
            Some(at) => Fate::BreaksAfter(at - "*3\r\n$0\r\n".len()),
            None => Fate::Passes,
        }
    });
    let to = between.unwrap().address();
    let (code, text) = import(pair.redis.address().unwrap(), to);
    assert!(code == 1 && text.contains("run it again"), "{text}");
    let mut quoin = pair.quoin();
    // Commands that have arrived are done before this one.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let keys = run(&mut quoin, "KEYS quoin-import-*");
    let names = keys.items().unwrap().iter();
    let lifetimes_ms = names.map(|name| {
        let words = [b"PTTL", name.bytes().unwrap()];
        quoin.command(&words).unwrap().integer().unwrap()
    });
    Some(lifetimes_ms.collect())
}

#[test]
fn no_break_leaves_a_temporary_key_for_ever() {
    for (command, count) in [("PEXPIRE\r\n", 0), ("RENAME\r\n", 1)] {
        let Some(lifetimes_ms) = lifetimes_after_a_break_before(command) else {
            return;
        };
        assert_eq!(lifetimes_ms.len(), count, "before {command:?}");
        for lifetime_ms in lifetimes_ms {
            assert!(lifetime_ms > 0, "before {command:?} it stays");
        }
    }
}

/// Imports 20 lists of 1 MB with few elements, and optionally one of 12 MB. Returns the largest
/// reply of the Redis, in bytes.
fn answered_bytes_max(pair: &Pair, has_larger: bool) -> usize {
    let mut redis = pair.redis();
    for number in 0..20 {
        let list = Held::List(vec![vec![b'x'; 10_000]; 100]);
        list.put(&mut redis, format!("list{number}").as_bytes());
    }
    if has_larger {
        Held::List(vec![vec![b'x'; 100_000]; 120]).put(&mut redis, b"larger");
        // Its head does not show what follows.
        let list = [vec![b"x".to_vec(); 20], vec![vec![b'x'; 100_000]; 100]];
        Held::List(list.concat()).put(&mut redis, b"uneven");
    }
    let between = Between::start(pair.redis.address().unwrap(), |_| Fate::Passes).unwrap();
    let (code, text) = import(between.address(), pair.server.address());
    assert_eq!(code, 0, "{text}");
    between.answered_bytes_max()
}

#[test]
fn few_elements_of_many_bytes_are_not_asked_for_at_once() {
    let Some(pair) = Pair::start(&[]) else { return };
    let bytes = answered_bytes_max(&pair, true);
    assert!(bytes < 2 * 1024 * 1024, "{bytes}");
}

#[test]
fn nor_of_a_source_that_does_not_tell_how_large_a_value_is() {
    let flags = ["--rename-command", "MEMORY", ""];
    let Some(pair) = Pair::start_with_redis(&flags) else {
        return;
    };
    let bytes = answered_bytes_max(&pair, false);
    assert!(bytes < 2 * 1024 * 1024, "{bytes}");
}
