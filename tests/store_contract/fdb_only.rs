//! What only a cluster can show.

use std::thread;
use std::time::Duration;

use quoin_store::StoreError;

use crate::stores;

/// A commit that is cut off by its timeout may still be in flight. Once the store has returned
/// `UnknownResult` it must not be.
#[test]
fn after_an_unknown_result_nothing_changes_any_more() {
    let case = "timeouts";
    let Some(watcher) = stores::fdb(case) else {
        return;
    };
    // A blind write never conflicts: only the store itself can hold it back.
    let mut unknown = 0;
    for timeout_ms in [1, 2, 3, 4] {
        let mut hurried = stores::fdb_with_timeout(case, timeout_ms).unwrap();
        hurried.prefix.clone_from(&watcher.prefix);
        hurried.is_shared = false;
        let mut seen = Vec::new();
        for number in 0..100 {
            let key = format!("{timeout_ms}/{number}");
            let writer = hurried.write();
            writer.set(&key, "value");
            match writer.commit() {
                Ok(()) => seen.push((key, true)),
                Err(StoreError::UnknownResult) => {
                    unknown += 1;
                    let is_applied = watcher.get(&key).is_some();
                    seen.push((key, is_applied));
                }
                Err(error) => panic!("{error}"),
            }
        }
        thread::sleep(Duration::from_millis(200));
        for (key, was_applied) in seen {
            assert_eq!(watcher.get(&key).is_some(), was_applied, "{key}");
        }
    }
    assert!(unknown > 0, "no commit timed out");
}

/// Two handles of one process, as two servers.
#[test]
fn what_one_handle_commits_another_sees_at_once() {
    let case = "two handles";
    let Some(first) = stores::fdb(case) else {
        return;
    };
    let mut second = stores::fdb(case).unwrap();
    second.prefix.clone_from(&first.prefix);
    second.is_shared = false;
    for number in 0..50 {
        first.commit(|writer| writer.add("counter", 1));
        assert_eq!(second.number("counter"), Some(number + 1));
    }
}

#[test]
fn a_watch_hears_of_another_handle() {
    let case = "watch of two";
    let Some(first) = stores::fdb(case) else {
        return;
    };
    let mut second = stores::fdb(case).unwrap();
    second.prefix.clone_from(&first.prefix);
    second.is_shared = false;
    let (_, mut changed) = second.watch("bell");
    first.commit(|writer| writer.add("bell", 1));
    assert!(crate::subject::fires(&mut changed));
}
