//! Elements that return to their queue, because no server fetches their grant.

use super::*;

#[test]
fn a_grant_that_is_not_fetched_returns_to_the_head_when_it_expires() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c");
    leave(&bench, HEAD, 2);
    bench.run("LPUSH q z");
    bench.clock.advance_ms(GRANT_EXPIRY_MS - 1);
    assert_eq!(pass(&bench), 0);
    bench.clock.advance_ms(1);
    assert_eq!(pass(&bench), 1);
    assert_eq!(bench.run("LLEN q"), Reply::Integer(4));
    let all = bulks(&["a", "b", "z", "c"]);
    assert_eq!(bench.run("LRANGE q 0 -1"), all);
    assert_eq!(rows_left(&bench), 0);
}

#[test]
fn an_emptied_queue_is_not_swept_while_elements_of_it_are_granted() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b");
    leave(&bench, HEAD, 2);
    assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    let sweep = transact!(bench, context, {
        let (_, retained) = context.retained(0, 100).await.unwrap();
        assert_eq!(retained.len(), 1);
        assert!(!context.sweep_retained(&retained[0]).await.unwrap());
    });
    commit(&bench, sweep).unwrap();
    bench.clock.advance_ms(GRANT_EXPIRY_MS);
    assert_eq!(pass(&bench), 1);
    assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&["a", "b"]));
}

#[test]
fn a_renamed_queue_takes_along_what_was_granted_of_it() {
    for (line, name) in [("RENAME q other", "other"), ("EXPIRE q 1000", "q")] {
        let bench = Bench::cluster_like();
        bench.run("RPUSH q a b c");
        leave(&bench, HEAD, 2);
        assert!(!matches!(bench.run(line), Reply::Error(_)));
        assert_eq!(
            bench.run(&format!("LRANGE {name} 0 -1")),
            bulks(&["a", "b", "c"])
        );
        assert_eq!(bench.run(&format!("LLEN {name}")), Reply::Integer(3));
    }
}

#[test]
fn no_other_key_takes_the_place_of_a_queue_whose_last_elements_are_granted() {
    let wrong_type = CommandError::WrongType.to_line();
    for (line, expected) in [
        ("RENAMENX other q", Reply::Integer(0)),
        ("COPY other q", Reply::Integer(0)),
        ("ZADD q 1 x", Reply::Error(wrong_type)),
        ("RENAME other q", Reply::OK),
    ] {
        let bench = Bench::cluster_like();
        bench.run("RPUSH q a b");
        bench.run("RPUSH other x");
        leave(&bench, HEAD, 2);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        assert_eq!(bench.run(line), expected, "{line}");
        let left = match expected {
            Reply::OK => bulks(&["x"]),
            _ => bulks(&["a", "b"]),
        };
        assert_eq!(bench.run("LRANGE q 0 -1"), left, "{line}");
        assert_eq!(rows_left(&bench), 0);
    }
}

#[test]
fn all_commands_of_an_exec_see_what_returned_for_one_of_them() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b");
    leave(&bench, HEAD, 2);
    let lines = ["LLEN q", "LPUSH p x", "ZADD q 1 x", "LLEN p"];
    let replies = bench.exec(&lines);
    let wrong_type = Reply::Error(CommandError::WrongType.to_line());
    let [two, one] = [2, 1].map(Reply::Integer);
    assert_eq!(
        replies,
        Reply::Array(vec![two, one.clone(), wrong_type, one])
    );
    assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&["a", "b"]));
}

#[test]
fn what_comes_back_stands_in_front_of_what_was_pushed_to_the_emptied_queue() {
    for (value_type, first, second, all) in [
        (ValueType::List, "RPUSH q a", "RPUSH q b", "LRANGE q 0 -1"),
        (
            ValueType::PriorityQueue,
            "PQ.PUSH q 1 a",
            "PQ.PUSH q 1 b",
            "PQ.RANGE q 0 -1",
        ),
    ] {
        let bench = Bench::cluster_like();
        bench.run(first);
        bench.run(second);
        let from_end = false;
        leave(
            &bench,
            End {
                value_type,
                from_end,
            },
            2,
        );
        bench.run(&first.replace('a', "x"));
        bench.clock.advance_ms(GRANT_EXPIRY_MS);
        assert_eq!(pass(&bench), 1);
        bench.run(&first.replace('a', "y"));
        let expected = Bench::cluster_like();
        for value in ["a", "b", "x", "y"] {
            expected.run(&first.replace('a', value));
        }
        assert_eq!(bench.run(all), expected.run(all));
    }
}

