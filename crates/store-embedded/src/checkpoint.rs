//! Checkpoints let LMDB survive a crash of the operating system without a sync for each commit.
//!
//! Without syncs, pages and the meta page that names them reach the disk in any order. After a
//! power failure, the newest meta page may therefore name pages that are not on the disk. So the
//! data file is synced now and then, and its meta page is copied to another file: the
//! checkpoint. A read transaction keeps the pages of that state from being overwritten until the
//! next checkpoint is on the disk. When a store that was not closed cleanly is opened, the
//! checkpoint's meta page is put back. The store is then as it was at the checkpoint, and the
//! journal has the rest.
//!
//! Two files are written in turn. They exchange names when the new checkpoint is on the disk
//! ([`slots`]). So a checkpoint opens no file and needs no more room.
//!
//! If only the process crashes, the system's memory has what was written. But a failed sync is
//! reported only once: afterwards the pages that it could not write count as written, for the next
//! process too. A file system may also have been unmounted in between. So what was written since
//! the checkpoint is not trusted, and is written again.

mod slots;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use heed::{Env, RoTxn, WithoutTls};
use sha2::{Digest, Sha256};

use self::slots::{CHECKPOINT_NEW_FILE, Slots};
use super::create::sync_folder;
use super::data_file::DATA_FILE;
use super::error::{lacks_room, no_room};

pub(super) use self::slots::CHECKPOINT_FILE;

const MAGIC: &[u8; 16] = b"quoin-checkpoint";
const DIGEST_BYTES: usize = 32;
/// The id of the current boot of the operating system.
const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";
const BOOT_ID_BYTES: usize = 36;

/// The offset of the transaction's number in a meta page of LMDB: after the page's header (16
/// bytes), magic, version, address and size of the map (24), two databases (48 each) and the
/// last page's number (8).
const META_TRANSACTION_OFFSET: usize = 16 + 24 + 2 * 48 + 8;
/// The offset of the page size in a meta page of LMDB: at the beginning of the first database.
const META_PAGE_SIZE_OFFSET: usize = 16 + 24;

#[derive(Debug, thiserror::Error)]
enum CheckpointError {
    #[error("the meta page does not have the expected form")]
    MetaPage,
    #[error("the checkpoint file is damaged")]
    Damaged,
}

/// The id of the current boot. If it is `None`, there are no checkpoints.
pub(super) fn boot_id() -> Option<[u8; BOOT_ID_BYTES]> {
    let text = std::fs::read(BOOT_ID_FILE).ok()?;
    text.get(..BOOT_ID_BYTES)?.try_into().ok()
}

/// The checkpoints of one folder.
pub(super) struct Checkpoints {
    folder: PathBuf,
    boot_id: Option<[u8; BOOT_ID_BYTES]>,
    /// Opened at the first checkpoint.
    slots: Mutex<Option<Slots>>,
    /// Makes every checkpoint fail, as on a full disk.
    #[cfg(test)]
    pub(super) finds_no_room: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

/// The checkpoint that opening the store would find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointState {
    /// There is none.
    Absent,
    /// It is from the current boot of the system. Opening puts the data file back to it.
    Current,
    /// It is from an earlier boot. Opening puts the data file back to it.
    Earlier,
    /// It cannot be read, and the store will not open.
    Damaged,
}

/// The state that the data file was put back to.
pub(super) struct Restored {
    /// Whether the system has been restarted since. The journal may then lack what was not synced.
    pub(super) is_of_earlier_boot: bool,
    /// LMDB's number of the transaction that made this state.
    transaction: u64,
}

/// A state that is on the disk. LMDB does not overwrite its pages until this is dropped.
pub(super) struct Checkpoint {
    _pages: RoTxn<'static, WithoutTls>,
}

impl Checkpoints {
    pub(super) fn new(folder: &Path, boot_id: Option<[u8; BOOT_ID_BYTES]>) -> Self {
        Self {
            folder: folder.to_owned(),
            boot_id,
            slots: Mutex::new(None),
            #[cfg(test)]
            finds_no_room: std::sync::Arc::default(),
        }
    }

