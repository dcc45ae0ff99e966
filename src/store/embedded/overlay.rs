//! What is durable in the journal and not in the data file yet, and what readers see of it.
//!
//! Commits go into the newest layer. Now and then that is closed: another begins over it, and
//! the [drain](super::drain) writes it into the data file while commits go on. A layer leaves
//! when the data file has all of it; until then it hides how far the drain has come.
//!
//! A reader takes layers and a snapshot of the data file under one lock, which every change of
//! the layers takes too. So the data file of its snapshot has nothing newer than its layers: what
//! the drain had written by then is of a layer that the reader has, or that left before.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use heed::{Env, RoTxn, WithoutTls};

use super::layer::Layer;

/// Readers' layers, the newest first, and their snapshot of the data file.
pub(super) type Snapshot<'s> = (Vec<Layer>, RoTxn<'s, WithoutTls>);

/// A layer that takes no more commits.
#[derive(Debug, Clone)]
pub(super) struct Closed {
    pub(super) layer: Layer,
    /// Number of the last journal record in it.
    pub(super) sequence: u64,
}

/// The layers over the data file.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    state: Mutex<State>,
    /// Memory of all layers, about.
    bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    newest: Layer,
    /// Number of the last journal record in `newest`, or before it where that is empty.
    sequence: u64,
    /// The oldest first.
    closed: VecDeque<Closed>,
}

impl Overlay {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory that the layers take, about, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::SeqCst)
    }

    /// What a transaction that begins now sees. `above` empty layers lie over it.
    ///
    /// # Errors
    /// When the data file has no place for another reader.
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

    /// Says with which commit the data file begins.
    pub(super) fn begin_behind(&self, sequence: u64) {
        self.lock().sequence = sequence;
    }

    /// Number of the last commit.
    pub(super) fn sequence(&self) -> u64 {
        self.lock().sequence
    }

    /// What a reader that begins now sees, which may outlive the store, and the number of the last
    /// commit in it.
    ///
    /// # Errors
    /// When the data file has no place for another reader.
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

    /// Makes a transaction visible that is in the journal by this number. Answers the newest
    /// layer's bytes, and whether others wait for the drain.
    pub(super) fn publish(&self, writes: Layer, sequence: u64) -> (usize, bool) {
        let mut state = self.lock();
        let before = state.newest.bytes();
        state.newest.absorb(writes);
        state.sequence = sequence;
        let after = state.newest.bytes();
        self.bytes.fetch_add(after, Ordering::SeqCst);
        self.bytes.fetch_sub(before, Ordering::SeqCst);
        (after, !state.closed.is_empty())
    }

    /// Closes the newest layer, where there is anything in it. To be called with the writer's
    /// lock.
    pub(super) fn close_newest(&self) {
        let mut state = self.lock();
        if state.newest.is_empty() {
            return;
        }
        let layer = std::mem::take(&mut state.newest);
        let sequence = state.sequence;
        state.closed.push_back(Closed { layer, sequence });
    }

    /// The layer that is to be drained first.
    pub(super) fn oldest_closed(&self) -> Option<Closed> {
        self.lock().closed.front().cloned()
    }

    /// Number of the last record in a closed layer.
    pub(super) fn last_closed(&self) -> Option<u64> {
        self.lock().closed.back().map(|closed| closed.sequence)
    }

    /// Lets a closed layer go: the data file has it.
    pub(super) fn remove(&self, drained: &Closed) {
        let mut state = self.lock();
        let is_oldest = |first: &Closed| first.sequence == drained.sequence;
        let removed = match state.closed.front() {
            Some(first) if is_oldest(first) => state.closed.pop_front(),
            _ => None,
        };
        // What only this had is freed without the lock.
        drop(state);
        if let Some(removed) = removed {
            self.bytes
                .fetch_sub(removed.layer.bytes(), Ordering::SeqCst);
        }
    }
}
