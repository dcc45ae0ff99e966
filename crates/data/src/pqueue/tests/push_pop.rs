//! Pushes, pops, moves and the rows that they leave.

use bytes::Bytes;

use super::*;
use quoin_data::command::access::KeyLocks;
use quoin_data::rows::pages::Pages;
use quoin_layout::{KeyRange, QueuePlace, ValueType};

#[test]
fn values_come_by_priority_and_then_by_age_at_both_ends() {
    on_both_stores(|bench| {
        assert_eq!(bench.run("PQ.PUSH q 2 a 1 b 2 c"), Reply::Integer(3));
        assert_eq!(bench.run("PQ.PUSH q 1 d 2 a"), Reply::Integer(5));
        assert_eq!(
            bench.run("PQ.PEEKMIN q 9"),
            pairs(&[("b", 1), ("d", 1), ("a", 2), ("c", 2), ("a", 2)])
        );
        assert_eq!(
            bench.run("PQ.PEEKMAX q 9"),
            pairs(&[("a", 2), ("c", 2), ("a", 2), ("b", 1), ("d", 1)])
        );
        assert_eq!(bench.run("PQ.POPMAX q"), one("a", 2));
        assert_eq!(bench.run("PQ.POPMIN q"), one("b", 1));
        assert_eq!(bench.run("PQ.POPMAX q 2"), pairs(&[("c", 2), ("a", 2)]));
        assert_eq!(bench.run("PQ.POPMIN q 2"), pairs(&[("d", 1)]));
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    });
}

#[test]
fn a_priority_is_answered_as_the_number_that_it_was() {
    on_both_stores(|bench| {
        for (given, answered) in [
            ("7", Reply::Whole(7)),
            ("+7", Reply::Whole(7)),
            ("007", Reply::Whole(7)),
            ("-0", Reply::Whole(0)),
            ("9007199254740993", Reply::Whole(9_007_199_254_740_993)),
            ("-9223372036854775808", Reply::Whole(i64::MIN)),
            ("9223372036854775807", Reply::Whole(i64::MAX)),
            ("7.0", Reply::Double(7.0)),
            ("7e0", Reply::Double(7.0)),
            ("0.5", Reply::Double(0.5)),
            (
                "9223372036854775808",
                Reply::Double(9_223_372_036_854_775_808.0),
            ),
            ("inf", Reply::Double(f64::INFINITY)),
            ("-Infinity", Reply::Double(f64::NEG_INFINITY)),
        ] {
            bench.run(&format!("PQ.PUSH q {given} v"));
            let expected = Reply::Array(vec![bulk("v"), answered]);
            assert_eq!(bench.run("PQ.POPMIN q"), expected, "{given}");
        }
    });
}

#[test]
fn nothing_is_found_in_what_is_not_there() {
    on_both_stores(|bench| {
        for (line, expected) in [
            ("PQ.POPMIN q", Reply::Array(Vec::new())),
            ("PQ.POPMAX q", Reply::Array(Vec::new())),
            ("PQ.POPMIN q 5", Reply::Pairs(Vec::new())),
            ("PQ.PEEKMIN q", Reply::Array(Vec::new())),
            ("PQ.PEEKMAX q 5", Reply::Pairs(Vec::new())),
            ("PQ.LEN q", Reply::Integer(0)),
            ("PQ.COUNT q -inf inf", Reply::Integer(0)),
            ("PQ.RANGE q 0 -1", Reply::Pairs(Vec::new())),
            ("PQ.RANGE q 0 -1 REV", Reply::Pairs(Vec::new())),
            ("PQ.MOVE q other MIN", Reply::NullArray),
            ("PQ.POPMIN q 0", Reply::Pairs(Vec::new())),
        ] {
            assert_eq!(bench.run(line), expected, "{line}");
            // The same after the queue has become empty.
            bench.run("PQ.PUSH q 1 a");
            bench.run("PQ.POPMIN q");
            assert_eq!(bench.run(line), expected, "{line}");
        }
    });
}

#[test]
fn a_count_of_zero_takes_nothing() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 a");
        assert_eq!(bench.run("PQ.POPMAX q 0"), Reply::Pairs(Vec::new()));
        assert_eq!(bench.run("PQ.LEN q"), Reply::Integer(1));
    });
}

#[test]
fn a_value_is_moved_with_its_priority_behind_others_of_it() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH a 1 x 1 y 2.0 z");
        bench.run("PQ.PUSH b 2 w 1 v");
        assert_eq!(
            bench.run("PQ.MOVE a b MAX"),
            Reply::Array(vec![bulk("z"), Reply::Double(2.0)])
        );
        assert_eq!(bench.run("PQ.MOVE a b min"), one("x", 1));
        assert_eq!(bench.run("PQ.PEEKMIN b 2"), pairs(&[("v", 1), ("x", 1)]));
        assert_eq!(bench.run("PQ.MOVE a c MIN"), one("y", 1));
        assert_eq!(bench.run("EXISTS a"), Reply::Integer(0));
        assert_eq!(bench.run("PQ.LEN c"), Reply::Integer(1));
    });
}

