//! XRANGE, XREVRANGE and XREAD.

use super::*;

#[test]
fn entries_are_added_and_read_in_the_order_of_their_ids() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("XLEN s"), Reply::Integer(0));
        assert_eq!(bench.run("XRANGE s - +"), Reply::Array(Vec::new()));
        fill(bench, "s", 3);
        assert_eq!(bench.run("XLEN s"), Reply::Integer(3));
        assert_eq!(bench.run("XRANGE s - +"), entries([1, 2, 3]));
        assert_eq!(bench.run("XRANGE s 2 2"), entries([2]));
        assert_eq!(bench.run("XRANGE s (1-0 +"), entries([2, 3]));
        assert_eq!(bench.run("XRANGE s - (3-0"), entries([1, 2]));
        assert_eq!(bench.run("XRANGE s - + COUNT 2"), entries([1, 2]));
        assert_eq!(bench.run("XRANGE s - + COUNT 0"), Reply::NullArray);
        assert_eq!(bench.run("XRANGE s - + COUNT -3"), Reply::NullArray);
        assert_eq!(bench.run("XRANGE s 3 2"), Reply::Array(Vec::new()));
        assert_eq!(bench.run("XREVRANGE s + -"), entries([3, 2, 1]));
        assert_eq!(bench.run("XREVRANGE s + - COUNT 1"), entries([3]));
        assert_eq!(bench.run("XRANGE s - + COUNT"), error("ERR syntax error"));
        assert_eq!(bench.run("TYPE s"), Reply::Simple("stream"));
    });
}

#[test]
fn large_entries_are_read_as_they_were_written() {
    on_both_stores(|bench| {
        let value = "v".repeat(300_000);
        bench.run_words(&[b"XADD", b"s", b"1-1", b"f", value.as_bytes(), b"g", b""]);
        let fields = bulks(&["f", &value, "g", ""]);
        let entry = Reply::Array(vec![bulk("1-1"), fields]);
        assert_eq!(bench.run("XRANGE s - +"), Reply::Array(vec![entry]));
        bench.run("XADD s MAXLEN 1 2-0 n 2");
        assert_eq!(bench.run("XRANGE s - +"), entries([2]));
        // The entry and the head.
        assert_eq!(bench.data_rows(), 2);
    });
}

#[test]
fn xread_answers_what_is_new_in_each_stream() {
    on_both_stores(|bench| {
        fill(bench, "s", 3);
        fill(bench, "t", 2);
        assert_eq!(
            bench.run("XREAD STREAMS s t 1 0"),
            read_all(&[("s", entries([2, 3])), ("t", entries([1, 2]))])
        );
        assert_eq!(
            bench.run("XREAD COUNT 1 STREAMS none s t 0 3-0 1-0"),
            read_all(&[("t", entries([2]))])
        );
        assert_eq!(bench.run("XREAD STREAMS s t $ 2-0"), Reply::NullArray);
        bench.run("SET string x");
        for (line, expected) in [
            ("XREAD STREAMS s string 0 0", WRONG_TYPE),
            (
                "XREAD STREAMS s string x 0",
                "ERR Invalid stream ID specified as stream command argument",
            ),
            (
                "XREAD STREAMS s t 0",
                "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be \
                 specified.",
            ),
            ("XREAD COUNT 1 s 0", "ERR syntax error"),
            (
                "XREAD BLOCK x STREAMS s 0",
                "ERR timeout is not an integer or out of range",
            ),
            ("XREAD BLOCK -1 STREAMS s 0", "ERR timeout is negative"),
            (
                "XREAD GROUP g c STREAMS s 0",
                "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
            ),
        ] {
            assert_eq!(bench.run(line), error(expected), "{line}");
        }
    });
}

#[test]
fn scripts_do_not_wait() {
    on_both_stores(|bench| {
        let eval = |script: &str| bench.run_words(&[b"EVAL", script.as_bytes(), b"0"]);
        let Reply::Error(line) = eval("return redis.call('xread','BLOCK','0','STREAMS','s','$')")
        else {
            panic!("no error");
        };
        assert!(
            line.starts_with("ERR xread command is not allowed with BLOCK option from scripts"),
            "{line}"
        );
        eval("redis.call('XADD','s','1-0','n','1')");
        let reply = eval("return redis.call('XREAD','STREAMS','s','0')");
        let stream = Reply::Array(vec![bulk("s"), entries([1])]);
        assert_eq!(reply, Reply::Array(vec![stream]));
    });
}

#[test]
fn a_plus_reads_the_last_entry() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("XREAD STREAMS s +"), Reply::NullArray);
        fill(bench, "s", 3);
        fill(bench, "t", 1);
        bench.run("XDEL s 3-0");
        assert_eq!(
            bench.run("XREAD COUNT 5 STREAMS s t none + + +"),
            read_all(&[("s", entries([2])), ("t", entries([1]))])
        );
        let waiting = bench.wait("XREAD BLOCK 0 STREAMS u +");
        bench.exec(&["XADD u 1-0 n 1", "XADD u 2-0 n 2"]);
        assert_eq!(waiting.reply(bench), read_all(&[("u", entries([2]))]));
    });
}
