//! Damage to what is stored about producers of streams.

use super::damage::{assert_repaired, get, meta};
use super::*;
use quoin_layout::ProducerName;

#[test]
fn a_record_of_a_producer_without_a_number() {
    assert_repaired(
        "indexes",
        Level::Fail,
        "1 record of a producer's entry of a stream that has no number",
        |bench, layout| {
            let data = meta(bench, layout, "produced").data;
            let row = layout.produced_order_key(data, &ProducerName::of_producer(b"gpu1"), 0);
            assert!(get(bench, &row).is_some());
            change(bench, |transaction, _| transaction.clear(&row));
        },
    );
}

#[test]
fn a_number_of_a_producer_without_a_record() {
    assert_repaired(
        "indexes",
        Level::Fail,
        "1 number of a producer's entry of a stream that has no such record",
        |bench, layout| {
            let data = meta(bench, layout, "produced").data;
            let (producer, entry) = (
                ProducerName::of_producer(b"gpu1"),
                ProducerName::of_entry(b"job7"),
            );
            let row = layout.produced_entry_key(data, &producer, &entry);
            assert!(get(bench, &row).is_some());
            change(bench, |transaction, _| transaction.clear(&row));
        },
    );
}

#[test]
fn what_a_producer_has_added_whose_row_is_lost() {
    assert_repaired(
        "indexes",
        Level::Fail,
        "1 number of a producer's entry of a stream that has no such record",
        |bench, layout| {
            let data = meta(bench, layout, "produced").data;
            let producer = ProducerName::of_producer(b"gpu1");
            let row = layout.producer_key(data, &producer);
            // Its record too, because that would be reported next.
            let record =
                layout.produced_entry_key(data, &producer, &ProducerName::of_entry(b"job7"));
            change(bench, |transaction, _| {
                transaction.clear(&row);
                transaction.clear(&record);
            });
        },
    );
}
