//! An archive that is read while it grows.

use std::ops::ControlFlow;

use super::*;

fn poll(tail: &mut ArchiveTail) -> (Vec<u64>, Result<TailEnd, ArchiveError>) {
    let mut found = Vec::new();
    let end = tail.poll(|archived, _| {
        assert_eq!(archived.body, body(archived.commit));
        found.push(archived.commit);
        Ok(ControlFlow::Continue(()))
    });
    (found, end)
}

fn after(folder: &Path, commit: u64) -> ArchiveTail {
    let after = Reached {
        commit,
        time_ms: None,
    };
    ArchiveTail::open(folder, &store(), after).unwrap()
}

#[test]
fn what_is_added_later_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = Archive::open(folder.path(), store()).unwrap();
    archive.set_segment_bytes(150);
    let mut tail = after(folder.path(), 0);
    assert!(matches!(poll(&mut tail), (found, Ok(TailEnd::Missing)) if found.is_empty()));
    for commit in 1..=20 {
        archive.append(commit, commit * 10, &body(commit)).unwrap();
        if commit % 3 == 0 {
            archive.sync().unwrap();
        }
        assert!(
            matches!(poll(&mut tail), (found, Ok(TailEnd::Complete)) if found == [commit]),
            "{commit}"
        );
    }
    assert_eq!(tail.reached().time_ms, Some(200));
}

#[test]
fn the_time_of_the_last_commit_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=5, SEGMENT_BYTES);
    add(folder.path(), 6..=9, SEGMENT_BYTES);
    let mut tail = after(folder.path(), 5);
    assert_eq!(poll(&mut tail).0, [6, 7, 8, 9]);
    let mut tail = after(folder.path(), 9);
    assert_eq!(poll(&mut tail).0, [0; 0]);
    assert_eq!(tail.reached().time_ms, Some(90));
}

#[test]
fn a_commit_is_read_once_all_of_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=3, SEGMENT_BYTES);
    let path = segment(folder.path(), 1);
    let whole = std::fs::read(&path).unwrap();
    let mut tail = after(folder.path(), 0);
    let mut found = Vec::new();
    for length in 1..=whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let (more, end) = poll(&mut tail);
        assert!(
            matches!(end, Ok(TailEnd::Complete | TailEnd::Unfinished)),
            "{length}: {end:?}"
        );
        found.extend(more);
    }
    assert_eq!(found, [1, 2, 3]);
}

#[test]
fn a_segment_that_repeats_commits_goes_on_from_a_failed_one() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=6, SEGMENT_BYTES);
    let mut tail = after(folder.path(), 0);
    assert_eq!(poll(&mut tail).0, [1, 2, 3, 4, 5, 6]);
    // Commits 5 and 6 are repeated, as if they had not been synced.
    let mut archive = Archive::open(folder.path(), store()).unwrap();
    for commit in 5..=8 {
        archive.append(commit, commit * 10, &body(commit)).unwrap();
        let (found, end) = poll(&mut tail);
        assert!(matches!(end, Ok(TailEnd::Complete)));
        assert_eq!(found.len(), usize::from(commit > 6));
    }
    assert_eq!(after(folder.path(), 4).reached().commit, 4);
    assert_eq!(poll(&mut after(folder.path(), 2)).0, [3, 4, 5, 6, 7, 8]);
}

#[test]
fn damage_and_gaps_are_errors_once_they_are_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=2, SEGMENT_BYTES);
    add(folder.path(), 3..=4, SEGMENT_BYTES);
    add(folder.path(), 5..=6, SEGMENT_BYTES);
    let path = segment(folder.path(), 3);
    let whole = std::fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let cases: [(Option<&[u8]>, u64); 3] =
        [(Some(&damaged), 4), (None, 3), (Some(&whole[..60]), 3)];
    for (bytes, expected) in cases {
        match bytes {
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let mut tail = after(folder.path(), 1);
        for _ in 0..4 {
            assert!(matches!(poll(&mut tail).1, Ok(TailEnd::Doubtful)));
        }
        let error = poll(&mut tail).1.unwrap_err();
        assert!(
            matches!(error, ArchiveError::Gap { missing, reached, .. }
                if missing == expected && reached.commit == expected - 1),
            "{error}"
        );
        // A write that was only delayed is read.
        std::fs::write(&path, &whole).unwrap();
        let mut tail = after(folder.path(), 1);
        assert_eq!(poll(&mut tail).0, [2, 3, 4, 5, 6]);
    }
}

#[test]
fn an_archive_without_the_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let tail = ArchiveTail::open(folder.path(), &store(), NOTHING);
    assert!(matches!(tail, Err(ArchiveError::Nothing { .. })));
}
