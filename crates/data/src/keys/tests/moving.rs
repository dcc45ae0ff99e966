use super::*;

#[test]
fn rename_replaces_the_destination_and_keeps_the_expiry() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1 2");
        bench.run("EXPIRE a 100");
        bench.run("RPUSH b x y z");
        bench.run("EXPIRE b 5");
        assert_eq!(bench.run("RENAME a b"), Reply::OK);
        assert_eq!(bench.run("LRANGE b 0 -1"), bulks(&["1", "2"]));
        assert_eq!(bench.run("LLEN b"), Reply::Integer(2));
        assert_eq!(bench.run("TTL b"), Reply::Integer(100));
        assert_eq!(bench.run("EXISTS a"), Reply::Integer(0));
        assert_eq!(bench.run("RPUSH a 9"), Reply::Integer(1));
        assert_eq!(bench.run("TTL a"), Reply::Integer(-1));
    });
}

/// The longest name of zero bytes, which take twice the space in the store, and a name with one
/// byte more.
fn longest_names() -> [Vec<u8>; 2] {
    [0, 1].map(|more| vec![0; quoin_base::limits::FDB_KEY_NAME_BYTES_MAX + more])
}

#[test]
fn a_cluster_keeps_keys_up_to_a_length_and_refuses_longer_ones() {
    let bench = Bench::cluster_like();
    let [longest, longer] = longest_names();
    let (longest, longer) = (longest.as_slice(), longer.as_slice());
    let pushed = bench.run_words(&[b"RPUSH", longest, b"x"]);
    assert_eq!(pushed, Reply::Integer(1));
    assert_eq!(
        bench.run("KEYS *"),
        Reply::Array(vec![Reply::bulk(longest.to_vec())])
    );
    bench.run("RPUSH list a b");
    bench.run("ZADD set 1 a");
    bench.run("PQ.PUSH queue 1 a");
    let refused = error("ERR key name is longer than 49152 bytes, the most that this store keeps");
    let refused_ones: &[&[&[u8]]] = &[
        &[b"RPUSH", longer, b"x"],
        &[b"LPUSH", longer, b"x"],
        &[b"ZADD", longer, b"1", b"x"],
        &[b"ZINCRBY", longer, b"1", b"x"],
        &[b"PQ.PUSH", longer, b"1", b"x"],
        &[b"TASK.ADD", longer, b"1", b"x"],
        &[b"LMOVE", b"list", longer, b"LEFT", b"LEFT"],
        &[b"PQ.MOVE", b"queue", longer, b"MIN"],
        &[b"RENAME", b"list", longer],
        &[b"COPY", b"list", longer],
        &[b"SORT", b"list", b"ALPHA", b"STORE", longer],
        &[b"ZUNIONSTORE", longer, b"1", b"set"],
        &[b"ZRANGESTORE", longer, b"set", b"0", b"-1"],
    ];
    for words in refused_ones {
        let name = String::from_utf8_lossy(words[0]);
        assert_eq!(bench.run_words(words), refused, "{name}");
    }
    assert_eq!(bench.run("LRANGE list 0 -1"), bulks(&["a", "b"]));
    assert_eq!(bench.run("PQ.LEN queue"), Reply::Integer(1));
    assert_eq!(bench.run("DBSIZE"), Reply::Integer(4));
}

#[test]
fn a_key_that_cannot_be_is_absent() {
    let bench = Bench::cluster_like();
    let [_, longer] = longest_names();
    let longer = longer.as_slice();
    bench.run("RPUSH list a");
    assert_eq!(bench.run_words(&[b"LPOP", longer]), Reply::Null);
    assert_eq!(
        bench.run_words(&[b"LPUSHX", longer, b"x"]),
        Reply::Integer(0)
    );
    assert_eq!(
        bench.run_words(&[b"EXISTS", longer, b"list"]),
        Reply::Integer(1)
    );
    assert_eq!(bench.run_words(&[b"DEL", longer]), Reply::Integer(0));
    let renamed = bench.run_words(&[b"RENAME", longer, b"list"]);
    assert_eq!(renamed, error("ERR no such key"));
}

#[test]
fn the_embedded_store_keeps_longer_keys() {
    let bench = Bench::embedded();
    let name = vec![0; 2_000_000];
    assert_eq!(bench.run_words(&[b"RPUSH", &name, b"x"]), Reply::Integer(1));
    assert_eq!(bench.run_words(&[b"RENAME", &name, b"list"]), Reply::OK);
    assert_eq!(bench.run_words(&[b"RENAME", b"list", &name]), Reply::OK);
    assert_eq!(bench.run_words(&[b"LPOP", &name]), Reply::bulk("x"));
}

#[test]
fn rename_to_the_same_name_needs_the_key() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("RENAME a a"), error("ERR no such key"));
        assert_eq!(bench.run("RENAMENX a b"), error("ERR no such key"));
        bench.run("RPUSH a 1");
        assert_eq!(bench.run("RENAME a a"), Reply::OK);
        assert_eq!(bench.run("RENAMENX a a"), Reply::Integer(0));
        assert_eq!(bench.run("LRANGE a 0 -1"), bulks(&["1"]));
    });
}

#[test]
fn renamenx_leaves_a_taken_name_alone() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        bench.run("RPUSH b 2");
        assert_eq!(bench.run("RENAMENX a b"), Reply::Integer(0));
        assert_eq!(bench.run("RENAMENX a c"), Reply::Integer(1));
        assert_eq!(bench.run("LRANGE c 0 -1"), bulks(&["1"]));
        bench.run("PEXPIRE b 10");
        bench.clock.advance_ms(10);
        assert_eq!(bench.run("RENAMENX c b"), Reply::Integer(1));
        assert_eq!(bench.run("TTL b"), Reply::Integer(-1));
    });
}

