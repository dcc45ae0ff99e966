//! Damage to what keys have: elements, counters, indexes.

use super::damage::{assert_repaired, assert_told, get, length_key, meta};
use super::*;
use quoin_engine::testing::ranks::maintain_wanted;
use quoin_layout::{
    FieldRow, KeyRange, Member, OrderRow, Section, Space, StreamId, TaskCounter, TaskEnding,
    TaskKept, TaskPlace, TaskRow, encode_counter, encode_length,
};

#[test]
fn a_length_that_is_wrong() {
    assert_repaired(
        "counters",
        Level::Fail,
        "1 key whose length is not the number of its elements or bytes (\"list\")",
        |bench, layout| {
            let key = length_key(bench, layout, "list");
            change(bench, |transaction, _| {
                transaction.set(&key, &encode_length(7, 3));
            });
        },
    );
}

#[test]
fn a_length_of_a_set_or_queue_that_is_wrong() {
    for name in ["set", "pq", "tasks", "queue"] {
        assert_repaired("counters", Level::Fail, name, |bench, layout| {
            let key = length_key(bench, layout, name);
            change(bench, |transaction, _| transaction.atomic_add(&key, 1));
        });
    }
}

#[test]
fn a_string_that_is_longer_than_its_length() {
    for wrong in [20_000, 1 << 39] {
        assert_repaired("counters", Level::Fail, "\"text\"", |bench, layout| {
            bench.run("SETRANGE text 40000 x");
            let key = length_key(bench, layout, "text");
            change(bench, |transaction, _| {
                transaction.set(&key, &encode_length(wrong, 3));
            });
        });
    }
}

#[test]
fn zeros_at_the_end_of_a_string_are_no_damage() {
    on_both(|bench| {
        bench.run("SETRANGE text 40000 x");
        bench.run("BITFIELD text OVERFLOW FAIL SET u8 #50000 256");
        assert_eq!(bench.run("STRLEN text"), Reply::Integer(50_001));
        let told = lines(bench, CHECK);
        assert_eq!(line(&told, "counters").level, Level::Ok);
    });
}

#[test]
fn a_recount_counts_as_a_change() {
    on_both(|bench| {
        fill(bench);
        let layout = Layout::new("test");
        let key = length_key(bench, &layout, "list");
        change(bench, |transaction, _| transaction.atomic_add(&key, 1));
        let before = get(bench, &key).unwrap();
        lines(bench, REPAIR);
        let after = get(bench, &key).unwrap();
        assert_eq!(bench.run("LLEN list"), Reply::Integer(5));
        // The upper bits, in which WATCH sees changes.
        assert_ne!(before[5..], after[5..]);
    });
}

#[test]
fn a_key_that_lost_all_its_elements() {
    assert_repaired("counters", Level::Fail, "\"list\"", |bench, layout| {
        let data = meta(bench, layout, "list").data;
        let range = KeyRange::children(&layout.data_prefix(data));
        change(bench, |transaction, _| {
            transaction.clear_range(&range.begin, &range.end);
        });
    });
}

#[test]
fn a_key_with_expiry_that_counts_no_elements() {
    assert_repaired(
        "keys",
        Level::Fail,
        "1 key that exists but counts no elements (\"pq\")",
        |bench, layout| {
            let key = length_key(bench, layout, "pq");
            change(bench, |transaction, _| {
                transaction.set(&key, &encode_length(0, 3));
            });
        },
    );
}

#[test]
fn task_counters_that_are_wrong() {
    for counter in [
        TaskCounter::Leased,
        TaskCounter::Delayed,
        TaskCounter::Dead,
        TaskCounter::LeasedOfGroups,
        TaskCounter::Waiting,
    ] {
        assert_repaired(
            "counters",
            Level::Fail,
            "counts its leased, delayed, dead or waiting tasks wrong (\"tasks\")",
            |bench, layout| {
                let data = meta(bench, layout, "tasks").data;
                let key = layout.task_counter_key(data, counter);
                change(bench, |transaction, _| {
                    transaction.set(&key, &encode_counter(9));
                });
            },
        );
    }
}