#[test]
fn a_script_sees_what_returned_for_one_of_its_calls() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b");
    leave(&bench, HEAD, 2);
    let script = "redis.call('LPUSH', 'p', 'x') \
                  local reply = redis.pcall('ZADD', 'q', 1, 'x') \
                  return {redis.call('LLEN', 'q'), redis.call('LLEN', 'p'), reply}";
    let Reply::Array(replies) = bench.run_words(&[b"EVAL", script.as_bytes(), b"0"]) else {
        panic!("no array");
    };
    assert_eq!(replies[..2], [2, 1].map(Reply::Integer));
    assert!(matches!(&replies[2], Reply::Error(line) if line.starts_with("WRONGTYPE")));
}

#[test]
fn what_comes_back_does_not_take_the_place_of_what_was_inserted_there_meanwhile() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b");
    let left = leave(&bench, HEAD, 1);
    let grant = layout().grant_key(left.data, left.id);
    let coming_back = transact!(bench, context, {
        assert_eq!(context.end_grant(&grant).await.unwrap(), Some(1));
    });
    let inserting = bench.store.begin_write().unwrap();
    let prefix = layout().section_prefix(left.data, Section::Elements);
    inserting.set(&[&prefix[..], &left.elements[0].name[..]].concat(), b"");
    commit(&bench, inserting).unwrap();
    let outcome = commit(&bench, coming_back);
    assert!(matches!(outcome, Err(StoreError::Conflict)), "{outcome:?}");
}

#[test]
fn a_grant_is_either_fetched_or_expires() {
    for is_fetched in [true, false] {
        let bench = Bench::cluster_like();
        bench.run("RPUSH q a b c");
        let left = leave(&bench, HEAD, 2);
        let fetching = fetch(&bench, &left);
        bench.clock.advance_ms(GRANT_EXPIRY_MS);
        let grant = layout().grant_key(left.data, left.id);
        let ending = transact!(bench, context, {
            assert_eq!(context.end_grant(&grant).await.unwrap(), Some(2));
        });
        let (first, second) = match is_fetched {
            true => (fetching, ending),
            false => (ending, fetching),
        };
        commit(&bench, first).unwrap();
        assert!(matches!(commit(&bench, second), Err(StoreError::Conflict)));
        let all: &[&str] = if is_fetched { &["c"] } else { &["a", "b", "c"] };
        assert_eq!(bench.run("LRANGE q 0 -1"), bulks(all));
    }
}

#[test]
fn values_of_one_priority_that_were_popped_from_above_come_back_in_their_order() {
    let bench = Bench::cluster_like();
    bench.run("PQ.PUSH q 9 a 9 b 9 c");
    let before = bench.run("PQ.RANGE q 0 -1");
    let highest = End {
        value_type: ValueType::PriorityQueue,
        from_end: true,
    };
    leave(&bench, highest, 1);
    leave(&bench, highest, 1);
    bench.run("PQ.POPMAX q");
    assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    assert!(matches!(bench.run("ZADD q 1 x"), Reply::Error(_)));
    bench.run("PQ.PUSH q 9 c");
    assert_eq!(bench.run("PQ.RANGE q 0 -1"), before);
}

#[test]
fn a_grant_of_a_deleted_queue_does_not_return() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c");
    leave(&bench, HEAD, 2);
    assert_eq!(bench.run("DEL q"), Reply::Integer(1));
    bench.run("RPUSH q new");
    bench.clock.advance_ms(GRANT_EXPIRY_MS);
    assert_eq!(pass(&bench), 1);
    assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&["new"]));
    assert_eq!(rows_left(&bench), 0);
}

