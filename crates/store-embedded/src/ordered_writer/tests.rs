use std::collections::BTreeMap;

use heed::EnvOpenOptions;

use super::*;
use crate::checksum::verified;
use crate::data_file::{DATA_FILE, DataFile};
use crate::table::{Rows, open_database};
use quoin_base::random::{Random, SeededRandom};

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;
type Row = (Vec<u8>, Vec<u8>);

/// A row with one of 3,000 keys. Many, few or less than one of its size fit in a page.
fn row(random: &SeededRandom) -> Row {
    let length = [0, 9, 90, 300, 1500, 9000][random.below(6) as usize];
    let mut key = random.below(3000).to_be_bytes().to_vec();
    key.resize(8 + (key[7] as usize % 60), b'k');
    (key, vec![random.next_u64() as u8; length])
}

/// The content of the file after some transactions, and what it should be. Each transaction clears
/// rows and then sets others in the order of `sort`.
fn written(format: RowFormat, seed: u64, sort: fn(&mut [Row])) -> [Contents; 2] {
    let random = SeededRandom::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let mut opening = EnvOpenOptions::new().read_txn_without_tls();
    opening.map_size(64 << 20);
    // SAFETY: nothing else opens it.
    #[allow(unsafe_code)]
    let environment = unsafe { opening.open(folder.path()).unwrap() };
    let rows = Rows::new(folder.path(), open_database(&environment).unwrap(), format);
    let mut expected = Contents::new();
    for _ in 0..20 {
        let mut transaction = environment.write_txn().unwrap();
        for _ in 0..random.below(100) {
            let (key, _) = row(&random);
            rows.delete(&mut transaction, &key).unwrap();
            expected.remove(&key);
        }
        let mut new: Vec<_> = (0..random.below(400)).map(|_| row(&random)).collect();
        sort(&mut new);
        let mut writer = rows.writer(&mut transaction).unwrap();
        for (key, value) in new {
            writer.put(&key, &value).unwrap();
            expected.insert(key, value);
        }
        drop(writer);
        transaction.commit().unwrap();
    }
    let mut found = Contents::new();
    let file = DataFile::open(&folder.path().join(DATA_FILE)).unwrap();
    file.check_pages(|key, stored| {
        let value = match format {
            RowFormat::Plain => stored,
            RowFormat::Checked => verified(key, stored).unwrap(),
        };
        found.insert(key.to_vec(), value.to_vec());
    })
    .unwrap();
    [found, expected]
}

#[test]
fn rows_in_order_are_all_there() {
    for seed in 0..4 {
        let [found, expected] = written(RowFormat::Checked, seed, |rows| rows.sort());
        assert!(found == expected, "seed {seed}");
    }
}

#[test]
fn rows_in_any_order_are_all_there() {
    for seed in 0..4 {
        let [found, expected] = written(RowFormat::Checked, seed, |_| ());
        assert!(found == expected, "seed {seed}");
    }
}

#[test]
fn rows_without_checksums_are_all_there() {
    let [found, expected] = written(RowFormat::Plain, 7, |rows| rows.sort());
    assert!(found == expected);
}
