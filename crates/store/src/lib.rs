//! The transactional store below everything: an ordered map of byte strings with serializable
//! transactions, after FoundationDB's model ([`Store`], [`Transaction`]).
//!
//! The crates `quoin-store-embedded` (one machine) and `quoin-store-fdb` (a cluster) implement it.
//! The feature `testing` has [`faults`]: a store that fails on purpose, and one that behaves like a
//! cluster. Code for a transaction's own reads and writes that both kinds need is here.
//!
//! The crate knows nothing of the content: keys and values are bytes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use quoin_base::counter::Durations;
use quoin_base::decode_error::DecodeError;

#[cfg(feature = "testing")]
pub mod faults;
pub mod page;
pub mod read_your_writes;
pub mod rules;
pub mod savepoints;

pub use rules::key_after;
pub use savepoints::Savepoint;

/// Why an operation of the store failed. Cheap to clone, because every client of a batch gets the failure.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Another transaction changed what this one read. Run it again. Nothing was applied.
    #[error("transaction conflicts with another")]
    Conflict,
    /// The commit was sent, and whether it was applied is not known.
    #[error("result of the commit is not known")]
    UnknownResult,
    /// The transaction is larger than the store accepts. Nothing was applied.
    #[error("transaction is too large")]
    TooLarge,
    /// The transaction's read version is too old. Run it again. Nothing was applied.
    #[error("transaction is too old")]
    TooOld,
    /// The store is overloaded. Try again later. Nothing was applied.
    #[error("store is busy: {0}")]
    Busy(Arc<dyn std::error::Error + Send + Sync>),
    /// The cluster does not respond at present. Nothing was applied.
    #[error("store cannot be reached: {0}")]
    Unreachable(Arc<dyn std::error::Error + Send + Sync>),
    /// There is no room on the disk, or the data file has reached its maximum size. Nothing was
    /// applied.
    #[error("store has no room: {0}")]
    NoRoom(Arc<dyn std::error::Error + Send + Sync>),
    /// The store cannot do this at present. Nothing was applied.
    #[error("store is not available: {0}")]
    Unavailable(Arc<dyn std::error::Error + Send + Sync>),
    /// The store is broken until the server is restarted.
    #[error("store failed: {0}")]
    Fatal(Arc<dyn std::error::Error + Send + Sync>),
    /// The bytes of a row differ from what was written. Other rows can be read. Nothing was
    /// applied.
    #[error("store is damaged: {0}")]
    Damaged(Arc<dyn std::error::Error + Send + Sync>),
    /// Stored bytes do not follow Quoin's layout.
    #[error("stored bytes are not of this layout: {0}")]
    Corrupt(&'static str),
}

impl From<DecodeError> for StoreError {
    fn from(DecodeError(what): DecodeError) -> Self {
        StoreError::Corrupt(what)
    }
}

impl StoreError {
    /// Whether only some rows are affected. Operations on other rows can continue.
    pub fn is_about_rows(&self) -> bool {
        matches!(self, StoreError::Damaged(_) | StoreError::Corrupt(_))
    }

    /// Whether the same transaction may succeed if it is run again from its start.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            StoreError::Conflict | StoreError::TooOld | StoreError::Busy(_)
        )
    }
}

/// One row of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The row's whole key.
    pub key: Bytes,
    /// The row's value.
    pub value: Bytes,
}

/// Whether a read takes part in conflict detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// A concurrent write of what was read makes this transaction conflict.
    Serializable,
    /// The read sees the transaction's snapshot (and its own writes) but never conflicts.
    Snapshot,
}

/// A range read: keys in `begin..end`.
#[derive(Debug, Clone, Copy)]
pub struct RangeQuery<'q> {
    /// First key that belongs to the range.
    pub begin: &'q [u8],
    /// First key after the range.
    pub end: &'q [u8],
    /// Most rows to return.
    pub limit: usize,
    /// Read from the end of the range backwards.
    pub reverse: bool,
    /// Whether this read can conflict. A serializable read conflicts on what it covered: the range
    /// up to the last returned row if the limit was reached, otherwise the whole range.
    pub isolation: Isolation,
}

