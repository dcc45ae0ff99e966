//! Watches of the embedded store, and the keys that a transaction touched.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use quoin_base::limits;
use quoin_store::StoreError;

/// Bytes of keys that a transaction remembers for watches. A transaction that wrote more wakes all
/// watches.
pub(super) const TOUCHED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of cleared ranges that a transaction remembers for watches. A transaction that
/// cleared more wakes all watches.
const TOUCHED_RANGES_MAX: usize = 1024;

#[derive(Debug, thiserror::Error)]
#[error("more than {} watches are open", limits::EMBEDDED_WATCHES_MAX)]
struct TooManyWatches;

/// The watches of one store.
#[derive(Debug, Default)]
pub(super) struct WatchRegistry {
    /// Number of open watches. If there are none, a transaction skips its bookkeeping.
    count: AtomicUsize,
    waiters: Mutex<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    next_id: u64,
    by_key: BTreeMap<Key, Vec<Waiter>>,
}

/// A watch's number, and its sender.
type Waiter = (u64, oneshot::Sender<()>);

type Key = Box<[u8]>;

impl WatchRegistry {
    /// Whether any watch is open.
    pub(super) fn is_used(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Opens a watch. Read the key after this, so that no change in between is missed.
    pub(super) fn register(self: &Arc<Self>, key: &[u8]) -> Result<WatchHandle, StoreError> {
        let mut waiters = self.lock();
        if self.count.load(Ordering::SeqCst) >= limits::EMBEDDED_WATCHES_MAX {
            return Err(StoreError::Unavailable(Arc::new(TooManyWatches)));
        }
        let (sender, receiver) = oneshot::channel();
        let id = waiters.next_id;
        waiters.next_id += 1;
        waiters
            .by_key
            .entry(key.into())
            .or_default()
            .push((id, sender));
        self.count.fetch_add(1, Ordering::SeqCst);
        Ok(WatchHandle {
            registry: Arc::clone(self),
            key: key.into(),
            id,
            receiver,
        })
    }

    /// Wakes the watches of keys that a committed transaction touched.
    pub(super) fn notify(&self, touched: &Touched) {
        if !self.is_used() {
            return;
        }
        let mut waiters = self.lock();
        let mut woken = Vec::new();
        if touched.is_complete() {
            for key in touched.keys() {
                woken.extend(waiters.by_key.remove(key).into_iter().flatten());
            }
            for (begin, end) in &touched.ranges {
                let bounds = (
                    Bound::Included(begin.as_ref()),
                    Bound::Excluded(end.as_ref()),
                );
                let keys: Vec<Key> = waiters
                    .by_key
                    .range::<[u8], _>(bounds)
                    .map(|(key, _)| key.clone())
                    .collect();
                for key in keys {
                    woken.extend(waiters.by_key.remove(&key).into_iter().flatten());
                }
            }
        } else {
            woken.extend(std::mem::take(&mut waiters.by_key).into_values().flatten());
        }
        self.count.fetch_sub(woken.len(), Ordering::SeqCst);
        drop(waiters);
        for (_, sender) in woken {
            // A watch that was dropped need not be woken.
            let _ = sender.send(());
        }
    }

    fn remove(&self, key: &[u8], id: u64) {
        let mut waiters = self.lock();
        let Some(of_key) = waiters.by_key.get_mut(key) else {
            return;
        };
        let before = of_key.len();
        of_key.retain(|(other, _)| *other != id);
        let removed = before - of_key.len();
        if of_key.is_empty() {
            waiters.by_key.remove(key);
        }
        self.count.fetch_sub(removed, Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch. It resolves after the first commit that touches its key, and ends when dropped.
pub(super) struct WatchHandle {
    registry: Arc<WatchRegistry>,
    key: Key,
    id: u64,
    receiver: oneshot::Receiver<()>,
}

impl Future for WatchHandle {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // If the sender is gone, so is the store. The caller finds out when it is woken.
        Pin::new(&mut self.receiver).poll(context).map(|_| Ok(()))
    }
}

impl Drop for WatchHandle {
    fn drop(&mut self) {
        self.registry.remove(&self.key, self.id);
    }
}

/// The keys that a transaction wrote, if there are watches.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// Whether every write is noted. A transaction that began before the first watch does not know
    /// what it wrote. It wakes all watches, because a watch may resolve without a change.
    is_tracking: bool,
    /// Keys, one after the other. This is cheaper than an allocation for each.
    key_bytes: Vec<u8>,
    key_ends: Vec<usize>,
    ranges: Vec<(Key, Key)>,
}

impl Touched {
    pub(super) fn new(is_tracking: bool) -> Self {
        Self {
            is_tracking,
            ..Self::default()
        }
    }

    pub(super) fn key(&mut self, key: &[u8]) {
        if self.is_tracking {
            self.key_bytes.extend_from_slice(key);
            self.key_ends.push(self.key_bytes.len());
            self.bound();
        }
    }

    pub(super) fn range(&mut self, begin: &[u8], end: &[u8]) {
        if self.is_tracking && begin < end {
            self.ranges.push((begin.into(), end.into()));
            self.bound();
        }
    }

    fn bound(&mut self) {
        if self.key_bytes.len() > TOUCHED_BYTES_MAX || self.ranges.len() > TOUCHED_RANGES_MAX {
            *self = Self::default();
        }
    }

    fn is_complete(&self) -> bool {
        self.is_tracking
    }

    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.key_ends.iter().filter_map(move |&end| {
            let key = self.key_bytes.get(start..end);
            start = end;
            key
        })
    }
}