#[test]
fn a_queue_that_is_moved_onto_itself_turns_within_the_priority() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 a 1 b 2 c");
        bench.run("EXPIRE q 100");
        assert_eq!(bench.run("PQ.MOVE q q MIN"), one("a", 1));
        assert_eq!(
            bench.run("PQ.RANGE q 0 -1"),
            pairs(&[("b", 1), ("a", 1), ("c", 2)])
        );
        bench.run("PQ.POPMIN q 2");
        assert_eq!(bench.run("PQ.MOVE q q MAX"), one("c", 2));
        assert_eq!(bench.run("TTL q"), Reply::Integer(100));
    });
}

#[test]
fn a_long_value_is_whole_and_its_chunks_go_with_it() {
    on_both_stores(|bench| {
        let value = vec![b'v'; 250_000];
        bench.run_words(&[b"PQ.PUSH", b"q", b"5", &value, b"5", b"short"]);
        let expected = Reply::Array(vec![Reply::bulk(value), Reply::Whole(5)]);
        assert_eq!(bench.run("PQ.PEEKMIN q"), expected);
        assert_eq!(bench.run("PQ.MOVE q other MIN"), expected);
        assert_eq!(bench.run("PQ.POPMIN other"), expected);
        assert_eq!(bench.run("PQ.POPMIN q"), one("short", 5));
    });
}

#[test]
fn what_is_wrong_is_told_before_anything_changes() {
    on_both_stores(|bench| {
        bench.run("RPUSH l x");
        bench.run("PQ.PUSH q 1 a");
        for (line, expected) in [
            ("PQ.PUSH q 1 a 2", "ERR syntax error"),
            ("PQ.PUSH q nan b", "ERR priority is not a valid float"),
            ("PQ.PUSH q 1 b x c", "ERR priority is not a valid float"),
            (
                "PQ.PUSH new 1 b 1e999 c",
                "ERR priority is not a valid float",
            ),
            ("PQ.PUSH l 1 a", WRONG_TYPE),
            ("PQ.POPMIN q 1 2", "ERR syntax error"),
            (
                "PQ.POPMIN q -1",
                "ERR value is out of range, must be positive",
            ),
            (
                "PQ.POPMAX q x",
                "ERR value is out of range, must be positive",
            ),
            ("PQ.POPMIN l", WRONG_TYPE),
            ("PQ.POPMAX l", WRONG_TYPE),
            ("PQ.PEEKMIN l", WRONG_TYPE),
            ("PQ.PEEKMAX l", WRONG_TYPE),
            ("PQ.PEEKMIN q 1 2", "ERR syntax error"),
            (
                "PQ.PEEKMAX q -1",
                "ERR value is out of range, must be positive",
            ),
            ("PQ.LEN l", WRONG_TYPE),
            ("PQ.COUNT l 1 2", WRONG_TYPE),
            ("PQ.COUNT q a 2", "ERR min or max is not a float"),
            ("PQ.COUNT q 1 nan", "ERR min or max is not a float"),
            ("PQ.COUNT q 1 ((2", "ERR min or max is not a float"),
            ("PQ.RANGE l 0 -1", WRONG_TYPE),
            (
                "PQ.RANGE q a 1",
                "ERR value is not an integer or out of range",
            ),
            ("PQ.RANGE q 0 1 down", "ERR syntax error"),
            ("PQ.RANGE q 0 1 REV REV", "ERR syntax error"),
            ("PQ.MOVE q l MIN", WRONG_TYPE),
            ("PQ.MOVE l q MIN", WRONG_TYPE),
            ("PQ.MOVE q r LEFT", "ERR syntax error"),
            (
                "PQ.BPOPMIN q x",
                "ERR timeout is not a float or out of range",
            ),
            ("PQ.BPOPMAX q -1", "ERR timeout is negative"),
            ("PQ.BPOPMIN l 0", WRONG_TYPE),
            ("LPUSH q x", WRONG_TYPE),
            ("ZADD q 1 x", WRONG_TYPE),
        ] {
            let expected = match expected {
                "ERR syntax error" => syntax_error(line),
                text => error(text),
            };
            assert_eq!(bench.run(line), expected, "{line}");
        }
        assert_eq!(bench.run("PQ.RANGE q 0 -1"), pairs(&[("a", 1)]));
        assert_eq!(bench.run("LLEN l"), Reply::Integer(1));
        assert_eq!(bench.run("EXISTS new"), Reply::Integer(0));
    });
}

