use super::*;

#[test]
fn flushdb_empties_one_database() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        bench.run_in(1, &[b"RPUSH", b"b", b"1"]);
        assert_eq!(bench.run("FLUSHDB"), Reply::OK);
        assert_eq!(bench.run("DBSIZE"), Reply::Integer(0));
        assert_eq!(bench.run("LLEN a"), Reply::Integer(0));
        assert_eq!(bench.run_in(1, &[b"DBSIZE"]), Reply::Integer(1));
        bench.run("RPUSH a 2");
        assert_eq!(bench.run("LRANGE a 0 -1"), bulks(&["2"]));
    });
}

#[test]
fn flushall_empties_all_databases() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        bench.run_in(15, &[b"RPUSH", b"b", b"1"]);
        assert_eq!(bench.run("FLUSHALL ASYNC"), Reply::OK);
        assert_eq!(bench.run("DBSIZE"), Reply::Integer(0));
        assert_eq!(bench.run_in(15, &[b"DBSIZE"]), Reply::Integer(0));
    });
}

#[test]
fn flush_takes_one_option_at_most() {
    let bench = Bench::embedded();
    assert_eq!(bench.run("FLUSHDB sync"), Reply::OK);
    assert_eq!(bench.run("FLUSHDB now"), error("ERR syntax error"));
    assert_eq!(bench.run("FLUSHALL SYNC ASYNC"), error("ERR syntax error"));
}

#[test]
fn swapdb_swaps_what_two_databases_show() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        bench.run_in(3, &[b"RPUSH", b"b", b"1"]);
        assert_eq!(bench.run("SWAPDB 0 3"), Reply::OK);
        assert_eq!(bench.run("KEYS *"), bulks(&["b"]));
        assert_eq!(bench.run_in(3, &[b"KEYS", b"*"]), bulks(&["a"]));
        assert_eq!(bench.run("SWAPDB 3 3"), Reply::OK);
        assert_eq!(bench.run("FLUSHDB"), Reply::OK);
        assert_eq!(bench.run_in(3, &[b"KEYS", b"*"]), bulks(&["a"]));
    });
}

#[test]
fn refusals_of_swapdb_are_those_of_redis() {
    let bench = Bench::embedded();
    assert_eq!(bench.run("SWAPDB x y"), error("ERR invalid first DB index"));
    assert_eq!(
        bench.run("SWAPDB 0 4294967296"),
        error("ERR invalid second DB index")
    );
    assert_eq!(
        bench.run("SWAPDB 0 16"),
        error("ERR DB index is out of range")
    );
    assert_eq!(
        bench.run("SWAPDB -1 0"),
        error("ERR DB index is out of range")
    );
}
