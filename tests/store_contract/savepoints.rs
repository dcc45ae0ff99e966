//! Savepoints: what is undone, and what stays.

use bytes::Bytes;
use quoin_base::random::{Random, SeededRandom};
use quoin_store::{Savepoint, StoreError, Transaction};

use crate::model::{self, Map, Step};
use crate::subject::{Subject, Writer, fires, is_quiet};

/// Histories of the model test.
const SEEDS: u64 = 150;
/// The same if each read is a round trip and each commit waits for a disk.
const SEEDS_ON_A_CLUSTER: u64 = 40;

/// Does some work and undoes it.
fn undo(writer: &Writer<'_>, work: impl FnOnce()) {
    let savepoint = writer.inner.savepoint();
    work();
    writer.inner.rollback(savepoint);
}

/// What a transaction sees, and what exists after its commit.
fn ends_as(subject: &Subject, writer: Writer<'_>, expected: &str) {
    assert_eq!(writer.all(), expected);
    writer.commit().unwrap();
    assert_eq!(subject.all(), expected);
}

pub fn a_set_is_undone(subject: &Subject) {
    subject.commit(|writer| writer.set("old", "1"));
    let writer = subject.write();
    writer.set("new", "1");
    undo(&writer, || {
        writer.set("old", "2");
        writer.set("new", "2");
        writer.set("newer", "2");
        assert_eq!(writer.all(), "new=2 newer=2 old=2");
    });
    assert_eq!(writer.get("newer"), None);
    assert_eq!(writer.get("new").unwrap(), "1");
    ends_as(subject, writer, "new=1 old=1");
}

pub fn a_clear_is_undone(subject: &Subject) {
    subject.commit(|writer| writer.set("old", "1"));
    let writer = subject.write();
    writer.set("new", "1");
    undo(&writer, || {
        writer.clear("old");
        writer.clear("new");
        assert_eq!(writer.all(), "");
    });
    assert_eq!(writer.get("old").unwrap(), "1");
    ends_as(subject, writer, "new=1 old=1");
}

pub fn a_cleared_range_is_undone(subject: &Subject) {
    subject.commit(|writer| {
        for key in ["a", "b", "c", "d"] {
            writer.set(key, "1");
        }
    });
    let writer = subject.write();
    writer.set("bb", "2");
    writer.clear_range("c", "cc");
    undo(&writer, || {
        writer.clear_range("b", "e");
        writer.set("d", "3");
        writer.clear_range("0", "b");
        assert_eq!(writer.all(), "d=3");
    });
    ends_as(subject, writer, "a=1 b=1 bb=2 d=1");
}

pub fn additions_are_undone(subject: &Subject) {
    subject.commit(|writer| writer.add("stored", 1));
    let writer = subject.write();
    writer.add("stored", 10);
    writer.set("set", 100_i64.to_le_bytes());
    undo(&writer, || {
        for key in ["stored", "set", "new"] {
            writer.add(key, 1000);
        }
        // A range read shows additions once they have become rows.
        writer.all();
        writer.add("stored", 1000);
        assert_eq!(writer.number("stored"), Some(2011));
    });
    assert_eq!(writer.number("stored"), Some(11));
    assert_eq!(writer.number("new"), None);
    writer.add("stored", 1);
    writer.commit().unwrap();
    assert_eq!(subject.number("stored"), Some(12));
    assert_eq!(subject.number("set"), Some(100));
    assert_eq!(subject.number("new"), None);
}

pub fn what_removes_an_addition_is_undone(subject: &Subject) {
    let writer = subject.write();
    for key in ["set", "cleared", "in a range"] {
        writer.add(key, 1);
    }
    undo(&writer, || {
        writer.set("set", "");
        writer.clear("cleared");
        writer.clear_range("i", "j");
    });
    for key in ["set", "cleared", "in a range"] {
        assert_eq!(writer.number(key), Some(1), "{key}");
    }
    writer.commit().unwrap();
    for key in ["set", "cleared", "in a range"] {
        assert_eq!(subject.number(key), Some(1), "{key}");
    }
}

