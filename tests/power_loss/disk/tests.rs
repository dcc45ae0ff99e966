use rand::SeedableRng;

use super::*;

const FILE: u64 = 1_000_000_007;
const OTHER: u64 = 1_000_000_009;

fn disk() -> Disk {
    let root = tempfile::tempdir().unwrap();
    Disk::of_folder(root.path()).unwrap()
}

fn folder(disk: &Disk) -> u64 {
    *disk.folders.keys().next().unwrap()
}

fn path(disk: &Disk, name: &str) -> Vec<u8> {
    disk.root.join(name).to_str().unwrap().as_bytes().to_vec()
}

fn create(disk: &mut Disk, name: &str, file: u64) {
    let name = path(disk, name);
    let entry = Entry {
        kind: entry::CREATE,
        file,
        name: &name,
        ..Entry::default()
    };
    disk.apply(&entry).unwrap();
}

fn write(disk: &mut Disk, at: u64, data: &[u8]) {
    let entry = Entry {
        kind: entry::WRITE,
        file: FILE,
        a: at,
        b: data.len() as u64,
        data,
        ..Entry::default()
    };
    disk.apply(&entry).unwrap();
}

fn sync(disk: &mut Disk, file: u64) {
    for kind in [entry::SYNC_BEGIN, entry::SYNC_END] {
        let entry = Entry {
            kind,
            file,
            ..Entry::default()
        };
        disk.apply(&entry).unwrap();
    }
}

/// What many power losses leave under a name.
fn left(disk: &Disk, name: &str) -> BTreeSet<Option<Vec<u8>>> {
    let mut random = StdRng::seed_from_u64(1);
    (0..300)
        .map(|_| {
            disk.after_power_loss(&mut random)
                .remove(Path::new(name))
                .flatten()
        })
        .collect()
}

/// A disk with an empty file that has its name for certain.
fn disk_with_file() -> Disk {
    let mut disk = disk();
    create(&mut disk, "file", FILE);
    let root = folder(&disk);
    sync(&mut disk, root);
    disk
}

#[test]
fn what_was_synced_is_always_there() {
    let mut disk = disk_with_file();
    write(&mut disk, 3, &[7; 1000]);
    sync(&mut disk, FILE);
    let expected = [vec![0; 3], vec![7; 1000]].concat();
    assert_eq!(left(&disk, "file"), BTreeSet::from([Some(expected)]));
}

#[test]
fn of_what_was_not_synced_each_sector_may_be_there() {
    let mut disk = disk_with_file();
    write(&mut disk, 0, &[1; 1024]);
    sync(&mut disk, FILE);
    write(&mut disk, 0, &[2; 1024]);
    let sectors: BTreeSet<(u8, u8)> = left(&disk, "file")
        .into_iter()
        .map(|bytes| {
            let bytes = bytes.unwrap();
            assert_eq!(bytes[..512], vec![bytes[0]; 512]);
            assert_eq!(bytes[512..], vec![bytes[512]; 512]);
            (bytes[0], bytes[512])
        })
        .collect();
    assert_eq!(sectors, BTreeSet::from([(1, 1), (1, 2), (2, 1), (2, 2)]));
}

#[test]
fn a_write_that_came_while_a_sync_was_on_its_way_may_be_lost() {
    let mut disk = disk_with_file();
    write(&mut disk, 0, b"before");
    let begin = Entry {
        kind: entry::SYNC_BEGIN,
        file: FILE,
        ..Entry::default()
    };
    disk.apply(&begin).unwrap();
    write(&mut disk, 0, b"during");
    let end = Entry {
        kind: entry::SYNC_END,
        ..begin
    };
    disk.apply(&end).unwrap();
    let expected = [b"before", b"during"].map(|bytes| Some(bytes.to_vec()));
    assert_eq!(left(&disk, "file"), BTreeSet::from(expected));
}

