//! Hashes: fields with values.
//!
//! What they share is in [`super::fields`].

mod kind;

pub use kind::KIND;
