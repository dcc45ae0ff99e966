//! LCS.

use super::*;

#[test]
fn common_subsequences_are_found_as_redis_finds_them() {
    on_both_stores(|bench| {
        bench.run("MSET a ohmytext b mynewtext");
        assert_eq!(bench.run("LCS a b"), bulk("mytext"));
        assert_eq!(bench.run("LCS a b LEN"), Reply::Integer(6));
        assert_eq!(bench.run("LCS a nosuch"), bulk(""));
        let range = |first, last| Reply::Array(vec![Reply::Integer(first), Reply::Integer(last)]);
        let matches = vec![
            Reply::Array(vec![range(4, 7), range(5, 8), Reply::Integer(4)]),
            Reply::Array(vec![range(2, 3), range(0, 1), Reply::Integer(2)]),
        ];
        let answer = |matches: &[Reply]| {
            Reply::Map(vec![
                (bulk("matches"), Reply::Array(matches.to_vec())),
                (bulk("len"), Reply::Integer(6)),
            ])
        };
        assert_eq!(bench.run("LCS a b IDX WITHMATCHLEN"), answer(&matches));
        assert_eq!(
            bench.run("LCS a b IDX WITHMATCHLEN MINMATCHLEN 4"),
            answer(&matches[..1])
        );
        assert_eq!(
            bench.run("LCS a b IDX LEN"),
            error("ERR If you want both the length and indexes, please just use IDX.")
        );
        bench.run("RPUSH l x");
        assert_eq!(
            bench.run("LCS a l"),
            error("ERR The specified keys must contain string values")
        );
        bench.run("SETRANGE far 100000000 x");
        assert_eq!(
            bench.run("LCS far far"),
            error("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
        );
    });
}
