//! The one implementation of cryptography that is linked.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// ring.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
