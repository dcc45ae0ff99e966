//! Minima.

use crate::subject::Subject;

pub fn a_minimum_of_nothing_is_its_operand(subject: &Subject) {
    subject.commit(|writer| writer.min("least", 5));
    assert_eq!(subject.number("least"), Some(5));
}

pub fn the_least_operand_stays(subject: &Subject) {
    for operand in [7, 3, 9] {
        subject.commit(|writer| writer.min("least", operand));
    }
    assert_eq!(subject.number("least"), Some(3));
}

pub fn numbers_are_compared_without_a_sign(subject: &Subject) {
    subject.commit(|writer| writer.min("least", u64::MAX));
    subject.commit(|writer| writer.min("least", 1 << 63));
    assert_eq!(subject.number("least"), Some(i64::MIN));
    subject.commit(|writer| writer.min("least", 256));
    subject.commit(|writer| writer.min("least", 255));
    assert_eq!(subject.number("least"), Some(255));
}

pub fn a_minimum_is_seen_by_the_own_transaction(subject: &Subject) {
    subject.commit(|writer| writer.min("least", 40));
    let writer = subject.write();
    writer.min("least", 50);
    assert_eq!(writer.number("least"), Some(40));
    writer.min("least", 30);
    assert_eq!(writer.number("least"), Some(30));
    assert_eq!(subject.number("least"), Some(40));
}

pub fn minima_and_additions_apply_in_their_order(subject: &Subject) {
    subject.commit(|writer| writer.add("number", 10));
    let writer = subject.write();
    writer.add("number", 5);
    writer.min("number", 12);
    writer.add("number", 1);
    assert_eq!(writer.number("number"), Some(13));
    writer.commit().unwrap();
    assert_eq!(subject.number("number"), Some(13));
}

pub fn a_minimum_after_a_cleared_range_is_its_operand(subject: &Subject) {
    subject.commit(|writer| writer.min("least", 1));
    let writer = subject.write();
    writer.clear_range("a", "z");
    writer.min("least", 8);
    assert_eq!(writer.number("least"), Some(8));
    writer.commit().unwrap();
    assert_eq!(subject.number("least"), Some(8));
}

pub fn concurrent_minima_never_conflict(subject: &Subject) {
    subject.commit(|writer| writer.min("least", 100));
    if !subject.store.capabilities().has_other_writers {
        return;
    }
    let (first, second) = (subject.write(), subject.write());
    first.get_as("other", quoin_store::Isolation::Snapshot);
    second.get_as("other", quoin_store::Isolation::Snapshot);
    first.min("least", 20);
    second.min("least", 30);
    first.commit().unwrap();
    second.commit().unwrap();
    assert_eq!(subject.number("least"), Some(20));
}
