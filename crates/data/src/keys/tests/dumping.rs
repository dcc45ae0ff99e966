use super::{on_both_stores, split_value};
use quoin_base::limits::FDB_TRANSACTION_BYTES_MAX;
use quoin_data::error::CommandError;
use quoin_data::unit::context::{NamespaceCache, ReadContext};
use quoin_engine::testing::{Bench, START_MS, bulk, bulks};
use quoin_layout::RUN_ELEMENT_BYTES_MAX;
use quoin_resp::reply::Reply;

const BAD_FORMAT: &str = "ERR Bad data format";
const BAD_CHECKSUM: &str = "ERR DUMP payload version or checksum are wrong";

fn dump(bench: &Bench, key: &str) -> Vec<u8> {
    match bench.run(&format!("DUMP {key}")) {
        Reply::Bulk(payload) => payload.to_vec(),
        other => panic!("{other:?}"),
    }
}

fn restore(bench: &Bench, key: &str, ttl: &str, payload: &[u8], options: &[&str]) -> Reply {
    let mut words: Vec<&[u8]> = vec![b"RESTORE", key.as_bytes(), ttl.as_bytes(), payload];
    words.extend(options.iter().map(|option| option.as_bytes()));
    bench.run_words(&words)
}

fn error(line: &str) -> Reply {
    Reply::Error(line.to_owned())
}

fn on_both(test: impl Fn(&Bench)) {
    test(&Bench::embedded());
    test(&Bench::cluster_like());
}

#[test]
fn what_was_dumped_is_restored() {
    on_both(|bench| {
        bench.run("RPUSH list a 1 -5000 a");
        bench.run("ZADD set 1 a 1.5 b -inf c");
        let (list, set) = (dump(bench, "list"), dump(bench, "set"));
        assert_eq!(restore(bench, "list2", "0", &list, &[]), Reply::OK);
        assert_eq!(restore(bench, "set2", "0", &set, &[]), Reply::OK);
        assert_eq!(
            bench.run("LRANGE list2 0 -1"),
            bulks(&["a", "1", "-5000", "a"])
        );
        assert_eq!(bench.run("LLEN list2"), Reply::Integer(4));
        assert_eq!(
            bench.run("ZRANGE set2 0 -1 WITHSCORES"),
            bench.run("ZRANGE set 0 -1 WITHSCORES")
        );
        assert_eq!(bench.run("ZSCORE set2 b"), Reply::Double(1.5));
        assert_eq!(bench.run("ZCARD set2"), Reply::Integer(3));
        assert_eq!(bench.run("TTL list2"), Reply::Integer(-1));
        assert_eq!(bench.run("DUMP nothing"), Reply::Null);
    });
}

#[test]
fn values_of_many_pages_are_dumped_and_restored() {
    on_both(|bench| {
        let long = "x".repeat(100_000);
        for number in 0..2_500 {
            let score = (number * 7) % 100;
            bench.run(&format!("RPUSH list e{number}"));
            bench.run(&format!("ZADD set {score} m{number}"));
        }
        bench.run(&format!("RPUSH list {long}"));
        bench.run(&format!("ZADD set 50 {long}"));
        let (list, set) = (dump(bench, "list"), dump(bench, "set"));
        assert_eq!(restore(bench, "list2", "0", &list, &[]), Reply::OK);
        assert_eq!(restore(bench, "set2", "0", &set, &[]), Reply::OK);
        assert_eq!(
            bench.run("LRANGE list2 0 -1"),
            bench.run("LRANGE list 0 -1")
        );
        assert_eq!(bench.run("LLEN list2"), Reply::Integer(2_501));
        assert_eq!(
            bench.run("ZRANGE set2 0 -1 WITHSCORES"),
            bench.run("ZRANGE set 0 -1 WITHSCORES")
        );
        assert_eq!(bench.run("ZCARD set2"), Reply::Integer(2_501));
    });
}

#[test]
fn a_taken_name_is_busy_unless_it_is_to_be_replaced() {
    on_both(|bench| {
        bench.run("RPUSH list a b");
        let payload = dump(bench, "list");
        bench.run("ZADD set 1 m");
        bench.run("EXPIRE set 100");
        let busy = error("BUSYKEY Target key name already exists.");
        assert_eq!(restore(bench, "set", "0", &payload, &[]), busy);
        // Refused even before the time to live and the payload are checked.
        assert_eq!(restore(bench, "set", "x", b"", &[]), busy);
        assert_eq!(
            restore(bench, "set", "0", &payload, &["replace"]),
            Reply::OK
        );
        assert_eq!(bench.run("LRANGE set 0 -1"), bulks(&["a", "b"]));
        assert_eq!(bench.run("TTL set"), Reply::Integer(-1));
    });
}

