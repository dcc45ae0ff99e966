use super::*;
use crate::command::flags::Flags;
use crate::table;
use quoin_layout::ValueType;

fn of_line(line: &str) -> Access {
    let words = line.split(' ').map(str::to_owned).map(Bytes::from);
    let arguments: Vec<Bytes> = words.collect();
    let row = table::find(&arguments[0]).unwrap();
    Access::of(row, 0, &arguments)
}

fn client_key(key: &str) -> ClientKey {
    ClientKey {
        database: 0,
        key: Bytes::copy_from_slice(key.as_bytes()),
    }
}

#[test]
fn a_pop_looks_at_what_it_takes() {
    for (line, value_type, from_end, count) in [
        ("LPOP q", ValueType::List, false, 1),
        ("RPOP q 7", ValueType::List, true, 7),
        ("LMPOP 1 q RIGHT COUNT 3", ValueType::List, true, 3),
        ("BLMPOP 0 1 q LEFT", ValueType::List, false, 1),
        ("BRPOP q 0", ValueType::List, true, 1),
        ("ZPOPMAX q 2", ValueType::SortedSet, true, 2),
        ("ZMPOP 1 q MAX COUNT 4", ValueType::SortedSet, true, 4),
        ("BZMPOP 0 1 q MIN COUNT 9", ValueType::SortedSet, false, 9),
        ("BZPOPMIN q 0", ValueType::SortedSet, false, 1),
        ("PQ.POPMIN q 5", ValueType::PriorityQueue, false, 5),
        ("PQ.BPOPMAX q 0", ValueType::PriorityQueue, true, 1),
    ] {
        let expected = [(client_key("q"), pop(value_type, from_end, count))];
        assert_eq!(of_line(line).prefetch, expected, "{line}");
    }
}

#[test]
fn a_pop_of_nothing_or_of_too_much_and_a_wrong_one_look_at_the_metadata_only() {
    for line in [
        "LPOP q 1025",
        "LPOP q 0",
        "LPOP q -1",
        "LPOP q x",
        "LPOP q 1 2",
        "LMPOP 1 q NOWHERE",
    ] {
        let expected = [(client_key("q"), Prefetch::Meta)];
        assert_eq!(of_line(line).prefetch, expected, "{line}");
    }
}

fn pop(value_type: ValueType, from_end: bool, count: usize) -> Prefetch {
    Prefetch::End {
        value_type,
        from_end,
        count,
        with_length: false,
    }
}

fn at_end(from_end: bool, count: usize) -> Prefetch {
    Prefetch::End {
        value_type: ValueType::List,
        from_end,
        count,
        with_length: true,
    }
}

fn push(from_end: bool) -> Prefetch {
    at_end(from_end, 0)
}

#[test]
fn pushes_look_at_their_end() {
    for (line, prefetch) in [("LPUSH q a b", push(false)), ("RPUSHX q a", push(true))] {
        let expected = [(client_key("q"), prefetch)];
        assert_eq!(of_line(line).prefetch, expected, "{line}");
    }
}

#[test]
fn commands_with_several_keys_look_at_each() {
    for (line, prefetch) in [
        ("LMOVE q r RIGHT LEFT", [at_end(true, 1), push(false)]),
        ("BLMOVE q r LEFT RIGHT 0", [at_end(false, 1), push(true)]),
        ("RPOPLPUSH q r", [at_end(true, 1), push(false)]),
        ("BRPOPLPUSH q r 0", [at_end(true, 1), push(false)]),
        (
            "BLPOP q r 0",
            [(); 2].map(|()| pop(ValueType::List, false, 1)),
        ),
        ("DEL q r", [Prefetch::Meta, Prefetch::Meta]),
    ] {
        let keys = ["q", "r"].map(client_key);
        let expected: Vec<_> = keys.into_iter().zip(prefetch).collect();
        assert_eq!(of_line(line).prefetch, expected, "{line}");
    }
    assert!(of_line("FLUSHALL").prefetch.is_empty());
}

#[test]
fn additions_to_a_sorted_set_look_at_their_members() {
    for (line, members) in [
        ("ZADD q 1 a 2 b", vec!["a", "b"]),
        ("ZADD q NX CH 1 a", vec!["a"]),
        ("ZINCRBY q 1 a", vec!["a"]),
        ("ZADD q NX 1", vec![]),
    ] {
        let expected = [(client_key("q"), members_of(ValueType::SortedSet, members))];
        assert_eq!(of_line(line).prefetch, expected, "{line}");
    }
}

fn members_of(value_type: ValueType, names: Vec<&'static str>) -> Prefetch {
    let names = names.into_iter().map(Bytes::from).collect();
    Prefetch::Members { value_type, names }
}

#[test]
fn commands_on_fields_and_members_look_at_them() {
    for (line, value_type, names) in [
        ("HSET q a 1 b 2", ValueType::Hash, vec!["a", "b"]),
        ("HMSET q a 1", ValueType::Hash, vec!["a"]),
        ("HSETNX q a 1", ValueType::Hash, vec!["a"]),
        ("HINCRBY q a 1", ValueType::Hash, vec!["a"]),
        ("HDEL q a b", ValueType::Hash, vec!["a", "b"]),
        ("HMGET q a b", ValueType::Hash, vec!["a", "b"]),
        ("SADD q a b", ValueType::Set, vec!["a", "b"]),
        ("SREM q a", ValueType::Set, vec!["a"]),
    ] {
        let expected = [(client_key("q"), members_of(value_type, names))];
        assert_eq!(of_line(line).prefetch, expected, "{line}");
    }
    let member = || members_of(ValueType::Set, vec!["a"]);
    let expected = [(client_key("q"), member()), (client_key("r"), member())];
    assert_eq!(of_line("SMOVE q r a").prefetch, expected);
}

#[test]
fn a_row_that_waits_blocks() {
    let waiting = table::all().iter().filter(|row| row.waits.is_some());
    let mut count = 0;
    for row in waiting {
        assert!(row.flags.contains(Flags::BLOCKING), "{}", row.name);
        count += 1;
    }
    assert!(count > 10, "{count}");
}