/// The result of a read or a commit. It is ready at once (embedded store, no allocation) or after a round
/// trip (FoundationDB).
///
/// A poll after completion gives [`StoreError::Fatal`].
pub enum StoreFuture<'t, T> {
    /// The result is ready, or was taken.
    Ready(Option<Result<T, StoreError>>),
    /// The result is pending.
    Pending(Pin<Box<dyn Future<Output = Result<T, StoreError>> + 't>>),
}

#[derive(Debug, thiserror::Error)]
#[error("a result of the store was asked for twice")]
struct PolledAgain;

impl<T> StoreFuture<'_, T> {
    /// A result that is ready.
    pub fn ready(result: Result<T, StoreError>) -> Self {
        StoreFuture::Ready(Some(result))
    }
}

impl<T: Unpin> Future for StoreFuture<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let result = match this {
            StoreFuture::Ready(result) => result.take(),
            StoreFuture::Pending(future) => Some(ready!(future.as_mut().poll(context))),
        };
        *this = StoreFuture::Ready(None);
        Poll::Ready(result.unwrap_or_else(|| Err(StoreError::Fatal(Arc::new(PolledAgain)))))
    }
}

/// Reads one snapshot of the store, with the transaction's own writes.
pub trait ReadTransaction {
    /// The value of one key.
    fn get<'t>(&'t self, key: &[u8], isolation: Isolation) -> StoreFuture<'t, Option<Bytes>>;

    /// The rows of a range, at most `query.limit`, in the order asked for.
    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>>;

    /// The first rows of a range. A store whose rows may be large ends after the row at which keys
    /// and values reach `bytes_max`. So fewer than `query.limit` rows with fewer bytes are all rows
    /// of the range.
    fn get_page<'t>(
        &'t self,
        query: RangeQuery<'_>,
        _bytes_max: usize,
    ) -> StoreFuture<'t, Vec<KeyValue>> {
        self.get_range(query)
    }

    /// Gives the value that a key has in the snapshot to a transaction that caches its reads. The
    /// caller knows it from other rows. A later read of the key conflicts as any other, but need
    /// not ask the store.
    fn cache_value(&self, key: &[u8], value: &Bytes);

    /// Announces what will be read next, one by one. A store with rows in memory may wait for the
    /// memory of all of them at once. Other stores need not do anything.
    fn warm(&self, _soon: &[SoonRead]) {}
}

/// An announced read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SoonRead {
    /// The row with this key.
    Row(Vec<u8>),
    /// The first row whose key begins with this.
    First(Vec<u8>),
    /// The last row whose key begins with this.
    Last(Vec<u8>),
}

/// A transaction that writes. Its own later reads see the writes. Others see them after the commit.
/// A write does not fail: the commit returns the first error. A transaction that is dropped
/// without a commit changes nothing.
pub trait Transaction: ReadTransaction {
    /// Sets a key.
    fn set(&self, key: &[u8], value: &[u8]);

    /// Removes a key.
    fn clear(&self, key: &[u8]);

    /// Removes every key in `begin..end`.
    fn clear_range(&self, begin: &[u8], end: &[u8]);

    /// Adds to a counter (8 bytes, little-endian; absent counts as 0) without reading it, so
    /// that concurrent additions never conflict. Wraps around on overflow.
    fn atomic_add(&self, key: &[u8], delta: i64);

    /// Appends rows to a log. A row's key is the log's prefix, a stamp of 10 bytes and the row's
    /// number in 2 bytes. The commit chooses the stamp (FoundationDB: a versionstamp), larger than
    /// those of all existing rows. Conflicts with no other transaction.
    ///
    /// Must be called at most once for a prefix. Whether the transaction's own reads see the rows
    /// depends on the store.
    fn append(&self, prefix: &[u8], values: &[Bytes]);

    /// Lowers an unsigned number (8 bytes, little-endian) to `value` if it is greater or absent,
    /// without reading it, so that concurrent minima never conflict. Missing high bytes
    /// count as 0. Bytes after the eighth are dropped.
    fn atomic_min(&self, key: &[u8], value: u64);