#[test]
fn places_without_a_task() {
    let place = TaskPlace {
        priority: 9.0,
        index: 5_000,
        random: 0,
    };
    assert_repaired(
        "indexes",
        Level::Fail,
        "5 places of tasks that do not exist",
        |bench, layout| {
            let data = meta(bench, layout, "tasks").data;
            let mut order = layout.task_order_prefix(data, 0);
            order.extend_from_slice(&place.encode());
            change(bench, |transaction, _| {
                transaction.set(&order, &OrderRow::encode(&[], b"gone"));
                transaction.set(&layout.task_due_key(data, i64::MAX - 1, &place), b"gone");
                transaction.set(&layout.task_dead_key(data, 7, &place), b"gone");
                transaction.set(&layout.task_waiting_key(data, 7, &place), b"gone");
                let lease = layout.task_group_lease_key(data, b"g", &place);
                transaction.set(&lease, b"gone");
            });
        },
    );
}

#[test]
fn a_task_that_stands_nowhere() {
    assert_told(
        "indexes",
        Level::Fail,
        "1 task that nobody would get (\"later\" of \"tasks\")",
        |bench, layout| {
            let data = meta(bench, layout, "tasks").data;
            let key = layout.task_key(data, b"later");
            let row = TaskRow::decode(&get(bench, &key).unwrap()).unwrap();
            let due = layout.task_due_key(data, row.at_ms, &row.place);
            change(bench, |transaction, _| transaction.clear(&due));
        },
    );
}

#[test]
fn a_lease_that_its_group_does_not_count() {
    assert_told(
        "indexes",
        Level::Fail,
        "1 task that nobody would get (\"g0\" of \"tasks\")",
        |bench, layout| {
            bench.run("TASK.ADD tasks -9 x ID g0 GROUP g");
            bench.run("TASK.TAKE tasks LEASE 100000");
            let data = meta(bench, layout, "tasks").data;
            let leases = layout.task_group_leases(data, b"g");
            change(bench, |transaction, _| {
                transaction.clear_range(&leases.begin, &leases.end);
            });
        },
    );
}

#[test]
fn a_wait_that_no_acknowledgement_ends_and_one_of_no_task() {
    assert_told(
        "indexes",
        Level::Fail,
        "1 wait that no acknowledgement ends",
        |bench, layout| {
            bench.run("TASK.ADD tasks 1 x ID w0");
            bench.run("TASK.ADD tasks 1 x ID w1 AFTER 1 w0");
            let data = meta(bench, layout, "tasks").data;
            let dependants = layout.task_dependants(data, b"w0");
            change(bench, |transaction, _| {
                transaction.clear_range(&dependants.begin, &dependants.end);
            });
        },
    );
    assert_repaired(
        "indexes",
        Level::Fail,
        "1 wait of a task that does not wait",
        |bench, layout| {
            let data = meta(bench, layout, "tasks").data;
            let stray = layout.task_dependant_key(data, b"w0", (5_000, 0));
            change(bench, |transaction, _| transaction.set(&stray, b"gone"));
        },
    );
}

#[test]
fn a_member_that_the_order_of_scores_lacks() {
    assert_told(
        "indexes",
        Level::Fail,
        "1 member that the order of scores does not have (\"set\")",
        |bench, layout| {
            let data = meta(bench, layout, "set").data;
            let key = layout.score_key(data, 2.0, b"b", None);
            change(bench, |transaction, _| transaction.clear(&key));
        },
    );
}

/// A set with counted blocks.
fn make_blocks(bench: &Bench) {
    let members: Vec<String> = (0..10_000).map(|n| format!("{n} m{n}")).collect();
    for some in members.chunks(1_000) {
        bench.run(&format!("ZADD ranked {}", some.join(" ")));
    }
    assert_eq!(bench.run("ZCOUNT ranked 3000 7999"), Reply::Integer(5_000));
    maintain_wanted(bench);
}

#[test]
fn a_block_with_a_wrong_count() {
    let first_count = |bench: &Bench, layout: &Layout| {
        let data = meta(bench, layout, "ranked").data;
        let counts = layout.rank_counts(data, 1);
        bench.block_on(async {
            let snapshot = bench.store.begin_read().unwrap();
            let query = RangeQuery {
                begin: &counts.begin,
                end: &counts.end,
                limit: 1,
                reverse: false,
                isolation: Isolation::Snapshot,
            };
            snapshot.get_range(query).await.unwrap().remove(0).key
        })
    };
    on_both(|bench| {
        make_blocks(bench);
        let told = lines(bench, CHECK);
        assert_eq!(line(&told, "indexes").level, Level::Ok);
        assert_eq!(line(&told, "counters").level, Level::Ok);
    });
    assert_told(
        "indexes",
        Level::Fail,
        "1 block with another number of elements than is counted (\"ranked\")",
        |bench, layout| {
            make_blocks(bench);
            let count = first_count(bench, layout);
            change(bench, |transaction, _| transaction.atomic_add(&count, 1));
        },
    );
}

