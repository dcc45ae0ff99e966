//! Damages.

use bytes::Bytes;

use super::*;
use quoin_base::limits::DATABASES;
use quoin_layout::{
    Id, KeyName, LAYOUT_VERSION, Meta, MetaCopy, Section, Space, TrashKind, ValueType,
    encode_counter, encode_length,
};
use quoin_store::{Isolation, StoreError};

pub(super) const NAMESPACE: Id = Id {
    instance: 0,
    sequence: 0,
};
/// An id that no server start has made.
pub(super) const FOREIGN: Id = Id {
    instance: 900,
    sequence: 1,
};

pub(super) fn name(key: &str) -> KeyName {
    KeyName::new(&Bytes::copy_from_slice(key.as_bytes()))
}

pub(super) fn meta_key(layout: &Layout, key: &str) -> Vec<u8> {
    layout.meta_key(NAMESPACE, &name(key))
}

pub(super) fn length_key(_: &Bench, layout: &Layout, key: &str) -> Vec<u8> {
    layout.length_key(&meta_key(layout, key))
}

pub(super) fn get(bench: &Bench, key: &[u8]) -> Option<Bytes> {
    let transaction = bench.store.begin_read().unwrap();
    bench
        .block_on(transaction.get(key, Isolation::Snapshot))
        .unwrap()
}