    /// Makes this transaction conflict with any other that writes in `begin..end`, as if it had
    /// read the range.
    fn add_read_conflict_range(&self, begin: &[u8], end: &[u8]);

    /// Makes this transaction conflict on `range`, whose rows it is about to clear. It may spare
    /// the conflict if all of these rows are its own: the snapshot is known to hold nothing in
    /// `section`, and the transaction clears all rows that it has set there so far. See
    /// docs/understand/decisions/013-own-elements.md.
    ///
    /// `range` is at one end of `section`. No other transaction may set the same keys there
    /// without a conflict.
    ///
    /// Returns whether it conflicts for certain.
    fn add_conflict_unless_own(&self, section: (&[u8], &[u8]), range: (&[u8], &[u8])) -> bool;

    /// Makes [`Transaction::add_conflict_unless_own`] conflict always from now on. For operations
    /// that change several keys at one moment.
    fn conflict_on_own_rows(&self);

    /// Opens a savepoint. It ends with [`Transaction::rollback`] or [`Transaction::release`].
    /// Savepoints nest: when one ends, those opened after it end too. A commit keeps the writes
    /// since those that are still open.
    ///
    /// A savepoint costs nanoseconds, so that one can be taken before every command. While one is
    /// open, the transaction logs what each write replaces.
    fn savepoint(&self) -> Savepoint;

    /// Undoes all writes since a savepoint, and ends it. Later reads, the commit and
    /// [`Transaction::mutation_count`] are as if these writes had not been made, and errors that
    /// they caused are forgotten.
    ///
    /// Conflict ranges added since then stay, and count in [`Transaction::size_bytes`], because the
    /// reply of the undone command may depend on what it read.
    fn rollback(&self, savepoint: Savepoint);

    /// Ends a savepoint and keeps the writes since then.
    fn release(&self, savepoint: Savepoint);

    /// About how many bytes the commit will carry: keys, values and conflict ranges.
    fn size_bytes(&self) -> usize;

    /// Number of writes that were not undone.
    fn mutation_count(&self) -> u64;

    /// Whether the store accepted more data when this transaction began.
    fn growth(&self) -> Growth {
        Growth::Free
    }

    /// Bytes by which this transaction enlarges the data, negative if it shrinks it. Counted only
    /// while the disk is full ([`Growth::DiskFull`]), because every write then has to read what it
    /// replaces.
    fn grown_bytes(&self) -> i64 {
        0
    }

    /// Bytes by which it may enlarge the data although the disk is full.
    fn spare_bytes(&self) -> i64 {
        i64::MAX
    }

    /// Makes the writes durable and visible, all or none.
    ///
    /// # Errors
    /// Every variant of [`StoreError`] except `Corrupt`. Only after `UnknownResult` may the
    /// writes have been applied.
    fn commit<'t>(self: Box<Self>) -> StoreFuture<'t, ()>
    where
        Self: 't;
}

/// What a store can do, for code that depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Capabilities {
    /// The store's name in INFO and logs.
    pub name: &'static str,
    /// Whether other servers write too. Then transactions conflict, and servers communicate through
    /// the store. Otherwise one transaction writes at a time, in this process, and nothing ever
    /// conflicts.
    pub has_other_writers: bool,
    /// Whether a read is a round trip, so that reads are made concurrently or ahead of their use.
    pub reads_wait: bool,
    /// A transaction fails when it takes longer than some seconds.
    pub bounds_transaction_time: bool,
    /// Whether clearing a range takes about as long as clearing one key, however long the range is.
    pub clears_ranges_at_once: bool,
    /// A commit may end with [`StoreError::UnknownResult`].
    pub has_unknown_results: bool,
    /// Size at which a batch should be committed, in bytes.
    pub batch_bytes_soft_max: usize,
    /// Size above which a transaction is refused, in bytes.
    pub transaction_bytes_max: usize,
    /// Longest name of a client's key, in bytes.
    pub key_name_bytes_max: usize,
    /// Number of write transactions that should be in flight at once.
    pub parallel_batches: usize,
}

