//! Streams and consumer groups.

use super::*;

#[test]
fn rows_of_streams() {
    let layout = layout();
    let id = StreamId {
        ms: 1_700_000_000_000,
        seq: 2,
    };
    golden(
        "entry 1700000000000-2 of a stream",
        &layout.stream_entry_key(DATA, id),
        "0271756f696e001502150116012c150f1a018bcfe568001502",
    );
    let fields = [Bytes::from_static(b"job"), Bytes::from_static(b"work")];
    golden(
        "entry of a stream: `job` = `work`",
        &StoredValue::encode_plain(&stream::encode_stream_fields(&fields)),
        "00036a6f6204776f726b",
    );
    golden(
        "head of a stream",
        &layout.stream_head_key(DATA),
        "0271756f696e001502150116012c151014",
    );
    let head = StreamHead { last: id, added: 7 };
    golden(
        "head: last id 1700000000000-2, 7 entries added",
        &head.encode(),
        "010000018bcfe5680000000000000000020000000000000007",
    );
    golden(
        "greatest deleted id of a stream",
        &layout.stream_deleted_key(DATA),
        "0271756f696e001502150116012c15101501",
    );
    golden(
        "greatest deleted id 1700000000000-2",
        &stream::encode_stream_deleted(id),
        "010000018bcfe568000000000000000002",
    );
}

#[test]
fn rows_of_consumer_groups() {
    let layout = layout();
    let id = StreamId {
        ms: 1_700_000_000_000,
        seq: 2,
    };
    let group = Id {
        instance: 7,
        sequence: 9,
    };
    let consumer = Id {
        instance: 7,
        sequence: 10,
    };
    golden(
        "consumer group `gpu`",
        &layout.stream_group_key(DATA, b"gpu"),
        "0271756f696e001502150116012c15110167707500",
    );
    let stored = StreamGroup {
        id: group,
        last: id,
        entries_read: Some(7),
        long_name: None,
        policy: None,
        is_by_delivery: false,
    };
    golden(
        "group (7, 9) that has read 7 entries up to 1700000000000-2",
        &stored.encode(),
        "01150715091a018bcfe568001502150700",
    );
    let by_delivery = StreamGroup {
        is_by_delivery: true,
        ..stored.clone()
    };
    golden(
        "that group with rows by delivery",
        &by_delivery.encode(),
        "03150715091a018bcfe568001502150700",
    );
    assert_eq!(StreamGroup::decode(&by_delivery.encode()), Ok(by_delivery));
    let with_policy = StreamGroup {
        is_by_delivery: true,
        policy: Some(StreamPolicy {
            min_idle_ms: 30_000,
            max_tries: Some(5),
            dead_letter: Some(Bytes::from_static(b"dead")),
        }),
        ..stored
    };
    golden(
        "that group with MINIDLE 30000, MAXTRIES 5 and DEADLETTER `dead`",
        &with_policy.encode(),
        "02150715091a018bcfe5680015021507001675301505016465616400",
    );
    golden(
        "pending entry 1700000000000-2 of group (7, 9)",
        &layout.stream_pending_key(DATA, group, id),
        "0271756f696e001502150116012c1512150715091a018bcfe568001502",
    );
    let pending = StreamPending {
        consumer: Some(consumer),
        delivered_at_ms: 1_700_000_000_001,
        deliveries: 3,
    };
    golden(
        "pending at consumer (7, 10) since 1700000000001, delivered 3 times",
        &pending.encode(),
        "011507150a1a018bcfe568011503",
    );
    let released = StreamPending {
        consumer: None,
        delivered_at_ms: 0,
        ..pending
    };
    golden(
        "pending and released by XNACK, delivered 3 times",
        &released.encode(),
        "010000141503",
    );
    golden(
        "that entry by its delivery at 1700000000001",
        &layout.stream_idle_key(DATA, group, 1_700_000_000_001, id),
        "0271756f696e001502150116012c1516150715091a018bcfe568011a018bcfe568001502",
    );
    golden(
        "that entry among those of consumer (7, 10)",
        &layout.stream_consumer_pending_key(DATA, group, consumer, id),
        "0271756f696e001502150116012c1513150715091507150a1a018bcfe568001502",
    );
    golden(
        "consumer `card` of group (7, 9)",
        &layout.stream_consumer_key(DATA, group, b"card"),
        "0271756f696e001502150116012c151415071509016361726400",
    );
    let stored = StreamConsumer {
        id: consumer,
        seen_at_ms: 1_700_000_000_001,
        active_at_ms: None,
        long_name: None,
    };
    golden(
        "consumer (7, 10), seen at 1700000000001, never active",
        &stored.encode(),
        "011507150a1a018bcfe568010000",
    );
    golden(
        "counter of pending entries of group (7, 9)",
        &layout.stream_pending_count_key(DATA, group, None),
        "0271756f696e001502150116012c151515071509",
    );
    golden(
        "counter of those of consumer (7, 10)",
        &layout.stream_pending_count_key(DATA, group, Some(consumer)),
        "0271756f696e001502150116012c1515150715091507150a",
    );
}

#[test]
fn rows_of_producers() {
    let layout = layout();
    let id = StreamId {
        ms: 1_700_000_000_000,
        seq: 2,
    };
    let (producer, entry) = (
        ProducerName::of_producer(b"gpu1"),
        ProducerName::of_entry(b"job7"),
    );
    golden(
        "settings of producers",
        &layout.producer_settings_key(DATA),
        "0271756f696e001502150116012c15101502",
    );
    let settings = ProducerSettings {
        duration_s: 300,
        entries_max: 1_000,
    };
    golden(
        "IDMP-DURATION 300, IDMP-MAXSIZE 1000",
        &settings.encode(),
        "0116012c1603e8",
    );
    golden(
        "counter of entries that producers have added",
        &layout.produced_key(DATA),
        "0271756f696e001502150116012c15101503",
    );
    golden(
        "counter of entries that they wanted to add again",
        &layout.duplicates_key(DATA),
        "0271756f696e001502150116012c15101504",
    );
    golden(
        "producer `gpu1`",
        &layout.producer_key(DATA, &producer),
        "0271756f696e001502150116012c151a1a7a2deaae8f34016770753100",
    );
    let stored = StreamProducer {
        first: 3,
        next: 7,
        first_ms: 1_700_000_000_000,
        last_ms: 1_700_000_000_009,
    };
    golden(
        "producer with the entries 3 to 6, of 1700000000000 to 1700000000009",
        &stored.encode(),
        "01150315071a018bcfe568001a018bcfe56809",
    );
    golden(
        "entry `job7` of producer `gpu1`",
        &layout.produced_entry_key(DATA, &producer, &entry),
        "0271756f696e001502150116012c151b1a7a2deaae8f34016770753100016a6f623700",
    );
    let stored = ProducedEntry { number: 3, id };
    golden(
        "entry 3 of a producer: 1700000000000-2",
        &stored.encode(),
        "0115031a018bcfe568001502",
    );
    golden(
        "entry 3 of producer `gpu1`",
        &layout.produced_order_key(DATA, &producer, 3),
        "0271756f696e001502150116012c151c1a7a2deaae8f340167707531001503",
    );
    golden(
        "entry `job7` of 1700000000000 by its number",
        &stream_producer::encode_produced_order(id.ms, &entry),
        "011a018bcfe56800016a6f623700",
    );
}
