use super::*;
use proptest::prelude::*;

fn record(writes: &[Write<'_>]) -> Record {
    let mut record = Record::new();
    for write in writes {
        record.push(write);
    }
    record
}

fn numbers(folder: &Path) -> Vec<u64> {
    let mut numbers = Vec::new();
    read_all(folder, |sequence, _| {
        numbers.push(sequence);
        Ok(())
    })
    .unwrap();
    numbers
}

#[test]
fn records_are_read_in_the_order_in_which_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), 7, 12_345, true).unwrap();
    for key in [b"a", b"b", b"c"] {
        journal.append(&mut record(&[Write::Clear(key)])).unwrap();
    }
    journal.switch().unwrap();
    journal.append(&mut record(&[Write::Clear(b"d")])).unwrap();
    assert_eq!(numbers(folder.path()), [7, 8, 9, 10]);
    // The next checkpoint begins, so the one before is on the disk: its records may go.
    journal.switch().unwrap();
    journal.append(&mut record(&[Write::Clear(b"e")])).unwrap();
    assert_eq!(numbers(folder.path()), [10, 11]);
}

#[test]
fn what_a_file_held_in_an_earlier_turn_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), 1, 12_345, true).unwrap();
    for _ in 0..5 {
        journal
            .append(&mut record(&[Write::Clear(b"same")]))
            .unwrap();
    }
    journal.switch().unwrap();
    journal.switch().unwrap();
    // Exactly over the first of the old records: the second old one follows at once.
    journal
        .append(&mut record(&[Write::Clear(b"same")]))
        .unwrap();
    assert_eq!(numbers(folder.path()), [6]);
}

#[test]
fn reading_ends_before_a_record_that_was_never_finished() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), 1, 12_345, true).unwrap();
    journal.append(&mut record(&[Write::Clear(b"a")])).unwrap();
    let whole = journal.bytes();
    journal
        .append(&mut record(&[Write::Set(b"k", &[7; 5000])]))
        .unwrap();
    let path = folder.path().join(FILE_NAMES[0]);
    let bytes = std::fs::read(&path).unwrap();
    for torn in [whole + 3, whole + 24, whole + 4000] {
        let mut bytes = bytes.clone();
        bytes[torn as usize..].fill(0);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(numbers(folder.path()), [1], "torn at {torn}");
    }
}

/// Writes as a disk does on which files can have so many bytes.
fn with_room(bytes: u64) -> impl Fn(&File, &[u8], u64) -> io::Result<()> {
    move |file, data, at| {
        let fitting = data.len().min(bytes.saturating_sub(at) as usize);
        file.write_all_at(&data[..fitting], at)?;
        if fitting < data.len() {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        Ok(())
    }
}

#[test]
fn where_a_step_finds_no_room_the_file_grows_by_what_the_record_needs() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), 1, 12_345, true).unwrap();
    let length = || folder.path().join(FILE_NAMES[0]).metadata().unwrap().len();
    let step = limits::EMBEDDED_JOURNAL_STEP_BYTES;
    let room = step + 100 * BLOCK_BYTES;
    let mut state = journal.lock();
    let mut grow = |end, room| state.grow(0, 32, end, with_room(room));
    assert_eq!(length(), step);
    grow(step + 100, room).unwrap();
    assert_eq!(length(), step + BLOCK_BYTES);
    // A little more each time, as long as that fits.
    grow(step + BLOCK_BYTES + 1, room).unwrap();
    assert_eq!(length(), step + 2 * BLOCK_BYTES);
    grow(step + 2 * BLOCK_BYTES + 1, room).unwrap();
    assert_eq!(length(), step + 4 * BLOCK_BYTES);
    let last = step + 99 * BLOCK_BYTES + 1;
    grow(last, room).unwrap();
    assert_eq!(length(), room);
    assert!(grow(room + 1, room).is_err());
    grow(room + 1, u64::MAX).unwrap();
    for more in 1..20 {
        grow(step + more * step / 4, u64::MAX).unwrap();
    }
    assert_eq!(length() % step, 0);
}

#[test]
fn both_files_have_blocks_from_the_start() {
    let folder = tempfile::tempdir().unwrap();
    Journal::create(folder.path(), 1, 12_345, true).unwrap();
    for name in FILE_NAMES {
        let length = folder.path().join(name).metadata().unwrap().len();
        assert_eq!(length, limits::EMBEDDED_JOURNAL_STEP_BYTES);
    }
}

#[test]
fn where_appending_does_not_sync_it_waits_for_what_is_old() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), 1, 12_345, false).unwrap();
    let append = || journal.append(&mut record(&[Write::Clear(b"a")])).unwrap();
    append();
    assert!(!journal.is_synced());
    append();
    assert!(!journal.is_synced());
    let lag = Duration::from_millis(limits::EMBEDDED_SYNC_LAG_MS_MAX);
    journal.lock().unsynced_since = Instant::now().checked_sub(2 * lag);
    append();
    assert!(journal.is_synced());
    append();
    assert!(!journal.is_synced());
}

#[test]
fn after_a_sync_that_failed_none_says_that_all_is_well() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), 1, 12_345, false).unwrap();
    journal.append(&mut record(&[Write::Clear(b"a")])).unwrap();
    // What cannot be synced.
    let (pipe, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    let pipe = Arc::new(File::from(std::os::fd::OwnedFd::from(pipe)));
    let file = std::mem::replace(&mut journal.lock().files[0], pipe);
    assert!(journal.sync().is_err());
    journal.lock().files[0] = file;
    assert!(journal.sync().is_err());
    assert!(!journal.is_synced());
}

proptest! {
    #[test]
    fn writes_are_read_back(
        writes_made in proptest::collection::vec(
            (0..3_u8, any::<Vec<u8>>(), any::<Vec<u8>>()), 1..20)
    ) {
        let made: Vec<Write<'_>> = writes_made.iter().map(|(kind, first, second)| match kind {
            0 => Write::Set(first, second),
            1 => Write::Clear(first),
            _ => Write::ClearRange(first, second),
        }).collect();
        let record = record(&made);
        let read: Option<Vec<Write<'_>>> =
            writes(&record.bytes[RECORD_HEADER_BYTES..]).collect();
        prop_assert_eq!(read, Some(made));
    }

    #[test]
    fn whatever_the_bytes_reading_ends(bytes in any::<Vec<u8>>()) {
        prop_assert!(writes(&bytes).count() <= bytes.len() + 1);
        let mut file = bytes.as_slice();
        while read_record(&mut file, 1).unwrap().is_some() {}
    }
}
