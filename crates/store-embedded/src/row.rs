//! A row in memory: key, value and what the write-back needs, in one allocation.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use triomphe::ThinArc;

/// A generation that no written row has. Rows that were read from the data file have it.
pub(super) const LOADED: u32 = 0;

/// Estimated memory that a row takes in addition to its key and value: its header, its share of the
/// tree's nodes and its place in the write-back.
const ROW_BYTES: usize = 96;

/// A read shares the memory of a row with at least this many bytes. Shorter rows are copied, which
/// is cheaper.
pub(super) const SHARED_BYTES_MIN: usize = 512;

/// A row. Clones share its memory.
#[derive(Clone)]
pub(super) struct Row(ThinArc<Header, u8>);

struct Header {
    origin: Origin,
    /// No key is longer than a data file accepts, about 2,000 bytes.
    key_bytes: u16,
    /// Whether it was read since the eviction last passed.
    is_used: AtomicBool,
}

/// Where a row came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    /// The generation of commits that wrote it, or [`LOADED`].
    pub(super) generation: u32,
    /// Its slot in that generation.
    pub(super) slot: u32,
    /// Whether the data file may have had a row with this key when the generation began.
    pub(super) may_be_on_disk: bool,
}

impl Origin {
    /// Of a row that was read from the data file.
    pub(super) const DISK: Origin = Origin {
        generation: LOADED,
        slot: 0,
        may_be_on_disk: true,
    };
}

impl Row {
    /// Copies a key and a value. `scratch` is only memory.
    pub(super) fn new(scratch: &mut Vec<u8>, key: &[u8], value: &[u8], origin: Origin) -> Self {
        scratch.clear();
        scratch.extend_from_slice(key);
        scratch.extend_from_slice(value);
        let header = Header {
            origin,
            key_bytes: u16::try_from(key.len()).unwrap_or(u16::MAX),
            is_used: AtomicBool::new(true),
        };
        Self(ThinArc::from_header_and_slice(header, scratch))
    }

    pub(super) fn key(&self) -> &[u8] {
        self.split().0
    }

    pub(super) fn value(&self) -> &[u8] {
        self.split().1
    }

    pub(super) fn split(&self) -> (&[u8], &[u8]) {
        let key_bytes = usize::from(self.0.header.header.key_bytes);
        let split = self.0.slice.split_at_checked(key_bytes);
        // The slice contains the key at its beginning.
        split.unwrap_or_default()
    }

    pub(super) fn origin(&self) -> Origin {
        self.0.header.header.origin
    }

    /// Bytes of its key and value.
    pub(super) fn length(&self) -> usize {
        self.0.slice.len()
    }

    /// Its key and value, sharing its memory.
    pub(super) fn share(&self) -> (Bytes, Bytes) {
        let mut key = Bytes::from_owner(self.clone());
        let value = key.split_off(self.key().len());
        (key, value)
    }

    /// Its address.
    pub(super) fn address(&self) -> *const std::ffi::c_void {
        self.0.as_ptr()
    }

    /// Estimated memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.length() + ROW_BYTES
    }

    /// Notes that it was read.
    pub(super) fn note_use(&self) {
        let is_used = &self.0.header.header.is_used;
        // A store would take the cache line away from other threads.
        if !is_used.load(Ordering::Relaxed) {
            is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was read since this was last asked.
    pub(super) fn take_use(&self) -> bool {
        let is_used = &self.0.header.header.is_used;
        is_used.load(Ordering::Relaxed) && is_used.swap(false, Ordering::Relaxed)
    }
}

impl AsRef<[u8]> for Row {
    fn as_ref(&self) -> &[u8] {
        &self.0.slice
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Row").field(&self.split()).finish()
    }
}
