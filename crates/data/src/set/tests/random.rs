//! SPOP and SRANDMEMBER.

use std::collections::BTreeSet;

use super::{fill, members, on_both_stores};
use quoin_engine::testing::Bench;
use quoin_resp::reply::Reply;

#[test]
fn every_member_is_popped_once() {
    for count in [1, 40, 150, 3_000] {
        on_both_stores(|bench| {
            fill(bench, "s", count);
            let mut popped = BTreeSet::new();
            for round in 0.. {
                let some = match round % 3 {
                    0 => match bench.run("SPOP s") {
                        Reply::Null => break,
                        one => members(Reply::Array(vec![one])),
                    },
                    _ => members(bench.run(&format!("SPOP s {}", count / 4 + round % 2))),
                };
                let before = popped.len();
                let some_count = some.len();
                popped.extend(some);
                assert_eq!(popped.len(), before + some_count);
            }
            assert_eq!(popped.len(), count);
            assert_eq!(bench.run("EXISTS s"), Reply::Integer(0));
        });
    }
}

#[test]
fn each_member_is_drawn_as_often_as_another() {
    let bench = Bench::embedded();
    // A draw of many members reads the whole set. A draw of few members from a large set draws each
    // one separately.
    for (count, at_once) in [(10, 10), (100, 100), (400, 400), (400, 10)] {
        fill(&bench, "s", count);
        let mut times = vec![0; count];
        for _ in 0..20 * count / at_once {
            let Reply::Array(drawn) = bench.run(&format!("SRANDMEMBER s -{at_once}")) else {
                panic!("no array");
            };
            for one in drawn {
                let Reply::Bulk(name) = one else {
                    panic!("{one:?}");
                };
                let number: usize = str::from_utf8(&name[1..]).unwrap().parse().unwrap();
                times[number] += 1;
            }
        }
        // 20 are expected, with a deviation of 4.5.
        assert!(
            times.iter().all(|times| (1..50).contains(times)),
            "{times:?}"
        );
        bench.run("DEL s");
    }
}
