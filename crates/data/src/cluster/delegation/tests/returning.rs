//! Elements that return to their queue, because no server fetches their grant or not all of it is used.

use super::*;

#[test]
fn what_comes_back_does_not_take_the_place_of_what_was_inserted_there_meanwhile() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b");
    let environment = bench.executor.environment();
    let name = Bytes::from_static(b"q");
    let find = async |context: &WriteContext<'_>| {
        context.find(&name, ValueType::List).await.unwrap().unwrap()
    };
    let mut taken = Vec::new();
    let popping = transact!(bench, environment, context, {
        let key = find(&context).await;
        taken = context.take_elements(&key, false, 1).await.unwrap();
    });
    commit(&bench, popping).unwrap();
    let coming_back = transact!(bench, environment, context, {
        let key = find(&context).await;
        context.put_back(&key, taken.clone(), false).await.unwrap();
    });
    let inserting = transact!(bench, environment, context, {
        let key = find(&context).await;
        let elements = context
            .layout()
            .section_prefix(key.data(), Section::Elements);
        let row = [&elements[..], &taken[0].name[..]].concat();
        context.transaction.set(&row, b"");
    });
    commit(&bench, inserting).unwrap();
    let outcome = commit(&bench, coming_back);
    assert!(matches!(outcome, Err(StoreError::Conflict)), "{outcome:?}");
}

#[test]
fn a_grant_that_is_not_fetched_returns_to_the_head_when_it_expires() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c");
    let asker = Asker::new(&bench);
    let call = asker.ask(LEFT);
    granted(&bench, LEFT);
    bench.run("LPUSH q z");
    bench.clock.advance_ms(GRANT_EXPIRY_MS - 1);
    assert_eq!(pass(&bench), 0);
    bench.clock.advance_ms(1);
    assert_eq!(pass(&bench), 1);
    assert_eq!(bench.run("LLEN q"), Reply::Integer(4));
    let all = bulks(&["a", "b", "z", "c"]);
    assert_eq!(bench.run("LRANGE q 0 -1"), all);
    assert_eq!(rows_left(&bench), 0);
    assert!(asker.fetched(&call, LEFT, 2).is_empty());
}

#[test]
fn a_grant_is_either_fetched_or_expires() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c");
    let asker = Asker::new(&bench);
    let call = asker.ask(LEFT);
    granted(&bench, LEFT);
    let (popped, fetching) = asker.fetch(&call, LEFT, 2);
    assert_eq!(popped, ["a", "b"]);
    bench.clock.advance_ms(GRANT_EXPIRY_MS);
    assert_eq!(pass(&bench), 1);
    let conflict = commit(&bench, fetching);
    assert!(matches!(conflict, Err(StoreError::Conflict)));
    assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&["a", "b", "c"]));
}

#[test]
fn an_emptied_queue_is_not_swept_while_elements_of_it_are_granted() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b");
    let asker = Asker::new(&bench);
    asker.ask(LEFT);
    granted(&bench, LEFT);
    assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    let environment = bench.executor.environment();
    let sweep = transact!(bench, environment, context, {
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
        let asker = Asker::new(&bench);
        let call = asker.ask(LEFT);
        granted(&bench, LEFT);
        assert!(!matches!(bench.run(line), Reply::Error(_)));
        assert_eq!(
            bench.run(&format!("LRANGE {name} 0 -1")),
            bulks(&["a", "b", "c"])
        );
        assert_eq!(bench.run(&format!("LLEN {name}")), Reply::Integer(3));
        assert!(asker.fetched(&call, LEFT, 2).is_empty());
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
        let asker = Asker::new(&bench);
        let call = asker.ask(LEFT);
        granted(&bench, LEFT);
        assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
        assert_eq!(bench.run(line), expected, "{line}");
        let left = match expected {
            Reply::OK => bulks(&["x"]),
            _ => bulks(&["a", "b"]),
        };
        assert_eq!(bench.run("LRANGE q 0 -1"), left, "{line}");
        assert!(asker.fetched(&call, LEFT, 2).is_empty());
        assert_eq!(rows_left(&bench), 0);
    }
}

