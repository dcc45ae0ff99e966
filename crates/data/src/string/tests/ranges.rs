//! Reads and writes of ranges, and their conflicts.

use bytes::Bytes;

use super::*;

#[test]
fn ranges_are_written_and_read_across_all_forms() {
    on_both_stores(|bench| {
        for length in LENGTHS {
            for offset in LENGTHS {
                bench.run_words(&[b"SET", b"k", &text(length)]);
                let at = offset.to_string();
                let words: [&[u8]; 4] = [b"SETRANGE", b"k", at.as_bytes(), b"XYZ"];
                let mut expected = text(length);
                expected.resize(length.max(offset + 3), 0);
                expected[offset..offset + 3].copy_from_slice(b"XYZ");
                assert_eq!(bench.run_words(&words), Reply::count(expected.len()));
                assert_eq!(bench.run("GET k"), Reply::bulk(expected.clone()));
                let range = format!("GETRANGE k {offset} {}", offset + 2);
                assert_eq!(bench.run(&range), bulk("XYZ"));
                let tail = Bytes::copy_from_slice(&expected[expected.len() - 3..]);
                assert_eq!(bench.run("GETRANGE k -3 -1"), Reply::Bulk(tail));
                assert_eq!(bench.run("APPEND k +"), Reply::count(expected.len() + 1));
                assert_eq!(bench.run("SUBSTR k -1 -1"), bulk("+"));
            }
        }
        assert_eq!(bench.run("GETRANGE k -1 -2"), bulk(""));
        assert_eq!(bench.run("GETRANGE k 5 2"), bulk(""));
        assert_eq!(bench.run("GETRANGE nosuch 0 -1"), bulk(""));
        let reply = error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
        assert_eq!(bench.run("SETRANGE k 536870912 x"), reply);
        assert_eq!(bench.run("SETRANGE k 9223372036854775807 x"), reply);
        assert_eq!(
            bench.run("SETRANGE k -1 x"),
            error("ERR offset is out of range")
        );
        bench.run("SETRANGE far 536870911 x");
        assert_eq!(bench.run("APPEND far x"), reply);
        assert_eq!(bench.run("STRLEN far"), Reply::Integer(536_870_912));
    });
}

#[test]
fn writes_to_different_pieces_do_not_conflict() {
    let bench = Bench::cluster_like();
    bench.run("SETRANGE k 40000 x");
    assert!(!bench.race("SETRANGE k 20000 a", "SETRANGE k 3 b", false));
    assert!(!bench.race("SETRANGE k 20000 a", "APPEND k b", false));
    assert!(bench.race("SETRANGE k 20000 a", "SETRANGE k 20003 b", false));
    assert!(!bench.race("SETBIT k 7 1", "SETBIT k 320007 1", false));
    assert!(!bench.race("BITFIELD k SET u8 0 1", "APPEND k b", false));
    assert!(bench.race("SETBIT k 7 0", "SETBIT k 6 1", false));
    assert!(bench.race("APPEND k a", "APPEND k b", false));
    assert!(bench.race("SETRANGE k 20000 a", "SET k b", false));
    bench.run("SET n 1");
    assert!(bench.race("INCR n", "INCR n", false));
    assert!(!bench.race("INCR n", "INCR m", false));
}
