//! What conflicts and what does not. On a store with one writer nothing can. There two transactions
//! run one after another, and the cases check that the store says so.

use quoin_store::{Isolation, RangeQuery, StoreError};

use crate::subject::{Subject, Writer, wait};

/// Runs `before` in a first transaction, commits `beside` in a second one, then runs `after` in the
/// first and commits it.
fn interleave(
    subject: &Subject,
    before: impl FnOnce(&Writer<'_>),
    beside: impl FnOnce(&Writer<'_>),
    after: impl FnOnce(&Writer<'_>),
) -> Result<(), StoreError> {
    let first = subject.write();
    // FoundationDB takes the read version at the first read.
    first.get_as("read version", Isolation::Snapshot);
    before(&first);
    subject.commit(beside);
    after(&first);
    first.commit()
}

fn conflicts(result: &Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::Conflict))
}

/// Two open writers need a store that takes them.
macro_rules! needs_many_writers {
    ($subject:ident) => {
        if !$subject.has_other_writers() {
            assert_eq!($subject.store.capabilities().parallel_batches, 1);
            return;
        }
    };
}

pub fn concurrent_additions_never_conflict(subject: &Subject) {
    needs_many_writers!(subject);
    let result = interleave(
        subject,
        |first| first.add("counter", 1),
        |second| second.add("counter", 10),
        |first| first.add("counter", 100),
    );
    result.unwrap();
    assert_eq!(subject.number("counter"), Some(111));
}

pub fn concurrent_blind_writes_never_conflict(subject: &Subject) {
    needs_many_writers!(subject);
    let result = interleave(
        subject,
        |first| first.set("key", "first"),
        |second| second.set("key", "second"),
        |first| first.clear_range("x", "z"),
    );
    result.unwrap();
    assert_eq!(subject.get("key").unwrap(), "first");
}

pub fn a_snapshot_read_never_conflicts(subject: &Subject) {
    needs_many_writers!(subject);
    let result = interleave(
        subject,
        |first| {
            first.get_as("key", Isolation::Snapshot);
            let (begin, end) = (subject.key(""), subject.end());
            let query = RangeQuery {
                begin: &begin,
                end: &end,
                limit: 10,
                reverse: true,
                isolation: Isolation::Snapshot,
            };
            wait(first.inner.get_range(query)).unwrap();
        },
        |second| second.set("key", "second"),
        |first| first.set("other", "first"),
    );
    result.unwrap();
}

pub fn a_read_key_that_changes_conflicts(subject: &Subject) {
    needs_many_writers!(subject);
    let result = interleave(
        subject,
        |first| drop(first.get("key")),
        |second| second.set("key", "second"),
        |first| first.set("other", "first"),
    );
    assert!(conflicts(&result), "{result:?}");
}

pub fn a_read_range_that_grows_conflicts(subject: &Subject) {
    needs_many_writers!(subject);
    let result = interleave(
        subject,
        |first| assert_eq!(first.rows("a", Some("c"), 10, false), ""),
        |second| second.set("b", "second"),
        |first| first.set("z", "first"),
    );
    assert!(conflicts(&result), "{result:?}");
}

pub fn a_limited_range_conflicts_only_where_it_read(subject: &Subject) {
    needs_many_writers!(subject);
    for (changed, is_conflict) in [("a", true), ("b", true), ("bb", false), ("c", false)] {
        subject.commit(|writer| {
            writer.clear_range("a", "z");
            writer.set("b", "");
            writer.set("c", "");
        });
        let result = interleave(
            subject,
            |first| assert_eq!(first.rows("a", Some("z"), 1, false), "b="),
            |second| second.set(changed, "second"),
            |first| first.set("zz", "first"),
        );
        assert_eq!(conflicts(&result), is_conflict, "{changed}: {result:?}");
    }
}

pub fn a_limited_reverse_range_conflicts_only_where_it_read(subject: &Subject) {
    needs_many_writers!(subject);
    for (changed, is_conflict) in [("d", true), ("c", true), ("bb", false), ("b", false)] {
        subject.commit(|writer| {
            writer.clear_range("a", "z");
            writer.set("b", "");
            writer.set("c", "");
        });
        let result = interleave(
            subject,
            |first| assert_eq!(first.rows("a", Some("z"), 1, true), "c="),
            |second| second.set(changed, "second"),
            |first| first.set("zz", "first"),
        );
        assert_eq!(conflicts(&result), is_conflict, "{changed}: {result:?}");
    }
}

pub fn write_skew_is_prevented(subject: &Subject) {
    subject.commit(|writer| {
        writer.set("x", "on");
        writer.set("y", "on");
    });
    // Each turns one off, provided that the other is on.
    let turn_off = |own: &'static str, other: &'static str| {
        move |writer: &Writer<'_>| {
            if writer.get(other).unwrap() == "on" {
                writer.set(own, "off");
            }
        }
    };
    if !subject.has_other_writers() {
        subject.commit(turn_off("x", "y"));
        subject.commit(turn_off("y", "x"));
    } else {
        let result = interleave(subject, turn_off("x", "y"), turn_off("y", "x"), |_| {});
        assert!(conflicts(&result), "{result:?}");
    }
    assert!(subject.all().contains("=on"));
}