#[test]
fn a_mark_of_a_block_that_is_not_counted() {
    assert_repaired(
        "indexes",
        Level::Fail,
        "1 end of a block that is not counted (\"ranked\")",
        |bench, layout| {
            make_blocks(bench);
            let data = meta(bench, layout, "ranked").data;
            let mark = layout.rank_mark_key(data, 1, b"\x21");
            change(bench, |transaction, _| transaction.set(&mark, b""));
        },
    );
}

#[test]
fn a_score_without_its_member() {
    assert_told(
        "counters",
        Level::Fail,
        "one index has and another does not (\"set\")",
        |bench, layout| {
            let data = meta(bench, layout, "set").data;
            let key = layout.score_key(data, 2.0, b"stray", None);
            change(bench, |transaction, _| transaction.set(&key, b""));
        },
    );
}

#[test]
fn parts_of_a_value_that_are_missing() {
    assert_told(
        "counters",
        Level::Fail,
        "parts of long values",
        |bench, layout| {
            let data = meta(bench, layout, "list").data;
            let chunks = layout.section(data, Section::Chunks);
            change(bench, |transaction, _| {
                transaction.clear_range(&chunks.begin, &chunks.end);
            });
        },
    );
}

#[test]
fn rows_that_a_type_does_not_have() {
    assert_told(
        "counters",
        Level::Warn,
        "1 key with rows that its type does not have (\"list\")",
        |bench, layout| {
            let data = meta(bench, layout, "list").data;
            let key = layout.score_key(data, 2.0, b"stray", None);
            change(bench, |transaction, _| transaction.set(&key, b""));
        },
    );
}

#[test]
fn a_result_without_its_end() {
    assert_repaired(
        "indexes",
        Level::Fail,
        "1 token or result that would be kept for ever",
        |bench, layout| {
            let data = meta(bench, layout, "tasks").data;
            let key = layout.task_kept_key(data, TaskEnding::Result, b"lost");
            let value = TaskKept {
                until_ms: 1,
                value: "1".into(),
            };
            change(bench, |transaction, _| {
                transaction.set(&key, &value.encode())
            });
        },
    );
}

#[test]
fn ends_of_what_is_not_there_or_ends_later() {
    assert_repaired(
        "indexes",
        Level::Fail,
        "4 ends of things that a task queue does not have",
        |bench, layout| {
            let data = meta(bench, layout, "tasks").data;
            for (kind, name) in [
                (TaskEnding::Task, "old"),
                (TaskEnding::Unique, "token"),
                (TaskEnding::Result, "none"),
                (TaskEnding::Schedule, "s"),
            ] {
                let at_ms = 4_000_000_000_000;
                let key = layout.task_end_key(data, at_ms, kind, name.as_bytes());
                change(bench, |transaction, _| transaction.set(&key, b""));
            }
        },
    );
}

#[test]
fn a_schedule_without_its_next_moment_is_told_and_stays() {
    on_both(|bench| {
        fill(bench);
        let layout = Layout::new("test");
        let data = meta(bench, &layout, "tasks").data;
        let ends = layout.task_ends(data);
        change(bench, |transaction, _| {
            transaction.clear_range(&ends.begin, &ends.end);
        });
        lines(bench, REPAIR);
        let told = lines(bench, CHECK);
        let found = line(&told, "indexes");
        let text = "1 schedule that would never add a task";
        assert!(found.text.contains(text), "{found}");
        bench.run("TASK.PAUSE tasks SCHEDULE s");
        bench.run("TASK.RESUME tasks SCHEDULE s");
        let told = lines(bench, CHECK);
        assert!(!line(&told, "indexes").text.contains(text));
    });
}

/// Removes all timers, and lets background work check for what is due.
fn lose_timers(bench: &Bench, space: Space) {
    change(bench, |transaction, layout| {
        let timers = layout.rows_of(space);
        transaction.clear_range(&timers.begin, &timers.end);
    });
    reap(bench);
}

