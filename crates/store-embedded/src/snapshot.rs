//! Reads as of one moment.

use std::cell::RefCell;
use std::sync::MutexGuard;

use bytes::Bytes;

use super::EmbeddedStore;
use super::error::store_error;
use super::ranges::Before;
use super::resident::{Below, Disk, EVICTION_ROWS, Loaded, Resident};
use quoin_store::{
    Isolation, KeyValue, RangeQuery, ReadTransaction, SoonRead, StoreError, StoreFuture,
};

/// The rows that a transaction works on.
pub(super) enum Working<'s> {
    /// The store's own. Nothing else reads or writes them meanwhile.
    Held(MutexGuard<'s, Resident>),
    /// A copy.
    Copy(Box<Resident>),
}

impl Working<'_> {
    /// Whether the rows are the store's own. A copy is never read again.
    fn is_held(&self) -> bool {
        matches!(self, Working::Held(_))
    }
}

impl std::ops::Deref for Working<'_> {
    type Target = Resident;

    fn deref(&self) -> &Resident {
        match self {
            Working::Held(resident) => resident,
            Working::Copy(resident) => resident,
        }
    }
}

impl std::ops::DerefMut for Working<'_> {
    fn deref_mut(&mut self) -> &mut Resident {
        match self {
            Working::Held(resident) => resident,
            Working::Copy(resident) => resident,
        }
    }
}

/// Rows in memory, and a snapshot of the data file for those that memory lacks.
pub(super) struct Reader<'s> {
    pub(super) store: &'s EmbeddedStore,
    pub(super) resident: Working<'s>,
    disk: Disk,
    loaded: Loaded,
}

impl<'s> Reader<'s> {
    pub(super) fn new(store: &'s EmbeddedStore, resident: Working<'s>, disk: Disk) -> Self {
        Self {
            store,
            resident,
            disk,
            loaded: Loaded::default(),
        }
    }

    /// Reads rows that do not change, or that only the caller changes.
    pub(super) fn over(store: &'s EmbeddedStore, mut resident: Working<'s>) -> Self {
        drop(resident.take_cleared(store.shared.memory.drained()));
        Self::new(store, resident, Disk::when_needed(&store.environment))
    }

    /// Runs a read. If `takes` is set, memory keeps what was read from the data file, and `log`
    /// receives what else that changed.
    fn read<T>(
        &mut self,
        takes: bool,
        log: impl FnMut(Before),
        read: impl FnOnce(&Resident, Below<'_>, &mut Loaded) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let below = Below {
            rows: &self.store.rows,
            disk: &self.disk,
            is_taken: takes,
        };
        let result = read(&self.resident, below, &mut self.loaded);
        if !self.loaded.is_empty() {
            self.resident.take(&mut self.loaded, log);
        }
        result
    }

    /// The value of a key. See [`Self::read`].
    pub(super) fn value(
        &mut self,
        key: &[u8],
        takes: bool,
        log: impl FnMut(Before),
    ) -> Result<Option<Bytes>, StoreError> {
        self.read(takes, log, |resident, below, loaded| {
            resident.value(below, key, loaded)
        })
    }

    /// The rows of a range. See [`Self::read`].
    pub(super) fn page(
        &mut self,
        query: &RangeQuery<'_>,
        bytes_max: usize,
        takes: bool,
        log: impl FnMut(Before),
    ) -> Result<Vec<KeyValue>, StoreError> {
        self.read(takes, log, |resident, below, loaded| {
            resident.page(below, query, bytes_max, loaded)
        })
    }

    /// Ends the snapshot of the data file, and drops rows if memory has too many.
    pub(super) fn evict(&mut self, rows_max: usize) {
        self.disk.close();
        self.store.shared.memory.evict(&mut self.resident, rows_max);
    }
}

/// A snapshot of the embedded store.
pub(super) struct EmbeddedSnapshot<'s>(RefCell<Reader<'s>>);

impl<'s> EmbeddedSnapshot<'s> {
    /// A snapshot that may stay open. It delays nobody, but its rows stay in memory.
    ///
    /// # Errors
    /// If too many readers are open.
    pub(super) fn begin(store: &'s EmbeddedStore) -> Result<Self, StoreError> {
        let live = store.shared.memory.lock();
        let disk = Disk::now(&store.environment).map_err(store_error)?;
        let resident = Working::Copy(Box::new(live.clone()));
        Ok(Self(RefCell::new(Reader::new(store, resident, disk))))
    }

    /// A snapshot that delays all others while it is open.
    pub(super) fn begin_short(store: &'s EmbeddedStore) -> Self {
        Self::held(store, store.shared.memory.lock())
    }

    /// The same, unless it has to wait for another.
    pub(super) fn try_begin_short(store: &'s EmbeddedStore) -> Option<Self> {
        Some(Self::held(store, store.shared.memory.try_lock()?))
    }

    fn held(store: &'s EmbeddedStore, live: MutexGuard<'s, Resident>) -> Self {
        Self(RefCell::new(Reader::over(store, Working::Held(live))))
    }

    pub(super) fn value(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let mut reader = self.0.borrow_mut();
        let takes = reader.resident.is_held();
        reader.value(key, takes, |_| {})
    }

    fn page(&self, query: &RangeQuery<'_>, bytes_max: usize) -> Result<Vec<KeyValue>, StoreError> {
        let mut reader = self.0.borrow_mut();
        let takes = reader.resident.is_held();
        reader.page(query, bytes_max, takes, |_| {})
    }
}

impl Drop for EmbeddedSnapshot<'_> {
    fn drop(&mut self) {
        let reader = self.0.get_mut();
        if reader.resident.is_held() {
            reader.evict(EVICTION_ROWS);
        }
    }
}

impl ReadTransaction for EmbeddedSnapshot<'_> {
    fn get<'t>(&'t self, key: &[u8], _isolation: Isolation) -> StoreFuture<'t, Option<Bytes>> {
        StoreFuture::ready(self.value(key))
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        StoreFuture::ready(self.page(&query, usize::MAX))
    }

    fn get_page<'t>(
        &'t self,
        query: RangeQuery<'_>,
        bytes_max: usize,
    ) -> StoreFuture<'t, Vec<KeyValue>> {
        StoreFuture::ready(self.page(&query, bytes_max))
    }

    fn cache_value(&self, _key: &[u8], _value: &Bytes) {
        // It has read only from memory.
    }

    fn warm(&self, soon: &[SoonRead]) {
        self.0.borrow().resident.rows.warm(soon);
    }
}