pub fn an_explicit_conflict_conflicts(subject: &Subject) {
    needs_many_writers!(subject);
    let result = interleave(
        subject,
        |first| first.conflict("a", "c"),
        |second| second.set("b", "second"),
        |first| first.set("z", "first"),
    );
    assert!(conflicts(&result), "{result:?}");
}

pub fn an_explicit_conflict_elsewhere_does_not_conflict(subject: &Subject) {
    needs_many_writers!(subject);
    let result = interleave(
        subject,
        |first| first.conflict("a", "c"),
        |second| second.set("c", "second"),
        |first| first.set("z", "first"),
    );
    result.unwrap();
}

pub fn a_conflicting_transaction_applies_nothing(subject: &Subject) {
    needs_many_writers!(subject);
    let result = interleave(
        subject,
        |first| {
            first.set("a", "first");
            first.add("counter", 1);
            first.get("key");
        },
        |second| second.set("key", "second"),
        |first| first.set("b", "first"),
    );
    assert!(conflicts(&result), "{result:?}");
    assert_eq!(subject.all(), "key=second");
}

pub fn a_read_of_an_own_write_does_not_conflict(subject: &Subject) {
    needs_many_writers!(subject);
    let result = interleave(
        subject,
        |first| {
            first.set("key", "first");
            assert_eq!(first.get("key").unwrap(), "first");
        },
        |second| second.set("key", "second"),
        |_| {},
    );
    result.unwrap();
    assert_eq!(subject.get("key").unwrap(), "first");
}

pub fn a_read_of_an_own_addition_conflicts(subject: &Subject) {
    needs_many_writers!(subject);
    let result = interleave(
        subject,
        |first| {
            first.add("counter", 1);
            assert_eq!(first.number("counter"), Some(1));
        },
        |second| second.add("counter", 10),
        |_| {},
    );
    assert!(conflicts(&result), "{result:?}");
    assert_eq!(subject.number("counter"), Some(10));
}

/// Clears the rows `b` and `d` one by one, while another transaction adds one between them.
fn clear_around_a_new_row(subject: &Subject, has_conflict: bool) -> Result<(), StoreError> {
    subject.commit(|writer| {
        writer.set("b", "");
        writer.set("d", "");
    });
    interleave(
        subject,
        |first| {
            let (begin, end) = (subject.key("a"), subject.key("z"));
            let query = RangeQuery {
                begin: &begin,
                end: &end,
                limit: 10,
                reverse: false,
                isolation: Isolation::Snapshot,
            };
            for row in wait(first.inner.get_range(query)).unwrap() {
                if has_conflict {
                    let after = [&row.key[..], &[0]].concat();
                    first.inner.add_read_conflict_range(&begin, &after);
                }
                first.inner.clear(&row.key);
            }
            assert_eq!(first.rows("x", Some("z"), 10, false), "");
        },
        |second| second.set("c", "second"),
        |_| {},
    )
}

pub fn a_row_that_comes_between_two_that_are_cleared_stays(subject: &Subject) {
    needs_many_writers!(subject);
    clear_around_a_new_row(subject, false).unwrap();
    assert_eq!(subject.all(), "c=second");
}

pub fn a_row_that_comes_between_two_that_are_popped_conflicts(subject: &Subject) {
    needs_many_writers!(subject);
    let result = clear_around_a_new_row(subject, true);
    assert!(conflicts(&result), "{result:?}");
    assert_eq!(subject.all(), "b= c=second d=");
}

pub fn concurrent_read_modify_writes_lose_nothing(subject: &Subject) {
    const THREADS: i64 = 4;
    const ROUNDS: i64 = 25;
    let increment = || {
        let writer = subject.write();
        let before = writer.number("counter").unwrap_or(0);
        writer.set("counter", (before + 1).to_le_bytes());
        writer.add("sum", 1);
        writer.commit()
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut rounds_left = ROUNDS;
                while rounds_left > 0 {
                    match increment() {
                        Ok(()) => rounds_left -= 1,
                        Err(error) if error.is_retryable() => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(subject.number("counter"), Some(THREADS * ROUNDS));
    assert_eq!(subject.number("sum"), Some(THREADS * ROUNDS));
}