pub fn minima_are_undone(subject: &Subject) {
    subject.commit(|writer| writer.min("stored", 5));
    let writer = subject.write();
    writer.min("stored", 4);
    writer.add("both", 7);
    undo(&writer, || {
        writer.min("stored", 3);
        writer.min("both", 3);
        writer.add("both", 3);
        writer.min("new", 3);
        assert_eq!(writer.number("both"), Some(6));
    });
    assert_eq!(writer.number("stored"), Some(4));
    assert_eq!(writer.number("both"), Some(7));
    assert_eq!(writer.number("new"), None);
    writer.commit().unwrap();
    assert_eq!(subject.number("stored"), Some(4));
    assert_eq!(subject.number("both"), Some(7));
    assert_eq!(subject.number("new"), None);
}

pub fn an_append_is_undone(subject: &Subject) {
    let append = |writer: &Writer<'_>, log: &str, value: &'static str| {
        writer
            .inner
            .append(&subject.key(log), &[Bytes::from(value), Bytes::from(value)]);
    };
    let writer = subject.write();
    append(&writer, "log/", "kept");
    let size = writer.inner.size_bytes();
    undo(&writer, || append(&writer, "other/", "undone"));
    assert_eq!(writer.inner.size_bytes(), size);
    undo(&writer, || append(&writer, "again/", "undone"));
    append(&writer, "again/", "kept");
    writer.commit().unwrap();
    let values = |log: &str| {
        subject
            .read()
            .rows(log, Some(&format!("{log}~")), 100, false)
    };
    assert_eq!(values("other/"), "");
    for log in ["log/", "again/"] {
        assert_eq!(values(log).matches("kept").count(), 2);
        assert!(!values(log).contains("undone"));
    }
}

pub fn what_is_released_stays(subject: &Subject) {
    let writer = subject.write();
    let savepoint = writer.inner.savepoint();
    writer.set("key", "value");
    writer.inner.release(savepoint);
    undo(&writer, || writer.set("other", "value"));
    ends_as(subject, writer, "key=value");
}

pub fn savepoints_nest(subject: &Subject) {
    let writer = subject.write();
    writer.set("a", "1");
    let outer = writer.inner.savepoint();
    writer.set("a", "2");
    writer.set("b", "2");
    undo(&writer, || {
        writer.clear("a");
        writer.set("b", "3");
        undo(&writer, || writer.clear_range("", "z"));
        assert_eq!(writer.all(), "b=3");
    });
    assert_eq!(writer.all(), "a=2 b=2");
    writer.inner.release(outer);
    ends_as(subject, writer, "a=2 b=2");
}

pub fn what_was_released_is_undone_with_the_outer_savepoint(subject: &Subject) {
    subject.commit(|writer| writer.set("a", "1"));
    let writer = subject.write();
    let outer = writer.inner.savepoint();
    writer.set("a", "2");
    let inner = writer.inner.savepoint();
    writer.clear("a");
    writer.set("b", "2");
    writer.inner.release(inner);
    writer.inner.rollback(outer);
    ends_as(subject, writer, "a=1");
}

pub fn savepoints_end_with_an_outer_one(subject: &Subject) {
    let writer = subject.write();
    writer.set("a", "1");
    let outer = writer.inner.savepoint();
    writer.inner.savepoint();
    writer.set("a", "2");
    writer.inner.savepoint();
    writer.set("a", "3");
    writer.inner.rollback(outer);
    assert_eq!(writer.get("a").unwrap(), "1");
    let outer = writer.inner.savepoint();
    writer.inner.savepoint();
    writer.set("a", "4");
    writer.inner.release(outer);
    ends_as(subject, writer, "a=4");
}