#[test]
fn a_length_may_go_out_without_the_bytes_and_they_without_it() {
    let mut disk = disk_with_file();
    write(&mut disk, 0, b"data");
    let left = left(&disk, "file");
    for bytes in [b"".as_slice(), b"data", &[0; 4], &[0xa5; 4]] {
        assert!(
            left.contains(&Some(bytes.to_vec())),
            "{bytes:?} in {left:?}"
        );
    }
}

#[test]
fn a_name_is_certain_when_its_folder_was_synced() {
    let mut disk = disk();
    create(&mut disk, "file", FILE);
    sync(&mut disk, FILE);
    let both = BTreeSet::from([None, Some(Vec::new())]);
    assert_eq!(left(&disk, "file"), both);
    let root = folder(&disk);
    sync(&mut disk, root);
    assert_eq!(left(&disk, "file"), BTreeSet::from([Some(Vec::new())]));
}

#[test]
fn a_rename_happens_as_a_whole_or_not() {
    let mut disk = disk_with_file();
    write(&mut disk, 0, b"new");
    sync(&mut disk, FILE);
    create(&mut disk, "old", OTHER);
    let root = folder(&disk);
    sync(&mut disk, root);
    let (from, to) = (path(&disk, "file"), path(&disk, "old"));
    let entry = Entry {
        kind: entry::RENAME,
        file: FILE,
        name: &from,
        data: &to,
        ..Entry::default()
    };
    disk.apply(&entry).unwrap();
    let mut random = StdRng::seed_from_u64(1);
    let images: BTreeSet<Vec<(PathBuf, Option<Vec<u8>>)>> = (0..100)
        .map(|_| disk.after_power_loss(&mut random).into_iter().collect())
        .collect();
    let before = vec![
        ("file".into(), Some(b"new".to_vec())),
        ("old".into(), Some(Vec::new())),
    ];
    let after = vec![("old".into(), Some(b"new".to_vec()))];
    assert_eq!(images, BTreeSet::from([before, after]));
}

#[test]
fn an_exchange_of_names_happens_as_a_whole_or_not() {
    let mut disk = disk_with_file();
    write(&mut disk, 0, b"new");
    sync(&mut disk, FILE);
    create(&mut disk, "old", OTHER);
    let root = folder(&disk);
    sync(&mut disk, root);
    let (from, to) = (path(&disk, "file"), path(&disk, "old"));
    let entry = Entry {
        kind: entry::EXCHANGE,
        file: FILE,
        a: OTHER,
        name: &from,
        data: &to,
        ..Entry::default()
    };
    disk.apply(&entry).unwrap();
    let mut random = StdRng::seed_from_u64(1);
    let images: BTreeSet<Vec<(PathBuf, Option<Vec<u8>>)>> = (0..100)
        .map(|_| disk.after_power_loss(&mut random).into_iter().collect())
        .collect();
    let image = |file: &[u8], old: &[u8]| {
        vec![
            ("file".into(), Some(file.to_vec())),
            ("old".into(), Some(old.to_vec())),
        ]
    };
    assert_eq!(
        images,
        BTreeSet::from([image(b"new", b""), image(b"", b"new")])
    );
}

#[test]
fn what_nobody_told_the_disk_is_found_out_and_taken_over() {
    let root = tempfile::tempdir().unwrap();
    for name in ["same", "other", "gone"] {
        std::fs::write(root.path().join(name), [1; 2000]).unwrap();
    }
    let mut disk = Disk::of_folder(root.path()).unwrap();
    assert_eq!(disk.take_over().unwrap(), BTreeSet::new());
    std::fs::write(root.path().join("other"), [2; 700]).unwrap();
    std::fs::write(root.path().join("new"), b"new").unwrap();
    std::fs::remove_file(root.path().join("gone")).unwrap();
    let found = disk.take_over().unwrap();
    assert_eq!(
        found,
        ["gone", "new", "other"].iter().map(Into::into).collect()
    );
    assert_eq!(disk.take_over().unwrap(), BTreeSet::new());
}
