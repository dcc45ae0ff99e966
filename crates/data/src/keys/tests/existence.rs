use super::*;

#[test]
fn del_counts_the_keys_that_were_there() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        bench.run("RPUSH b 1");
        assert_eq!(bench.run("DEL a nosuch a b"), Reply::Integer(2));
        assert_eq!(bench.run("EXISTS a b"), Reply::Integer(0));
        assert_eq!(bench.run("LRANGE a 0 -1"), bulks(&[]));
        bench.run("RPUSH a 2");
        assert_eq!(bench.run("UNLINK a"), Reply::Integer(1));
        assert_eq!(bench.run("LLEN a"), Reply::Integer(0));
    });
}

#[test]
fn a_list_made_anew_after_del_has_nothing_of_the_old_one() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1 2 3");
        bench.run("DEL a");
        assert_eq!(bench.run("RPUSH a 9"), Reply::Integer(1));
        assert_eq!(bench.run("LRANGE a 0 -1"), bulks(&["9"]));
    });
}

#[test]
fn exists_and_touch_count_a_key_as_often_as_it_is_named() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        assert_eq!(bench.run("EXISTS a a nosuch"), Reply::Integer(2));
        assert_eq!(bench.run("TOUCH a a nosuch"), Reply::Integer(2));
    });
}

#[test]
fn type_names_the_type() {
    on_both_stores(|bench| {
        bench.run("RPUSH a 1");
        assert_eq!(bench.run("TYPE a"), Reply::Simple("list"));
        assert_eq!(bench.run("TYPE nosuch"), Reply::Simple("none"));
    });
}

#[test]
fn a_list_that_was_emptied_is_seen_by_no_command() {
    on_both_stores(|bench| {
        make_emptied_list(bench, "g");
        assert_eq!(bench.run("EXISTS g"), Reply::Integer(0));
        assert_eq!(bench.run("TYPE g"), Reply::Simple("none"));
        assert_eq!(bench.run("KEYS *"), bulks(&[]));
        assert_eq!(
            bench.run("SCAN 0"),
            Reply::Array(vec![bulk("0"), bulks(&[])])
        );
        assert_eq!(bench.run("DBSIZE"), Reply::Integer(0));
        assert_eq!(bench.run("RANDOMKEY"), Reply::Null);
        assert_eq!(bench.run("TTL g"), Reply::Integer(-2));
        assert_eq!(bench.run("EXPIRE g 100"), Reply::Integer(0));
        assert_eq!(bench.run("PERSIST g"), Reply::Integer(0));
        assert_eq!(bench.run("DEL g"), Reply::Integer(0));
        assert_eq!(bench.run("RENAME g h"), error("ERR no such key"));
        assert_eq!(bench.run("MOVE g 1"), Reply::Integer(0));
        assert_eq!(bench.run("COPY g h"), Reply::Integer(0));
        bench.run("RPUSH l x");
        assert_eq!(bench.run("RENAMENX l g"), Reply::Integer(1));
        assert_eq!(bench.run("LRANGE g 0 -1"), bulks(&["x"]));
    });
}
