//! The FoundationDB store's transactions.

use std::cell::{Cell, RefCell};
use std::future::Future;

use bytes::Bytes;
use foundationdb::future::FdbValues;
use foundationdb::options::{ConflictRangeType, MutationType, StreamingMode, TransactionOption};
use foundationdb::{FdbError, FdbResult, RangeOption, Transaction as RawTransaction};

use super::error::{commit_error, is_timeout, may_be_in_flight, read_error};
use super::store::FdbStore;
use quoin_base::limits;
use quoin_store::page::{self, Row};
use quoin_store::read_your_writes::{BaseTransaction, clear_bytes, conflict_bytes, set_bytes};
use quoin_store::rules::{STAMP_BYTES, stamped_key};
use quoin_store::{KeyValue, RangeQuery, StoreError, StoreFuture};

/// Maximum number of attempts to ensure that a timed-out commit is no longer in flight.
const FENCE_ATTEMPTS_MAX: u32 = 16;
/// Timeout of one such attempt, unless the cluster is away.
const FENCE_TIMEOUT_MS: i32 = 10_000;
/// Maximum number of rows that a range read fetches in one page. With a higher limit, FoundationDB chooses the page
/// size.
const EXACT_ROWS_MAX: usize = 8_192;

/// Reads cause no conflicts. `ReadYourWrites` adds the conflicts at the commit.
const IS_SNAPSHOT: bool = true;

/// The prefix of a fence's key. The key is used only in conflict ranges and never written.
const FENCE_PREFIX: &[u8] = b"quoin fence/";

fn get<'t>(
    store: &'t FdbStore,
    transaction: &RawTransaction,
    key: &[u8],
) -> StoreFuture<'t, Option<Bytes>> {
    let answer = transaction.get(key, IS_SNAPSHOT);
    StoreFuture::Pending(Box::pin(async move {
        let value = store.reachability.note(answer.await).map_err(read_error)?;
        Ok(value.as_deref().map(Bytes::copy_from_slice))
    }))
}

fn get_range<'t>(
    store: &'t FdbStore,
    transaction: &'t RawTransaction,
    query: RangeQuery<'_>,
) -> StoreFuture<'t, Vec<KeyValue>> {
    // FoundationDB treats a limit of 0 as no limit.
    if query.limit == 0 || query.begin >= query.end {
        return StoreFuture::ready(Ok(Vec::new()));
    }
    let mode = if query.limit <= EXACT_ROWS_MAX {
        StreamingMode::Exact
    } else {
        StreamingMode::WantAll
    };
    let range = RangeOption {
        limit: Some(query.limit),
        mode,
        reverse: query.reverse,
        ..RangeOption::from((query.begin.to_vec(), query.end.to_vec()))
    };
    // Sent at once, so that several reads can be in flight together.
    let first = transaction.get_range(&range, 1, IS_SNAPSHOT);
    StoreFuture::Pending(Box::pin(async move {
        let pages = pages(transaction, range, first).await;
        let pages = store.reachability.note(pages).map_err(read_error)?;
        let rows: Vec<Row> = pages
            .iter()
            .flat_map(|page| page.iter())
            .map(|row| (row.key(), row.value()))
            .collect();
        Ok(page::pack(rows.iter().copied()))
    }))
}

async fn pages(
    transaction: &RawTransaction,
    mut range: RangeOption<'static>,
    first: impl Future<Output = FdbResult<FdbValues>>,
) -> Result<Vec<FdbValues>, FdbError> {
    let mut page = first.await?;
    let mut pages = Vec::new();
    loop {
        let next = range.next_range(&page);
        pages.push(page);
        let Some(next) = next else {
            return Ok(pages);
        };
        range = next;
        page = transaction
            .get_range(&range, pages.len() + 1, IS_SNAPSHOT)
            .await?;
    }
}

/// A transaction of the cluster. Its snapshot is taken at the first read.
pub(super) struct FdbTransaction<'s> {
    store: &'s FdbStore,
    transaction: RawTransaction,
    size_bytes: Cell<usize>,
    /// The first error of a write. The commit returns it.
    failure: RefCell<Option<StoreError>>,
}

impl<'s> FdbTransaction<'s> {
    pub(super) fn new(store: &'s FdbStore, transaction: RawTransaction) -> Self {
        Self {
            store,
            transaction,
            size_bytes: Cell::new(0),
            failure: RefCell::new(None),
        }
    }

    fn count_bytes(&self, bytes: usize) {
        let size_bytes = self.size_bytes.get().saturating_add(bytes);
        self.size_bytes.set(size_bytes);
    }

    async fn finish(self) -> Result<(), StoreError> {
        if let Some(failure) = self.failure.into_inner() {
            return Err(failure);
        }
        if self.size_bytes.get() > limits::FDB_TRANSACTION_BYTES_MAX {
            return Err(StoreError::TooLarge);
        }
        if self.store.reachability.is_away() {
            // Otherwise a transaction that has not read yet would request its read version during
            // the commit, and we could not know that nothing has been sent.
            let version = self.transaction.get_read_version().await;
            self.store.reachability.note(version).map_err(read_error)?;
        }
        let fence = Fence::new(self.store);
        fence.add_to(&self.transaction, true).map_err(read_error)?;
        let committed = self.transaction.commit().await.map_err(FdbError::from);
        match self.store.reachability.note(committed) {
            Ok(_) => Ok(()),
            Err(error) => {
                if may_be_in_flight(error) {
                    fence.close(self.store).await;
                }
                Err(commit_error(error))
            }
        }
    }
}

