//! Grants that a server of an older version has left, on a store shared with a server of this
//! version.

use std::cell::Cell;
use std::collections::HashSet;

use bytes::Bytes;

use quoin_base::clock::Clock;
use quoin_data::cluster::delegation::{FoundGrants, GRANT_EXPIRY_MS};
use quoin_data::error::CommandError;
use quoin_data::unit::context::{NamespaceCache, WriteContext};
use quoin_data::unit::signals::Signals;
use quoin_engine::testing::ranks::meta;
use quoin_engine::testing::{Bench, bulks};
use quoin_layout::{
    ElementsValue, Grant, Id, KeyName, Layout, PopRequest, PopRun, PoppedElement, Section,
    ValueType, encode_elements,
};
use quoin_resp::reply::Reply;
use quoin_store::{Isolation, RangeQuery, StoreError, Transaction};

/// Runs `$body` with a context of the bench's server and returns the transaction.
macro_rules! transact {
    ($bench:expr, $context:ident, $body:expr) => {{
        let transaction = $bench.store.begin_write().unwrap();
        {
            let namespaces = NamespaceCache::default();
            let signals = Signals::default();
            let $context = WriteContext::new(
                &*transaction,
                $bench.executor.environment(),
                &namespaces,
                &signals,
                $bench.clock.now_ms(),
                0,
            );
            $bench.block_on(async {
                $body;
                $context.count_rank_changes().await.unwrap();
            });
        }
        transaction
    }};
}

mod returning;
mod runs;

/// The server that has died.
const INSTANCE: u64 = 901;

/// The end of the queue `q` that is popped from.
#[derive(Clone, Copy)]
struct End {
    value_type: ValueType,
    from_end: bool,
}

const HEAD: End = End {
    value_type: ValueType::List,
    from_end: false,
};

/// What was popped for the dead server.
struct Left {
    data: Id,
    id: Id,
    elements: Vec<PoppedElement>,
}

fn layout() -> Layout {
    Layout::new("test")
}

fn commit(bench: &Bench, transaction: Box<dyn Transaction + '_>) -> Result<(), StoreError> {
    bench.block_on(transaction.commit())
}

fn rows_of(bench: &Bench, begin: &[u8], end: &[u8]) -> Vec<quoin_store::KeyValue> {
    let transaction = bench.store.begin_read().unwrap();
    let rows = transaction.get_range(RangeQuery {
        begin,
        end,
        limit: 100_000,
        reverse: false,
        isolation: Isolation::Snapshot,
    });
    bench.block_on(rows).unwrap()
}

/// Number of rows of requests, grants and their elements.
fn rows_left(bench: &Bench) -> usize {
    let begin = layout().all_pop_requests().begin;
    let end = [&layout().all_grants().end[..], &[0xff]].concat();
    rows_of(bench, &begin, &end).len()
}

/// The places of all elements of a list or priority queue, in pop order.
fn places(bench: &Bench, data: Id, end: End) -> Vec<Bytes> {
    let layout = layout();
    let section = match end.value_type {
        ValueType::List => Section::Elements,
        _ => Section::Queue,
    };
    let prefix_length = layout.section_prefix(data, section).len();
    let range = layout.section(data, section);
    let mut places: Vec<Bytes> = Vec::new();
    for row in rows_of(bench, &range.begin, &range.end) {
        if layout.is_meta_copy(&row.key) {
            continue;
        }
        let run = match ElementsValue::decode(&row.value).unwrap() {
            ElementsValue::One(_) => {
                places.push(row.key.slice(prefix_length..));
                continue;
            }
            ElementsValue::Run(run) => run,
        };
        places.extend((0..run.count()).map(|number| {
            let mut name = Vec::new();
            match end.value_type {
                ValueType::List => {
                    let position = layout.read_position(prefix_length, &row.key).unwrap();
                    run.place_of(&position, number).pack_into(&mut name);
                }
                _ => {
                    let (place, _) = layout.read_queue_key(prefix_length, &row.key).unwrap();
                    { place.raised_by(run.skipped() + number) }.pack_into(&mut name);
                }
            }
            Bytes::from(name)
        }));
    }
    match (end.from_end, end.value_type) {
        (false, _) => {}
        (true, ValueType::List) => places.reverse(),
        // The oldest of a priority first.
        (true, _) => places.sort_by_key(|name| {
            let (_, length) = layout.read_queue_key(0, name).unwrap();
            std::cmp::Reverse(name.slice(..length))
        }),
    }
    places
}

