//! The bytes of layers.

use std::sync::Arc;

/// Bytes that layers share.
pub(super) type Blob = Arc<[u8]>;
