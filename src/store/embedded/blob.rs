//! The bytes of layers.

use std::sync::Arc;

/// Bytes that are kept once however many layers have them.
pub(super) type Blob = Arc<[u8]>;
