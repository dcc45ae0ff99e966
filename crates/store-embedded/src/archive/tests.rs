use std::path::{Path, PathBuf};

use super::format::segment_name;
use super::*;
use crate::StoreId;

fn store() -> StoreId {
    StoreId::from_bytes(*b"store of a test.")
}

fn other() -> StoreId {
    StoreId::from_bytes([7; 16])
}

type Commits = Vec<(u64, u64, Vec<u8>)>;

const NOTHING: Reached = Reached {
    commit: 0,
    time_ms: None,
};

fn body(commit: u64) -> Vec<u8> {
    format!("writes of commit {commit}").into_bytes()
}

/// Adds commits. Each is made at ten times its number.
fn add(folder: &Path, commits: std::ops::RangeInclusive<u64>, segment_bytes: u64) {
    let mut archive = Archive::open(folder, store()).unwrap();
    archive.set_segment_bytes(segment_bytes);
    for commit in commits {
        archive.append(commit, commit * 10, &body(commit)).unwrap();
    }
    archive.sync().unwrap();
}

fn read(folder: &Path, after: u64, limit: Limit) -> Result<(Reached, Commits), ArchiveError> {
    let mut found = Commits::new();
    let after = Reached {
        commit: after,
        time_ms: None,
    };
    let reached = read_archive(folder, &store(), after, limit, |archived| {
        found.push((archived.commit, archived.time_ms, archived.body.to_vec()));
        Ok::<_, ArchiveError>(())
    })?;
    Ok((reached, found))
}

fn numbers(folder: &Path, after: u64, limit: Limit) -> Vec<u64> {
    let (reached, found) = read(folder, after, limit).unwrap();
    let numbers: Vec<u64> = found.iter().map(|(commit, ..)| *commit).collect();
    assert_eq!(numbers.last().copied().unwrap_or(after), reached.commit);
    numbers
}

fn segment(folder: &Path, first: u64) -> PathBuf {
    let archive = Archive::open(folder, store()).unwrap();
    archive.folder().join(segment_name(first))
}

#[test]
fn what_was_added_is_read_from_all_segments() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=20, 200);
    add(folder.path(), 21..=30, SEGMENT_BYTES);
    let (reached, found) = read(folder.path(), 0, Limit::End).unwrap();
    let expected: Commits = (1..=30).map(|one| (one, one * 10, body(one))).collect();
    assert_eq!(found, expected);
    assert_eq!(
        reached,
        Reached {
            commit: 30,
            time_ms: Some(300)
        }
    );
    assert_eq!(
        numbers(folder.path(), 17, Limit::End),
        (18..=30).collect::<Vec<_>>()
    );
    let count = super::read::segments(segment(folder.path(), 1).parent().unwrap());
    assert!(count.unwrap().len() > 3);
}

#[test]
fn limits_are_commits_or_times() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=20, 200);
    let of = |limit| numbers(folder.path(), 3, limit).last().copied();
    assert_eq!(of(Limit::Commit(7)), Some(7));
    assert_eq!(of(Limit::Commit(3)), None);
    assert_eq!(of(Limit::Time(75)), Some(7));
    assert_eq!(of(Limit::Time(80)), Some(8));
    assert_eq!(of(Limit::Time(1)), None);
    assert_eq!(of(Limit::Time(10_000)), Some(20));
    let error = read(folder.path(), 3, Limit::Commit(21)).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("ends with commit 20 of 1970-01-01T00:00:00.2Z"),
        "{text}"
    );
}

#[test]
fn a_missing_segment_is_a_gap_that_says_how_far_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=5, SEGMENT_BYTES);
    add(folder.path(), 6..=8, SEGMENT_BYTES);
    add(folder.path(), 9..=12, SEGMENT_BYTES);
    std::fs::remove_file(segment(folder.path(), 6)).unwrap();
    let error = read(folder.path(), 2, Limit::End).unwrap_err();
    assert!(
        matches!(error, ArchiveError::Gap { missing: 6, reached, .. } if reached.commit == 5),
        "{error}"
    );
    assert_eq!(numbers(folder.path(), 2, Limit::Commit(5)), [3, 4, 5]);
    assert_eq!(numbers(folder.path(), 8, Limit::End), [9, 10, 11, 12]);
    assert!(read(folder.path(), 7, Limit::End).is_err());
}

