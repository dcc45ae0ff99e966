//! Damages.

use bytes::Bytes;

use super::*;
use crate::layout::{
    Id, KeyName, Meta, OrderRow, Space, TaskCounter, TaskPlace, TrashKind, ValueType,
    encode_counter, encode_length,
};
use crate::limits::DATABASES;
use crate::store::{Isolation, StoreError};

const NAMESPACE: Id = Id {
    instance: 0,
    sequence: 0,
};
/// An id that no server start has made.
const FOREIGN: Id = Id {
    instance: 900,
    sequence: 1,
};

fn name(key: &str) -> KeyName {
    KeyName::new(&Bytes::copy_from_slice(key.as_bytes()))
}

fn meta_key(layout: &Layout, key: &str) -> Vec<u8> {
    layout.meta_key(NAMESPACE, &name(key))
}

pub(super) fn length_key(_: &Bench, layout: &Layout, key: &str) -> Vec<u8> {
    layout.length_key(&meta_key(layout, key))
}

fn get(bench: &Bench, key: &[u8]) -> Option<Bytes> {
    let transaction = bench.store.begin_read().unwrap();
    bench
        .block_on(transaction.get(key, Isolation::Snapshot))
        .unwrap()
}

fn meta(bench: &Bench, layout: &Layout, key: &str) -> Meta {
    Meta::decode(&get(bench, &meta_key(layout, key)).unwrap()).unwrap()
}

/// Changes rows of a store that fails now and then.
pub(super) fn change_until_done(bench: &Bench, change: impl Fn(&dyn Transaction, &Layout)) {
    loop {
        let transaction = bench.store.begin_write().unwrap();
        change(&*transaction, &Layout::new("test"));
        match bench.block_on(transaction.commit()) {
            Ok(()) => return,
            Err(StoreError::Fatal(error)) => panic!("{error}"),
            Err(_) => {}
        }
    }
}

/// Damages a store with everything in it, and expects that one check tells of it in these words,
/// and that a repair puts it right.
fn assert_repaired(check: &str, level: Level, words: &str, damage: impl Fn(&Bench, &Layout)) {
    on_both(|bench| {
        fill(bench);
        reap(bench);
        damage(bench, &Layout::new("test"));
        let told = lines(bench, LOOK);
        let found = line(&told, check);
        assert_eq!(found.level, level, "{found}");
        assert!(found.text.contains(words), "{found}");
        // Looking changes nothing.
        assert_eq!(lines(bench, LOOK)[2..], told[2..]);
        let told = lines(bench, REPAIR);
        let found = line(&told, check);
        assert_eq!(found.level, Level::Ok, "{found}");
        reap(bench);
        assert_healthy(bench);
    });
}

/// The same where it cannot be put right by itself.
fn assert_told(check: &str, level: Level, words: &str, damage: impl Fn(&Bench, &Layout)) {
    on_both(|bench| {
        fill(bench);
        reap(bench);
        damage(bench, &Layout::new("test"));
        for options in [LOOK, REPAIR, LOOK] {
            let told = lines(bench, options);
            let found = line(&told, check);
            assert_eq!(found.level, level, "{found}");
            assert!(found.text.contains(words), "{found}");
        }
    });
}

#[test]
fn data_that_no_key_names() {
    assert_repaired(
        "data",
        Level::Warn,
        "1 that belong to no key",
        |bench, layout| {
            let position = crate::layout::Position::pushed(0, 7, 0);
            let key = layout.element_key(FOREIGN, &position);
            change(bench, |transaction, _| transaction.set(&key, b"\0lost"));
        },
    );
}

#[test]
fn many_data_ids_that_no_key_names_among_many_keys() {
    assert_repaired(
        "data",
        Level::Warn,
        "600 that belong to no key",
        |bench, layout| {
            fill_more(bench);
            change(bench, |transaction, _| {
                for sequence in 0..600 {
                    let data = Id {
                        sequence,
                        ..FOREIGN
                    };
                    for index in 0..3 {
                        let position = crate::layout::Position::pushed(index, 7, 0);
                        transaction.set(&layout.element_key(data, &position), b"\0lost");
                    }
                }
            });
        },
    );
}

#[test]
fn data_that_is_in_the_trash_is_no_finding() {
    let bench = Bench::embedded();
    bench.run("RPUSH list a b c");
    bench.run("DEL list");
    assert_healthy(&bench);
    let told = lines(&bench, LOOK);
    assert!(line(&told, "data").text.contains("1 values"), "{told:?}");
    assert!(line(&told, "trash").text.contains("1 removed"), "{told:?}");
}