/// Repairs, and lets background work do what is due.
fn repair_what_is_due(bench: &Bench) {
    lines(bench, REPAIR);
    bench.clock.advance_ms(1_000);
    reap(bench);
    assert_healthy(bench);
}

#[test]
fn a_schedule_that_is_due_without_a_timer() {
    on_both(|bench| {
        bench.run("TASK.SCHEDULE q s EVERY 1000 TASK 1 x");
        bench.clock.advance_ms(100_000);
        lose_timers(bench, Space::Timers);
        let told = lines(bench, CHECK);
        let found = line(&told, "task queues");
        assert_eq!(found.level, Level::Fail);
        assert!(found.text.contains("its schedules add none"), "{found}");
        repair_what_is_due(bench);
        assert_eq!(bench.run("TASK.LEN q"), Reply::Integer(1));
    });
}

#[test]
fn a_lease_that_ended_without_a_timer() {
    on_both(|bench| {
        bench.run("TASK.ADD q 1 job ID a");
        bench.run("TASK.TAKE q LEASE 1000");
        bench.clock.advance_ms(100_000);
        let told = lines(bench, CHECK);
        assert_eq!(line(&told, "task queues").level, Level::Warn);
        assert!(
            line(&told, "task queues")
                .text
                .contains("ended more than a minute ago")
        );
        lose_timers(bench, Space::Timers);
        let told = lines(bench, CHECK);
        let found = line(&told, "task queues");
        assert_eq!(found.level, Level::Fail);
        assert!(found.text.contains("without a timer"), "{found}");
        repair_what_is_due(bench);
        assert!(matches!(bench.run("TASK.TAKE q"), Reply::Array(_)));
    });
}

#[test]
fn fields_that_expired_without_a_timer() {
    on_both(|bench| {
        bench.run("HSETEX h PX 1000 FIELDS 1 a 1");
        bench.run("HSET h b 2");
        bench.clock.advance_ms(100_000);
        let told = lines(bench, CHECK);
        let found = line(&told, "expiring fields");
        assert_eq!(found.level, Level::Warn);
        assert!(found.text.contains("expired more than a minute ago"));
        lose_timers(bench, Space::HashTimers);
        let told = lines(bench, CHECK);
        let found = line(&told, "expiring fields");
        assert_eq!(found.level, Level::Fail);
        assert!(found.text.contains("without a timer"), "{found}");
        repair_what_is_due(bench);
        assert_eq!(bench.run("HLEN h"), Reply::Integer(1));
    });
}

#[test]
fn a_field_without_the_row_by_its_expiry_and_such_a_row_without_a_field() {
    let expiry = |bench: &Bench, layout: &Layout, at_ms, name: &'static [u8]| {
        let data = meta(bench, layout, "h").data;
        let name = Member::new(&Bytes::from_static(name));
        let field = layout.field_key(data, FieldRow::Hash, &name);
        layout.field_expiry_key(data, at_ms, &field).unwrap()
    };
    assert_told(
        "indexes",
        Level::Fail,
        "1 field that is not removed when it expires",
        |bench, layout| {
            bench.run("HSETEX h PXAT 4000000000000 FIELDS 2 a 1 b 2");
            let key = expiry(bench, layout, 4_000_000_000_000, b"a");
            change(bench, |transaction, _| transaction.clear(&key));
        },
    );
    assert_repaired(
        "indexes",
        Level::Fail,
        "1 expiry of a field that does not have it",
        |bench, layout| {
            bench.run("HSETEX h PXAT 4000000000000 FIELDS 2 a 1 b 2");
            let key = expiry(bench, layout, 3_000_000_000_000, b"a");
            change(bench, |transaction, _| transaction.set(&key, b""));
        },
    );
}

#[test]
fn an_entry_above_the_last_id_of_its_stream() {
    assert_told(
        "indexes",
        Level::Fail,
        "1 entry of a stream above the last id of its stream (\"2-0\" of \"stream\")",
        |bench, layout| {
            bench.run("XADD stream 1-0 f v");
            bench.run("XADD stream 2-0 f v");
            let data = meta(bench, layout, "stream").data;
            let head = StreamHead {
                last: StreamId { ms: 1, seq: 0 },
                added: 2,
            };
            change(bench, |transaction, _| {
                transaction.set(&layout.stream_head_key(data), &head.encode());
            });
        },
    );
}
