use super::files::FILE_NAMES;
use super::*;
use proptest::prelude::*;

fn record(writes: &[Write<'_>]) -> Record {
    let mut record = Record::new();
    for write in writes {
        record.push(write);
    }
    record
}

fn bytes_of(record: &Record) -> Vec<u8> {
    record.parts().collect::<Vec<_>>().concat()
}

/// Makes the first write of record number `place` in a file invalid, with matching checksums.
pub(in super::super) fn make_senseless(path: &Path, place: usize) {
    use format::{FileHeader, RECORD_HEADER_BYTES, Version, read_file_header};
    let mut bytes = std::fs::read(path).unwrap();
    let FileHeader { epoch, .. } = read_file_header(&bytes).unwrap();
    let mut at = FILE_HEADER_BYTES;
    for _ in 0..place {
        let header = Version::Second.record_header(epoch, &bytes[at..]).unwrap();
        at += RECORD_HEADER_BYTES + header.length as usize;
    }
    let header = Version::Second.record_header(epoch, &bytes[at..]).unwrap();
    let end = at + RECORD_HEADER_BYTES + header.length as usize;
    let mut record = Record::of(bytes[at..end].to_vec());
    record.spoil();
    let RecordHeader {
        sequence,
        synced,
        time_ms,
        reserved_bytes,
        ..
    } = header;
    record.seal(epoch, sequence, synced, time_ms, reserved_bytes);
    bytes[at..end].copy_from_slice(&bytes_of(&record));
    std::fs::write(path, bytes).unwrap();
}

/// The numbers of all records up to the first gap.
fn numbers(folder: &Path) -> Vec<u64> {
    let survey = Survey::of(folder).unwrap();
    let first = survey.first().unwrap_or(1);
    let mut numbers = Vec::new();
    survey
        .read(first - 1, |header, _| {
            numbers.push(header.sequence);
            Ok(())
        })
        .unwrap();
    numbers
}

/// The text of a gap, and whether it is damage.
fn gap(folder: &Path) -> Option<(String, bool)> {
    let gap = Survey::of(folder).unwrap().gap(None)?;
    Some((gap.to_string(), gap.is_damage()))
}

#[test]
fn records_are_read_in_the_order_in_which_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), 7, 12_345, true).unwrap();
    for key in [b"a", b"b", b"c"] {
        journal.append(&mut record(&[Write::Clear(key)])).unwrap();
    }
    journal.switch(false).unwrap();
    journal.append(&mut record(&[Write::Clear(b"d")])).unwrap();
    assert_eq!(numbers(folder.path()), [7, 8, 9, 10]);
    // The next checkpoint begins, so the previous one is on the disk and its records may go.
    journal.switch(false).unwrap();
    journal.append(&mut record(&[Write::Clear(b"e")])).unwrap();
    assert_eq!(numbers(folder.path()), [10, 11]);
}

#[test]
fn a_file_that_was_removed_is_there_again_from_its_next_turn_on() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), 1, 12_345, true).unwrap();
    let append = || {
        journal.append(&mut record(&[Write::Clear(b"a")])).unwrap();
    };
    append();
    let path = |turn: usize| folder.path().join(FILE_NAMES[turn]);
    std::fs::remove_file(path(1)).unwrap();
    std::fs::rename(path(0), folder.path().join("aside")).unwrap();
    std::fs::write(path(0), b"of somebody else").unwrap();
    journal.switch(false).unwrap();
    append();
    assert_eq!(numbers(folder.path()), [2]);
    journal.switch(false).unwrap();
    append();
    assert_eq!(numbers(folder.path()), [2, 3]);
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
    journal.switch(false).unwrap();
    journal.switch(false).unwrap();
    // This record replaces exactly the first of the old records. The second old one follows
    // directly.
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
    for torn in [whole + 3, whole + 48, whole + 4000] {
        let mut bytes = bytes.clone();
        bytes[torn as usize..].fill(0);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(numbers(folder.path()), [1], "torn at {torn}");
        assert_eq!(gap(folder.path()), None, "torn at {torn}");
    }
}