#[test]
fn damage_is_refused_and_an_end_that_was_not_finished_is_none() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=5, SEGMENT_BYTES);
    let path = segment(folder.path(), 1);
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let all = read(folder.path(), 0, Limit::Commit(5));
        assert!(matches!(all, Err(ArchiveError::Gap { .. })), "byte {at}");
        // A length that is too large looks like an incomplete end.
        if let Ok((reached, _)) = read(folder.path(), 0, Limit::End) {
            assert!(reached.commit < 5, "byte {at}");
        }
    }
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let (reached, _) = read(folder.path(), 0, Limit::End).unwrap();
        assert!(reached.commit < 5, "{length} bytes");
        assert!(read(folder.path(), 0, Limit::Commit(5)).is_err());
    }
}

#[test]
fn an_end_that_was_not_finished_is_gone_on_from() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=5, SEGMENT_BYTES);
    let path = segment(folder.path(), 1);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let archive = Archive::open(folder.path(), store()).unwrap();
    assert_eq!(archive.last(), Some(4));
    add(folder.path(), 5..=6, SEGMENT_BYTES);
    assert_eq!(numbers(folder.path(), 0, Limit::End), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn another_stores_commits_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=5, SEGMENT_BYTES);
    let read = read_archive(folder.path(), &other(), NOTHING, Limit::End, |_| {
        Ok::<_, ArchiveError>(())
    });
    assert!(matches!(read, Err(ArchiveError::Nothing { .. })));
    let others = Archive::open(folder.path(), other()).unwrap();
    assert_eq!(others.last(), None);
    // The same holds if the file was moved.
    let name = segment_name(1);
    std::fs::copy(segment(folder.path(), 1), others.folder().join(name)).unwrap();
    let reached = read_archive(folder.path(), &other(), NOTHING, Limit::End, |_| {
        Ok::<_, ArchiveError>(())
    });
    assert!(matches!(reached, Err(ArchiveError::Gap { .. })));
}

#[test]
fn what_was_not_synced_is_added_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = Archive::open(folder.path(), store()).unwrap();
    archive.append(1, 10, &body(1)).unwrap();
    archive.sync().unwrap();
    archive.append(2, 20, &body(2)).unwrap();
    // The files seem to have been removed.
    let path = segment(folder.path(), 1);
    let aside = folder.path().join("aside");
    std::fs::rename(&path, &aside).unwrap();
    assert!(archive.sync().is_err());
    assert_eq!(archive.last(), Some(1));
    archive.append(2, 20, &body(2)).unwrap();
    archive.append(3, 30, &body(3)).unwrap();
    archive.sync().unwrap();
    assert_eq!(archive.last(), Some(3));
    assert_eq!(numbers(folder.path(), 1, Limit::End), [2, 3]);
    std::fs::rename(&aside, &path).unwrap();
    assert_eq!(numbers(folder.path(), 0, Limit::End), [1, 2, 3]);
}

mod following;
mod keeping;
mod shipping;

#[test]
fn old_segments_go_when_a_backup_has_their_commits() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=20, 200);
    let archive = Archive::open(folder.path(), store()).unwrap();
    let firsts = || {
        let found = super::read::segments(archive.folder()).unwrap();
        found
            .into_iter()
            .map(|(first, _)| first)
            .collect::<Vec<_>>()
    };
    let all = firsts();
    assert!(all.len() > 4);
    // Commits are made at ten times their numbers.
    assert_eq!(archive.segments().prune(20, all[1] * 10 - 1).unwrap(), 0);
    assert_eq!(archive.segments().prune(all[1] - 2, u64::MAX).unwrap(), 0);
    assert_eq!(archive.segments().prune(all[1] - 1, u64::MAX).unwrap(), 1);
    assert_eq!(archive.segments().prune(20, all[2] * 10).unwrap(), 1);
    assert_eq!(firsts(), all[2..]);
    assert_eq!(
        numbers(folder.path(), all[2] - 1, Limit::End).last(),
        Some(&20)
    );
    // The newest stays.
    assert_eq!(
        archive.segments().prune(20, u64::MAX).unwrap(),
        all.len() - 3
    );
    assert_eq!(firsts(), all[all.len() - 1..]);
    let error = read(folder.path(), 1, Limit::End).unwrap_err();
    assert!(
        matches!(error, ArchiveError::Gap { missing: 2, .. }),
        "{error}"
    );
}