/// A key that ensures that a commit is no longer in flight.
///
/// After a timeout, FoundationDB does not say whether the commit is still in flight. The
/// transaction has a conflict range on its fence. Once another transaction has committed a write
/// conflict on the fence, the first one has either been applied or never will be. Then the caller
/// can check, and run it again. (FoundationDB does the same before it returns
/// `commit_unknown_result`.)
struct Fence {
    begin: Vec<u8>,
    end: Vec<u8>,
}

impl Fence {
    fn new(store: &FdbStore) -> Self {
        let mut begin = FENCE_PREFIX.to_vec();
        begin.extend_from_slice(&store.random.next_u64().to_be_bytes());
        begin.extend_from_slice(&store.random.next_u64().to_be_bytes());
        let mut end = begin.clone();
        end.push(0);
        Self { begin, end }
    }

    fn add_to(&self, transaction: &RawTransaction, with_read: bool) -> Result<(), FdbError> {
        let add = |kind| transaction.add_conflict_range(&self.begin, &self.end, kind);
        if with_read {
            add(ConflictRangeType::Read)?;
        }
        add(ConflictRangeType::Write)
    }

    /// Returns when the transaction with the fence is no longer in flight, or after a timeout. After a timeout, a
    /// slow cluster may still apply the transaction until it is too old.
    async fn close(&self, store: &FdbStore) {
        for _ in 0..FENCE_ATTEMPTS_MAX {
            match self.try_close(store).await {
                Ok(()) => return,
                Err(error) if is_timeout(error) => break,
                Err(error) => tracing::debug!(code = error.code(), "fence is not closed"),
            }
        }
        tracing::warn!("cannot tell whether a commit that timed out is still in progress");
    }

    async fn try_close(&self, store: &FdbStore) -> Result<(), FdbError> {
        let transaction = store.database.create_trx()?;
        let timeout_ms = store.reachability.timeout_ms(FENCE_TIMEOUT_MS);
        transaction.set_option(TransactionOption::Timeout(timeout_ms))?;
        self.add_to(&transaction, false)?;
        let committed = transaction.commit().await.map_err(FdbError::from);
        store.reachability.note(committed).map(drop)
    }
}

impl BaseTransaction for FdbTransaction<'_> {
    fn get<'t>(&'t self, key: &[u8]) -> StoreFuture<'t, Option<Bytes>> {
        get(self.store, &self.transaction, key)
    }

    fn get_range<'t>(&'t self, query: RangeQuery<'_>) -> StoreFuture<'t, Vec<KeyValue>> {
        get_range(self.store, &self.transaction, query)
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.count_bytes(set_bytes(key, value.len()));
        self.transaction.set(key, value);
    }

    fn clear(&self, key: &[u8]) {
        self.count_bytes(clear_bytes(key));
        self.transaction.clear(key);
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        self.count_bytes(2 * conflict_bytes(begin, end));
        // FoundationDB aborts the process if a range is inverted.
        if begin < end {
            self.transaction.clear_range(begin, end);
        }
    }

    fn atomic_add(&self, key: &[u8], delta: i64) {
        self.count_bytes(set_bytes(key, size_of::<i64>()));
        self.transaction
            .atomic_op(key, &delta.to_le_bytes(), MutationType::Add);
    }

    fn append(&self, prefix: &[u8], values: &[Bytes]) {
        let Ok(stamp_at) = u32::try_from(prefix.len()) else {
            return;
        };
        for (number, value) in (0_u16..).zip(values) {
            let mut key = stamped_key(prefix, &[0; STAMP_BYTES], number);
            self.count_bytes(set_bytes(&key, value.len()));
            // The offset of the stamp for FoundationDB. It is not part of the key.
            key.extend_from_slice(&stamp_at.to_le_bytes());
            self.transaction
                .atomic_op(&key, value, MutationType::SetVersionstampedKey);
        }
    }

    fn atomic_min(&self, key: &[u8], value: u64) {
        self.count_bytes(set_bytes(key, size_of::<u64>()));
        self.transaction
            .atomic_op(key, &value.to_le_bytes(), MutationType::Min);
    }

    fn add_read_conflict_range(&self, begin: &[u8], end: &[u8]) {
        if begin >= end {
            return;
        }
        self.count_bytes(conflict_bytes(begin, end));
        let added = self
            .transaction
            .add_conflict_range(begin, end, ConflictRangeType::Read);
        if let Err(error) = added {
            self.failure
                .borrow_mut()
                .get_or_insert_with(|| read_error(error));
        }
    }

    fn commit<'t>(self: Box<Self>) -> StoreFuture<'t, ()>
    where
        Self: 't,
    {
        StoreFuture::Pending(Box::pin(self.finish()))
    }
}
