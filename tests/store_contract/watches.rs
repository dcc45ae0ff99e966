//! Watches.

use crate::subject::{Subject, fires, is_quiet};

pub fn a_watch_gives_the_value(subject: &Subject) {
    assert_eq!(subject.watch("key").0, None);
    subject.commit(|writer| writer.set("key", "value"));
    assert_eq!(subject.watch("key").0.unwrap(), "value");
}

pub fn a_watch_fires_after_a_set(subject: &Subject) {
    let (_, mut changed) = subject.watch("key");
    assert!(is_quiet(&mut changed));
    subject.commit(|writer| writer.set("key", "value"));
    assert!(fires(&mut changed));
}

pub fn a_watch_fires_after_an_addition(subject: &Subject) {
    let (_, mut changed) = subject.watch("bell");
    subject.commit(|writer| writer.add("bell", 1));
    assert!(fires(&mut changed));
}

pub fn a_watch_fires_after_a_cleared_range(subject: &Subject) {
    subject.commit(|writer| writer.set("key", "value"));
    let (_, mut changed) = subject.watch("key");
    subject.commit(|writer| writer.clear_range("a", "z"));
    assert!(fires(&mut changed));
}

pub fn a_watch_does_not_fire_before_the_commit(subject: &Subject) {
    let (_, mut changed) = subject.watch("key");
    let writer = subject.write();
    writer.set("key", "value");
    assert!(is_quiet(&mut changed));
    writer.commit().unwrap();
    assert!(fires(&mut changed));
}

pub fn a_watch_does_not_fire_for_a_dropped_transaction(subject: &Subject) {
    let (_, mut changed) = subject.watch("key");
    subject.write().set("key", "value");
    assert!(is_quiet(&mut changed));
}

pub fn a_dropped_watch_is_no_failure(subject: &Subject) {
    drop(subject.watch("key"));
    subject.commit(|writer| writer.set("key", "value"));
    assert_eq!(subject.get("key").unwrap(), "value");
}

pub fn all_watches_of_a_key_fire(subject: &Subject) {
    let mut watches: Vec<_> = (0..3).map(|_| subject.watch("key").1).collect();
    subject.commit(|writer| writer.set("key", "value"));
    for watch in &mut watches {
        assert!(fires(watch));
    }
}
