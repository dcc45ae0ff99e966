//! A store under test, with helpers that keep the cases short.

use std::cell::RefCell;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use quoin_store::{
    Isolation, KeyValue, RangeQuery, ReadTransaction, Store, StoreError, Transaction, Watch,
};

thread_local! {
    static RUNTIME: RefCell<tokio::runtime::Runtime> = RefCell::new(
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap(),
    );
}

/// Waits on this thread.
pub fn wait<F: Future>(future: F) -> F::Output {
    RUNTIME.with_borrow(|runtime| runtime.block_on(future))
}

/// A store and a part of its keys that no other test uses.
pub struct Subject {
    pub store: Box<dyn Store>,
    pub prefix: Vec<u8>,
    /// Whether the store outlives the test, which must then remove its keys.
    pub is_shared: bool,
    /// Removed when the test ends.
    pub _folder: Option<tempfile::TempDir>,
}

impl Drop for Subject {
    fn drop(&mut self) {
        if !self.is_shared || std::thread::panicking() {
            return;
        }
        if let Ok(transaction) = self.store.begin_write() {
            transaction.clear_range(&self.key(b""), &self.end());
            let _ = wait(transaction.commit());
        }
    }
}

impl Subject {
    /// The full key of a short one.
    pub fn key(&self, key: impl AsRef<[u8]>) -> Vec<u8> {
        [self.prefix.as_slice(), key.as_ref()].concat()
    }

    /// After every key of this test.
    pub fn end(&self) -> Vec<u8> {
        [self.prefix.as_slice(), &[0xff; 2]].concat()
    }

    pub fn has_other_writers(&self) -> bool {
        self.store.capabilities().has_other_writers
    }

    pub fn write(&self) -> Writer<'_> {
        Writer {
            subject: self,
            inner: self.store.begin_write().unwrap(),
        }
    }

    pub fn read(&self) -> Reader<'_> {
        Reader {
            subject: self,
            inner: self.store.begin_read().unwrap(),
        }
    }

    /// Commits the writes of `write`. Nothing else writes at the same time.
    pub fn commit(&self, write: impl FnOnce(&Writer<'_>)) {
        let writer = self.write();
        write(&writer);
        writer.commit().unwrap();
    }

    pub fn get(&self, key: &str) -> Option<Bytes> {
        self.read().get(key)
    }

    pub fn number(&self, key: &str) -> Option<i64> {
        self.get(key).map(|bytes| number(&bytes))
    }

    /// All rows as text, `key=value` and a blank between.
    pub fn all(&self) -> String {
        self.read().rows("", None, usize::MAX >> 1, false)
    }

    pub fn watch(&self, key: &str) -> (Option<Bytes>, Watch) {
        let watched = wait(self.store.watch(&self.key(key))).unwrap();
        (watched.value, watched.changed)
    }
}

pub fn number(bytes: &[u8]) -> i64 {
    i64::from_le_bytes(bytes.try_into().unwrap())
}

/// Whether the watch fires now or soon.
pub fn fires(watch: &mut Watch) -> bool {
    wait(async { tokio::time::timeout(Duration::from_secs(5), watch).await }).is_ok()
}

/// Whether the watch stays quiet for a while.
pub fn is_quiet(watch: &mut Watch) -> bool {
    wait(async { tokio::time::timeout(Duration::from_millis(50), watch).await }).is_err()
}

pub struct Reader<'s> {
    pub subject: &'s Subject,
    pub inner: Box<dyn ReadTransaction + 's>,
}

impl Reader<'_> {
    pub fn get(&self, key: &str) -> Option<Bytes> {
        wait(self.inner.get(&self.subject.key(key), Isolation::Snapshot)).unwrap()
    }

    pub fn rows(&self, begin: &str, end: Option<&str>, limit: usize, reverse: bool) -> String {
        let (begin, end) = bounds(self.subject, begin, end);
        let query = RangeQuery {
            begin: &begin,
            end: &end,
            limit,
            reverse,
            isolation: Isolation::Snapshot,
        };
        shown(self.subject, wait(self.inner.get_range(query)).unwrap())
    }
}

pub struct Writer<'s> {
    pub subject: &'s Subject,
    pub inner: Box<dyn Transaction + 's>,
}

impl Writer<'_> {
    pub fn set(&self, key: &str, value: impl AsRef<[u8]>) {
        self.inner.set(&self.subject.key(key), value.as_ref());
    }

    pub fn clear(&self, key: &str) {
        self.inner.clear(&self.subject.key(key));
    }

    pub fn clear_range(&self, begin: &str, end: &str) {
        self.inner
            .clear_range(&self.subject.key(begin), &self.subject.key(end));
    }

    pub fn add(&self, key: &str, delta: i64) {
        self.inner.atomic_add(&self.subject.key(key), delta);
    }

    pub fn min(&self, key: &str, value: u64) {
        self.inner.atomic_min(&self.subject.key(key), value);
    }

    pub fn conflict(&self, begin: &str, end: &str) {
        self.inner
            .add_read_conflict_range(&self.subject.key(begin), &self.subject.key(end));
    }

    pub fn get(&self, key: &str) -> Option<Bytes> {
        self.get_as(key, Isolation::Serializable)
    }

    pub fn get_as(&self, key: &str, isolation: Isolation) -> Option<Bytes> {
        wait(self.inner.get(&self.subject.key(key), isolation)).unwrap()
    }

    pub fn number(&self, key: &str) -> Option<i64> {
        self.get(key).map(|bytes| number(&bytes))
    }

    pub fn rows(&self, begin: &str, end: Option<&str>, limit: usize, reverse: bool) -> String {
        let (begin, end) = bounds(self.subject, begin, end);
        let query = RangeQuery {
            begin: &begin,
            end: &end,
            limit,
            reverse,
            isolation: Isolation::Serializable,
        };
        shown(self.subject, wait(self.inner.get_range(query)).unwrap())
    }

    pub fn all(&self) -> String {
        self.rows("", None, usize::MAX >> 1, false)
    }

    pub fn commit(self) -> Result<(), StoreError> {
        wait(self.inner.commit())
    }
}

fn bounds(subject: &Subject, begin: &str, end: Option<&str>) -> (Vec<u8>, Vec<u8>) {
    let end = end.map_or_else(|| subject.end(), |end| subject.key(end));
    (subject.key(begin), end)
}

fn shown(subject: &Subject, rows: Vec<KeyValue>) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|row| {
            let key = row.key.strip_prefix(subject.prefix.as_slice()).unwrap();
            let (key, value) = (
                String::from_utf8_lossy(key),
                String::from_utf8_lossy(&row.value),
            );
            format!("{key}={value}")
        })
        .collect();
    rows.join(" ")
}
