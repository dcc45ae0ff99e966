//! Reads in order: PQ.PEEKMIN, PQ.PEEKMAX, PQ.RANGE, PQ.COUNT.

use super::*;

#[test]
fn integers_and_doubles_have_one_order() {
    on_both_stores(|bench| {
        bench.run(
            "PQ.PUSH q 9007199254740993 odd 9007199254740994.0 above 9007199254740992.0 below",
        );
        bench.run("PQ.PUSH q 1.0 first 1 second 1e0 third 0.5 lowest inf top -inf bottom");
        let values: Vec<Vec<u8>> = match bench.run("PQ.RANGE q 0 -1") {
            Reply::Pairs(pairs) => pairs
                .into_iter()
                .map(|(value, _)| match value {
                    Reply::Bulk(bytes) => bytes.to_vec(),
                    other => panic!("{other:?}"),
                })
                .collect(),
            other => panic!("{other:?}"),
        };
        let expected = [
            "bottom", "lowest", "first", "second", "third", "below", "odd", "above", "top",
        ];
        assert_eq!(values, expected.map(|word| word.as_bytes().to_vec()));
    });
}

#[test]
fn a_range_keeps_the_age_within_a_priority_in_both_directions() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 a 1 b 2 c 2 d 2 e 3 f");
        let up = [("a", 1), ("b", 1), ("c", 2), ("d", 2), ("e", 2), ("f", 3)];
        let down = [("f", 3), ("c", 2), ("d", 2), ("e", 2), ("a", 1), ("b", 1)];
        for (start, stop) in [
            (0, -1),
            (1, 3),
            (-2, -1),
            (-100, 100),
            (2, 2),
            (3, 1),
            (6, 9),
        ] {
            let clamped = |index: i64| if index < 0 { (index + 6).max(0) } else { index };
            let (from, to) = (clamped(start), clamped(stop).min(5));
            let inside = if from > to {
                0..0
            } else {
                from as usize..to as usize + 1
            };
            let line = format!("PQ.RANGE q {start} {stop}");
            assert_eq!(bench.run(&line), pairs(&up[inside.clone()]), "{line}");
            let line = format!("PQ.RANGE q {start} {stop} rev");
            assert_eq!(bench.run(&line), pairs(&down[inside]), "{line}");
        }
    });
}

#[test]
fn a_priority_with_more_values_than_a_page_is_read_from_its_oldest() {
    let bench = Bench::embedded();
    for round in 0..5 {
        let words: Vec<String> = (0..600)
            .map(|number| format!("2 {}", round * 600 + number))
            .collect();
        bench.run(&format!("PQ.PUSH q {}", words.join(" ")));
    }
    bench.run("PQ.PUSH q 1 low 3 high");
    assert_eq!(
        bench.run("PQ.PEEKMAX q 3"),
        pairs(&[("high", 3), ("0", 2), ("1", 2)])
    );
    assert_eq!(
        bench.run("PQ.RANGE q 2999 3001 REV"),
        pairs(&[("2998", 2), ("2999", 2), ("low", 1)])
    );
    let Reply::Pairs(all) = bench.run("PQ.POPMAX q 3001") else {
        panic!("no pairs");
    };
    assert_eq!(all.len(), 3001);
    assert_eq!(all[3000].0, bulk("2999"));
    assert_eq!(bench.run("PQ.LEN q"), Reply::Integer(1));
}

/// With these sizes, pages that are read from the highest priority down end at the beginning, in
/// the middle and at the end of priorities.
#[test]
fn the_order_from_the_highest_down_holds_across_pages() {
    use quoin_base::limits::RANGE_PAGE_ROWS;
    let bench = Bench::embedded();
    let sizes = [
        1,
        RANGE_PAGE_ROWS - 2,
        1,
        2,
        700,
        RANGE_PAGE_ROWS,
        1500,
        1,
        323,
        RANGE_PAGE_ROWS + 1,
    ];
    let mut expected = Vec::new();
    for (priority, size) in (0..10_i64).rev().zip(sizes) {
        let values: Vec<String> = (0..size)
            .map(|number| format!("{priority}:{number}"))
            .collect();
        let words: Vec<String> = values
            .iter()
            .map(|value| format!("{priority} {value}"))
            .collect();
        bench.run(&format!("PQ.PUSH q {}", words.join(" ")));
        expected.extend(
            values
                .into_iter()
                .map(|value| (Reply::bulk(value), Reply::Whole(priority))),
        );
    }
    let length = expected.len();
    assert_eq!(bench.run("PQ.LEN q"), Reply::count(length));
    let page = RANGE_PAGE_ROWS;
    for offset in [
        0,
        1,
        page - 2,
        page - 1,
        page,
        page + 1,
        page + 2,
        1800,
        3500,
        length - 2,
    ] {
        for count in [1, 2, page - 1, page, page + 1, 3000] {
            let end = (offset + count).min(length);
            let reply = bench.run(&format!("PQ.RANGE q {offset} {} REV", offset + count - 1));
            assert_eq!(
                reply,
                Reply::Pairs(expected[offset..end].to_vec()),
                "{offset} {count}"
            );
        }
    }
    let mut popped = 0;
    for count in [1, page - 2, 2, 1500, 2, page, 10_000] {
        let end = (popped + count).min(length);
        let reply = bench.run(&format!("PQ.POPMAX q {count}"));
        assert_eq!(
            reply,
            Reply::Pairs(expected[popped..end].to_vec()),
            "{popped} {count}"
        );
        popped = end;
    }
}

#[test]
fn count_knows_exclusive_and_infinite_bounds_and_exact_integers() {
    on_both_stores(|bench| {
        bench.run("PQ.PUSH q 1 a 1 b 2 c 2.5 d inf e -inf f 9007199254740993 g");
        for (bounds, expected) in [
            ("-inf inf", 7),
            ("(-inf (inf", 5),
            ("1 2", 3),
            ("(1 2", 1),
            ("1 (2", 2),
            ("2 1", 0),
            ("(1 (1", 0),
            ("1.0 1.0", 2),
            ("9007199254740993 9007199254740993", 1),
            ("9007199254740992 (9007199254740993", 0),
            ("(9007199254740992 9007199254740994", 1),
            ("(2.4 3", 1),
        ] {
            let line = format!("PQ.COUNT q {bounds}");
            assert_eq!(bench.run(&line), Reply::Integer(expected), "{line}");
        }
    });
}
