//! Clients that wait for a list to reach a length (BLMOVEM with EXACTLY).

use super::*;

#[test]
fn a_client_waits_until_a_list_is_long_enough() {
    for line in [
        "RPUSH list 3",
        "LPUSHX list 3",
        "LINSERT list AFTER 2 3",
        "LMOVE other list LEFT RIGHT",
        "SORT others STORE list",
    ] {
        on_both(|bench| {
            bench.run("RPUSH other 3");
            bench.run("RPUSH others 1 2 3");
            let mut waiting = bench.wait("BLMOVEM list done LEFT RIGHT 0 EXACTLY 3 BULK");
            bench.run("RPUSH list 1");
            bench.run("RPUSH list 2");
            assert!(waiting.is_waiting());
            assert_eq!(bench.run("LRANGE list 0 -1"), bulks(&["1", "2"]));
            assert_eq!(bench.run("EXISTS done"), Reply::Integer(0));
            bench.run(line);
            let moved = waiting.reply(bench);
            assert!(
                matches!(&moved, Reply::Array(moved) if moved.len() == 3),
                "{line}"
            );
            assert_eq!(bench.run("LRANGE done 0 -1"), moved, "{line}");
            assert_eq!(bench.run("EXISTS list"), Reply::Integer(0), "{line}");
        });
    }
}

#[test]
fn a_client_that_waits_for_many_elements_does_not_hold_up_others() {
    on_both(|bench| {
        let mut four = bench.wait("BLMOVEM list done LEFT RIGHT 0 EXACTLY 4 BULK");
        let mut three = bench.wait("BLMOVEM list done LEFT RIGHT 0 EXACTLY 3 BULK");
        let one = bench.wait("BLPOP list 0");
        bench.run("RPUSH list a b");
        assert_eq!(one.reply(bench), bulks(&["list", "a"]));
        let moved = bench.run("BLMOVEM list done LEFT RIGHT 0 COUNT 9 BULK");
        assert_eq!(moved, bulks(&["b"]));
        assert!(four.is_waiting() && three.is_waiting());
        bench.run("RPUSH list c d e");
        assert_eq!(three.reply(bench), bulks(&["c", "d", "e"]));
        assert!(four.is_waiting());
        // A waiting client is served together with the one before it, if there is enough for both.
        let mut two = bench.wait("BLMOVEM list done LEFT RIGHT 0 EXACTLY 2 OBO");
        bench.run("RPUSH list f");
        assert!(two.is_waiting());
        bench.run("RPUSH list g h i j k");
        assert_eq!(four.reply(bench), bulks(&["f", "g", "h", "i"]));
        assert_eq!(two.reply(bench), bulks(&["j", "k"]));
        assert!(bench.executor.waiters().is_empty());
    });
}