/// Writes like a disk on which files can have at most `bytes`.
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
    let first = INITIAL_BYTES;
    let room = first + 40 * BLOCK_BYTES;
    let mut state = journal.lock();
    let mut grow = |end, room| state.grow(0, 32, end, with_room(room));
    assert_eq!(length(), first);
    grow(first + 100, room).unwrap();
    assert_eq!(length(), first + BLOCK_BYTES);
    // The file grows by a little more each time, as long as that fits.
    grow(first + BLOCK_BYTES + 1, room).unwrap();
    assert_eq!(length(), first + 2 * BLOCK_BYTES);
    grow(first + 2 * BLOCK_BYTES + 1, room).unwrap();
    assert_eq!(length(), first + 4 * BLOCK_BYTES);
    let last = first + 39 * BLOCK_BYTES + 1;
    grow(last, room).unwrap();
    assert_eq!(length(), room);
    assert!(grow(room + 1, room).is_err());
    grow(room + 1, u64::MAX).unwrap();
    for more in 1..20 {
        grow(first + more * STEP_BYTES / 4, u64::MAX).unwrap();
    }
    assert_eq!(length(), first + 5 * STEP_BYTES);
}

#[test]
fn both_files_have_blocks_from_the_start() {
    let folder = tempfile::tempdir().unwrap();
    Journal::create(folder.path(), 1, 12_345, true).unwrap();
    for name in FILE_NAMES {
        let length = folder.path().join(name).metadata().unwrap().len();
        assert_eq!(length, INITIAL_BYTES);
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
    // This file cannot be synced.
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
        let bytes = bytes_of(&record);
        let read: Option<Vec<Write<'_>>> =
            writes(&bytes[format::RECORD_HEADER_BYTES..]).collect();
        prop_assert_eq!(read, Some(made));
    }

    #[test]
    fn a_large_record_is_written_in_parts_and_cut_back_at_any_write(
        sizes in proptest::collection::vec(0..700_000_usize, 1..12),
        kept in 0..12_usize,
    ) {
        let values: Vec<Vec<u8>> = sizes.iter().map(|size| vec![7; *size]).collect();
        let mut record = Record::new();
        let mut lengths = vec![record.len()];
        for value in &values {
            record.push(&Write::Set(b"key", value));
            lengths.push(record.len());
        }
        let kept = kept.min(values.len());
        record.truncate(lengths[kept]);
        let again = self::record(
            &values[..kept].iter().map(|value| Write::Set(b"key", value)).collect::<Vec<_>>(),
        );
        prop_assert_eq!(record.len(), lengths[kept]);
        prop_assert!(bytes_of(&record) == bytes_of(&again));
        prop_assert!(record.parts().all(|part| part.len() < 2 * 1024 * 1024));
        record.seal(1, 2, 3, 4, 5 * BLOCK_BYTES);
        let sealed = bytes_of(&record);
        let header = format::Version::Second.record_header(1, &sealed);
        if let Some(header) = header {
            let body = &sealed[format::RECORD_HEADER_BYTES..];
            prop_assert!(format::Version::Second.is_whole(&header, 1, body));
        } else {
            prop_assert_eq!(kept, 0);
        }
    }

    #[test]
    fn whatever_the_bytes_reading_ends(bytes in any::<Vec<u8>>()) {
        prop_assert!(writes(&bytes).count() <= bytes.len() + 1);
    }

    #[test]
    fn whatever_a_file_holds_its_survey_ends(
        first in any::<Vec<u8>>(), second in any::<Vec<u8>>(), is_named in any::<bool>()
    ) {
        let folder = tempfile::tempdir().unwrap();
        let header = if is_named { file_header(7, 0) } else { Vec::new() };
        for (name, bytes) in FILE_NAMES.iter().zip([first, second]) {
            std::fs::write(folder.path().join(name), [header.clone(), bytes].concat()).unwrap();
        }
        prop_assert_eq!(numbers(folder.path()), Vec::<u64>::new());
        prop_assert_eq!(gap(folder.path()), None);
    }
}