#[test]
fn long_names_and_split_values_move_and_are_copied_whole() {
    on_both_stores(|bench| {
        let (first, second) = (long_name(b'1'), long_name(b'2'));
        let value = split_value();
        bench.run_words(&[b"RPUSH", &first, &value, b"b"]);
        let whole = Reply::Array(vec![Reply::bulk(value.clone()), bulk("b")]);
        assert_eq!(bench.run_words(&[b"RENAME", &first, &second]), Reply::OK);
        assert_eq!(bench.run_words(&[b"LRANGE", &second, b"0", b"-1"]), whole);
        assert_eq!(
            bench.run("KEYS *"),
            Reply::Array(vec![Reply::bulk(second.clone())])
        );
        assert_eq!(bench.run_words(&[b"RENAME", &second, b"s"]), Reply::OK);
        assert_eq!(bench.run("KEYS *"), bulks(&["s"]));
        assert_eq!(bench.run_words(&[b"RENAME", b"s", &first]), Reply::OK);
        assert_eq!(
            bench.run_words(&[b"COPY", &first, &second]),
            Reply::Integer(1)
        );
        assert_eq!(bench.run_words(&[b"DEL", &first]), Reply::Integer(1));
        assert_eq!(bench.run_words(&[b"LRANGE", &second, b"0", b"-1"]), whole);
        assert_eq!(
            bench.run_words(&[b"MOVE", &second, b"2"]),
            Reply::Integer(1)
        );
        assert_eq!(bench.run("DBSIZE"), Reply::Integer(0));
        assert_eq!(bench.run_in(2, &[b"LRANGE", &second, b"0", b"-1"]), whole);
    });
}

#[test]
fn a_copy_goes_its_own_way() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1 2");
        bench.run("EXPIRE a 100");
        assert_eq!(bench.run("COPY a b"), Reply::Integer(1));
        bench.run("RPUSH a 3");
        bench.run("LPOP b");
        assert_eq!(bench.run("LRANGE a 0 -1"), bulks(&["1", "2", "3"]));
        assert_eq!(bench.run("LRANGE b 0 -1"), bulks(&["2"]));
        assert_eq!(bench.run("LLEN b"), Reply::Integer(1));
        assert_eq!(bench.run("TTL b"), Reply::Integer(100));
    });
}

#[test]
fn copy_replaces_only_when_told() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        bench.run("RPUSH b 2 3");
        bench.run("EXPIRE b 100");
        assert_eq!(bench.run("COPY a b"), Reply::Integer(0));
        assert_eq!(bench.run("COPY nosuch b REPLACE"), Reply::Integer(0));
        assert_eq!(bench.run("COPY a b REPLACE"), Reply::Integer(1));
        assert_eq!(bench.run("LRANGE b 0 -1"), bulks(&["1"]));
        assert_eq!(bench.run("TTL b"), Reply::Integer(-1));
        assert_eq!(bench.run("COPY a a DB 1"), Reply::Integer(1));
        assert_eq!(bench.run_in(1, &[b"LLEN", b"a"]), Reply::Integer(1));
    });
}

#[test]
fn move_needs_a_free_name_in_another_database() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        bench.run("EXPIRE a 100");
        assert_eq!(bench.run("MOVE nosuch 1"), Reply::Integer(0));
        assert_eq!(bench.run("MOVE a 1"), Reply::Integer(1));
        assert_eq!(bench.run("EXISTS a"), Reply::Integer(0));
        assert_eq!(bench.run_in(1, &[b"TTL", b"a"]), Reply::Integer(100));
        bench.run("RPUSH a 2");
        assert_eq!(bench.run("MOVE a 1"), Reply::Integer(0));
        assert_eq!(bench.run("LRANGE a 0 -1"), bulks(&["2"]));
    });
}

#[test]
fn refusals_of_move_and_copy_are_those_of_redis() {
    let bench = Bench::embedded();
    bench.run("RPUSH a 1");
    let same = "ERR source and destination objects are the same";
    let no_integer = "ERR value is not an integer or out of range";
    let no_database = "ERR DB index is out of range";
    let range = "ERR value is out of range, value must between -2147483648 and 2147483647";
    let cases = [
        ("MOVE a 0", same),
        ("MOVE a x", no_integer),
        ("MOVE a 16", no_database),
        ("MOVE a -1", no_database),
        ("MOVE a 4294967296", range),
        ("COPY a a", same),
        ("COPY a a DB 0 REPLACE", same),
        ("COPY nosuch nosuch", same),
        ("COPY a b DB", "ERR syntax error"),
        ("COPY a b DB x", no_integer),
        ("COPY a b DB 16", no_database),
        ("COPY a b DB 4294967296", range),
        ("COPY a b FOO", "ERR syntax error"),
    ];
    for (command, line) in cases {
        assert_eq!(bench.run(command), error(line), "{command}");
    }
}

#[test]
fn a_copy_that_no_transaction_can_hold_is_refused_whole() {
    let bench = Bench::cluster_like();
    let value = vec![b'v'; 80_000];
    for _ in 0..150 {
        bench.run_words(&[b"RPUSH", b"a", &value]);
    }
    bench.run("RPUSH b old");
    assert_eq!(
        bench.run("COPY a b REPLACE"),
        error(
            "ERR command needs more than one transaction of the store can hold; nothing was changed"
        )
    );
    assert_eq!(bench.run("LRANGE b 0 -1"), bulks(&["old"]));
    assert_eq!(bench.run("RENAME a b"), Reply::OK);
    assert_eq!(bench.run("LLEN b"), Reply::Integer(150));
}
