//! Requests, grants and their elements of contended queues.

use bytes::Bytes;

use super::damage::{
    FOREIGN, NAMESPACE, assert_repaired, assert_told, get, length_key, meta, name,
};
use super::*;
use crate::doctor::target::OVERDUE_MS;
use quoin_base::clock::Clock;
use quoin_engine::testing::{START_MS, bulk, bulks};
use quoin_layout::{
    Grant, Id, PopRequest, PopRun, PoppedElement, Section, ValueType, encode_elements,
    encode_length,
};
use quoin_store::{Isolation, RangeQuery};

/// The line when there is nothing.
const NOTHING: &str = "0 requests to pop for a server, 0 grants of what was popped";
/// The id of these tests' requests.
const ASKED: Id = Id {
    instance: 901,
    sequence: 1,
};
/// The time of something that is overdue.
const LONG_AGO_MS: i64 = START_MS - OVERDUE_MS - 1;

fn grant(key: &str, expires_at_ms: i64) -> Grant {
    Grant {
        namespace: NAMESPACE,
        name: name(key),
        long_name: None,
        value_type: ValueType::List,
        from_end: true,
        is_exhausted: false,
        expires_at_ms,
    }
}

fn request(at_ms: i64) -> PopRequest {
    PopRequest {
        id: ASKED,
        at_ms,
        from_end: false,
        runs: vec![PopRun {
            count: 1,
            commands: 2,
        }],
    }
}

fn set_elements(transaction: &dyn Transaction, layout: &Layout, data: Id, id: Id, value: &Bytes) {
    let element = PoppedElement {
        name: Bytes::from_static(b"\x15\x01"),
        value: value.clone(),
    };
    for (number, piece) in (0..).zip(encode_elements(&[element])) {
        transaction.set(&layout.grant_piece_key(data, id, number), &piece);
    }
}

/// Pops the last element of a list, for a server that asked for it.
fn grant_last(bench: &Bench, layout: &Layout, key: &str, expires_at_ms: i64) {
    let data = meta(bench, layout, key).data;
    let prefix = layout.section_prefix(data, Section::Elements);
    let range = layout.section(data, Section::Elements);
    let last = {
        let transaction = bench.store.begin_read().unwrap();
        let rows = bench.block_on(transaction.get_range(RangeQuery {
            begin: &range.begin,
            end: &range.end,
            limit: 1,
            reverse: true,
            isolation: Isolation::Snapshot,
        }));
        rows.unwrap().pop().unwrap()
    };
    let popped = bench.run(&format!("RPOP {key}"));
    let Reply::Bulk(value) = popped else {
        panic!("{popped:?}")
    };
    let element = PoppedElement {
        name: last.key.slice(prefix.len()..),
        value,
    };
    change(bench, |transaction, layout| {
        let row = layout.grant_key(data, ASKED);
        transaction.set(&row, &grant(key, expires_at_ms).encode());
        for (number, piece) in (0..).zip(encode_elements(std::slice::from_ref(&element))) {
            transaction.set(&layout.grant_piece_key(data, ASKED, number), &piece);
        }
    });
}

fn delegation_text(bench: &Bench, options: Options) -> String {
    line(&lines(bench, options), "delegation").text.clone()
}

#[test]
fn a_grant_that_no_server_has_put_back() {
    assert_repaired(
        "delegation",
        Level::Warn,
        "1 grant that expired more than a minute ago (\"list\")",
        |bench, layout| grant_last(bench, layout, "list", LONG_AGO_MS),
    );
}

#[test]
fn elements_of_an_expired_grant_go_back_to_where_they_were() {
    on_both(|bench| {
        fill(bench);
        let before = bench.run("LRANGE list 0 -1");
        // A value that is long enough to be split, which takes a new id.
        grant_last(bench, &Layout::new("test"), "list", LONG_AGO_MS);
        lines(bench, CHECK);
        assert_ne!(bench.run("LRANGE list 0 -1"), before);
        assert!(delegation_text(bench, REPAIR).contains("repaired"));
        assert_eq!(bench.run("LRANGE list 0 -1"), before);
        assert_eq!(delegation_text(bench, CHECK), NOTHING);
    });
}

#[test]
fn an_expired_grant_waits_for_the_next_server_where_none_runs() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH list a b");
    grant_last(&bench, &Layout::new("test"), "list", LONG_AGO_MS);
    let offline = Options {
        is_offline: true,
        ..CHECK
    };
    let told = lines(&bench, offline);
    assert_eq!(line(&told, "delegation").level, Level::Ok);
    assert!(line(&told, "delegation").text.contains("1 grant that"));
}

#[test]
fn an_empty_queue_whose_elements_are_granted_is_not_swept() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH list a");
    grant_last(&bench, &Layout::new("test"), "list", START_MS);
    for line in lines(&bench, REPAIR) {
        assert_eq!(line.level, Level::Ok, "{line}");
    }
    let text = delegation_text(&bench, REPAIR);
    assert_eq!(
        text,
        "0 requests to pop for a server, 1 grant of what was popped"
    );
    bench.clock.advance_ms(OVERDUE_MS + 1);
    lines(&bench, REPAIR);
    assert_eq!(bench.run("LRANGE list 0 -1"), bulks(&["a"]));
    assert_healthy(&bench);
}