/// A journal of `count` records, and the offset of each.
fn with_records(folder: &Path, count: u64, syncs_appends: bool) -> (Journal, Vec<usize>) {
    let journal = Journal::create(folder, 1, 12_345, syncs_appends).unwrap();
    let offsets = (0..count).map(|number| {
        let offset = journal.bytes() as usize;
        let key = number.to_le_bytes();
        journal
            .append(&mut record(&[Write::Set(&key, &[9; 100])]))
            .unwrap();
        offset
    });
    let offsets = offsets.collect();
    (journal, offsets)
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_flipped_bit_in_any_part_of_a_record_is_damage_where_others_follow() {
    for part in [0, 8, 16, 24, 32, 40, 60, 150] {
        let folder = tempfile::tempdir().unwrap();
        let (_journal, offsets) = with_records(folder.path(), 10, true);
        let path = folder.path().join(FILE_NAMES[0]);
        flip(&path, offsets[5] + part);
        assert_eq!(numbers(folder.path()), [1, 2, 3, 4, 5], "{part}");
        let (text, is_damage) = gap(folder.path()).unwrap();
        assert!(is_damage, "{part}: {text}");
        let place = format!("JOURNAL.0 at byte {}", offsets[5]);
        assert!(text.contains(&place), "{part}: {text}");
        assert!(text.contains("4 commits up to number 10"), "{text}");
    }
}

#[test]
fn damage_of_the_first_record_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (_journal, offsets) = with_records(folder.path(), 5, true);
    let path = folder.path().join(FILE_NAMES[0]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[offsets[0]..offsets[1]].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let (text, is_damage) = gap(folder.path()).unwrap();
    assert!(is_damage);
    assert!(text.contains("commit 1 cannot be read"), "{text}");
}

#[test]
fn damage_at_the_end_of_the_file_before_is_found_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, offsets) = with_records(folder.path(), 5, true);
    journal.switch(false).unwrap();
    journal.append(&mut record(&[Write::Clear(b"a")])).unwrap();
    flip(&folder.path().join(FILE_NAMES[0]), offsets[4] + 60);
    let (text, is_damage) = gap(folder.path()).unwrap();
    assert!(is_damage);
    assert!(text.contains("commit 5 cannot be read"), "{text}");
    assert!(
        text.contains("1 commit up to number 6 comes after it"),
        "{text}"
    );
}

#[test]
fn records_after_a_damaged_file_header_are_read() {
    for bit_at in [0, 17, 30] {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = with_records(folder.path(), 3, true);
        journal.switch(false).unwrap();
        journal.append(&mut record(&[Write::Clear(b"a")])).unwrap();
        for name in FILE_NAMES {
            flip(&folder.path().join(name), bit_at);
            assert_eq!(numbers(folder.path()), [1, 2, 3, 4], "{name} {bit_at}");
            flip(&folder.path().join(name), bit_at);
        }
    }
}

#[test]
fn a_gap_in_what_was_not_synced_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, offsets) = with_records(folder.path(), 5, false);
    flip(&folder.path().join(FILE_NAMES[0]), offsets[2] + 60);
    let (text, is_damage) = gap(folder.path()).unwrap();
    assert!(!is_damage, "{text}");
    // A record appended after a sync says that the others were on the disk.
    journal.sync().unwrap();
    journal.append(&mut record(&[Write::Clear(b"a")])).unwrap();
    let (_, is_damage) = gap(folder.path()).unwrap();
    assert!(is_damage);
}

#[test]
fn damage_of_what_the_data_file_has_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let (_journal, offsets) = with_records(folder.path(), 10, true);
    flip(&folder.path().join(FILE_NAMES[0]), offsets[3] + 60);
    let survey = Survey::of(folder.path()).unwrap();
    assert_eq!(survey.gap(Some(7)), None);
    let mut read = Vec::new();
    let noted = |header: &RecordHeader, _: &[u8]| {
        read.push(header.sequence);
        Ok(())
    };
    survey.read(7, noted).unwrap();
    assert_eq!(read, [8, 9, 10]);
}

#[test]
fn a_value_that_looks_like_records_is_not_taken_for_some() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), 1, 12_345, true).unwrap();
    let mut planted = record(&[Write::Clear(b"planted")]);
    // The writer of the value knows everything except the epoch.
    planted.seal(99, 2, 1, 0, 0);
    let value = bytes_of(&planted).repeat(50);
    journal
        .append(&mut record(&[Write::Set(b"k", &value)]))
        .unwrap();
    flip(&folder.path().join(FILE_NAMES[0]), 32 + 48 + 3);
    assert_eq!(numbers(folder.path()), Vec::<u64>::new());
    assert_eq!(gap(folder.path()), None);
}

/// The damage of a journal, as text.
fn damage(folder: &Path) -> Option<String> {
    let damage = JournalDamage::within(&Survey::of(folder).unwrap(), None)?;
    Some(damage.to_string())
}

fn cut_to(path: &Path, bytes: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(bytes).unwrap();
}

#[test]
fn a_file_in_use_that_was_cut_anywhere_is_damage() {
    for syncs_appends in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (journal, offsets) = with_records(folder.path(), 10, syncs_appends);
        let path = folder.path().join(FILE_NAMES[0]);
        assert_eq!(damage(folder.path()), None);
        let at = offsets[5] as u64;
        let end = journal.bytes();
        for bytes in [INITIAL_BYTES - 1, end, end - 1, at + 50, at, at - 1, 40, 32] {
            cut_to(&path, bytes);
            let text = damage(folder.path()).unwrap();
            let found = format!("JOURNAL.0 was cut from at least {INITIAL_BYTES} bytes to {bytes}");
            assert!(text.contains(&found), "{text}");
        }
        assert!(!damage(folder.path()).unwrap().contains("number"));
    }
}