/// Runs `lines` in the unit of work that fetches the grant for `LEFT`, and returns their replies. The first line is a
/// pop from the grant.
fn run_with_grant(
    bench: &Bench,
    asker: &Asker<'_>,
    call: &MadeRequest,
    lines: &[&str],
) -> Vec<Reply> {
    let transaction = bench.store.begin_write().unwrap();
    let mut replies = Vec::new();
    let unit = Unit::new(&*transaction, &asker.environment);
    bench.block_on(async {
        let context = unit.write_context(0);
        assert!(context.fetch_grant(call, &unit.grants).await.unwrap());
        for (number, line) in lines.iter().enumerate() {
            let mode = Mode {
                is_strict: false,
                pops_grants: number == 0,
                ..Mode::default()
            };
            let invocation = invocation(0, &words_of(line));
            replies.push(run_command(&unit, &invocation, mode).await.unwrap());
        }
        context.return_rest().await.unwrap();
    });
    drop(unit);
    commit(bench, transaction).unwrap();
    replies
}

#[test]
fn the_rest_of_a_grant_stays_with_its_queue_whatever_the_same_transaction_does_to_it() {
    let wrong_type = Reply::Error(CommandError::WrongType.to_line());
    // The queue has no elements outside the grant.
    for (line, reply, name) in [
        ("RPUSH q c", Reply::Integer(1), "q"),
        ("RPUSH other c", Reply::Integer(2), "q"),
        ("RENAME other q", Reply::OK, ""),
        ("RENAMENX other q", Reply::Integer(0), "q"),
        ("ZADD q 1 x", wrong_type.clone(), "q"),
        ("SORT other ALPHA STORE q", Reply::Integer(1), ""),
    ] {
        let bench = Bench::cluster_like();
        bench.run("RPUSH q a b");
        bench.run("RPUSH other x");
        let asker = Asker::new(&bench);
        let call = asker.ask(LEFT);
        granted(&bench, LEFT);
        let replies = run_with_grant(&bench, &asker, &call, &["LPOP q", line]);
        assert_eq!(replies, [bulk("a"), reply], "{line}");
        match name {
            "" => assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&["x"]), "{line}"),
            name => assert_eq!(bench.run(&format!("LINDEX {name} 0")), bulk("b"), "{line}"),
        }
        assert_eq!(rows_left(&bench), 0);
    }
}

#[test]
fn the_rest_of_a_grant_moves_along_with_a_queue_that_the_same_transaction_renames() {
    for (line, name) in [("RENAME q other", "other"), ("EXPIRE q 1000", "q")] {
        let bench = Bench::cluster_like();
        bench.run("RPUSH q a b c");
        let asker = Asker::new(&bench);
        let call = asker.ask(LEFT);
        granted(&bench, LEFT);
        let pop_again = format!("LPOP {name}");
        let replies = run_with_grant(&bench, &asker, &call, &["LPOP q", line, &pop_again]);
        assert_eq!((&replies[0], &replies[2]), (&bulk("a"), &bulk("b")));
        let left = bench.run(&format!("LRANGE {name} 0 -1"));
        assert_eq!(left, bulks(&["c"]));
        assert_eq!(rows_left(&bench), 0);
    }
}

#[test]
fn a_command_that_is_undone_after_a_return_leaves_the_rest_of_the_grant() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c");
    let asker = Asker::new(&bench);
    let call = asker.ask(LEFT);
    granted(&bench, LEFT);
    let transaction = bench.store.begin_write().unwrap();
    let unit = Unit::new(&*transaction, &asker.environment);
    bench.block_on(async {
        let context = unit.write_context(0).popping_grants();
        assert!(context.fetch_grant(&call, &unit.grants).await.unwrap());
        let name = Bytes::from_static(b"q");
        let savepoint = unit.savepoint();
        let key = context.find(&name, ValueType::List).await.unwrap().unwrap();
        context.return_grants(&key).await.unwrap();
        unit.rollback(savepoint);
        let popped = context.pop_elements(&key, false, 2).await.unwrap();
        let popped: Vec<_> = popped.into_iter().map(|one| one.value).collect();
        assert_eq!(popped, ["a", "b"]);
    });
    drop(unit);
    commit(&bench, transaction).unwrap();
    assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&["c"]));
}

