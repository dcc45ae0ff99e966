//! Single keys, visibility, atomicity.

use quoin_store::{Isolation, StoreError};

use crate::subject::{Subject, wait};

pub fn a_value_is_read_back_after_the_commit(subject: &Subject) {
    subject.commit(|writer| writer.set("key", "value"));
    assert_eq!(subject.get("key").unwrap(), "value");
}

pub fn a_missing_key_has_no_value(subject: &Subject) {
    assert_eq!(subject.get("key"), None);
    assert_eq!(subject.write().get("key"), None);
}

pub fn an_empty_value_is_a_value(subject: &Subject) {
    subject.commit(|writer| writer.set("key", ""));
    assert_eq!(subject.get("key").unwrap(), "");
    assert_eq!(subject.all(), "key=");
}

pub fn a_value_is_replaced(subject: &Subject) {
    subject.commit(|writer| writer.set("key", "a longer first value"));
    subject.commit(|writer| {
        writer.set("key", "second");
        writer.set("key", "third");
    });
    assert_eq!(subject.get("key").unwrap(), "third");
}

pub fn a_cleared_key_is_gone(subject: &Subject) {
    subject.commit(|writer| writer.set("key", "value"));
    subject.commit(|writer| writer.clear("key"));
    assert_eq!(subject.get("key"), None);
}

pub fn clearing_a_missing_key_is_no_failure(subject: &Subject) {
    subject.commit(|writer| {
        writer.clear("key");
        writer.set("other", "");
    });
    assert_eq!(subject.all(), "other=");
}

pub fn own_writes_are_seen_before_the_commit(subject: &Subject) {
    subject.commit(|writer| writer.set("old", "value"));
    let writer = subject.write();
    writer.set("new", "value");
    writer.clear("old");
    assert_eq!(writer.get("new").unwrap(), "value");
    assert_eq!(writer.get("old"), None);
}

pub fn nothing_is_seen_by_others_before_the_commit(subject: &Subject) {
    let writer = subject.write();
    writer.set("key", "value");
    writer.add("counter", 1);
    assert_eq!(subject.all(), "");
    writer.commit().unwrap();
    assert_eq!(subject.get("key").unwrap(), "value");
}

pub fn a_dropped_transaction_changes_nothing(subject: &Subject) {
    subject.commit(|writer| writer.set("old", "value"));
    let writer = subject.write();
    writer.set("new", "value");
    writer.clear_range("", "z");
    drop(writer);
    assert_eq!(subject.all(), "old=value");
}

pub fn a_transaction_without_writes_commits(subject: &Subject) {
    let writer = subject.write();
    assert_eq!(writer.get("key"), None);
    writer.commit().unwrap();
}

pub fn a_snapshot_does_not_see_later_commits(subject: &Subject) {
    subject.commit(|writer| writer.set("key", "old"));
    let before = subject.read();
    // FoundationDB takes the snapshot at the first read.
    assert_eq!(before.get("key").unwrap(), "old");
    subject.commit(|writer| {
        writer.set("key", "new");
        writer.set("another", "new");
    });
    assert_eq!(before.get("key").unwrap(), "old");
    assert_eq!(before.rows("", None, 10, false), "key=old");
    assert_eq!(subject.all(), "another=new key=new");
}

pub fn a_value_of_ninety_thousand_bytes_is_kept(subject: &Subject) {
    let value: Vec<u8> = (0..90_000u32).map(|index| (index % 251) as u8).collect();
    subject.commit(|writer| writer.set("key", &value));
    assert_eq!(subject.get("key").unwrap(), value);
}

pub fn keys_of_nineteen_hundred_bytes_are_kept_and_ordered(subject: &Subject) {
    let stem = "k".repeat(1800);
    let (first, second, third) = (stem.clone(), format!("{stem}a"), format!("{stem}b"));
    subject.commit(|writer| {
        writer.set(&third, "3");
        writer.set(&first, "1");
        writer.set(&second, "2");
    });
    assert_eq!(subject.get(&second).unwrap(), "2");
    assert_eq!(subject.all(), format!("{first}=1 {second}=2 {third}=3"));
}

pub fn keys_of_any_bytes_are_kept(subject: &Subject) {
    let keys: [&[u8]; 6] = [b"\0", b"\0\0", b"\0\xff", b"a", b"\xfe", b"\xff\0"];
    let writer = subject.write();
    for key in keys.iter().rev() {
        writer.inner.set(&subject.key(key), key);
    }
    writer.commit().unwrap();
    let reader = subject.read();
    let (begin, end) = (subject.key(""), subject.end());
    let query = quoin_store::RangeQuery {
        begin: &begin,
        end: &end,
        limit: 100,
        reverse: false,
        isolation: Isolation::Snapshot,
    };
    let rows = wait(reader.inner.get_range(query)).unwrap();
    let found: Vec<&[u8]> = rows.iter().map(|row| row.value.as_ref()).collect();
    assert_eq!(found, keys);
}

pub fn size_and_count_grow_with_the_writes(subject: &Subject) {
    let writer = subject.write();
    assert_eq!(writer.inner.mutation_count(), 0);
    writer.set("key", vec![0; 5000]);
    assert_eq!(writer.inner.mutation_count(), 1);
    let size = writer.inner.size_bytes();
    assert!((5000..6000).contains(&size), "{size}");
    writer.add("counter", 1);
    writer.clear("other");
    writer.clear_range("a", "b");
    assert_eq!(writer.inner.mutation_count(), 4);
    assert!(writer.inner.size_bytes() > size);
}

pub fn many_writes_commit_together(subject: &Subject) {
    subject.commit(|writer| {
        for index in 0..5000 {
            writer.set(&format!("{index:05}"), "value");
        }
    });
    assert_eq!(subject.all().split(' ').count(), 5000);
}

pub fn a_second_handle_reads_what_the_first_wrote(subject: &Subject) {
    subject.commit(|writer| writer.set("key", "value"));
    std::thread::scope(|scope| {
        let read = scope.spawn(|| subject.get("key"));
        assert_eq!(read.join().unwrap().unwrap(), "value");
    });
}

pub fn an_answer_is_given_once(subject: &Subject) {
    let reader = subject.read();
    let key = subject.key("key");
    let mut read = reader.inner.get(&key, Isolation::Snapshot);
    assert_eq!(wait(&mut read).unwrap(), None);
    let again = wait(&mut read);
    assert!(matches!(again, Err(StoreError::Fatal(_))), "{again:?}");
}
