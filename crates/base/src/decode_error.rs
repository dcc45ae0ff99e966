//! What reading stored bytes fails with. The layout reads them, the store hands them out, and neither
//! knows the other.

/// Stored bytes that are not of this layout; what they should have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stored bytes are not of this layout: {0}")]
pub struct DecodeError(pub &'static str);