#[test]
fn a_file_that_was_cut_after_the_record_for_which_it_grew_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, _) = with_records(folder.path(), 3, true);
    let mut large = record(&[Write::Set(b"k", &vec![7; 2 * INITIAL_BYTES as usize])]);
    journal.append(&mut large).unwrap();
    let end = journal.bytes();
    journal.append(&mut record(&[Write::Clear(b"a")])).unwrap();
    assert_eq!(damage(folder.path()), None);
    cut_to(&folder.path().join(FILE_NAMES[0]), end);
    assert_eq!(numbers(folder.path()), [1, 2, 3, 4]);
    let text = damage(folder.path()).unwrap();
    assert!(text.contains("commits after number 4 may"), "{text}");
}

#[test]
fn what_was_cut_off_the_file_before_is_missing_unless_the_data_file_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, offsets) = with_records(folder.path(), 5, true);
    journal.switch(false).unwrap();
    cut_to(&folder.path().join(FILE_NAMES[0]), offsets[2] as u64);
    let text = damage(folder.path()).unwrap();
    assert!(text.contains("JOURNAL.0 was cut"), "{text}");
    journal.append(&mut record(&[Write::Clear(b"a")])).unwrap();
    let text = damage(folder.path()).unwrap();
    assert!(text.contains("commit 3 cannot be read"), "{text}");
    let survey = Survey::of(folder.path()).unwrap();
    assert_eq!(JournalDamage::within(&survey, Some(5)), None);
}

#[test]
fn a_file_that_the_journal_cuts_itself_is_never_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = |turn: usize| folder.path().join(FILE_NAMES[turn]);
    let (journal, _) = with_records(folder.path(), 3, true);
    let mut large = record(&[Write::Set(b"k", &vec![7; 2 * INITIAL_BYTES as usize])]);
    journal.append(&mut large).unwrap();
    journal.switch(false).unwrap();
    journal.append(&mut record(&[Write::Clear(b"a")])).unwrap();
    let grown = std::fs::read(path(0)).unwrap();
    journal.switch(true).unwrap();
    assert_eq!(path(0).metadata().unwrap().len(), INITIAL_BYTES);
    assert_eq!(damage(folder.path()), None);
    // The power fails before the new length is on the disk.
    let cut = std::fs::read(path(0)).unwrap();
    let header = &cut[..FILE_HEADER_BYTES];
    std::fs::write(path(0), [header, &grown[FILE_HEADER_BYTES..]].concat()).unwrap();
    assert_eq!(damage(folder.path()), None);
    std::fs::write(path(0), &grown).unwrap();
    assert_eq!(damage(folder.path()), None);
    // The next start happens.
    drop(journal);
    let journal = Journal::create(folder.path(), 6, 777, true).unwrap();
    assert_eq!(path(0).metadata().unwrap().len(), INITIAL_BYTES);
    journal.append(&mut record(&[Write::Clear(b"a")])).unwrap();
    assert_eq!(damage(folder.path()), None);
}

#[test]
fn a_file_of_the_second_version_is_read_and_does_not_say_what_is_reserved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAMES[0]);
    let magic = b"quoin-journal-02";
    let epoch = 5_u64;
    let header_of = |checksum: u64| {
        [
            magic.as_slice(),
            &epoch.to_le_bytes(),
            &checksum.to_le_bytes(),
        ]
        .concat()
    };
    let checksum = {
        use siphasher::sip::SipHasher13;
        use std::hash::Hasher;
        let mut hasher = SipHasher13::new();
        hasher.write(magic);
        hasher.write_u64(epoch);
        hasher.finish()
    };
    let mut bytes = header_of(checksum);
    for sequence in 1..=3 {
        let mut record = record(&[Write::Set(b"key", b"value")]);
        record.seal(epoch, sequence, sequence - 1, 0, 0);
        bytes.extend(bytes_of(&record));
    }
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(numbers(folder.path()), [1, 2, 3]);
    assert_eq!(damage(folder.path()), None);
    flip(&path, 32 + 60);
    assert!(damage(folder.path()).is_some());
}