#[test]
fn times_to_live_are_relative_or_absolute() {
    on_both(|bench| {
        bench.run("RPUSH list a");
        bench.run("ZADD set 1 m");
        let (list, set) = (dump(bench, "list"), dump(bench, "set"));
        let at = (START_MS + 7_000).to_string();
        for (key, payload) in [("list2", &list), ("set2", &set)] {
            assert_eq!(restore(bench, key, "5000", payload, &[]), Reply::OK);
            assert_eq!(bench.run(&format!("PTTL {key}")), Reply::Integer(5_000));
            let options = ["REPLACE", "ABSTTL"];
            assert_eq!(restore(bench, key, &at, payload, &options), Reply::OK);
            assert_eq!(bench.run(&format!("PTTL {key}")), Reply::Integer(7_000));
        }
        let farthest = i64::MAX.to_string();
        assert_eq!(restore(bench, "far", &farthest, &list, &[]), Reply::OK);
        assert_eq!(bench.run("EXISTS far"), Reply::Integer(1));
    });
}

#[test]
fn a_time_that_is_over_leaves_no_key() {
    on_both(|bench| {
        bench.run("RPUSH list a");
        let payload = dump(bench, "list");
        bench.run("ZADD old 1 m");
        assert_eq!(
            restore(bench, "new", "1000", &payload, &["ABSTTL"]),
            Reply::OK
        );
        let options = ["ABSTTL", "REPLACE"];
        assert_eq!(restore(bench, "old", "1000", &payload, &options), Reply::OK);
        assert_eq!(bench.run("EXISTS new old"), Reply::Integer(0));
    });
}

#[test]
fn options_are_checked_as_in_redis() {
    let bench = Bench::embedded();
    bench.run("RPUSH list a");
    let payload = dump(&bench, "list");
    let refused = |ttl: &str, options: &[&str]| match restore(&bench, "new", ttl, &payload, options)
    {
        Reply::Error(line) => line,
        other => panic!("{other:?}"),
    };
    let no_integer = "ERR value is not an integer or out of range";
    assert_eq!(refused("-1", &[]), "ERR Invalid TTL value, must be >= 0");
    assert_eq!(refused("1.5", &[]), no_integer);
    assert_eq!(refused("0", &["NOSUCH"]), "ERR syntax error");
    assert_eq!(refused("0", &["IDLETIME"]), "ERR syntax error");
    assert_eq!(
        refused("0", &["FREQ", "1", "IDLETIME", "1"]),
        "ERR syntax error"
    );
    assert_eq!(
        refused("0", &["IDLETIME", "1", "FREQ", "1"]),
        "ERR syntax error"
    );
    assert_eq!(refused("0", &["IDLETIME", "x"]), no_integer);
    let idle = "ERR Invalid IDLETIME value, must be >= 0";
    assert_eq!(refused("0", &["IDLETIME", "-1"]), idle);
    let frequency = "ERR Invalid FREQ value, must be >= 0 and <= 255";
    assert_eq!(refused("0", &["FREQ", "256"]), frequency);
    assert_eq!(
        restore(&bench, "new", "0", &payload, &["IDLETIME", "9"]),
        Reply::OK
    );
    let options = ["FREQ", "255", "REPLACE"];
    assert_eq!(restore(&bench, "new", "0", &payload, &options), Reply::OK);
    assert_eq!(bench.run("LINDEX new 0"), bulk("a"));
}

#[test]
fn strings_of_all_forms_come_back_as_they_were() {
    on_both_stores(|bench| {
        let long = split_value();
        let texts: [&[u8]; 8] = [
            b"",
            b"text",
            b"-128",
            b"12345",
            b"2147483648",
            b"007",
            &long[..1_025],
            &long,
        ];
        for text in texts {
            bench.run_words(&[&b"SET"[..], b"k", text]);
            let payload = dump(bench, "k");
            assert_eq!(
                restore(bench, "k", "1000", &payload, &["REPLACE"]),
                Reply::OK
            );
            assert_eq!(bench.run("GET k"), Reply::bulk(text.to_vec()));
            assert_eq!(bench.run("PTTL k"), Reply::Integer(1_000));
            assert_eq!(bench.run("COPY k copy REPLACE"), Reply::Integer(1));
            assert_eq!(bench.run("RENAME copy renamed"), Reply::OK);
            assert_eq!(bench.run("GET renamed"), Reply::bulk(text.to_vec()));
        }
        // Zeros take no space in the store, but they are dumped.
        bench.run("SETRANGE far 1000000 x");
        let payload = dump(bench, "far");
        assert_eq!(restore(bench, "far2", "0", &payload, &[]), Reply::OK);
        assert_eq!(bench.run("BITCOUNT far2"), Reply::Integer(4));
        let taken = bench.run("MEMORY USAGE far2");
        assert!(matches!(taken, Reply::Integer(..20_000)), "{taken:?}");
    });
}

