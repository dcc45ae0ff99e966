//! What the store's threads share of its rows in memory.
//!
//! One transaction at a time changes the rows. A short one holds the lock of the rows from its
//! beginning to its end, and others wait for it. A long one works on a copy, which shares whatever
//! it does not change, and installs the copy when it commits. Reads work the same way.
//!
//! Generations are written to the data file one after another. All rows of the generation being
//! written are in memory, so readers do not see how far that has come.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::dirty::{Closed, Dirty};
use super::resident::{EVICTION_ROWS, Resident};
use quoin_base::limits;

/// Rows in memory, and generations that the data file does not have.
#[derive(Debug)]
pub(super) struct Memory {
    live: Mutex<Resident>,
    /// Whether a short transaction that writes has them, or waits for them.
    is_written: AtomicBool,
    /// Number of the last commit.
    sequence: AtomicU64,
    /// Oldest first.
    closed: Mutex<VecDeque<Arc<Closed>>>,
    /// The last generation in the data file.
    drained: AtomicU32,
    /// Estimated memory of what the data file does not have yet, in bytes.
    dirty_bytes: AtomicUsize,
    /// Rows that the data file lacks, at most.
    dirty_rows: AtomicUsize,
    /// Writes wait for the drain while what the data file lacks exceeds this estimate of its
    /// memory, in bytes.
    pub(super) dirty_bytes_max: usize,
    /// The open generation is closed when its estimated memory exceeds this, in bytes.
    pub(super) generation_bytes_max: usize,
}

/// The open generation is closed when its estimated memory exceeds this, in bytes. A large
/// generation changes fewer pages per row.
const GENERATION_BYTES_MAX: usize = 96 * 1024 * 1024;
/// Minimum size of a generation in bytes, even with little memory for rows. Smaller ones would take
/// too long to write.
const GENERATION_BYTES_MIN: usize = 32 * 1024 * 1024;
const DIRTY_BYTES_MIN: usize = 2 * GENERATION_BYTES_MIN;
/// Data that the data file lacks, which cannot be evicted, may take this fraction of the memory for
/// rows.
const DIRTY_PART: usize = 2;
/// The part of the memory for rows that a generation may take.
const GENERATION_PART: usize = 8;

impl Memory {
    pub(super) fn new(resident: Resident, bytes_max: usize) -> Self {
        Self {
            is_written: AtomicBool::new(false),
            sequence: AtomicU64::new(resident.sequence),
            live: Mutex::new(resident),
            closed: Mutex::default(),
            drained: AtomicU32::new(super::row::LOADED),
            dirty_bytes: AtomicUsize::new(0),
            dirty_rows: AtomicUsize::new(0),
            dirty_bytes_max: (bytes_max / DIRTY_PART)
                .clamp(DIRTY_BYTES_MIN, limits::EMBEDDED_DIRTY_BYTES_MAX),
            generation_bytes_max: (bytes_max / GENERATION_PART)
                .clamp(GENERATION_BYTES_MIN, GENERATION_BYTES_MAX),
        }
    }