#[test]
fn a_recount_keeps_an_empty_queue_whose_elements_are_granted() {
    let bench = Bench::cluster_like();
    let layout = Layout::new("test");
    bench.run("RPUSH list a");
    grant_last(&bench, &layout, "list", START_MS);
    let length_key = length_key(&bench, &layout, "list");
    change(&bench, |transaction, _| {
        transaction.set(&length_key, &encode_length(3, 7));
    });
    let told = lines(&bench, REPAIR);
    assert!(line(&told, "counters").text.contains("repaired"));
    assert_eq!(bench.run("LLEN list"), Reply::Integer(0));
    bench.clock.advance_ms(OVERDUE_MS + 1);
    lines(&bench, REPAIR);
    assert_eq!(bench.run("LLEN list"), Reply::Integer(1));
    assert_eq!(bench.run("LPOP list"), bulk("a"));
}

#[test]
fn an_expired_grant_of_a_queue_that_was_deleted_goes_with_it() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH list a b");
    grant_last(&bench, &Layout::new("test"), "list", LONG_AGO_MS);
    bench.run("DEL list");
    assert!(delegation_text(&bench, REPAIR).contains("repaired"));
    assert_eq!(delegation_text(&bench, CHECK), NOTHING);
    assert_eq!(bench.run("LLEN list"), Reply::Integer(0));
}

#[test]
fn a_request_of_a_server_that_is_gone() {
    assert_repaired(
        "delegation",
        Level::Warn,
        "1 request that no server waits for any more",
        |bench, layout| {
            let data = meta(bench, layout, "list").data;
            change(bench, |transaction, _| {
                let old = request(LONG_AGO_MS);
                transaction.set(&layout.pop_request_key(data, &old), &old.encode());
            });
        },
    );
}

#[test]
fn more_requests_and_grants_under_way_than_fit_into_a_page_raise_no_alarm() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH list a b");
    let data = meta(&bench, &Layout::new("test"), "list").data;
    let now_ms = bench.clock.now_ms();
    let id = |sequence| Id { sequence, ..ASKED };
    change(&bench, |transaction, layout| {
        for sequence in 0..600 {
            let asked = PopRequest {
                id: id(sequence),
                ..request(now_ms)
            };
            transaction.set(&layout.pop_request_key(data, &asked), &asked.encode());
            let row = layout.grant_key(data, id(sequence));
            transaction.set(&row, &grant("list", now_ms).encode());
            let value = Bytes::from_static(b"x");
            set_elements(transaction, layout, data, id(sequence), &value);
        }
    });
    let expected = "600 requests to pop for a server, 600 grants of what was popped";
    assert_eq!(delegation_text(&bench, REPAIR), expected);
    assert_healthy(&bench);
    change(&bench, |transaction, layout| {
        for sequence in [3, 500, 599] {
            transaction.clear(&layout.grant_key(data, id(sequence)));
        }
    });
    let text = delegation_text(&bench, CHECK);
    assert!(
        text.contains("3 elements that belong to no grant"),
        "{text}"
    );
}

#[test]
fn elements_without_a_grant_are_told_and_kept() {
    assert_told(
        "delegation",
        Level::Fail,
        "3 elements that belong to no grant",
        |bench, _| {
            let long = Bytes::from(vec![b'v'; 250_000]);
            change(bench, |transaction, layout| {
                set_elements(transaction, layout, FOREIGN, ASKED, &long);
            });
        },
    );
}

#[test]
fn grants_and_requests_that_cannot_be_read_are_told_and_kept() {
    let words = "1 row that cannot be read";
    assert_told("delegation", Level::Fail, words, |bench, layout| {
        let row = layout.grant_key(FOREIGN, ASKED);
        change(bench, |transaction, _| transaction.set(&row, b"\xffodd"));
    });
    assert_told("delegation", Level::Fail, words, |bench, layout| {
        let row = layout.pop_request_key(FOREIGN, &request(START_MS));
        change(bench, |transaction, _| transaction.set(&row, b"\xffodd"));
    });
}

#[test]
fn an_expired_grant_whose_elements_cannot_be_read_is_told_and_others_are_put_back() {
    on_both(|bench| {
        bench.run("RPUSH list a b");
        let layout = Layout::new("test");
        grant_last(bench, &layout, "list", LONG_AGO_MS);
        let piece = layout.grant_piece_key(FOREIGN, ASKED, 0);
        change(bench, |transaction, layout| {
            let row = layout.grant_key(FOREIGN, ASKED);
            transaction.set(&row, &grant("list", LONG_AGO_MS).encode());
            transaction.set(&piece, b"\0\0\0\x09cut");
        });
        let told = lines(bench, REPAIR);
        let found = line(&told, "delegation");
        assert_eq!(found.level, Level::Fail, "{found}");
        assert!(found.text.contains("(\"list\"): repaired"), "{found}");
        assert!(found.text.contains("1 row that cannot be read"));
        assert_eq!(bench.run("LRANGE list 0 -1"), bulks(&["a", "b"]));
        assert!(get(bench, &piece).is_some());
    });
}