/// Pops elements of `q` and leaves them as a grant, like the older version.
fn leave_until(bench: &Bench, end: End, count: usize, expires_at_ms: i64) -> Left {
    thread_local!(static SEQUENCE: Cell<u64> = const { Cell::new(0) });
    let sequence = SEQUENCE.replace(SEQUENCE.get() + 1);
    let instance = INSTANCE;
    let id = Id { instance, sequence };
    let data = meta(bench, "q").unwrap().data;
    let names = match end.value_type {
        ValueType::SortedSet => Vec::new(),
        _ => places(bench, data, end),
    };
    let pop = match (end.value_type, end.from_end) {
        (ValueType::List, false) => "LPOP",
        (ValueType::List, true) => "RPOP",
        (ValueType::SortedSet, false) => "ZPOPMIN",
        (ValueType::SortedSet, true) => "ZPOPMAX",
        (_, false) => "PQ.POPMIN",
        (_, true) => "PQ.POPMAX",
    };
    let popped = match bench.run(&format!("{pop} q {count}")) {
        Reply::Array(values) => values
            .into_iter()
            .map(|value| (value, Reply::Null))
            .collect(),
        Reply::Pairs(pairs) => pairs,
        other => panic!("{other:?}"),
    };
    let popped = popped
        .into_iter()
        .enumerate()
        .map(|(number, pair)| match pair {
            (Reply::Bulk(name), Reply::Double(score)) if end.value_type == ValueType::SortedSet => {
                let value = Bytes::copy_from_slice(&score.to_be_bytes());
                PoppedElement { name, value }
            }
            (Reply::Bulk(value), _) => PoppedElement {
                name: names[number].clone(),
                value,
            },
            other => panic!("{other:?}"),
        });
    let elements: Vec<PoppedElement> = popped.collect();
    let grant = Grant {
        namespace: Id {
            instance: 0,
            sequence: 0,
        },
        name: KeyName::new(&Bytes::from_static(b"q")),
        long_name: None,
        value_type: end.value_type,
        from_end: end.from_end,
        is_exhausted: false,
        expires_at_ms,
    };
    let transaction = bench.store.begin_write().unwrap();
    transaction.set(&layout().grant_key(data, id), &grant.encode());
    for (number, piece) in (0..).zip(encode_elements(&elements)) {
        transaction.set(&layout().grant_piece_key(data, id, number), &piece);
    }
    commit(bench, transaction).unwrap();
    Left { data, id, elements }
}

fn leave(bench: &Bench, end: End, count: usize) -> Left {
    leave_until(bench, end, count, bench.clock.now_ms() + GRANT_EXPIRY_MS)
}

/// What the older version does if its server is alive after all. Does not commit.
fn fetch<'b>(bench: &'b Bench, left: &Left) -> Box<dyn Transaction + 'b> {
    let transaction = bench.store.begin_write().unwrap();
    let row = layout().grant_key(left.data, left.id);
    let grant = bench.block_on(transaction.get(&row, Isolation::Serializable));
    assert!(grant.unwrap().is_some());
    transaction.clear(&row);
    let pieces = layout().grant_pieces(left.data, left.id);
    transaction.clear_range(&pieces.begin, &pieces.end);
    transaction
}

/// Makes a request for elements of `q`, and returns its row.
fn ask(bench: &Bench) -> Vec<u8> {
    let request = PopRequest {
        id: Id {
            instance: INSTANCE,
            sequence: 0,
        },
        at_ms: bench.clock.now_ms(),
        from_end: false,
        runs: vec![PopRun {
            count: 2,
            commands: 1,
        }],
    };
    let row = layout().pop_request_key(meta(bench, "q").unwrap().data, &request);
    let transaction = bench.store.begin_write().unwrap();
    transaction.set(&row, &request.encode());
    commit(bench, transaction).unwrap();
    row
}

fn pass(bench: &Bench) -> i64 {
    pass_with(bench, &HashSet::new())
}

fn pass_with(bench: &Bench, overdue: &HashSet<Bytes>) -> i64 {
    let mut expired = 0;
    let transaction = transact!(bench, context, {
        for row in context.find_grants(overdue).await.unwrap().expired {
            let elements = context.end_grant(&row).await.unwrap();
            expired += i64::from(elements.is_some());
        }
        context.remove_old_requests().await.unwrap();
    });
    commit(bench, transaction).unwrap();
    expired
}

#[test]
fn a_request_is_removed_when_no_server_waits_for_it() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c");
    ask(&bench);
    bench.clock.advance_ms(10_000);
    pass(&bench);
    assert_eq!(rows_left(&bench), 1);
    bench.clock.advance_ms(1);
    pass(&bench);
    assert_eq!(rows_left(&bench), 0);
    assert_eq!(bench.run("LLEN q"), Reply::Integer(3));
}

#[test]
fn a_request_that_cannot_be_read_does_not_keep_others() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c d");
    let unreadable = ask(&bench);
    let transaction = bench.store.begin_write().unwrap();
    transaction.set(&unreadable, b"?");
    commit(&bench, transaction).unwrap();
    bench.clock.advance_ms(1);
    ask(&bench);
    bench.clock.advance_ms(20_000);
    pass(&bench);
    assert_eq!(rows_left(&bench), 1);
}