    /// The rows. Call this with the writer's lock held, or without wanting it.
    pub(super) fn lock(&self) -> MutexGuard<'_, Resident> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows, unless a short transaction writes. All others have them for a moment only.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Resident>> {
        let is_written = self.is_written.load(Ordering::SeqCst);
        (!is_written).then(|| self.lock())
    }

    fn closed(&self) -> MutexGuard<'_, VecDeque<Arc<Closed>>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the last commit. Never waits.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::SeqCst)
    }

    /// Notes the number of the last commit.
    pub(super) fn note_sequence(&self, sequence: u64) {
        self.sequence.store(sequence, Ordering::SeqCst);
    }

    /// The rows, for a short transaction that writes.
    pub(super) fn lock_to_write(&self) -> MutexGuard<'_, Resident> {
        self.is_written.store(true, Ordering::SeqCst);
        self.lock()
    }

    /// Ends a short write transaction.
    pub(super) fn end_write(&self) {
        self.is_written.store(false, Ordering::SeqCst);
    }

    /// Estimated memory of what the data file does not have yet, in bytes.
    pub(super) fn dirty_bytes(&self) -> usize {
        self.dirty_bytes.load(Ordering::SeqCst)
    }

    /// Notes how much the data file lacks. Returns whether closed generations wait for the drain.
    pub(super) fn note_dirty(&self, dirty: &Dirty) -> bool {
        let closed = self.closed();
        let closed_bytes: usize = closed.iter().map(|closed| closed.bytes).sum();
        self.dirty_bytes
            .store(closed_bytes + dirty.bytes(), Ordering::SeqCst);
        let closed_rows: usize = closed.iter().map(|closed| closed.rows.len()).sum();
        let rows = closed_rows + dirty.rows_max();
        self.dirty_rows.store(rows, Ordering::SeqCst);
        !closed.is_empty()
    }

    /// Whether commits may come faster than the drain writes: the data file lacks half of what
    /// would make writes wait.
    pub(super) fn is_drain_behind(&self) -> bool {
        self.dirty_bytes() > self.dirty_bytes_max / 2
    }

    /// Rows that the data file lacks, at most.
    pub(super) fn dirty_rows(&self) -> u64 {
        self.dirty_rows.load(Ordering::SeqCst) as u64
    }

    /// Closes the open generation unless it is empty.
    pub(super) fn close(&self, dirty: &mut Dirty) {
        let live = self.lock();
        let cleared = live.cleared_in(dirty.generation());
        let sequence = live.sequence;
        drop(live);
        if let Some(closed) = dirty.close(cleared, sequence) {
            self.closed().push_back(Arc::new(closed));
        }
        self.note_dirty(dirty);
    }

    /// The generation to drain first.
    pub(super) fn oldest_closed(&self) -> Option<Arc<Closed>> {
        self.closed().front().cloned()
    }

    /// Number of the last record in the closed generations.
    pub(super) fn last_closed(&self) -> Option<u64> {
        self.closed().back().map(|closed| closed.sequence)
    }

    /// Notes that the data file has the oldest closed generation. Call this without the lock of the
    /// rows.
    pub(super) fn note_drained(&self, drained: &Closed) {
        let mut closed = self.closed();
        let is_oldest = |first: &Arc<Closed>| first.generation == drained.generation;
        if closed.front().is_some_and(is_oldest) {
            closed.pop_front();
            // Never below 0: an underflow would make writes wait forever.
            let subtract = |bytes: usize| Some(bytes.saturating_sub(drained.bytes));
            let _ = self
                .dirty_bytes
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, subtract);
            self.drained.store(drained.generation, Ordering::SeqCst);
        }
        // Its memory is freed without the lock.
        drop(closed);
        // What a generation clears may be a large tree. The drain has the last reference to it, so
        // that nobody waits while it is freed.
        let cleared = self.lock().take_cleared(self.drained());
        drop(cleared);
        // Commits alone do not keep up with large batches. New rows are spared once.
        for _ in 0..drained.rows.len().div_ceil(EVICTION_ROWS) * 2 {
            if !self.evict(&mut self.lock(), EVICTION_ROWS) {
                break;
            }
        }
    }

    /// The last generation in the data file.
    pub(super) fn drained(&self) -> u32 {
        self.drained.load(Ordering::SeqCst)
    }

    /// If memory has too many rows, drops some that the data file has. Examines at most `rows_max`.
    /// No open snapshot of the data file may be used for `resident` afterwards. Returns whether
    /// memory had too many.
    pub(super) fn evict(&self, resident: &mut Resident, rows_max: usize) -> bool {
        let is_over = resident.is_over(self.dirty_bytes());
        if is_over {
            resident.evict(self.drained(), rows_max);
        }
        is_over
    }
}
