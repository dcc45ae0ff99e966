//! Reads of one moment.

use std::cell::RefCell;
use std::sync::MutexGuard;

use bytes::Bytes;

use super::EmbeddedStore;
use super::error::store_error;
use super::resident::{Below, Disk, EVICTION_ROWS, Loaded, Resident};
use quoin_store::{Isolation, KeyValue, RangeQuery, ReadTransaction, StoreError, StoreFuture};

/// The rows that a transaction works on.
pub(super) enum Working<'s> {
    /// Those of the store. Nobody else reads or writes meanwhile.
    Held(MutexGuard<'s, Resident>),
    /// A copy.
    Copy(Box<Resident>),
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

/// A snapshot of the embedded store.
pub(super) struct EmbeddedSnapshot<'s> {
    store: &'s EmbeddedStore,
    // Dropped first, because rows may be evicted only then.
    disk: Option<Disk>,
    resident: RefCell<Working<'s>>,
    loaded: RefCell<Loaded>,
}

impl<'s> EmbeddedSnapshot<'s> {
    /// A snapshot that may stay open. It delays nobody, but keeps the rows in memory that it has.
    ///
    /// # Errors
    /// If too many readers are open.
    pub(super) fn begin(store: &'s EmbeddedStore) -> Result<Self, StoreError> {
        let live = store.shared.memory.lock();
        let disk = Disk::now(&store.environment).map_err(store_error)?;
        let resident = Working::Copy(Box::new(live.clone()));
        Ok(Self::new(store, disk, resident))
    }

    /// A snapshot that delays all others while it is open.
    pub(super) fn begin_short(store: &'s EmbeddedStore) -> Self {
        Self::held(store, store.shared.memory.lock())
    }

    /// The same, unless it has to wait for another.
    pub(super) fn try_begin_short(store: &'s EmbeddedStore) -> Option<Self> {
        Some(Self::held(store, store.shared.memory.try_lock()?))
    }

    fn held(store: &'s EmbeddedStore, mut live: MutexGuard<'s, Resident>) -> Self {
        live.note_drained(store.shared.memory.drained());
        let disk = Disk::when_needed(&store.environment);
        Self::new(store, disk, Working::Held(live))
    }

    fn new(store: &'s EmbeddedStore, disk: Disk, resident: Working<'s>) -> Self {
        Self {
            store,
            disk: Some(disk),
            resident: RefCell::new(resident),
            loaded: RefCell::default(),
        }
    }

    /// Reads, and lets memory take what was read from the data file. Nobody reads a copy a second time.
    fn read<T>(
        &self,
        read: impl FnOnce(&Resident, Below<'_>, &mut Loaded) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let Some(disk) = &self.disk else {
            return Ok(None);
        };
        let below = Below {
            rows: &self.store.rows,
            disk,
            is_taken: matches!(&*self.resident.borrow(), Working::Held(_)),
        };
        let mut loaded = self.loaded.borrow_mut();
        let result = read(&self.resident.borrow(), below, &mut loaded);
        if !loaded.is_empty() {
            self.resident.borrow_mut().take(&mut loaded, |_| {});
        }
        result.map(Some)
    }

    pub(super) fn value(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let read = self.read(|resident, below, loaded| resident.value(below, key, loaded));
        Ok(read?.flatten())
    }

    fn page(&self, query: &RangeQuery<'_>, bytes_max: usize) -> Result<Vec<KeyValue>, StoreError> {
        let read =
            self.read(|resident, below, loaded| resident.page(below, query, bytes_max, loaded));
        Ok(read?.unwrap_or_default())
    }
}

impl Drop for EmbeddedSnapshot<'_> {
    fn drop(&mut self) {
        self.disk = None;
        let memory = &self.store.shared.memory;
        if let Working::Held(resident) = self.resident.get_mut() {
            memory.evict(resident, EVICTION_ROWS);
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
        // What it has read is in memory.
    }
}
