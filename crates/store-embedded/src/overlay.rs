//! Commits that are in the journal but not yet in the data file.
//!
//! Commits go into the newest layer. When it is large it is closed, and another begins. The
//! [drain](super::drain) writes the closed layer into the data file while commits continue. A layer
//! is removed once the data file has all of it. Until then it hides the progress of the drain.
//!
//! A reader takes the layers and a snapshot of the data file under one lock. Every change of the
//! layers takes that lock too, so the snapshot has nothing newer than the layers: what the drain
//! has written is from a layer that the reader has, or from one removed earlier.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use heed::{Env, RoTxn, WithoutTls};

use super::layer::Layer;

/// A reader's layers, newest first, and its snapshot of the data file.
pub(super) type Snapshot<'s> = (Vec<Layer>, RoTxn<'s, WithoutTls>);

/// A layer that takes no more commits.
#[derive(Debug, Clone)]
pub(super) struct Closed {
    pub(super) layer: Layer,
    /// Number of the last journal record in it.
    pub(super) sequence: u64,
}

/// The layers above the data file.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    state: Mutex<State>,
    /// Estimated memory of all layers, in bytes.
    bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    newest: Layer,
    /// Number of the last journal record in `newest` or, if that is empty, before it.
    sequence: u64,
    /// Oldest first.
    closed: VecDeque<Closed>,
}

impl Overlay {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Estimated memory of the layers, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::SeqCst)
    }

    /// What a transaction that begins now sees, beneath `above` empty layers.
    ///
    /// # Errors
    /// If too many readers are open.
    pub(super) fn snapshot<'s>(
        &self,
        environment: &'s Env<WithoutTls>,
        above: usize,
    ) -> Result<Snapshot<'s>, heed::Error> {
        let mut layers = vec![Layer::default(); above];
        let state = self.lock();
        let transaction = environment.read_txn()?;
        let newest = (!state.newest.is_empty()).then_some(&state.newest);
        let closed = state.closed.iter().rev().map(|closed| &closed.layer);
        layers.extend(newest.into_iter().chain(closed).cloned());
        drop(state);
        Ok((layers, transaction))
    }

    /// Sets the number of the last commit in the data file.
    pub(super) fn begin_after(&self, sequence: u64) {
        self.lock().sequence = sequence;
    }

    /// Number of the last commit.
    pub(super) fn sequence(&self) -> u64 {
        self.lock().sequence
    }

    /// What a reader that begins now sees, and the number of the last commit in it. The snapshot
    /// may outlive the store.
    ///
    /// # Errors
    /// If too many readers are open.
    pub(super) fn numbered_snapshot(
        &self,
        environment: &Env<WithoutTls>,
    ) -> Result<(Snapshot<'static>, u64), heed::Error> {
        let state = self.lock();
        let transaction = environment.clone().static_read_txn()?;
        let newest = (!state.newest.is_empty()).then_some(&state.newest);
        let closed = state.closed.iter().rev().map(|closed| &closed.layer);
        let layers = newest.into_iter().chain(closed).cloned().collect();
        Ok(((layers, transaction), state.sequence))
    }

    /// Makes a transaction visible. `sequence` is its number in the journal. Returns the size of
    /// the newest layer in bytes, and whether closed layers are waiting for the drain.
    pub(super) fn publish(&self, writes: Layer, sequence: u64) -> (usize, bool) {
        let mut state = self.lock();
        let before = state.newest.bytes();
        state.newest.absorb(writes);
        state.newest.filter_if_large();
        state.sequence = sequence;
        let after = state.newest.bytes();
        self.bytes.fetch_add(after, Ordering::SeqCst);
        self.bytes.fetch_sub(before, Ordering::SeqCst);
        (after, !state.closed.is_empty())
    }

    /// Closes the newest layer unless it is empty. Call this with the writer's lock held.
    pub(super) fn close_newest(&self) {
        let mut state = self.lock();
        if state.newest.is_empty() {
            return;
        }
        let layer = std::mem::take(&mut state.newest);
        let sequence = state.sequence;
        state.closed.push_back(Closed { layer, sequence });
    }

    /// The layer to drain first.
    pub(super) fn oldest_closed(&self) -> Option<Closed> {
        self.lock().closed.front().cloned()
    }

    /// Number of the last record in the closed layers.
    pub(super) fn last_closed(&self) -> Option<u64> {
        self.lock().closed.back().map(|closed| closed.sequence)
    }

    /// Removes a closed layer that the data file has.
    pub(super) fn remove(&self, drained: &Closed) {
        let mut state = self.lock();
        let is_oldest = |first: &Closed| first.sequence == drained.sequence;
        let removed = match state.closed.front() {
            Some(first) if is_oldest(first) => state.closed.pop_front(),
            _ => None,
        };
        // Its memory is freed without the lock.
        drop(state);
        if let Some(removed) = removed {
            self.bytes
                .fetch_sub(removed.layer.bytes(), Ordering::SeqCst);
        }
    }
}