#[test]
fn a_payload_that_is_not_sound_changes_nothing() {
    let bench = Bench::embedded();
    bench.run("RPUSH list a b");
    let good = dump(&bench, "list");
    let mut changed = good.clone();
    changed[5] ^= 1;
    let refused = restore(&bench, "list", "0", &changed, &["REPLACE"]);
    assert_eq!(refused, error(BAD_CHECKSUM));
    assert_eq!(restore(&bench, "new", "0", b"", &[]), error(BAD_CHECKSUM));
    let seal = |value: &[u8]| quoin_rdb::testing::sealed(10, value);
    // A list and a set without elements, and a repeated member.
    for value in [
        &[1, 0][..],
        &[10, 11, 11, 0, 0, 0, 10, 0, 0, 0, 0, 0, 255],
        &[3, 0],
        &[3, 2, 1, b'a', 1, b'1', 1, b'a', 1, b'2'],
        // The second element is cut off.
        &[1, 2, 1, b'a', 9, b'b'],
        // A string is cut off, or packed wrongly.
        &[0, 2, b'a'],
        &[0, 0xc1, 1],
        &[0, 0xc3, 2, 5, 0, b'a'],
        &[0],
    ] {
        let refused = restore(&bench, "list", "0", &seal(value), &["REPLACE"]);
        assert_eq!(refused, error(BAD_FORMAT), "{value:?}");
    }
    assert_eq!(
        restore(&bench, "new", "0", &seal(&[6, 0]), &[]),
        error("ERR Bad data format: Quoin does not keep a module value")
    );
    assert_eq!(bench.run("LRANGE list 0 -1"), bulks(&["a", "b"]));
    assert_eq!(bench.run("DBSIZE"), Reply::Integer(1));
}

#[test]
fn what_no_transaction_can_hold_is_refused_and_changes_nothing() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH list a");
    let too_large = "ERR command needs more than one transaction of the store can hold; \
                     nothing was changed";
    // A run of 264 bytes stored in three, repeated: ten megabytes in each of two elements.
    let runs = 40_000;
    let mut packed = vec![0, b'x'];
    packed.extend([0xe0, 255, 0].repeat(runs));
    let mut element = vec![0xc3, 0x80];
    element.extend(u32::try_from(packed.len()).unwrap().to_be_bytes());
    element.push(0x80);
    element.extend(u32::try_from(runs * 264 + 1).unwrap().to_be_bytes());
    element.extend(packed);
    let payload = quoin_rdb::testing::sealed(10, &[&[1, 2][..], &element, &element].concat());
    let refused = restore(&bench, "list", "0", &payload, &["REPLACE"]);
    assert_eq!(refused, error(too_large));
    // So many elements that only writing them shows it.
    let element = [b'x'; RUN_ELEMENT_BYTES_MAX + 1];
    let many = FDB_TRANSACTION_BYTES_MAX / (element.len() + 1);
    let mut value = vec![1, 0x80];
    value.extend(u32::try_from(many).unwrap().to_be_bytes());
    value.extend(quoin_rdb::testing::string(&element).repeat(many));
    let payload = quoin_rdb::testing::sealed(10, &value);
    assert_eq!(
        restore(&bench, "list", "0", &payload, &["REPLACE"]),
        error(too_large)
    );
    assert_eq!(bench.run("LRANGE list 0 -1"), bulks(&["a"]));
}

/// A sorted set with `count` members.
fn many_members(count: u32, member: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let mut value = vec![5, 0x80];
    value.extend(count.to_be_bytes());
    for number in 0..count {
        value.extend(quoin_rdb::testing::string(&member(number)));
        value.extend(1_f64.to_le_bytes());
    }
    quoin_rdb::testing::sealed(10, &value)
}

#[test]
fn a_member_that_comes_twice_is_seen_before_millions_are_read() {
    // Read completely, each would exceed what a transaction holds.
    let bench = Bench::cluster_like();
    let names = |number: u32| number.to_be_bytes().to_vec();
    let alternating = many_members(300_000, |number| names(number % 2));
    let again_later = many_members(300_000, |number| names(number % 100_000));
    for payload in [alternating, again_later] {
        let refused = restore(&bench, "set", "0", &payload, &[]);
        assert_eq!(refused, error(BAD_FORMAT));
    }
}

#[test]
fn members_are_found_too_many_before_they_are_written() {
    let bench = Bench::cluster_like();
    // If each member took only one row, this many would fit.
    let payload = many_members(200_000, |number| number.to_be_bytes().to_vec());
    let value = quoin_rdb::open(&payload.into()).unwrap();
    let transaction = bench.store.begin_read().unwrap();
    let namespaces = NamespaceCache::default();
    let environment = bench.executor.environment();
    let context = ReadContext::new(&*transaction, environment, &namespaces, START_MS, 0);
    assert!(matches!(
        context.restorable(value),
        Err(CommandError::TooLarge)
    ));
}