#[test]
fn a_destination_of_another_type_does_not_matter_where_there_is_nothing_to_move() {
    on_both_stores(|bench| {
        bench.run("RPUSH l x");
        assert_eq!(bench.run("PQ.MOVE q l MIN"), Reply::NullArray);
        bench.run("PQ.PUSH q 1 a");
        bench.run("PQ.POPMIN q");
        assert_eq!(bench.run("PQ.MOVE q l MIN"), Reply::NullArray);
    });
}

#[test]
fn a_blocking_pop_that_finds_something_does_not_wait() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH b 1 x 2 y");
        let popped =
            |value, priority| Reply::Array(vec![bulk("b"), bulk(value), Reply::Whole(priority)]);
        assert_eq!(bench.run("PQ.BPOPMAX a b 0"), popped("y", 2));
        assert_eq!(bench.run("PQ.BPOPMIN a b 0"), popped("x", 1));
    });
}

/// Gives the rows of a queue the keys of layouts before 6.
fn write_rows_as_before_layout_6(bench: &Bench, name: &'static str) {
    let written = bench
        .executor
        .transact(0, KeyLocks::Nothing, move |context| {
            Box::pin(async move {
                let name = Bytes::from_static(name.as_bytes());
                let key = context.find(&name, ValueType::PriorityQueue).await?;
                let data = key.unwrap().data();
                let prefix = context.layout().queue_prefix(data);
                let range = KeyRange::children(&prefix);
                let rows = Pages::new(context, range, false, 0).slice(0, 100).await?;
                for row in rows {
                    context.transaction.clear(&row.key);
                    let (place, _) = context.layout().read_queue_key(prefix.len(), &row.key)?;
                    let before = QueuePlace {
                        sequence: None,
                        ..place
                    };
                    let key = context.layout().queue_key(data, &before);
                    context.transaction.set(&key, &row.value);
                }
                Ok(())
            })
        });
    bench.block_on(written).unwrap();
}

#[test]
fn values_of_one_priority_that_are_pushed_together_share_rows() {
    on_both_stores(|bench| {
        let values = |priority: &str| format!(" {priority} v").repeat(50);
        bench.run(&format!("PQ.PUSH q{}", values("1")));
        assert_eq!(bench.data_rows(), 1);
        // Replies show 2 and 2.0 as they were given, so they are in different rows.
        bench.run(&format!("PQ.PUSH q{}{}", values("2"), values("2.0")));
        assert_eq!(bench.data_rows(), 3);
        bench.run("PQ.POPMIN q 49");
        assert_eq!(bench.data_rows(), 3);
        assert_eq!(bench.run("PQ.COUNT q 1 2"), Reply::Integer(101));
        bench.run("PQ.POPMIN q");
        assert_eq!(bench.data_rows(), 2);
    });
}

#[test]
fn pushes_that_wait_together_share_rows() {
    on_both_stores(|bench| {
        let pushes: Vec<String> = (0..40)
            .map(|number| format!("PQ.PUSH q 1 {number}"))
            .collect();
        let lengths: Vec<Reply> = (1..=40).map(Reply::Integer).collect();
        assert_eq!(bench.run_all(&pushes), lengths);
        assert_eq!(bench.data_rows(), 1);
        for number in 0..40 {
            assert_eq!(bench.run("PQ.POPMAX q"), one(&number.to_string(), 1));
        }
    });
}

#[test]
fn a_push_that_is_refused_leaves_others_of_its_pipeline_alone() {
    on_both_stores(|bench| {
        let lines = [
            "PQ.PUSH q 1 a",
            "PQ.PUSH q x b",
            "PQ.PUSH q 1 c 2",
            "PQ.PUSH q 1 d",
        ];
        let replies = bench.run_all(&lines.map(str::to_owned));
        let expected = [
            Reply::Integer(1),
            error("ERR priority is not a valid float"),
            syntax_error(lines[2]),
            Reply::Integer(2),
        ];
        assert_eq!(replies, expected);
        assert_eq!(bench.run("PQ.RANGE q 0 -1"), pairs(&[("a", 1), ("d", 1)]));
    });
}

#[test]
fn elements_of_older_layouts_are_read_on() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 x 2.0 y");
        write_rows_as_before_layout_6(bench, "q");
        bench.run("PQ.PUSH q 1 a 1 b 2 c 2.0 d");
        let double = |value: &str| (bulk(value), Reply::Double(2.0));
        let whole = |value: &str, priority| (bulk(value), Reply::Whole(priority));
        let all = vec![
            whole("x", 1),
            whole("a", 1),
            whole("b", 1),
            double("y"),
            whole("c", 2),
            double("d"),
        ];
        assert_eq!(bench.run("PQ.RANGE q 0 -1"), Reply::Pairs(all.clone()));
        assert_eq!(bench.run("PQ.POPMIN q 6"), Reply::Pairs(all));
        assert_eq!(bench.data_rows(), 0);
    });
}
