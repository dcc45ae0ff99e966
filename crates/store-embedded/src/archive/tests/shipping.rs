//! Files that a command ships elsewhere.

use std::time::Duration;

use super::super::command::{ArchiveCommand, CommandError};
use super::*;

const NEVER: Duration = Duration::from_secs(u64::MAX);

fn keeper(folder: &Path) -> Keeper {
    Keeper::open(folder, store(), folder, u64::MAX - 1).unwrap()
}

fn command(text: &str) -> ArchiveCommand {
    ArchiveCommand {
        text: text.to_owned(),
    }
}

fn ship(keeper: &Keeper, text: &str, age_max: Duration) -> Result<bool, CommandError> {
    keeper.ship_next(&command(text), age_max, &|_| false)
}

#[test]
fn files_are_taken_in_order_and_removed_when_the_command_has_succeeded() {
    let folder = tempfile::tempdir().unwrap();
    let target = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=3, SEGMENT_BYTES);
    add(folder.path(), 4..=5, SEGMENT_BYTES);
    let keeper = keeper(folder.path());
    let failed = ship(&keeper, "exit 3", NEVER);
    assert!(matches!(failed, Err(CommandError::Failed(_))));
    assert_eq!(numbers(folder.path(), 0, Limit::End), [1, 2, 3, 4, 5]);
    let status = keeper.status().command.unwrap();
    assert_eq!((status.failures, status.files, status.waiting), (1, 0, 2));
    assert!(status.error.unwrap().contains('3'));

    let copy = format!("install -D %p {}/%f", target.path().display());
    assert!(ship(&keeper, &copy, NEVER).unwrap());
    assert_eq!(numbers(target.path(), 0, Limit::End), [1, 2, 3]);
    assert!(ship(&keeper, &copy, NEVER).unwrap());
    assert!(!ship(&keeper, &copy, NEVER).unwrap());
    assert_eq!(numbers(target.path(), 0, Limit::End), [1, 2, 3, 4, 5]);
    assert!(matches!(
        read(folder.path(), 0, Limit::End),
        Err(ArchiveError::Nothing { .. })
    ));
    let status = keeper.status().command.unwrap();
    assert_eq!(
        (status.files, status.last, status.error),
        (2, Some(5), None)
    );
}

#[test]
fn an_archive_without_files_knows_what_was_taken() {
    let folder = tempfile::tempdir().unwrap();
    add(folder.path(), 1..=3, SEGMENT_BYTES);
    assert!(ship(&keeper(folder.path()), "true", NEVER).unwrap());
    let archive = Archive::open(folder.path(), store()).unwrap();
    assert_eq!(archive.last(), Some(3));
    // The store was put back to an earlier state.
    let back = Keeper::open(folder.path(), store(), folder.path(), 2);
    assert!(matches!(back, Err(ArchiveError::Ahead { archived: 3, .. })));
}

#[test]
fn a_file_that_is_being_written_is_taken_when_it_is_old() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = Archive::open(folder.path(), store()).unwrap();
    archive.append(1, 10, &body(1)).unwrap();
    archive.end_old_segment(Duration::ZERO);
    // It is not synced yet.
    assert!(archive.ended_segments().unwrap().is_empty());
    archive.sync().unwrap();
    archive.end_old_segment(NEVER);
    assert!(archive.ended_segments().unwrap().is_empty());
    archive.end_old_segment(Duration::ZERO);
    assert_eq!(archive.ended_segments().unwrap().len(), 1);
    archive.append(2, 20, &body(2)).unwrap();
    archive.sync().unwrap();
    assert_eq!(archive.ended_segments().unwrap().len(), 1);
    assert_eq!(numbers(folder.path(), 0, Limit::End), [1, 2]);
}