pub fn a_savepoint_that_is_open_at_the_commit_keeps_its_writes(subject: &Subject) {
    let writer = subject.write();
    writer.inner.savepoint();
    writer.set("key", "value");
    writer.add("sum", 1);
    writer.commit().unwrap();
    assert_eq!(subject.get("key").unwrap(), "value");
    assert_eq!(subject.number("sum"), Some(1));
}

pub fn a_transaction_that_was_undone_whole_changes_nothing(subject: &Subject) {
    subject.commit(|writer| writer.set("key", "value"));
    let writer = subject.write();
    undo(&writer, || {
        writer.set("key", "other");
        writer.clear_range("", "z");
        writer.add("sum", 1);
    });
    assert_eq!(writer.inner.mutation_count(), 0);
    ends_as(subject, writer, "key=value");
}

pub fn a_failure_is_undone(subject: &Subject) {
    let too_long = "k".repeat(20_000);
    let failing = subject.write();
    failing.set(&too_long, "");
    let refused = failing.commit();
    assert!(matches!(refused, Err(StoreError::TooLarge)), "{refused:?}");
    let writer = subject.write();
    undo(&writer, || {
        writer.set(&too_long, "");
        writer.set("b", "undone");
    });
    writer.set("a", "kept");
    ends_as(subject, writer, "a=kept");
}

pub fn a_failure_before_the_savepoint_stays(subject: &Subject) {
    let writer = subject.write();
    writer.set(&"k".repeat(20_000), "");
    undo(&writer, || writer.set("a", ""));
    let refused = writer.commit();
    assert!(matches!(refused, Err(StoreError::TooLarge)), "{refused:?}");
    assert_eq!(subject.all(), "");
}

pub fn size_and_count_are_restored(subject: &Subject) {
    let writer = subject.write();
    writer.set("key", "value");
    writer.add("sum", 1);
    writer.min("least", 1);
    writer.clear_range("x", "y");
    let of = |writer: &Writer<'_>| (writer.inner.size_bytes(), writer.inner.mutation_count());
    let before = of(&writer);
    undo(&writer, || {
        writer.set("key", "another value");
        writer.set("another key", vec![0; 5000]);
        writer.add("sum", 1);
        writer.add("least", 1);
        writer.clear_range("a", "xx");
        writer.clear("gone");
        assert_ne!(of(&writer), before);
    });
    assert_eq!(of(&writer), before);
}

pub fn ranges_are_as_before_after_a_rollback(subject: &Subject) {
    subject.commit(|writer| {
        for key in ["a", "b", "c", "d", "e"] {
            writer.set(key, "1");
        }
    });
    for reverse in [false, true] {
        let writer = subject.write();
        let before = writer.rows("", None, 2, reverse);
        undo(&writer, || {
            for key in ["a", "b", "d", "e"] {
                writer.clear(key);
            }
            writer.set("cc", "2");
            assert_eq!(writer.rows("", None, 9, false), "c=1 cc=2");
        });
        assert_eq!(writer.rows("", None, 2, reverse), before);
        assert_eq!(writer.all(), "a=1 b=1 c=1 d=1 e=1");
    }
}

/// A read may remember where it found nothing, so clearing its first row also clears that.
pub fn a_row_that_a_read_passed_over_is_there_again(subject: &Subject) {
    for (reverse, passed) in [(false, "a"), (true, "c")] {
        subject.commit(|writer| {
            for key in ["a", "b", "c"] {
                writer.set(key, "1");
            }
        });
        let writer = subject.write();
        undo(&writer, || {
            writer.clear(passed);
            assert_eq!(writer.rows("", None, 1, reverse), "b=1");
        });
        writer.clear("b");
        ends_as(subject, writer, "a=1 c=1");
    }
}

pub fn a_watch_does_not_fire_for_what_was_undone(subject: &Subject) {
    let (_, mut changed) = subject.watch("key");
    let writer = subject.write();
    undo(&writer, || writer.set("key", "value"));
    writer.commit().unwrap();
    assert!(is_quiet(&mut changed));
    let writer = subject.write();
    writer.set("key", "value");
    undo(&writer, || writer.clear("key"));
    writer.commit().unwrap();
    assert!(fires(&mut changed));
    assert_eq!(subject.get("key").unwrap(), "value");
}