/// Resolves when a watched key may have changed. Dropping it ends the watch.
pub type Watch = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

/// A key's value together with a watch for its next change.
pub struct Watched {
    /// The value when the watch was armed.
    pub value: Option<Bytes>,
    /// Resolves after the value has changed. May also resolve without a change, and may miss a
    /// change back to the same value, so read the key again.
    pub changed: Watch,
}

/// An ordered, transactional, durable map of byte strings.
pub trait Store: Send + Sync + 'static {
    /// What this store can do.
    fn capabilities(&self) -> Capabilities;

    /// Opens a snapshot for reading.
    ///
    /// # Errors
    /// `Unreachable`, `Unavailable` or `Fatal`.
    fn begin_read(&self) -> Result<Box<dyn ReadTransaction + '_>, StoreError>;

    /// Opens a transaction for reading and writing.
    ///
    /// # Errors
    /// `Unreachable`, `Unavailable` or `Fatal`.
    fn begin_write(&self) -> Result<Box<dyn Transaction + '_>, StoreError>;

    /// A snapshot that is dropped before its thread does anything else. It may delay all others.
    /// `None` if `waits` is not set and a short write transaction is open.
    ///
    /// # Errors
    /// `Unreachable`, `Unavailable` or `Fatal`.
    fn begin_short_read(
        &self,
        _waits: bool,
    ) -> Result<Option<Box<dyn ReadTransaction + '_>>, StoreError> {
        self.begin_read().map(Some)
    }

    /// A transaction that ends before its thread does anything else. It may delay all others,
    /// including readers.
    ///
    /// # Errors
    /// `Unreachable`, `Unavailable` or `Fatal`.
    fn begin_short_write(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        self.begin_write()
    }

    /// Tells the store that there is no row in `begin..end`, and that nobody else writes one, so
    /// that it need not look for rows there.
    fn note_empty(&self, _begin: &[u8], _end: &[u8]) {}

    /// Reads a key and watches it.
    fn watch<'t>(&'t self, key: &[u8]) -> StoreFuture<'t, Watched>;

    /// Whether it answered the last request.
    fn is_reachable(&self) -> bool {
        true
    }

    /// The store's id, if it has one. It never changes. A store restored from a backup has another
    /// one.
    fn id(&self) -> Option<String> {
        None
    }

    /// Bytes that the store takes on disk, if known.
    fn disk_bytes(&self) -> Option<u64> {
        None
    }

    /// Bytes that are free on the store's disk, if known.
    fn disk_free_bytes(&self) -> Option<u64> {
        None
    }

    /// Bytes that are free on that disk when it counts as nearly full, if known.
    fn disk_nearly_full_bytes(&self) -> Option<u64> {
        None
    }

    /// Bytes of its data file that are in use, if known. The rest of the file is free pages.
    fn disk_used_bytes(&self) -> Option<u64> {
        None
    }

    /// Bytes of commits in the journal that the last checkpoint does not cover, if there is a journal.
    /// Does not wait for a sync.
    fn journal_bytes(&self) -> Option<u64> {
        None
    }

    /// How long syncs of the journal took, if there is a journal.
    fn sync_durations(&self) -> Option<&Durations> {
        None
    }

    /// Whether a write transaction can begin at once. If not, beginning one may wait for room or for another,
    /// and blocks its thread meanwhile.
    fn is_ready(&self) -> bool;

    /// Whether it takes more data.
    fn growth(&self) -> Growth {
        Growth::Free
    }

    /// Bytes of its data, as far as known. They are compared with the bound.
    fn data_bytes(&self) -> Option<u64> {
        None
    }

    /// Bounds [`Self::data_bytes`] by a number that may change at any time; 0 is no bound. Only the first
    /// call counts. A store that does not know its size has no bound.
    fn bound_data(&self, _bytes_max: Arc<AtomicU64>) {}
}

/// Whether a store takes more data. Removing is always possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// Yes.
    Free,
    /// No: its data has reached the bound that was set.
    AtBound,
    /// No, because the disk is full.
    DiskFull,
}
