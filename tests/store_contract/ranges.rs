//! Range reads and range clears.

use crate::subject::Subject;

fn letters(subject: &Subject) {
    subject.commit(|writer| {
        for key in ["d", "b", "a", "c", "e"] {
            writer.set(key, key.to_uppercase());
        }
    });
}

pub fn a_range_is_in_order_and_without_its_end(subject: &Subject) {
    letters(subject);
    assert_eq!(subject.read().rows("b", Some("d"), 10, false), "b=B c=C");
}

pub fn a_reverse_range_starts_at_its_end(subject: &Subject) {
    letters(subject);
    assert_eq!(subject.read().rows("b", Some("e"), 10, true), "d=D c=C b=B");
}

pub fn a_limit_cuts_the_range(subject: &Subject) {
    letters(subject);
    let reader = subject.read();
    assert_eq!(reader.rows("b", None, 1, false), "b=B");
    assert_eq!(reader.rows("b", None, 2, false), "b=B c=C");
    assert_eq!(reader.rows("a", Some("c"), 2, false), "a=A b=B");
}

pub fn a_reverse_limit_keeps_the_last_rows(subject: &Subject) {
    letters(subject);
    let reader = subject.read();
    assert_eq!(reader.rows("a", Some("d"), 1, true), "c=C");
    assert_eq!(reader.rows("a", Some("d"), 2, true), "c=C b=B");
}

pub fn a_limit_of_zero_gives_nothing(subject: &Subject) {
    letters(subject);
    assert_eq!(subject.read().rows("a", None, 0, false), "");
}

pub fn an_empty_or_inverted_range_gives_nothing(subject: &Subject) {
    letters(subject);
    let reader = subject.read();
    for reverse in [false, true] {
        for limit in [1, 2] {
            assert_eq!(reader.rows("b", Some("b"), limit, reverse), "");
            assert_eq!(reader.rows("d", Some("b"), limit, reverse), "");
            assert_eq!(reader.rows("bb", Some("bc"), limit, reverse), "");
            assert_eq!(reader.rows("f", Some("g"), limit, reverse), "");
            assert_eq!(reader.rows("", Some("a"), limit, reverse), "");
        }
    }
}

pub fn bounds_need_not_be_keys(subject: &Subject) {
    letters(subject);
    let reader = subject.read();
    assert_eq!(reader.rows("aa", Some("cc"), 10, false), "b=B c=C");
    assert_eq!(reader.rows("aa", Some("cc"), 10, true), "c=C b=B");
    assert_eq!(reader.rows("aa", Some("cc"), 1, true), "c=C");
    let long = "b".repeat(3000);
    assert_eq!(reader.rows(&long, Some("d"), 10, false), "c=C");
}

pub fn a_range_sees_own_writes(subject: &Subject) {
    letters(subject);
    let writer = subject.write();
    writer.set("bb", "new");
    writer.clear("c");
    writer.set("d", "changed");
    assert_eq!(writer.all(), "a=A b=B bb=new d=changed e=E");
    assert_eq!(writer.rows("b", None, 10, true), "e=E d=changed bb=new b=B");
}

pub fn a_range_with_a_limit_sees_own_writes(subject: &Subject) {
    letters(subject);
    let writer = subject.write();
    writer.clear("a");
    writer.clear_range("b", "d");
    writer.set("bb", "new");
    writer.set("f", "new");
    assert_eq!(writer.rows("", None, 1, false), "bb=new");
    assert_eq!(writer.rows("", None, 2, false), "bb=new d=D");
    assert_eq!(writer.rows("", None, 1, true), "f=new");
    assert_eq!(writer.rows("", None, 3, true), "f=new e=E d=D");
}

pub fn a_cleared_range_is_gone_without_its_end(subject: &Subject) {
    letters(subject);
    subject.commit(|writer| writer.clear_range("b", "d"));
    assert_eq!(subject.all(), "a=A d=D e=E");
}

pub fn clearing_a_range_clears_own_writes(subject: &Subject) {
    letters(subject);
    let writer = subject.write();
    writer.set("bb", "new");
    writer.clear_range("b", "d");
    assert_eq!(writer.all(), "a=A d=D e=E");
    writer.commit().unwrap();
    assert_eq!(subject.all(), "a=A d=D e=E");
}

pub fn writes_after_a_cleared_range_stay(subject: &Subject) {
    letters(subject);
    let writer = subject.write();
    writer.clear_range("a", "z");
    writer.set("c", "new");
    assert_eq!(writer.all(), "c=new");
    writer.commit().unwrap();
    assert_eq!(subject.all(), "c=new");
}

pub fn an_empty_range_clears_nothing(subject: &Subject) {
    letters(subject);
    subject.commit(|writer| writer.clear_range("b", "b"));
    assert_eq!(subject.all(), "a=A b=B c=C d=D e=E");
}

pub fn a_long_range_is_whole(subject: &Subject) {
    let value = "v".repeat(200);
    subject.commit(|writer| {
        for index in 0..10_000 {
            writer.set(&format!("{index:05}"), &value);
        }
    });
    let reader = subject.read();
    let rows = reader.rows("", None, 100_000, false);
    assert_eq!(rows.split(' ').count(), 10_000);
    assert!(rows.starts_with("00000=") && rows.contains(" 09999="));
    let rows = reader.rows("", None, 7000, true);
    assert_eq!(rows.split(' ').count(), 7000);
    assert!(rows.starts_with("09999=") && rows.contains(" 03000="));
}
