//! Damages of consumer groups of streams.

use super::damage::{assert_repaired, assert_told, get, meta};
use super::*;
use quoin_layout::{
    Id, StreamConsumer, StreamGroup, StreamId, StreamPending, decode_counter, encode_counter,
};

const FIRST: StreamId = StreamId { ms: 1, seq: 0 };

/// The data of the stream, its group, and the group's consumer.
fn ids(bench: &Bench, layout: &Layout) -> (Id, Id, Id) {
    let data = meta(bench, layout, "groups").data;
    let group = get(bench, &layout.stream_group_key(data, b"g")).unwrap();
    let group = StreamGroup::decode(&group).unwrap().id;
    let consumer = get(bench, &layout.stream_consumer_key(data, group, b"a")).unwrap();
    let consumer = StreamConsumer::decode(&consumer).unwrap().id;
    (data, group, consumer)
}

#[test]
fn a_pending_entry_that_its_consumer_does_not_have() {
    assert_told(
        "indexes",
        Level::Fail,
        "1 pending entry of a stream that its consumer does not have (\"1-0\" of \"groups\")",
        |bench, layout| {
            let (data, group, consumer) = ids(bench, layout);
            let row = layout.stream_consumer_pending_key(data, group, consumer, FIRST);
            change(bench, |transaction, _| transaction.clear(&row));
        },
    );
}

#[test]
fn an_entry_of_a_consumer_that_another_has() {
    assert_told(
        "indexes",
        Level::Fail,
        "1 pending entry of a stream that its consumer does not have (\"1-0\" of \"groups\")",
        |bench, layout| {
            let (data, group, consumer) = ids(bench, layout);
            let row = layout.stream_pending_key(data, group, FIRST);
            let mut pending = StreamPending::decode(&get(bench, &row).unwrap()).unwrap();
            pending.consumer = Some(Id {
                sequence: consumer.sequence + 1_000,
                ..consumer
            });
            change(bench, |transaction, _| {
                transaction.set(&row, &pending.encode())
            });
        },
    );
}

#[test]
fn an_entry_of_a_consumer_that_is_not_pending() {
    assert_repaired(
        "indexes",
        Level::Fail,
        "1 entry that a consumer of a stream has, but that is not pending (\"9-0\" of \"groups\")",
        |bench, layout| {
            let (data, group, _) = ids(bench, layout);
            let stranger = Id {
                instance: 900,
                sequence: 7,
            };
            let ninth = StreamId { ms: 9, seq: 0 };
            let row = layout.stream_consumer_pending_key(data, group, stranger, ninth);
            change(bench, |transaction, _| transaction.set(&row, b""));
        },
    );
}

#[test]
fn an_entry_of_a_consumer_whose_pending_row_is_lost() {
    assert_repaired(
        "indexes",
        Level::Fail,
        "1 entry that a consumer of a stream has, but that is not pending (\"1-0\" of \"groups\")",
        |bench, layout| {
            let (data, group, consumer) = ids(bench, layout);
            let pending = layout.stream_pending_key(data, group, FIRST);
            // The group's counter is right then, and the consumer's is when its entry is gone.
            let counter = layout.stream_pending_count_key(data, group, None);
            let of_consumer = layout.stream_pending_count_key(data, group, Some(consumer));
            let before = decode_counter(get(bench, &of_consumer).as_ref()).unwrap();
            change(bench, |transaction, _| {
                transaction.clear(&pending);
                transaction.atomic_add(&counter, -1);
            });
            assert!(before > 0);
        },
    );
}

#[test]
fn a_row_by_time_of_an_entry_that_is_not_pending() {
    assert_repaired(
        "indexes",
        Level::Fail,
        "1 row by time of an entry of a stream that is not pending since then (\"groups\")",
        |bench, layout| {
            let (data, group, _) = ids(bench, layout);
            let row = layout.stream_idle_key(data, group, 7, FIRST);
            change(bench, |transaction, _| transaction.set(&row, b""));
        },
    );
}

#[test]
fn a_consumer_whose_group_is_gone() {
    assert_repaired(
        "indexes",
        Level::Fail,
        "1 consumer of a stream whose group is gone (\"groups\")",
        |bench, layout| {
            let (data, group, _) = ids(bench, layout);
            let row = get(bench, &layout.stream_consumer_key(data, group, b"a")).unwrap();
            let gone = Id {
                instance: 900,
                sequence: 7,
            };
            let key = layout.stream_consumer_key(data, gone, b"a");
            change(bench, |transaction, _| transaction.set(&key, &row));
        },
    );
}

#[test]
fn a_counter_of_pending_entries_that_is_wrong() {
    for of_group in [true, false] {
        assert_repaired(
            "indexes",
            Level::Fail,
            "1 counter of pending entries of a stream that is wrong (\"groups\")",
            |bench, layout| {
                let (data, group, consumer) = ids(bench, layout);
                let consumer = (!of_group).then_some(consumer);
                let counter = layout.stream_pending_count_key(data, group, consumer);
                change(bench, |transaction, _| {
                    transaction.set(&counter, &encode_counter(7));
                });
            },
        );
    }
}
