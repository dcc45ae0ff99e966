use std::collections::BTreeMap;

use heed::types::Bytes as Raw;
use heed::{Database, Env, EnvOpenOptions, WithoutTls};

use super::*;
use crate::bulk::write_data_file;
use crate::checksum::verified;
use crate::table::open_database;
use quoin_base::random::{Random, SeededRandom};

const MAP_BYTES: usize = 64 << 20;
const PAGE_BYTES: usize = 4096;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn some_rows(count: u64) -> Contents {
    let random = SeededRandom::new(1);
    (0..count)
        .map(|number| {
            let length = [0, 9, 90, 300, 5000][random.below(5) as usize];
            (number.to_be_bytes().to_vec(), vec![number as u8; length])
        })
        .collect()
}

/// A data file with some rows.
fn written(folder: &Path, rows: &Contents) -> std::path::PathBuf {
    let path = folder.join("file");
    let rows = rows.iter().map(Ok::<_, io::Error>);
    write_data_file(&path, MAP_BYTES, 5, rows, &mut |_| {}).unwrap();
    path
}

fn lmdb(folder: &Path) -> (Env<WithoutTls>, Database<'static, Raw, Raw>) {
    let mut opening = EnvOpenOptions::new().read_txn_without_tls();
    opening.map_size(MAP_BYTES);
    // SAFETY: nothing else opens it.
    #[allow(unsafe_code)]
    let environment = unsafe { opening.open(folder).unwrap() };
    let database = open_database(&environment).unwrap();
    (environment, database)
}

/// What is read from a file: rows with correct checksums, and the number of other rows.
fn read(path: &Path) -> Result<(Contents, u64), DataFileError> {
    let (mut rows, mut damaged) = (Contents::new(), 0);
    DataFile::open(path)?.check_pages(|key, stored| match verified(key, stored) {
        Some(value) => {
            rows.insert(key.to_vec(), value.to_vec());
        }
        None => damaged += 1,
    })?;
    Ok((rows, damaged))
}

fn without_own(mut rows: Contents) -> Contents {
    rows.retain(|key, _| !key.starts_with(b"\xff\xff"));
    rows
}

#[test]
fn all_rows_are_read_without_lmdb() {
    let folder = tempfile::tempdir().unwrap();
    for count in [0, 1, 3000] {
        let path = written(folder.path(), &some_rows(count));
        let (rows, damaged) = read(&path).unwrap();
        assert_eq!(damaged, 0);
        assert_eq!(rows.len() as u64, count + 2);
        assert!(without_own(rows) == some_rows(count));
        let last = DataFile::open(&path).unwrap().last_key().unwrap().unwrap();
        assert_eq!(last, b"\xff\xffquoin/journal-applied");
    }
}

#[test]
fn a_file_that_lmdb_has_changed_often_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let random = SeededRandom::new(3);
    let (environment, database) = lmdb(folder.path());
    let mut expected = Contents::new();
    let path = folder.path().join(DATA_FILE);
    for round in 0..60_u8 {
        let mut transaction = environment.write_txn().unwrap();
        for _ in 0..60 {
            let key = random.below(900).to_be_bytes();
            if random.below(3) == 0 {
                database.delete(&mut transaction, &key).unwrap();
                expected.remove(key.as_slice());
            } else {
                let value = vec![round; random.below(9000) as usize];
                database.put(&mut transaction, &key, &value).unwrap();
                expected.insert(key.to_vec(), value);
            }
        }
        transaction.commit().unwrap();
        let mut rows = Contents::new();
        let data = DataFile::open(&path).unwrap();
        data.check_pages(|key, value| {
            rows.insert(key.to_vec(), value.to_vec());
        })
        .unwrap();
        assert!(rows == expected, "round {round}");
    }
}

#[test]
fn a_file_that_was_cut_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &some_rows(500));
    let whole = std::fs::read(&path).unwrap();
    for length in [
        1,
        100,
        PAGE_BYTES,
        PAGE_BYTES * 2 + 7,
        whole.len() / 2,
        whole.len() - 1,
    ] {
        std::fs::write(&path, &whole[..length]).unwrap();
        let checked = DataFile::open(&path).and_then(|data| data.check_length());
        assert!(checked.is_err(), "{length}");
    }
    std::fs::write(&path, b"").unwrap();
    assert!(matches!(DataFile::open(&path), Err(DataFileError::Empty)));
}

#[test]
fn a_file_may_end_before_pages_that_are_free() {
    let folder = tempfile::tempdir().unwrap();
    let (environment, database) = lmdb(folder.path());
    let path = folder.path().join(DATA_FILE);
    let mut is_shorter = false;
    for round in 1..40_u8 {
        let mut transaction = environment.write_txn().unwrap();
        database.put(&mut transaction, &[round], b"value").unwrap();
        // These pages are never written.
        for key in 0..round {
            let key = [0, key];
            database.put(&mut transaction, &key, &[1; 20_000]).unwrap();
        }
        for key in 0..round {
            database.delete(&mut transaction, &[0, key]).unwrap();
        }
        transaction.commit().unwrap();
        let data = DataFile::open(&path).unwrap();
        is_shorter |= data.bytes < (data.meta.last_page + 1) * data.meta.page_bytes;
        data.check_length().unwrap();
    }
    assert!(is_shorter);
    // A page in use must not be missing.
    let cut = std::fs::read(&path).unwrap();
    std::fs::write(folder.path().join("cut"), &cut[..2 * PAGE_BYTES]).unwrap();
    let cut = DataFile::open(&folder.path().join("cut")).unwrap();
    assert!(cut.check_length().is_err());
}

#[test]
fn no_flipped_bit_makes_another_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &some_rows(400));
    let whole = std::fs::read(&path).unwrap();
    let expected = read(&path).unwrap().0;
    let random = SeededRandom::new(4);
    let (mut unnoticed, mut noticed) = (0, 0);
    for _ in 0..1500 {
        let bit = random.below(whole.len() as u64 * 8) as usize;
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &damaged).unwrap();
        match read(&path) {
            Err(_) => noticed += 1,
            Ok((rows, count)) => {
                assert!(
                    rows.iter().all(|row| expected.get(row.0) == Some(row.1)),
                    "bit {bit}"
                );
                assert_eq!(
                    rows.len() as u64 + count,
                    expected.len() as u64,
                    "bit {bit}"
                );
                match count {
                    0 => unnoticed += 1,
                    _ => noticed += 1,
                }
            }
        }
    }
    // Flips that went unnoticed are in bytes that nothing uses.
    assert!(noticed > unnoticed, "{noticed} {unnoticed}");
}