pub(super) fn meta(bench: &Bench, layout: &Layout, key: &str) -> Meta {
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

/// Damages a store that has everything in it. Expects that one check reports it in these words, and
/// that a repair fixes it.
pub(super) fn assert_repaired(
    check: &str,
    level: Level,
    words: &str,
    damage: impl Fn(&Bench, &Layout),
) {
    on_both(|bench| {
        fill(bench);
        reap(bench);
        damage(bench, &Layout::new("test"));
        let told = lines(bench, CHECK);
        let found = line(&told, check);
        assert_eq!(found.level, level, "{found}");
        assert!(found.text.contains(words), "{found}");
        // A check without repair changes nothing.
        assert_eq!(lines(bench, CHECK)[2..], told[2..]);
        let told = lines(bench, REPAIR);
        let found = line(&told, check);
        assert_eq!(found.level, Level::Ok, "{found}");
        reap(bench);
        assert_healthy(bench);
    });
}

/// The same for damage that cannot be repaired automatically.
pub(super) fn assert_told(
    check: &str,
    level: Level,
    words: &str,
    damage: impl Fn(&Bench, &Layout),
) {
    on_both(|bench| {
        fill(bench);
        reap(bench);
        damage(bench, &Layout::new("test"));
        for options in [CHECK, REPAIR, CHECK] {
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
        "1 that belongs to no key",
        |bench, layout| {
            let position = quoin_layout::Position::pushed(0, 7, 0);
            let key = layout.element_key(FOREIGN, &position);
            change(bench, |transaction, _| transaction.set(&key, b"\0lost"));
        },
    );
}

#[test]
fn data_of_a_key_whose_metadata_cannot_be_read_stays() {
    assert_told(
        "data",
        Level::Warn,
        "1 value seems to belong to no key, but the metadata of some keys cannot be read",
        |bench, layout| {
            let key = meta_key(layout, "list");
            change(bench, |transaction, _| transaction.set(&key, b"?"));
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
                        let position = quoin_layout::Position::pushed(index, 7, 0);
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
    let told = lines(&bench, CHECK);
    assert!(line(&told, "data").text.contains("1 value"), "{told:?}");
    assert!(line(&told, "trash").text.contains("1 removed"), "{told:?}");
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
        "1 key that no server would remove when it expires (\"pq\")",
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
        let told = lines(bench, CHECK);
        assert!(line(&told, "expiry").text.contains("1 of them by now"));
        assert_eq!(line(&told, "expiry").level, Level::Warn);
        let offline = Options {
            is_offline: true,
            ..CHECK
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
        "1 length of a key that does not exist (\"nothing\")",
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
        "1 row that cannot be read",
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
        "cannot be found by its name",
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
        "1 namespace with keys that no database shows",
        |bench, layout| {
            change(bench, |transaction, _| {
                let meta = Meta {
                    value_type: ValueType::List,
                    data: FOREIGN,
                    expire_at_ms: None,
                    long_name: None,
                    inline: None,
                    rank_levels: 0,
                    fields_expire: false,
                    is_kept: false,
                };
                let meta_key = layout.meta_key(FOREIGN, &name("lost"));
                transaction.set(&meta_key, &meta.encode());
                transaction.set(&layout.length_key(&meta_key), &encode_length(1, 0));
                let position = quoin_layout::Position::pushed(0, 7, 0);
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
        "1 shows the same keys as another (0 and 7)",
        |bench, layout| {
            change(bench, |transaction, _| {
                let shown = quoin_layout::encode_id(NAMESPACE);
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
        "1 kind that this Quoin does not know (space 40)",
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
        "1 row that cannot be read",
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
    let told = lines(&bench, CHECK);
    let found = line(&told, "messages");
    assert_eq!(found.level, Level::Warn);
    assert!(found.text.contains("2 rows"), "{found}");
    assert_eq!(line(&lines(&bench, REPAIR), "messages").level, Level::Ok);
    let told = lines(&bench, CHECK);
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
    for options in [CHECK, REPAIR] {
        let told = lines(&bench, options);
        let found = line(&told, "operations");
        assert_eq!(found.level, Level::Ok, "{found}");
        assert!(found.text.contains("of 3 server starts"), "{found}");
    }
    let offline = Options {
        is_offline: true,
        ..REPAIR
    };
    let told = lines(&bench, offline);
    assert!(line(&told, "operations").text.contains("removed"));
    let told = lines(&bench, CHECK);
    assert_eq!(line(&told, "operations").text, "none");
}

#[test]
fn a_copy_of_metadata_that_says_what_is_not_so() {
    assert_repaired(
        "copies",
        Level::Fail,
        "1 key whose copies of metadata differ from the metadata (\"list\")",
        |bench, layout| {
            let meta = meta(bench, layout, "list");
            let section = Section::Elements;
            let key = layout.meta_copy_key(meta.data, section, true);
            let wrong = MetaCopy {
                meta_key: meta_key(layout, "other").into(),
                meta: meta.encode().into(),
            };
            change(bench, |transaction, _| {
                transaction.set(&key, &wrong.encode());
            });
        },
    );
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
    let told = lines(&bench, CHECK);
    let found = line(&told, "keys");
    assert_eq!(
        found.text,
        "1 key and 11 that are empty and wait for a push"
    );
    lines(&bench, REPAIR);
    let told = lines(&bench, CHECK);
    assert_eq!(line(&told, "keys").text, "1 key");
    assert_healthy(&bench);
    assert_eq!(bench.run("RPUSH list:3 b"), Reply::Integer(1));
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
        let now = LAYOUT_VERSION;
        for (version, level) in [(now - 1, Level::Warn), (now, Level::Ok)] {
            change(bench, |transaction, layout| {
                transaction.set(&layout.version_key(), &encode_counter(version));
            });
            assert_eq!(lines(bench, CHECK)[0].level, level);
        }
        change(bench, |transaction, layout| {
            transaction.set(&layout.version_key(), b"x");
        });
        assert_eq!(lines(bench, CHECK)[0].level, Level::Fail);
    });
}

#[test]
fn every_database_is_checked() {
    on_both(|bench| {
        for database in 0..DATABASES {
            bench.run_in(database, &[b"RPUSH", b"list", b"a"]);
        }
        let told = lines(bench, CHECK);
        assert_eq!(line(&told, "databases").text, "16 have keys");
        assert_eq!(line(&told, "keys").text, "16 keys");
    });
}

#[test]
fn a_key_is_named_with_its_database() {
    on_both(|bench| {
        bench.run_in(3, &[b"RPUSH", b"list", b"a"]);
        let layout = Layout::new("test");
        let third = Id {
            instance: 0,
            sequence: 3,
        };
        let key = layout.length_key(&layout.meta_key(third, &name("list")));
        change(bench, |transaction, _| transaction.atomic_add(&key, 1));
        let told = lines(bench, CHECK);
        let text = &line(&told, "counters").text;
        assert!(text.contains("(\"list\" of database 3)"), "{text}");
    });
}

fn grant(key: &str, expires_at_ms: i64) -> quoin_layout::Grant {
    quoin_layout::Grant {
        namespace: NAMESPACE,
        name: name(key),
        long_name: None,
        value_type: ValueType::List,
        from_end: false,
        is_exhausted: false,
        expires_at_ms,
    }
}

#[test]
fn grants_and_requests_of_dead_servers_are_told_and_an_empty_key_with_a_grant_is_kept() {
    let bench = Bench::cluster_like();
    bench.run("RPUSH list a");
    bench.run("LPOP list");
    let layout = Layout::new("test");
    let data = meta(&bench, &layout, "list").data;
    let now_ms = quoin_engine::testing::START_MS;
    let request = quoin_layout::PopRequest {
        id: FOREIGN,
        at_ms: now_ms,
        from_end: false,
        runs: Vec::new(),
    };
    change(&bench, |transaction, layout| {
        let key = layout.grant_key(data, FOREIGN);
        transaction.set(&key, &grant("list", now_ms).encode());
        let element = quoin_layout::PoppedElement {
            name: Bytes::from_static(b"place"),
            value: Bytes::from_static(b"value"),
        };
        let pieces = quoin_layout::encode_elements(&[element]);
        transaction.set(&layout.grant_piece_key(data, FOREIGN, 0), &pieces[0]);
        let key = layout.pop_request_key(data, &request);
        transaction.set(&key, &request.encode());
    });
    assert_healthy(&bench);
    bench.clock.advance_ms(100_000);
    let told = lines(&bench, CHECK);
    let found = line(&told, "delegation");
    assert_eq!(found.level, Level::Warn);
    assert!(found.text.contains("1 grant that expired"), "{found}");
    assert!(found.text.contains("1 request that no server"), "{found}");
    let told = lines(&bench, REPAIR);
    let found = line(&told, "delegation");
    assert!(found.text.contains("1 grant that expired"), "{found}");
    assert!(found.text.contains("any more (900 1): repaired"), "{found}");
    assert!(get(&bench, &meta_key(&layout, "list")).is_some());
}

#[test]
fn parts_of_grants_without_each_other() {
    assert_told(
        "delegation",
        Level::Fail,
        "1 element that belongs to no grant",
        |bench, layout| {
            let other = Id {
                sequence: 2,
                ..FOREIGN
            };
            change(bench, |transaction, _| {
                transaction.set(&layout.grant_piece_key(FOREIGN, FOREIGN, 0), b"x");
                let lone = grant("lone", i64::MAX);
                transaction.set(&layout.grant_key(FOREIGN, other), &lone.encode());
            });
            let told = lines(bench, CHECK);
            let text = &line(&told, "delegation").text;
            assert!(
                text.contains("1 grant whose elements are missing (\"lone\")"),
                "{text}"
            );
        },
    );
}
