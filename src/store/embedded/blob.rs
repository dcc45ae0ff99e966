//! The bytes of layers.

use std::sync::Arc;

use smallvec::SmallVec;

/// Bytes of a key that lie within its entry of a layer. A search compares the keys of few entries that
/// lie side by side, and would wait for the memory of each if they were elsewhere. Nearly all keys are
/// shorter than this.
const INLINE_KEY_BYTES: usize = 40;

/// A key of a layer's entry.
pub(super) type Key = SmallVec<[u8; INLINE_KEY_BYTES]>;

/// Bytes that layers share.
pub(super) type Blob = Arc<[u8]>;
