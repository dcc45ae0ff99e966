//! Reads and changes of any element.

use super::*;

#[test]
fn an_insertion_is_next_to_its_pivot() {
    on_both_stores(|bench| {
        bench.run("RPUSH l a b c");
        assert_eq!(bench.run("LINSERT l BEFORE b x"), Reply::Integer(4));
        assert_eq!(bench.run("LINSERT l AFTER b y"), Reply::Integer(5));
        assert_eq!(bench.run("LINSERT l BEFORE a first"), Reply::Integer(6));
        assert_eq!(bench.run("LINSERT l AFTER c last"), Reply::Integer(7));
        assert_eq!(bench.run("LINSERT l AFTER nosuch x"), Reply::Integer(-1));
        assert_eq!(
            bench.run("LRANGE l 0 -1"),
            bulks(&["first", "a", "x", "b", "y", "c", "last"])
        );
        bench.run("RPUSH l end");
        bench.run("LPUSH l begin");
        assert_eq!(bench.run("LINDEX l 0"), bulk("begin"));
        assert_eq!(bench.run("LINDEX l -1"), bulk("end"));
    });
}

#[test]
fn trimming_keeps_the_range_and_the_count() {
    on_both_stores(|bench| {
        bench.run("RPUSH l a b c d e");
        assert_eq!(bench.run("LTRIM l 1 -2"), Reply::OK);
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["b", "c", "d"]));
        assert_eq!(bench.run("LLEN l"), Reply::Integer(3));
        assert_eq!(bench.run("LTRIM l 5 9"), Reply::OK);
        assert_eq!(bench.run("LLEN l"), Reply::Integer(0));
    });
}

#[test]
fn removal_counts_from_the_end_that_the_sign_names() {
    on_both_stores(|bench| {
        bench.run("RPUSH l a b a c a");
        assert_eq!(bench.run("LREM l -1 a"), Reply::Integer(1));
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["a", "b", "a", "c"]));
        assert_eq!(bench.run("LREM l 0 a"), Reply::Integer(2));
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["b", "c"]));
    });
}

#[test]
fn positions_are_found_from_either_end() {
    on_both_stores(|bench| {
        bench.run("RPUSH l a b c 1 2 3 c c");
        assert_eq!(bench.run("LPOS l c"), Reply::Integer(2));
        assert_eq!(bench.run("LPOS l c RANK -1"), Reply::Integer(7));
        assert_eq!(
            bench.run("LPOS l c RANK -1 COUNT 2"),
            Reply::Array(vec![Reply::Integer(7), Reply::Integer(6)])
        );
        assert_eq!(
            bench.run("LPOS l c COUNT 0 MAXLEN 7"),
            Reply::Array(vec![Reply::Integer(2), Reply::Integer(6)])
        );
        assert_eq!(bench.run("LPOS l nosuch"), Reply::Null);
    });
}

#[test]
fn a_value_above_the_chunk_size_is_read_whole_and_leaves_nothing() {
    on_both_stores(|bench| {
        let value: Vec<u8> = (0..350_000_u32).map(|n| (n % 251) as u8).collect();
        assert_eq!(
            bench.run_words(&[b"RPUSH", b"l", &value, b"tail"]),
            Reply::Integer(2)
        );
        assert_eq!(bench.run("LINDEX l 0"), Reply::bulk(value.clone()));
        assert_eq!(bench.run("LTRIM l 1 -1"), Reply::OK);
        assert_eq!(bench.run("LRANGE l 0 -1"), bulks(&["tail"]));
    });
}

#[test]
fn a_key_longer_than_a_store_key_works() {
    on_both_stores(|bench| {
        let long = vec![b'k'; 49_000];
        let mut other = long.clone();
        other.push(b'x');
        assert_eq!(bench.run_words(&[b"RPUSH", &long, b"a"]), Reply::Integer(1));
        assert_eq!(bench.run_words(&[b"LLEN", &other]), Reply::Integer(0));
        assert_eq!(bench.run_words(&[b"LPOP", &long]), bulk("a"));
    });
}

#[test]
fn databases_do_not_see_each_other() {
    on_both_stores(|bench| {
        bench.run_in(3, &[b"RPUSH", b"l", b"a"]);
        assert_eq!(bench.run("LLEN l"), Reply::Integer(0));
        assert_eq!(bench.run_in(3, &[b"LLEN", b"l"]), Reply::Integer(1));
    });
}

#[test]
fn an_index_is_read_only_if_there_is_a_list() {
    on_both_stores(|bench| {
        bench.run("RPUSH l a");
        bench.run("LPOP l");
        assert_eq!(bench.run("LINDEX l x"), Reply::Null);
        bench.run("RPUSH l a");
        assert_eq!(
            bench.run("LINDEX l x"),
            Reply::Error("ERR value is not an integer or out of range".to_owned())
        );
    });
}
