//! DUMP and RESTORE.

use super::*;

#[test]
fn a_dump_is_restored_as_the_same_stream() {
    on_both_stores(|bench| {
        for number in 1..=250_u64 {
            let name = if number % 7 == 0 { "other" } else { "n" };
            bench.run(&format!(
                "XADD s {number}-{} {name} {number} m x{number}",
                number % 3
            ));
        }
        bench.run("XDEL s 10-1 250-1");
        let Reply::Bulk(payload) = bench.run("DUMP s") else {
            panic!("no payload");
        };
        bench.run("RENAME s old");
        assert_eq!(
            bench.run_words(&[b"RESTORE", b"s", b"0", &payload]),
            Reply::OK
        );
        assert_eq!(bench.run("XRANGE s - +"), bench.run("XRANGE old - +"));
        let info = bench.run("XINFO STREAM s");
        assert_eq!(info, bench.run("XINFO STREAM old"));
        assert_eq!(bench.run("XADD s 250-1 n 1"), error(NOT_GREATER));
        bench.run("XTRIM s MAXLEN 0");
        let Reply::Bulk(payload) = bench.run("DUMP s") else {
            panic!("no payload");
        };
        bench.run_words(&[b"RESTORE", b"empty", b"0", &payload]);
        assert_eq!(bench.run("XLEN empty"), Reply::Integer(0));
        assert_eq!(bench.run("XADD empty 1-1 n 1"), error(NOT_GREATER));
    });
}

#[test]
fn released_entries_survive_dump_and_restore() {
    on_both_stores(|bench| {
        with_group(bench, "s", 2);
        bench.run("XREADGROUP GROUP g a STREAMS s >");
        bench.run("XNACK s g FAIL IDS 1 2-0");
        let Reply::Bulk(payload) = bench.run("DUMP s") else {
            panic!("no payload");
        };
        let restored = bench.run_words(&[b"RESTORE", b"t", b"0", &payload]);
        assert_eq!(restored, Reply::OK);
        for key in ["s", "t"] {
            assert_eq!(
                all_pending(bench, key),
                Reply::Array(vec![pending(1, "a", 0, 1), released(2, 1)])
            );
            assert_eq!(
                info(bench, &format!("XINFO GROUPS {key}"), "consumers"),
                int(1)
            );
            assert_eq!(
                info(bench, &format!("XINFO CONSUMERS {key} g"), "pending"),
                int(1)
            );
        }
    });
}
