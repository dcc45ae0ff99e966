//! The error for stored bytes that cannot be decoded. It is here because the layout decodes them
//! and the store returns them, and neither knows the other.

/// Stored bytes that do not follow this layout. Contains what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stored bytes are not of this layout: {0}")]
pub struct DecodeError(pub &'static str);
