//! Additions to counters.

use crate::subject::{Subject, number};

pub fn an_addition_to_nothing_is_its_delta(subject: &Subject) {
    subject.commit(|writer| writer.add("counter", 5));
    assert_eq!(
        subject.get("counter").unwrap(),
        [5, 0, 0, 0, 0, 0, 0, 0].as_slice()
    );
}

pub fn an_addition_of_zero_makes_the_key(subject: &Subject) {
    subject.commit(|writer| writer.add("counter", 0));
    assert_eq!(subject.number("counter"), Some(0));
}

pub fn additions_sum_up_over_commits(subject: &Subject) {
    for delta in [1, 10, 100] {
        subject.commit(|writer| {
            writer.add("counter", delta);
            writer.add("counter", delta);
        });
    }
    assert_eq!(subject.number("counter"), Some(222));
}

pub fn a_negative_sum_is_twos_complement(subject: &Subject) {
    subject.commit(|writer| writer.add("counter", 3));
    subject.commit(|writer| writer.add("counter", -10));
    assert_eq!(subject.number("counter"), Some(-7));
}

pub fn a_sum_wraps_around(subject: &Subject) {
    subject.commit(|writer| writer.add("counter", i64::MAX));
    subject.commit(|writer| writer.add("counter", 1));
    assert_eq!(subject.number("counter"), Some(i64::MIN));
}

pub fn an_addition_is_seen_by_the_own_transaction(subject: &Subject) {
    subject.commit(|writer| writer.add("counter", 40));
    let writer = subject.write();
    writer.add("counter", 2);
    assert_eq!(writer.number("counter"), Some(42));
    writer.add("new", -1);
    assert_eq!(writer.number("new"), Some(-1));
    assert_eq!(subject.number("counter"), Some(40));
}

pub fn an_addition_after_a_set_adds_to_it(subject: &Subject) {
    subject.commit(|writer| writer.add("counter", 1000));
    let writer = subject.write();
    writer.set("counter", 5i64.to_le_bytes());
    writer.add("counter", 2);
    assert_eq!(writer.number("counter"), Some(7));
    writer.commit().unwrap();
    assert_eq!(subject.number("counter"), Some(7));
}

pub fn a_set_after_an_addition_replaces_it(subject: &Subject) {
    let writer = subject.write();
    writer.add("counter", 1000);
    writer.set("counter", 5i64.to_le_bytes());
    assert_eq!(writer.number("counter"), Some(5));
    writer.commit().unwrap();
    assert_eq!(subject.number("counter"), Some(5));
}

pub fn a_clear_after_an_addition_removes_it(subject: &Subject) {
    subject.commit(|writer| writer.add("counter", 1));
    let writer = subject.write();
    writer.add("counter", 1);
    writer.clear("counter");
    assert_eq!(writer.get("counter"), None);
    writer.commit().unwrap();
    assert_eq!(subject.get("counter"), None);
}

pub fn an_addition_after_a_clear_starts_at_zero(subject: &Subject) {
    subject.commit(|writer| writer.add("counter", 1000));
    let writer = subject.write();
    writer.clear("counter");
    writer.add("counter", 2);
    assert_eq!(writer.number("counter"), Some(2));
    writer.commit().unwrap();
    assert_eq!(subject.number("counter"), Some(2));
}

pub fn an_addition_after_a_cleared_range_starts_at_zero(subject: &Subject) {
    subject.commit(|writer| writer.add("counter", 1000));
    let writer = subject.write();
    writer.clear_range("a", "z");
    writer.add("counter", 2);
    writer.add("counter", 2);
    assert_eq!(writer.number("counter"), Some(4));
    writer.commit().unwrap();
    assert_eq!(subject.number("counter"), Some(4));
}

pub fn a_cleared_range_removes_an_addition(subject: &Subject) {
    subject.commit(|writer| writer.add("counter", 1));
    let writer = subject.write();
    writer.add("counter", 1);
    writer.add("z", 1);
    writer.clear_range("a", "z");
    assert_eq!(writer.get("counter"), None);
    writer.commit().unwrap();
    assert_eq!(subject.get("counter"), None);
    assert_eq!(subject.number("z"), Some(1));
}

pub fn ranges_show_pending_additions(subject: &Subject) {
    subject.commit(|writer| {
        writer.add("a", i64::from_le_bytes(*b"00000000"));
        writer.set("b", "B");
        writer.add("e", i64::from_le_bytes(*b"00000000"));
    });
    let writer = subject.write();
    let one = i64::from_le_bytes([1; 8]);
    writer.add("a", one);
    writer.add("c", i64::from_le_bytes(*b"newvalue"));
    writer.add("e", one);
    let expected = "a=11111111 b=B c=newvalue e=11111111";
    assert_eq!(writer.all(), expected);
    assert_eq!(writer.rows("", None, 1, false), "a=11111111");
    assert_eq!(writer.rows("", None, 2, true), "e=11111111 c=newvalue");
    writer.add("a", one);
    assert_eq!(writer.rows("a", Some("b"), 9, false), "a=22222222");
    assert_eq!(number(&writer.get("e").unwrap()), number(b"11111111"));
    writer.commit().unwrap();
    assert_eq!(subject.all(), "a=22222222 b=B c=newvalue e=11111111");
}

pub fn a_short_value_counts_as_if_filled_with_zeros(subject: &Subject) {
    subject.commit(|writer| writer.set("counter", [250]));
    subject.commit(|writer| writer.add("counter", 10));
    assert_eq!(subject.number("counter"), Some(260));
}

pub fn a_dropped_transaction_adds_nothing(subject: &Subject) {
    subject.commit(|writer| writer.add("counter", 1));
    subject.write().add("counter", 1);
    assert_eq!(subject.number("counter"), Some(1));
}
