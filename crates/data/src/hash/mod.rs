//! Hashes: fields with values.
//!
//! What they share is in [`crate::fields`].

pub mod commands;

mod kind;

pub use kind::KIND;
