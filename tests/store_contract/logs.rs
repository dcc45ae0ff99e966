//! Logs: rows whose keys the commit orders.

use bytes::Bytes;

use crate::subject::Subject;

/// The values of the log in the order of its keys, and its keys without the prefix.
fn log(subject: &Subject) -> (Vec<String>, Vec<Vec<u8>>) {
    let (begin, end) = (subject.key("log/"), subject.key("log0"));
    let query = quoin_store::RangeQuery {
        begin: &begin,
        end: &end,
        limit: 100,
        reverse: false,
        isolation: quoin_store::Isolation::Snapshot,
    };
    let rows = crate::subject::wait(subject.read().inner.get_range(query)).unwrap();
    let values = rows.iter().map(|row| &row.value);
    (
        values
            .map(|value| String::from_utf8_lossy(value).into_owned())
            .collect(),
        rows.iter()
            .map(|row| row.key[begin.len()..].to_vec())
            .collect(),
    )
}

fn append(writer: &crate::subject::Writer<'_>, values: &[&'static str]) {
    let values: Vec<Bytes> = values.iter().map(|value| Bytes::from(*value)).collect();
    writer.inner.append(&writer.subject.key("log/"), &values);
}

pub fn rows_are_in_the_order_of_their_commits(subject: &Subject) {
    for values in [&["a", "b"][..], &["c"], &["d", "e", "f"]] {
        subject.commit(|writer| append(writer, values));
    }
    let (values, keys) = log(subject);
    assert_eq!(values.concat(), "abcdef");
    assert!(keys.iter().all(|key| key.len() == 12));
    assert_eq!(keys[0][..10], keys[1][..10]);
    assert_eq!(keys[1][10..], [0, 1]);
    assert_eq!(keys[2][10..], [0, 0]);
}

pub fn what_commits_later_comes_later(subject: &Subject) {
    let first = subject.write();
    append(&first, &["begun first"]);
    drop(first);
    subject.commit(|writer| append(writer, &["a"]));
    subject.commit(|writer| append(writer, &["b"]));
    assert_eq!(log(subject).0, ["a", "b"]);
}

pub fn a_log_that_was_cleared_in_part_goes_on(subject: &Subject) {
    subject.commit(|writer| append(writer, &["a"]));
    subject.commit(|writer| append(writer, &["b"]));
    let (_, keys) = log(subject);
    subject.commit(|writer| {
        let begin = subject.key("log/");
        let mut end = begin.clone();
        end.extend_from_slice(&keys[0]);
        end.push(0);
        writer.inner.clear_range(&begin, &end);
    });
    subject.commit(|writer| append(writer, &["c"]));
    assert_eq!(log(subject).0, ["b", "c"]);
}

pub fn concurrent_appends_never_conflict(subject: &Subject) {
    if !subject.store.capabilities().has_other_writers {
        return;
    }
    let (one, two) = (subject.write(), subject.write());
    append(&one, &["one"]);
    append(&two, &["two"]);
    two.commit().unwrap();
    one.commit().unwrap();
    assert_eq!(log(subject).0, ["two", "one"]);
}