#[test]
fn a_grant_by_a_clock_far_ahead_returns_when_it_is_overdue() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c");
    let left = leave_until(&bench, HEAD, 2, bench.clock.now_ms() + 3_600_000);
    assert_eq!(pass(&bench), 0);
    let mut found = FoundGrants::default();
    drop(transact!(bench, context, {
        found = context.find_grants(&HashSet::new()).await.unwrap();
    }));
    assert_eq!(found.all, [layout().grant_key(left.data, left.id)]);
    let overdue = found.all.into_iter().collect();
    assert_eq!(pass_with(&bench, &overdue), 1);
    assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&["a", "b", "c"]));
}

#[test]
fn grants_that_expire_together_return_in_their_order() {
    for (value_type, push, all) in [
        (ValueType::List, "RPUSH q a b c d e f", "LRANGE q 0 -1"),
        (
            ValueType::PriorityQueue,
            "PQ.PUSH q 9 a 9 b 9 c 9 d 9 e 9 f",
            "PQ.RANGE q 0 -1",
        ),
        (
            ValueType::PriorityQueue,
            "PQ.PUSH q 9 a 5 b 5 c 3 d",
            "PQ.RANGE q 0 -1",
        ),
    ] {
        for from_end in [false, true] {
            let bench = Bench::cluster_like();
            bench.run(push);
            let before = bench.run(all);
            let end = End {
                value_type,
                from_end,
            };
            leave(&bench, end, 2);
            leave(&bench, end, 2);
            bench.clock.advance_ms(GRANT_EXPIRY_MS);
            assert_eq!(pass(&bench), 2);
            assert_eq!(bench.run(all), before, "{push}");
        }
    }
}

#[test]
fn a_grant_returns_to_where_it_was_popped() {
    for (value_type, push, all) in [
        (ValueType::List, "RPUSH q a b c", "LRANGE q 0 -1"),
        (
            ValueType::SortedSet,
            "ZADD q 1 a 2.5 b 3 c",
            "ZRANGE q 0 -1 WITHSCORES",
        ),
        (
            ValueType::PriorityQueue,
            "PQ.PUSH q 1 a 2.5 b 3 c",
            "PQ.RANGE q 0 -1",
        ),
        (
            ValueType::PriorityQueue,
            "PQ.PUSH q 1 a 1 b 1 c 1 d",
            "PQ.RANGE q 0 -1",
        ),
        (
            ValueType::PriorityQueue,
            "PQ.PUSH q 1 a 1.0 b 1.0 c 1 d",
            "PQ.RANGE q 0 -1",
        ),
    ] {
        for from_end in [false, true] {
            let bench = Bench::cluster_like();
            bench.run(push);
            let before = bench.run(all);
            let end = End {
                value_type,
                from_end,
            };
            leave(&bench, end, 2);
            assert_ne!(bench.run(all), before, "{push}");
            bench.clock.advance_ms(GRANT_EXPIRY_MS);
            assert_eq!(pass(&bench), 1);
            assert_eq!(bench.run(all), before, "{push}");
            assert_eq!(rows_left(&bench), 0);
        }
    }
}

#[test]
fn large_elements_come_back() {
    let bench = Bench::cluster_like();
    let large = "x".repeat(250_000);
    bench.run(&format!("RPUSH q {large} b"));
    leave(&bench, HEAD, 2);
    bench.clock.advance_ms(GRANT_EXPIRY_MS);
    assert_eq!(pass(&bench), 1);
    assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&[&large, "b"]));
}

#[test]
fn elements_that_come_back_do_not_count_as_added() {
    for (push, value_type) in [
        ("RPUSH q a b c d", ValueType::List),
        ("ZADD q 1 a 2 b 3 c 4 d", ValueType::SortedSet),
        ("PQ.PUSH q 1 a 2 b 3 c 4 d", ValueType::PriorityQueue),
    ] {
        let bench = Bench::cluster_like();
        bench.run(push);
        let from_end = false;
        leave(
            &bench,
            End {
                value_type,
                from_end,
            },
            3,
        );
        let mut flows = Vec::new();
        let name = Bytes::from_static(b"q");
        let returning = transact!(bench, context, {
            let key = context.find(&name, value_type).await.unwrap().unwrap();
            context.return_grants(&key).await.unwrap();
            flows = context.signals.flows.take();
        });
        commit(&bench, returning).unwrap();
        assert_eq!(rows_left(&bench), 0);
        assert!(flows.is_empty(), "{push}");
    }
}