#[test]
fn all_commands_of_an_exec_see_what_returned_for_one_of_them() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b");
    let asker = Asker::new(&bench);
    asker.ask(LEFT);
    granted(&bench, LEFT);
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
fn values_of_one_priority_that_were_popped_from_above_come_back_in_their_order() {
    let bench = Bench::cluster_like();
    bench.run("PQ.PUSH q 9 a 9 b 9 c");
    let before = bench.run("PQ.RANGE q 0 -1");
    let [first, second] = [Asker::new(&bench), Asker::new(&bench)];
    let one = demand(ValueType::PriorityQueue, true, 1);
    for asker in [first, second] {
        asker.ask(one);
        assert_eq!(granted(&bench, one), 1);
    }
    bench.run("PQ.POPMAX q");
    assert_eq!(bench.run("EXISTS q"), Reply::Integer(0));
    assert!(matches!(bench.run("ZADD q 1 x"), Reply::Error(_)));
    bench.run("PQ.PUSH q 9 c");
    assert_eq!(bench.run("PQ.RANGE q 0 -1"), before);
}

#[test]
fn a_grant_of_a_deleted_queue_is_fetched_but_does_not_return() {
    for is_fetched in [true, false] {
        let bench = Bench::cluster_like();
        bench.run("RPUSH q a b c");
        let asker = Asker::new(&bench);
        let call = asker.ask(LEFT);
        granted(&bench, LEFT);
        assert_eq!(bench.run("DEL q"), Reply::Integer(1));
        bench.run("RPUSH q new");
        if is_fetched {
            assert_eq!(asker.fetched(&call, LEFT, 2), ["a", "b"]);
        } else {
            bench.clock.advance_ms(GRANT_EXPIRY_MS);
            assert_eq!(pass(&bench), 1);
        }
        assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&["new"]));
        assert_eq!(rows_left(&bench), 0);
    }
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
        let asker = Asker::new(&bench);
        let demand = demand(value_type, false, 2);
        asker.ask(demand);
        granted(&bench, demand);
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
            let [first, second] = [Asker::new(&bench), Asker::new(&bench)];
            let demand = demand(value_type, from_end, 2);
            let calls = [second.ask(demand), first.ask(demand)];
            assert_eq!(granted(&bench, demand), 2);
            assert_ne!(calls[0].id, calls[1].id);
            bench.clock.advance_ms(GRANT_EXPIRY_MS);
            assert_eq!(pass(&bench), 2);
            assert_eq!(bench.run(all), before, "{push}");
        }
    }
}

#[test]
fn a_grant_by_a_clock_far_ahead_returns_when_it_is_overdue() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH q a b c");
    let asker = Asker::new(&bench);
    asker.ask(LEFT);
    let hour_ms = 3_600_000;
    bench.clock.advance_ms(hour_ms);
    asker.ask(LEFT);
    assert_eq!(granted(&bench, LEFT), 1);
    bench.clock.advance_ms(-hour_ms);
    assert_eq!(pass(&bench), 0);
    let mut found = FoundGrants::default();
    let environment = bench.executor.environment();
    drop(transact!(bench, environment, context, {
        found = context.find_grants(&HashSet::new()).await.unwrap();
    }));
    let overdue = found.all.into_iter().collect();
    assert_eq!(pass_with(&bench, &overdue), 1);
    assert_eq!(bench.run("LRANGE q 0 -1"), bulks(&["a", "b", "c"]));
}

#[test]
fn what_is_not_popped_of_a_grant_returns_to_where_it_was() {
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
            let asker = Asker::new(&bench);
            let demand = demand(value_type, from_end, 2);
            let call = asker.ask(demand);
            granted(&bench, demand);
            assert!(asker.fetched(&call, demand, 0).is_empty());
            assert_eq!(bench.run(all), before, "{push}");
            assert_eq!(rows_left(&bench), 0);
        }
    }
}