pub fn a_read_that_was_undone_conflicts(subject: &Subject) {
    if !subject.has_other_writers() {
        return;
    }
    let writer = subject.write();
    undo(&writer, || {
        assert_eq!(writer.get("read"), None);
        writer.set("undone", "");
    });
    writer.set("kept", "");
    subject.commit(|other| other.set("read", "1"));
    let outcome = writer.commit();
    assert!(matches!(outcome, Err(StoreError::Conflict)), "{outcome:?}");
}

pub fn a_write_that_was_undone_conflicts_with_none(subject: &Subject) {
    if !subject.has_other_writers() {
        return;
    }
    let reader = subject.write();
    assert_eq!(reader.get("undone"), None);
    reader.set("other", "");
    subject.commit(|writer| {
        undo(writer, || {
            writer.set("undone", "");
            writer.clear_range("a", "z");
        });
        writer.set("kept", "");
    });
    reader.commit().unwrap();
    assert_eq!(subject.all(), "kept= other=");
}

/// An open savepoint, and the transaction's content at that time.
struct Frame {
    savepoint: Savepoint,
    map: Map,
    size_bytes: usize,
    mutation_count: u64,
    /// Conflicts of reads stay, and count in the size.
    has_read: bool,
}

fn open(transaction: &dyn Transaction, map: &Map) -> Frame {
    Frame {
        savepoint: transaction.savepoint(),
        map: map.clone(),
        size_bytes: transaction.size_bytes(),
        mutation_count: transaction.mutation_count(),
        has_read: false,
    }
}

fn roll_back(transaction: &dyn Transaction, frame: Frame, seed: u64) -> Map {
    transaction.rollback(frame.savepoint);
    let mutation_count = transaction.mutation_count();
    assert_eq!(mutation_count, frame.mutation_count, "seed {seed}");
    if !frame.has_read {
        assert_eq!(transaction.size_bytes(), frame.size_bytes, "seed {seed}");
    }
    frame.map
}

/// One transaction of random writes, reads and savepoints.
fn transact(subject: &Subject, random: &SeededRandom, mut map: Map, seed: u64) -> Map {
    let writer = subject.write();
    let transaction = writer.inner.as_ref();
    let mut frames: Vec<Frame> = Vec::new();
    // In some, reads are rare, so that little is known about the rows.
    let reads_in_ten = [1, 5, 10][random.below(3) as usize];
    for _ in 0..10 + random.below(80) {
        match random.below(6) {
            0 if frames.len() < 5 => frames.push(open(transaction, &map)),
            1 => {
                if let Some(frame) = frames.pop() {
                    map = roll_back(transaction, frame, seed);
                }
            }
            2 if random.below(3) == 0 => {
                if let Some(frame) = frames.pop() {
                    transaction.release(frame.savepoint);
                }
            }
            _ => {
                let step = model::random_step(random);
                if matches!(step, Step::Get(_) | Step::Range(..)) {
                    if random.below(10) >= reads_in_ten {
                        continue;
                    }
                    frames.iter_mut().for_each(|frame| frame.has_read = true);
                }
                model::run(subject, &step, transaction, &mut map).unwrap();
            }
        }
    }
    writer.commit().unwrap();
    map
}

pub fn random_writes_and_rollbacks_match_a_map(subject: &Subject) {
    let seeds = if subject.is_shared {
        SEEDS_ON_A_CLUSTER
    } else {
        SEEDS
    };
    let mut map = Map::new();
    for seed in 0..seeds {
        let random = SeededRandom::new(seed);
        map = transact(subject, &random, map, seed);
        model::check(subject, &map, seed);
    }
    assert!(!map.is_empty());
}