    /// Whether the boot id is known. Checkpoints need it.
    pub(super) fn are_possible(&self) -> bool {
        self.boot_id.is_some()
    }

    /// What [`Self::restore`] would find.
    pub(super) fn inspect(&self) -> io::Result<CheckpointState> {
        let file = match std::fs::read(self.folder.join(CHECKPOINT_FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(CheckpointState::Absent);
            }
            Err(error) => return Err(error),
        };
        let own = self.boot_id.as_ref().map(<[u8; BOOT_ID_BYTES]>::as_slice);
        Ok(match decode(&file) {
            None => CheckpointState::Damaged,
            Some((boot_id, _)) if Some(boot_id) == own => CheckpointState::Current,
            Some(_) => CheckpointState::Earlier,
        })
    }

    /// Puts the data file back to the checkpoint, if there is one. Call this before LMDB opens the
    /// data file.
    pub(super) fn restore(&self) -> io::Result<Option<Restored>> {
        let file = match std::fs::read(self.folder.join(CHECKPOINT_FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let (boot_id, page) = decode(&file).ok_or_else(damaged)?;
        let transaction = transaction_of(page).ok_or_else(damaged)?;
        let own = self.boot_id.as_ref().map(<[u8; BOOT_ID_BYTES]>::as_slice);
        let data = File::options()
            .write(true)
            .open(self.folder.join(DATA_FILE))?;
        for slot in 0..2u64 {
            let mut page = page.to_vec();
            let number = page.first_chunk_mut().ok_or_else(damaged)?;
            *number = slot.to_ne_bytes();
            data.write_all_at(&page, slot * page.len() as u64)?;
        }
        data.sync_all()?;
        Ok(Some(Restored {
            is_of_earlier_boot: Some(boot_id) != own,
            transaction,
        }))
    }

    /// Removes the checkpoint. Call this after the data file was synced.
    pub(super) fn remove(&self) -> io::Result<()> {
        for name in [CHECKPOINT_FILE, CHECKPOINT_NEW_FILE] {
            match std::fs::remove_file(self.folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        // Needed even if there was no checkpoint: an earlier removal may not be on the disk.
        self.sync_folder()
    }

    /// Syncs the current state of the data file and makes it the checkpoint. The previous one may
    /// then be dropped. Opens no file except the first time.
    pub(super) fn take(&self, environment: &Env<WithoutTls>) -> Result<Checkpoint, heed::Error> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = match &mut *slots {
            Some(slots) => slots,
            empty => {
                let data = environment.try_clone_inner_file()?;
                empty.insert(Slots::open(&self.folder, data).map_err(no_room)?)
            }
        };
        let (page, pages) = {
            // While this is open, nothing is committed. So the page and the snapshot are from the
            // same state.
            let exclusive = environment.write_txn()?;
            let last_transaction = exclusive.id() as u64 - 1;
            let page = read_meta_page(slots.data(), last_transaction)?;
            (page, environment.clone().static_read_txn()?)
        };
        environment.force_sync()?;
        #[cfg(test)]
        if self.finds_no_room.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(no_room(io::Error::from_raw_os_error(libc::ENOSPC)).into());
        }
        if let Some(boot_id) = &self.boot_id {
            slots.write(&encode(boot_id, &page)).map_err(no_room)?;
        }
        Ok(Checkpoint { _pages: pages })
    }

    /// The first checkpoint after a start. If there is no room for a new one, and the data file has
    /// just been put back to the last one, the last one is kept.
    pub(super) fn take_first(
        &self,
        environment: &Env<WithoutTls>,
        restored: Option<&Restored>,
    ) -> Result<Checkpoint, heed::Error> {
        let error = match self.take(environment) {
            Err(error) if lacks_room(&error) => error,
            taken => return taken,
        };
        let pages = environment.clone().static_read_txn()?;
        let is_present = |restored: &Restored| restored.transaction == pages.id() as u64;
        if !restored.is_some_and(is_present) {
            return Err(error);
        }
        // The previous process may have ended before it synced its last change of names.
        self.sync_folder()?;
        Ok(Checkpoint { _pages: pages })
    }

    fn sync_folder(&self) -> io::Result<()> {
        sync_folder(&self.folder)
    }
}

fn read_meta_page(data: &File, transaction: u64) -> Result<Vec<u8>, heed::Error> {
    let malformed = || io::Error::other(CheckpointError::MetaPage);
    let mut size = [0; 4];
    data.read_exact_at(&mut size, META_PAGE_SIZE_OFFSET as u64)?;
    let page_bytes = u32::from_ne_bytes(size);
    if !page_bytes.is_power_of_two() || page_bytes > 1 << 16 {
        return Err(malformed().into());
    }
    let mut page = vec![0; page_bytes as usize];
    // The meta pages are pages 0 and 1, written in turn.
    data.read_exact_at(&mut page, (transaction & 1) * u64::from(page_bytes))?;
    if transaction_of(&page) != Some(transaction) {
        return Err(malformed().into());
    }
    Ok(page)
}

/// The number of the transaction that wrote a meta page.
fn transaction_of(page: &[u8]) -> Option<u64> {
    let bytes = page.get(META_TRANSACTION_OFFSET..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

fn encode(boot_id: &[u8; BOOT_ID_BYTES], page: &[u8]) -> Vec<u8> {
    let mut bytes = [MAGIC, boot_id.as_slice(), page].concat();
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    bytes
}

fn decode(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (body, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST_BYTES)?)?;
    if Sha256::digest(body).as_slice() != digest {
        return None;
    }
    body.strip_prefix(MAGIC)?.split_at_checked(BOOT_ID_BYTES)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, CheckpointError::Damaged)
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::Ordering;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::sync::Syncer;
    use crate::{EmbeddedOptions, EmbeddedStore, FsyncPolicy};
    use quoin_base::random::{Random, SeededRandom};
    use quoin_store::{Isolation, RangeQuery, Store};

    const PAGE_BYTES: usize = 4096;

    fn now<F: Future>(future: F) -> F::Output {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the embedded store must answer at once"),
        }
    }

    fn open(folder: &Path, fsync: FsyncPolicy) -> EmbeddedStore {
        let options = EmbeddedOptions {
            fsync,
            map_bytes: 64 << 20,
            ..EmbeddedOptions::default()
        };
        EmbeddedStore::open(folder, options).unwrap()
    }

    /// A store that does not sync and makes no checkpoints, which would keep old pages.
    fn open_unsynced(folder: &Path) -> EmbeddedStore {
        let mut store = open(folder, FsyncPolicy::EverySecond);
        store.syncer = None;
        store
    }

    fn churn(store: &EmbeddedStore, random: &SeededRandom) {
        for _ in 0..50 {
            let transaction = store.begin_write().unwrap();
            for _ in 0..40 {
                let key = random.below(500).to_be_bytes();
                if random.below(3) == 0 {
                    transaction.clear(&key);
                } else {
                    let length = random.below(600) as usize;
                    transaction.set(&key, &vec![random.next_u64() as u8; length]);
                }
            }
            now(transaction.commit()).unwrap();
        }
    }

    fn rows(store: &EmbeddedStore) -> Vec<(Vec<u8>, Vec<u8>)> {
        let snapshot = store.begin_read().unwrap();
        let query = RangeQuery {
            begin: b"",
            end: &[0xff],
            limit: usize::MAX,
            reverse: false,
            isolation: Isolation::Snapshot,
        };
        now(snapshot.get_range(query))
            .unwrap()
            .into_iter()
            .map(|row| (row.key.to_vec(), row.value.to_vec()))
            .collect()
    }

    /// What a crash may leave: each page that changed since the checkpoint is new, old or neither,
    /// and the meta pages are the newest.
    fn crashed(old: &[u8], new: &[u8], random: &SeededRandom) -> Vec<u8> {
        let mut crashed = new.to_vec();
        for (number, page) in crashed.chunks_mut(PAGE_BYTES).enumerate().skip(2) {
            let begin = number * PAGE_BYTES;
            let before = old.get(begin..begin + PAGE_BYTES);
            if before == Some(&*page) {
                continue;
            }
            match (random.below(3), before) {
                (0, _) => {}
                (1, Some(before)) => page.copy_from_slice(before),
                _ => page.fill(0x5a),
            }
        }
        crashed
    }

    #[test]
    fn a_crash_of_the_system_goes_back_to_the_checkpoint() {
        for seed in 0..5 {
            let random = SeededRandom::new(seed);
            let folder = tempfile::tempdir().unwrap();
            let store = open_unsynced(folder.path());
            churn(&store, &random);
            // The checkpoint goes where the crashed copy will be.
            let after = tempfile::tempdir().unwrap();
            let checkpoints = Checkpoints::new(after.path(), Some([b'1'; BOOT_ID_BYTES]));
            store.drain_now();
            let checkpoint = checkpoints.take(&store.environment).unwrap();
            let expected = rows(&store);
            let old = std::fs::read(folder.path().join(DATA_FILE)).unwrap();
            churn(&store, &random);
            store.drain_now();
            assert_ne!(rows(&store), expected);

            let new = std::fs::read(folder.path().join(DATA_FILE)).unwrap();
            let image = crashed(&old, &new, &random);
            std::fs::write(after.path().join(DATA_FILE), image).unwrap();
            // Nothing of the journal was synced.
            std::fs::write(after.path().join("JOURNAL.0"), b"").unwrap();
            drop(checkpoint);

            let reopened = open(after.path(), FsyncPolicy::EverySecond);
            assert!(rows(&reopened) == expected, "seed {seed}");
            churn(&reopened, &random);
        }
    }

    /// Makes the folder's checkpoint one from an earlier boot.
    fn reboot(folder: &Path) {
        let path = folder.join(CHECKPOINT_FILE);
        let bytes = std::fs::read(&path).unwrap();
        let (_, page) = decode(&bytes).unwrap();
        std::fs::write(&path, encode(&[b'1'; BOOT_ID_BYTES], page)).unwrap();
    }

    /// Waits until a requested checkpoint is made, unless one was made just before.
    fn wait_for_checkpoint(store: &EmbeddedStore) {
        let path = store.folder.join(CHECKPOINT_FILE);
        let before = std::fs::read(&path).unwrap();
        let begun = std::time::Instant::now();
        // Only once: a second request could take effect at any time.
        store.wake_checkpoint();
        while std::fs::read(&path).unwrap() == before && begun.elapsed().as_secs() < 3 {
            std::thread::yield_now();
        }
    }

    fn copy_all_but_data(from: &Path, to: &Path) {
        for name in [CHECKPOINT_FILE, "JOURNAL.0", "JOURNAL.1"] {
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }

    #[test]
    fn pages_that_were_not_written_lose_nothing_where_there_is_a_journal() {
        for seed in 0..6 {
            let random = SeededRandom::new(seed);
            let folder = tempfile::tempdir().unwrap();
            let store = open(folder.path(), FsyncPolicy::Always);
            churn(&store, &random);
            if seed % 2 == 0 {
                // Another checkpoint in between, so that both journal files are in use.
                wait_for_checkpoint(&store);
            }
            // A checkpoint made from here on must not reach the folder that is opened later.
            let checkpoint = std::fs::read(folder.path().join(CHECKPOINT_FILE)).unwrap();
            let old = std::fs::read(folder.path().join(DATA_FILE)).unwrap();
            churn(&store, &random);
            let expected = rows(&store);

            let after = tempfile::tempdir().unwrap();
            copy_all_but_data(folder.path(), after.path());
            std::fs::write(after.path().join(CHECKPOINT_FILE), checkpoint).unwrap();
            wait_for_checkpoint(&store);
            let new = std::fs::read(folder.path().join(DATA_FILE)).unwrap();
            assert!(new != old);
            let image = crashed(&old, &new, &random);
            std::fs::write(after.path().join(DATA_FILE), image).unwrap();
            // Otherwise only the process ended, after a sync that failed.
            if seed % 3 != 0 {
                reboot(after.path());
            }

            let reopened = open(after.path(), FsyncPolicy::Always);
            assert!(rows(&reopened) == expected, "seed {seed}");
            churn(&reopened, &random);
            let expected = rows(&reopened);
            drop(reopened);
            assert!(rows(&open(after.path(), FsyncPolicy::EverySecond)) == expected);
        }
    }

    #[test]
    fn what_only_the_journal_has_when_the_process_dies_is_applied() {
        let random = SeededRandom::new(1);
        let folder = tempfile::tempdir().unwrap();
        // Without the thread that makes checkpoints: another checkpoint would not match the copy.
        let options = EmbeddedOptions {
            map_bytes: 64 << 20,
            ..EmbeddedOptions::default()
        };
        let (store, _work, _first) = EmbeddedStore::prepare(folder.path(), options).unwrap();
        churn(&store, &random);
        let before = std::fs::read(folder.path().join(DATA_FILE)).unwrap();
        churn(&store, &random);
        let expected = rows(&store);
        let after = tempfile::tempdir().unwrap();
        std::fs::write(after.path().join(DATA_FILE), before).unwrap();
        copy_all_but_data(folder.path(), after.path());
        assert!(rows(&open(after.path(), FsyncPolicy::Always)) == expected);
    }

    #[test]
    fn a_checkpoint_that_finds_no_room_loses_nothing_and_is_made_later() {
        let random = SeededRandom::new(3);
        let folder = tempfile::tempdir().unwrap();
        let options = EmbeddedOptions {
            map_bytes: 64 << 20,
            ..EmbeddedOptions::default()
        };
        let (mut store, work, first) = EmbeddedStore::prepare(folder.path(), options).unwrap();
        let finds_no_room = work.checkpoints.finds_no_room.clone();
        let full = |is_full| finds_no_room.store(is_full, Ordering::SeqCst);
        store.syncer = Some(Syncer::start(work, first).unwrap());
        churn(&store, &random);
        let old = std::fs::read(folder.path().join(DATA_FILE)).unwrap();
        full(true);
        // Failed checkpoints must not overwrite the journal since the last one that succeeded.
        for _ in 0..3 {
            let tried = || store.shared.checkpoints_without_room.load(Ordering::SeqCst);
            let before = tried();
            churn(&store, &random);
            store.wake_checkpoint();
            while tried() == before {
                store.shared.check().unwrap();
                std::thread::yield_now();
            }
        }
        let expected = rows(&store);

        let after = tempfile::tempdir().unwrap();
        let new = std::fs::read(folder.path().join(DATA_FILE)).unwrap();
        std::fs::write(after.path().join(DATA_FILE), crashed(&old, &new, &random)).unwrap();
        copy_all_but_data(folder.path(), after.path());
        reboot(after.path());
        assert!(rows(&open(after.path(), FsyncPolicy::Always)) == expected);

        let checkpoint = std::fs::read(folder.path().join(CHECKPOINT_FILE)).unwrap();
        full(false);
        while std::fs::read(folder.path().join(CHECKPOINT_FILE)).unwrap() == checkpoint {
            store.shared.check().unwrap();
            store.wake_checkpoint();
            std::thread::yield_now();
        }
        churn(&store, &random);
    }

    #[test]
    fn a_journal_with_a_record_missing_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), FsyncPolicy::Always);
        churn(&store, &SeededRandom::new(1));
        // A data file that lacks the records before the second.
        let after = tempfile::tempdir().unwrap();
        drop(open(after.path(), FsyncPolicy::Always));
        let bytes = std::fs::read(folder.path().join("JOURNAL.0")).unwrap();
        let first = u32::from_le_bytes(bytes[32..36].try_into().unwrap()) as usize;
        let mut without = bytes[..32].to_vec();
        without.extend_from_slice(&bytes[32 + 48 + first..]);
        without.resize(bytes.len(), 0);
        std::fs::write(after.path().join("JOURNAL.0"), without).unwrap();
        let options = EmbeddedOptions {
            map_bytes: 64 << 20,
            ..EmbeddedOptions::default()
        };
        let error = EmbeddedStore::open(after.path(), options).err().unwrap();
        assert!(error.to_string().contains("commit 1 is missing"), "{error}");
    }

    #[test]
    fn a_store_that_was_closed_cleanly_goes_back_to_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoints = Checkpoints::new(folder.path(), boot_id());
        let store = open(folder.path(), FsyncPolicy::Always);
        let checkpoint = checkpoints.take(&store.environment).unwrap();
        churn(&store, &SeededRandom::new(1));
        let expected = rows(&store);
        drop(checkpoint);
        drop(store);
        assert!(checkpoints.restore().unwrap().is_none());
        assert!(rows(&open(folder.path(), FsyncPolicy::Always)) == expected);
    }

    #[test]
    fn an_orderly_end_leaves_no_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), FsyncPolicy::EverySecond);
        assert!(folder.path().join(CHECKPOINT_FILE).exists());
        drop(store);
        assert!(!folder.path().join(CHECKPOINT_FILE).exists());
    }

    #[test]
    fn an_orderly_end_with_always_leaves_no_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), FsyncPolicy::EverySecond);
        let killed = tempfile::tempdir().unwrap();
        copy_all_but_data(folder.path(), killed.path());
        drop(store);
        copy_all_but_data(killed.path(), folder.path());
        drop(open(folder.path(), FsyncPolicy::Always));
        assert!(!folder.path().join(CHECKPOINT_FILE).exists());
    }

    /// Marks the child process in which the test runs, because the test uses up all descriptors.
    const WITHOUT_DESCRIPTORS: &str = "QUOIN_TEST_WITHOUT_DESCRIPTORS";

    #[test]
    fn checkpoints_are_made_where_the_process_has_no_more_descriptors() {
        if std::env::var_os(WITHOUT_DESCRIPTORS).is_none() {
            let name = "checkpoints_are_made_where_the_process_has_no_more_descriptors";
            let run = std::process::Command::new(std::env::current_exe().unwrap())
                .arg(name)
                .env(WITHOUT_DESCRIPTORS, "1")
                .output()
                .unwrap();
            let output = String::from_utf8_lossy(&run.stdout).into_owned();
            assert!(
                run.status.success() && output.contains("1 passed"),
                "{output}"
            );
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), FsyncPolicy::Always);
        churn(&store, &SeededRandom::new(1));
        let path = folder.path().join(CHECKPOINT_FILE);
        let checkpoint = File::open(&path).unwrap();
        let content = || {
            let mut bytes = vec![0; checkpoint.metadata().unwrap().len() as usize];
            checkpoint.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        let before = content();
        let mut taken = Vec::new();
        let is_used_up = loop {
            match File::open("/dev/null") {
                Ok(file) => taken.push(file),
                Err(error) => break error.raw_os_error() == Some(libc::EMFILE),
            }
        };
        assert!(is_used_up);
        // Takes two checkpoints, because the two files are written in turn.
        let begun = std::time::Instant::now();
        while content() == before {
            assert!(begun.elapsed().as_secs() < 20);
            churn(&store, &SeededRandom::new(2));
            store.wake_checkpoint();
        }
        store.shared.check().unwrap();
        drop(taken);
        assert!(rows(&store).len() > 100);
    }

    #[test]
    fn a_damaged_checkpoint_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = encode(&[b'1'; BOOT_ID_BYTES], &[0; PAGE_BYTES]);
        bytes[100] ^= 1;
        std::fs::write(folder.path().join(CHECKPOINT_FILE), bytes).unwrap();
        let checkpoints = Checkpoints::new(folder.path(), boot_id());
        assert!(checkpoints.restore().is_err());
    }
}