#[test]
fn a_length_that_is_wrong() {
    assert_repaired(
        "counters",
        Level::Fail,
        "1 keys whose length is not the number of their elements (\"list\")",
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
        // The upper bits, by which WATCH sees changes.
        assert_ne!(before[5..], after[5..]);
    });
}

#[test]
fn a_key_that_lost_all_its_elements() {
    assert_repaired("counters", Level::Fail, "\"list\"", |bench, layout| {
        let data = meta(bench, layout, "list").data;
        let range = crate::layout::KeyRange::children(&layout.data_prefix(data));
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
        "1 keys that exist but count no elements (\"pq\")",
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
    for counter in [TaskCounter::Leased, TaskCounter::Delayed, TaskCounter::Dead] {
        assert_repaired(
            "counters",
            Level::Fail,
            "count their leased, delayed or dead tasks wrong (\"tasks\")",
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
        "3 places of tasks that are not there (\"tasks\", \"tasks\", \"tasks\")",
        |bench, layout| {
            let data = meta(bench, layout, "tasks").data;
            let mut order = layout.task_order_prefix(data, 0);
            order.extend_from_slice(&place.encode());
            change(bench, |transaction, _| {
                transaction.set(&order, &OrderRow::encode(&[], b"gone"));
                transaction.set(&layout.task_due_key(data, i64::MAX - 1, &place), b"gone");
                transaction.set(&layout.task_dead_key(data, 7, &place), b"gone");
            });
        },
    );
}

#[test]
fn a_task_that_stands_nowhere() {
    assert_told(
        "indexes",
        Level::Fail,
        "1 tasks that nobody would get (\"later\" of \"tasks\")",
        |bench, layout| {
            let data = meta(bench, layout, "tasks").data;
            let key = layout.task_key(data, b"later");
            let row = crate::layout::TaskRow::decode(&get(bench, &key).unwrap()).unwrap();
            let due = layout.task_due_key(data, row.at_ms, &row.place);
            change(bench, |transaction, _| transaction.clear(&due));
        },
    );
}

#[test]
fn a_member_that_the_order_of_scores_lacks() {
    assert_told(
        "indexes",
        Level::Fail,
        "1 members that the order of scores does not have (\"set\")",
        |bench, layout| {
            let data = meta(bench, layout, "set").data;
            let key = layout.score_key(data, 2.0, b"b", None);
            change(bench, |transaction, _| transaction.clear(&key));
        },
    );
}

#[test]
fn a_score_without_its_member() {
    assert_told(
        "counters",
        Level::Fail,
        "one index has and another has not (\"set\")",
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
            let chunks = layout.section(data, crate::layout::Section::Chunks);
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
        "1 keys with rows that their type does not have (\"list\")",
        |bench, layout| {
            let data = meta(bench, layout, "list").data;
            let key = layout.score_key(data, 2.0, b"stray", None);
            change(bench, |transaction, _| transaction.set(&key, b""));
        },
    );
}

#[test]
fn an_expiry_that_leads_nowhere() {
    assert_repaired(
        "expiry",
        Level::Warn,
        "2 rows of the index that lead to no key",
        |bench, layout| {
            change(bench, |transaction, _| {
                let at_ms = i64::MAX - 1;
                for key in ["nothing", "list"] {
                    transaction.set(&layout.expiry_key(at_ms, NAMESPACE, &name(key)), b"");
                }
            });
        },
    );
}

#[test]
fn an_expiry_that_the_index_lacks() {
    assert_repaired(
        "keys",
        Level::Fail,
        "1 keys that no server would remove when they expire (\"pq\")",
        |bench, layout| {
            let at_ms = meta(bench, layout, "pq").expire_at_ms.unwrap();
            change(bench, |transaction, _| {
                transaction.clear(&layout.expiry_key(at_ms, NAMESPACE, &name("pq")));
            });
        },
    );
}

#[test]
fn expired_keys_that_nobody_removes_are_overdue_on_a_cluster() {
    on_both(|bench| {
        bench.run("RPUSH list a");
        bench.run("PEXPIRE list 10");
        bench.clock.advance_ms(50_000);
        assert_healthy(bench);
        bench.clock.advance_ms(50_000);
        let told = lines(bench, LOOK);
        assert!(line(&told, "expiry").text.contains("1 of them by now"));
        assert_eq!(line(&told, "expiry").level, Level::Warn);
        let offline = DoctorOptions {
            is_offline: true,
            ..LOOK
        };
        assert_eq!(line(&lines(bench, offline), "expiry").level, Level::Ok);
        reap(bench);
        assert_healthy(bench);
    });
}

#[test]
fn a_length_without_a_key() {
    assert_repaired(
        "keys",
        Level::Warn,
        "1 lengths of keys that are not there (\"nothing\")",
        |bench, layout| {
            let key = length_key(bench, layout, "nothing");
            change(bench, |transaction, _| {
                transaction.set(&key, &encode_length(0, 3));
            });
        },
    );
}

#[test]
fn metadata_that_cannot_be_read() {
    assert_told(
        "keys",
        Level::Fail,
        "1 rows that cannot be read",
        |bench, layout| {
            let key = meta_key(layout, "list");
            change(bench, |transaction, _| {
                transaction.set(&key, b"\xffnonsense")
            });
        },
    );
}

#[test]
fn a_key_under_a_wrong_name() {
    assert_told(
        "keys",
        Level::Fail,
        "are not found by their names",
        |bench, layout| {
            let full = meta(bench, layout, &"n".repeat(1_000));
            let renamed = Meta {
                long_name: Some(Bytes::from(vec![b'o'; 1_000])),
                ..full
            };
            let key = meta_key(layout, &"n".repeat(1_000));
            change(bench, |transaction, _| {
                transaction.set(&key, &renamed.encode())
            });
        },
    );
}

#[test]
fn a_namespace_that_no_database_shows() {
    assert_repaired(
        "databases",
        Level::Warn,
        "1 namespaces with keys that no database shows",
        |bench, layout| {
            change(bench, |transaction, _| {
                let meta = Meta {
                    value_type: ValueType::List,
                    data: FOREIGN,
                    expire_at_ms: None,
                    long_name: None,
                };
                let meta_key = layout.meta_key(FOREIGN, &name("lost"));
                transaction.set(&meta_key, &meta.encode());
                transaction.set(&layout.length_key(&meta_key), &encode_length(1, 0));
                let position = crate::layout::Position::pushed(0, 7, 0);
                transaction.set(&layout.element_key(FOREIGN, &position), b"\0lost");
            });
        },
    );
}

#[test]
fn two_databases_that_show_the_same() {
    assert_told(
        "databases",
        Level::Fail,
        "1 show the same keys as another (0 and 7)",
        |bench, layout| {
            change(bench, |transaction, _| {
                let shown = crate::layout::encode_id(NAMESPACE);
                transaction.set(&layout.database_key(7), &shown);
            });
        },
    );
}

#[test]
fn rows_of_an_unknown_kind() {
    assert_told(
        "rows",
        Level::Warn,
        "1 kinds that this Quoin does not know (space 40)",
        |bench, layout| {
            let key = layout.space(40).begin;
            change(bench, |transaction, _| transaction.set(&key, b""));
        },
    );
}

#[test]
fn what_another_doctor_measured_with() {
    assert_repaired(
        "rows",
        Level::Warn,
        "stopped while it measured",
        |bench, layout| {
            let key = layout.scratch_key(3);
            change(bench, |transaction, _| transaction.set(&key, b""));
        },
    );
}

#[test]
fn trash_that_cannot_be_read() {
    assert_told(
        "trash",
        Level::Fail,
        "1 rows that cannot be read",
        |bench, layout| {
            let mut key = layout.trash_key(TrashKind::Namespace, FOREIGN);
            let kind = layout.rows_of(Space::Trash).begin.len() + 1;
            key[kind] = 7;
            change(bench, |transaction, _| transaction.set(&key, b""));
        },
    );
}

#[test]
fn messages_that_nobody_has_cleared() {
    let bench = Bench::cluster_like();
    change(&bench, |transaction, layout| {
        let values = [Bytes::from_static(b"a"), Bytes::from_static(b"b")];
        transaction.append(&layout.messages_prefix(), &values);
    });
    let told = lines(&bench, LOOK);
    let found = line(&told, "messages");
    assert_eq!(found.level, Level::Warn);
    assert!(found.text.contains("2 rows"), "{found}");
    assert_eq!(line(&lines(&bench, REPAIR), "messages").level, Level::Ok);
    let told = lines(&bench, LOOK);
    assert!(line(&told, "messages").text.starts_with("none"), "{told:?}");
}

#[test]
fn rows_of_operations_go_only_where_no_server_runs() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH list a");
    change(&bench, |transaction, layout| {
        for (instance, slot) in [(700, 0), (700, 1), (701, 0)] {
            transaction.set(&layout.operation_key(instance, slot), b"x");
        }
    });
    for options in [LOOK, REPAIR] {
        let told = lines(&bench, options);
        let found = line(&told, "operations");
        assert_eq!(found.level, Level::Ok, "{found}");
        assert!(found.text.contains("of 3 server starts"), "{found}");
    }
    let offline = DoctorOptions {
        is_offline: true,
        ..REPAIR
    };
    let told = lines(&bench, offline);
    assert!(line(&told, "operations").text.contains("removed"));
    let told = lines(&bench, LOOK);
    assert_eq!(line(&told, "operations").text, "none");
}

#[test]
fn empty_keys_of_a_cluster_are_told_and_swept() {
    let bench = Bench::cluster_like();
    for number in 0..10 {
        bench.run(&format!("RPUSH list:{number} a"));
        bench.run(&format!("LPOP list:{number}"));
    }
    bench.run("TASK.ADD queue 1 job NEEDS gb 1");
    bench.run("TASK.TAKE queue HAVING gb 1");
    bench.run("RPUSH full a");
    let told = lines(&bench, LOOK);
    let found = line(&told, "keys");
    assert_eq!(
        found.text,
        "1 keys and 11 that are empty and wait for a push"
    );
    lines(&bench, REPAIR);
    let told = lines(&bench, LOOK);
    assert_eq!(line(&told, "keys").text, "1 keys");
    assert_healthy(&bench);
    assert_eq!(bench.run("RPUSH list:3 b"), Reply::Integer(1));
}

#[test]
fn a_lease_that_ended_without_an_alarm() {
    on_both(|bench| {
        bench.run("TASK.ADD q 1 job ID a");
        bench.run("TASK.TAKE q LEASE 1000");
        bench.clock.advance_ms(100_000);
        let told = lines(bench, LOOK);
        assert_eq!(line(&told, "task queues").level, Level::Warn);
        assert!(
            line(&told, "task queues")
                .text
                .contains("ended more than a minute ago")
        );
        change(bench, |transaction, layout| {
            let alarms = layout.rows_of(Space::Alarms);
            transaction.clear_range(&alarms.begin, &alarms.end);
        });
        reap(bench);
        let told = lines(bench, LOOK);
        let found = line(&told, "task queues");
        assert_eq!(found.level, Level::Fail);
        assert!(found.text.contains("without an alarm"), "{found}");
        lines(bench, REPAIR);
        bench.clock.advance_ms(1_000);
        reap(bench);
        assert_healthy(bench);
        assert!(matches!(bench.run("TASK.TAKE q"), Reply::Array(_)));
    });
}

#[test]
fn a_newer_layout_is_not_touched() {
    on_both(|bench| {
        change(bench, |transaction, layout| {
            transaction.set(&layout.version_key(), &encode_counter(9));
            transaction.set(&layout.scratch_key(1), b"");
        });
        let told = lines(bench, REPAIR);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].level, Level::Fail);
        assert!(told[0].text.contains("version 9"), "{}", told[0]);
        assert!(get(bench, &Layout::new("test").scratch_key(1)).is_some());
    });
}

#[test]
fn rows_without_a_layout_version_are_not_touched() {
    on_both(|bench| {
        change(bench, |transaction, layout| {
            transaction.clear(&layout.version_key());
        });
        let told = lines(bench, REPAIR);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].level, Level::Fail);
    });
}

#[test]
fn an_older_or_unreadable_version_is_told() {
    on_both(|bench| {
        for (version, level) in [(0, Level::Warn), (1, Level::Ok)] {
            change(bench, |transaction, layout| {
                transaction.set(&layout.version_key(), &encode_counter(version));
            });
            assert_eq!(lines(bench, LOOK)[0].level, level);
        }
        change(bench, |transaction, layout| {
            transaction.set(&layout.version_key(), b"x");
        });
        assert_eq!(lines(bench, LOOK)[0].level, Level::Fail);
    });
}

#[test]
fn every_database_is_looked_at() {
    on_both(|bench| {
        for database in 0..DATABASES {
            bench.run_in(database, &[b"RPUSH", b"list", b"a"]);
        }
        let told = lines(bench, LOOK);
        assert_eq!(line(&told, "databases").text, "16 of 16 have keys");
        assert_eq!(line(&told, "keys").text, "16 keys");
    });
}