#[test]
fn after_a_step_that_could_not_be_synced_nothing_is_appended() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, _) = with_records(folder.path(), 3, false);
    // The pipe can be written but not synced.
    let (reader, writer) = std::io::pipe().unwrap();
    let drained = std::thread::spawn(move || std::io::copy(&mut { reader }, &mut std::io::sink()));
    let pipe = File::from(std::os::fd::OwnedFd::from(writer));
    let write = |mut file: &File, data: &[u8], _: u64| io::Write::write_all(&mut file, data);
    let mut state = journal.lock();
    let file = std::mem::replace(&mut state.files[0], Arc::new(pipe));
    let end = 2 * INITIAL_BYTES;
    let error = state.grow(0, 0, end, write).unwrap_err();
    assert!(JournalFailure::is(&error), "{error}");
    state.files[0] = file;
    drop(state);
    drained.join().unwrap().unwrap();
    let appended = journal.append(&mut record(&[Write::Clear(b"a")]));
    assert!(matches!(appended, Err(AppendError::Unknown(_))));
    assert!(JournalFailure::is(&journal.make_room(1).unwrap_err()));
}

/// A file in the first version of the format.
fn of_the_first_version(epoch: u64, bodies: &[Vec<u8>]) -> Vec<u8> {
    use siphasher::sip::SipHasher13;
    use std::hash::Hasher;
    let magic = b"quoin-journal-01";
    let mut hasher = SipHasher13::new();
    hasher.write(magic);
    hasher.write_u64(epoch);
    let checksum = hasher.finish();
    let mut file = [
        magic.as_slice(),
        &epoch.to_le_bytes(),
        &checksum.to_le_bytes(),
    ]
    .concat();
    for (number, body) in (1_u64..).zip(bodies) {
        let mut hasher = SipHasher13::new();
        hasher.write_u64(epoch);
        hasher.write_u64(number);
        hasher.write_u64(body.len() as u64);
        hasher.write(body);
        for field in [body.len() as u64, number, hasher.finish()] {
            file.extend_from_slice(&field.to_le_bytes());
        }
        file.extend_from_slice(body);
    }
    file.resize(100_000, 0);
    file
}

#[test]
fn files_of_the_first_version_are_read_and_their_damage_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let body = bytes_of(&record(&[Write::Set(b"key", b"value")]))[48..].to_vec();
    let path = folder.path().join(FILE_NAMES[0]);
    std::fs::write(&path, of_the_first_version(5, &vec![body.clone(); 4])).unwrap();
    assert_eq!(numbers(folder.path()), [1, 2, 3, 4]);
    flip(&path, 32 + (24 + body.len()) + 30);
    assert_eq!(numbers(folder.path()), [1]);
    let (text, is_damage) = gap(folder.path()).unwrap();
    assert!(
        is_damage && text.contains("2 commits up to number 4"),
        "{text}"
    );
}

#[test]
fn a_journal_that_begins_again_keeps_the_blocks_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, _) = with_records(folder.path(), 5, true);
    drop(journal);
    let journal = Journal::create(folder.path(), 6, 777, true).unwrap();
    assert_eq!(numbers(folder.path()), Vec::<u64>::new());
    journal.append(&mut record(&[Write::Clear(b"a")])).unwrap();
    assert_eq!(numbers(folder.path()), [6]);
    let allocated = journal.lock().allocated;
    assert_eq!(allocated, [INITIAL_BYTES; 2]);
}

#[test]
fn a_file_that_has_grown_gives_its_blocks_back_where_room_is_short() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(folder.path(), 1, 12_345, true).unwrap();
    let first = INITIAL_BYTES;
    let length = || folder.path().join(FILE_NAMES[0]).metadata().unwrap().len();
    journal.make_room(3 * first).unwrap();
    assert!(length() >= 3 * first);
    journal.switch(true).unwrap();
    journal.switch(false).unwrap();
    assert!(length() >= 3 * first);
    journal.switch(true).unwrap();
    journal.switch(true).unwrap();
    assert_eq!(length(), first);
    let mut large = record(&[Write::Set(b"k", &vec![7; 2 * first as usize])]);
    journal.append(&mut large).unwrap();
    assert_eq!(numbers(folder.path()), [1]);
}

#[test]
fn a_journal_that_is_set_aside_leaves_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    drop(with_records(folder.path(), 3, true));
    for number in 1..=2 {
        set_aside(folder.path()).unwrap();
        assert!(exists(folder.path()).unwrap());
        assert!(numbers(folder.path()).is_empty());
        let kept = folder.path().join(format!("JOURNAL.0.damaged-{number}"));
        assert!(kept.exists());
    }
}
